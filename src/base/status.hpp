// Status and Result: how every layer below the C interface reports failure.
// A Status that is fine is one null pointer, so that passing it through a hot path costs nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace farsum {

// The same values as farsum_status in farsum.h; src/capi asserts that they stay equal.
enum class Code : std::uint8_t {
  ok = 0,
  not_initialized = 1,
  argument = 2,
  handle = 3,
  rank = 4,
  range = 5,
  alignment = 6,
  type = 7,
  layout = 8,
  sync = 9,
  pending = 10,
  no_memory = 11,
  unreachable = 12,
  peer_failed = 13,
  unsupported = 14,
  system = 15,
};

class [[nodiscard]] Status {
 public:
  Status() noexcept = default;
  Status(Code code, std::string text) : failure_(std::make_unique<Failure>(Failure{code, std::move(text)})) {}

  bool is_ok() const noexcept { return failure_ == nullptr; }
  Code code() const noexcept { return failure_ ? failure_->code : Code::ok; }
  // The whole sentence; empty when fine.
  std::string text() const { return failure_ ? failure_->text : std::string(); }

 private:
  struct Failure {
    Code code;
    std::string text;
  };
  std::unique_ptr<Failure> failure_;
};

// A value, or the reason why there is none.
template <class Value>
class [[nodiscard]] Result {
 public:
  Result(Value value) : value_(std::move(value)) {}                  // NOLINT(google-explicit-constructor)
  Result(Status failure) : status_(std::move(failure)), value_() {}  // NOLINT(google-explicit-constructor)

  bool is_ok() const noexcept { return status_.is_ok(); }
  Status take_status() { return std::move(status_); }
  Value& value() { return value_; }
  const Value& value() const { return value_; }

 private:
  Status status_;
  Value value_;
};

}  // namespace farsum
