// Two workers of one process that know each other's address, driven by one thread, and what they are told.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "transport/ucx/ucx_context.hpp"
#include "transport/ucx/ucx_library.hpp"
#include "transport/ucx/ucx_worker.hpp"

namespace farsum {

using Bytes = std::vector<std::byte>;

inline std::string ucx_library_for_tests() {
  const char* named = std::getenv("FARSUM_UCX_LIBRARY");
  return named != nullptr ? named : "";
}

// Keeps what a worker tells.
class Heard final : public UcxWorker::Events {
 public:
  struct Message {
    unsigned channel;
    Bytes bytes;
  };
  struct Sent {
    UcxWorker::Endpoint endpoint;
    std::uint64_t cookie;
    bool left;
  };
  void on_message(unsigned channel, std::span<const std::byte> message) override {
    messages.push_back({channel, Bytes(message.begin(), message.end())});
  }
  void on_sent(UcxWorker::Endpoint endpoint, std::uint64_t cookie, bool left) override {
    sent.push_back({endpoint, cookie, left});
  }
  void on_broken(UcxWorker::Endpoint endpoint) override { broken.push_back(endpoint); }
  void on_closed(UcxWorker::Endpoint endpoint) override { closed.push_back(endpoint); }

  std::vector<Message> messages;
  std::vector<Sent> sent;
  std::vector<UcxWorker::Endpoint> broken, closed;
};

struct UcxSetUp {
  std::string name;
  UcxOptions options;
};
inline std::string set_up_name(const testing::TestParamInfo<UcxSetUp>& info) { return info.param.name; }
inline void PrintTo(const UcxSetUp& set_up, std::ostream* out) { *out << set_up.name; }  // NOLINT: googletest's name

class TwoWorkers {
 public:
  // Null, with the reason in `refusal`, where this machine has no such transport.
  static std::unique_ptr<TwoWorkers> make(const UcxOptions& options, std::string& refusal) {
    auto made = std::make_unique<TwoWorkers>();
    auto library = UcxLibrary::load(ucx_library_for_tests());
    if (!library.is_ok()) return refuse(library.take_status(), refusal);
    made->library = std::move(library.value());
    auto context = UcxContext::create(*made->library, options);
    if (!context.is_ok()) return refuse(context.take_status(), refusal);
    made->context = std::move(context.value());
    auto a = UcxWorker::create(*made->context, made->heard_by_a);
    if (!a.is_ok()) return refuse(a.take_status(), refusal);
    made->a = std::move(a.value());
    auto b = UcxWorker::create(*made->context, made->heard_by_b);
    if (!b.is_ok()) return refuse(b.take_status(), refusal);
    made->b = std::move(b.value());
    auto tried = made->a->connect(made->b->address());
    if (!tried.is_ok()) return refuse(tried.take_status(), refusal);
    made->a_to_b = tried.value();
    return made;
  }

  // Drives both until the condition holds; ctest's time limit ends what never does.
  template <class Condition>
  void until(Condition condition) {
    while (!condition()) {
      std::size_t found = a ? a->progress() : 0;
      found += b ? b->progress() : 0;
      if (found == 0 && !condition()) doze();
    }
  }

  std::unique_ptr<UcxLibrary> library;
  std::unique_ptr<UcxContext> context;
  Heard heard_by_a, heard_by_b;
  std::unique_ptr<UcxWorker> a, b;
  UcxWorker::Endpoint a_to_b = 0;

 private:
  static std::unique_ptr<TwoWorkers> refuse(const Status& status, std::string& refusal) {
    refusal = status.text();
    return nullptr;
  }
  // Both are looked at again after at most a millisecond, so nothing depends on who is armed.
  static void doze() { poll(nullptr, 0, 1); }
};

}  // namespace farsum
