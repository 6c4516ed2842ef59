// A program's place in a Farsum job: joined on construction, left on destruction; statuses become exceptions here.
// For counter and gups. It sees farsum.h only and knows nothing of what the programs do.
#pragma once

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "farsum.h"

namespace apps {

// A Farsum call failed; the text is Farsum's own sentence.
class CommunicationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[noreturn, gnu::cold, gnu::noinline]] inline void fail(farsum_status status) {
  throw CommunicationError(std::string(farsum_status_name(status)) + ": " + farsum_last_error());
}

inline void require(farsum_status status) {
  if (status != FARSUM_OK) [[unlikely]]
    fail(status);
}

// Whether a destructor runs because an error is on its way out. Collective calls are then left out: the other ranks do
// not make them, and learn of the failure when this process ends.
inline bool is_unwinding() { return std::uncaught_exceptions() > 0; }

class Job {
 public:
  Job() {
    require(farsum_init(nullptr));
    require(farsum_rank(farsum_world(), &rank_));
    require(farsum_size(farsum_world(), &size_));
  }
  // A failure to leave cannot be helped any more, and the results have been gathered.
  ~Job() {
    if (!is_unwinding()) static_cast<void>(farsum_finalize());
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] bool is_root() const { return rank_ == 0; }

  void barrier() const { require(farsum_barrier(farsum_world())); }

  // The records of all ranks, in rank order. Records are gathered as bytes.
  template <class Record>
  [[nodiscard]] std::vector<Record> gather(const Record& mine) const {
    static_assert(std::is_trivially_copyable_v<Record>);
    std::vector<Record> all(static_cast<std::size_t>(size_));
    require(farsum_allgather(farsum_world(), &mine, all.data(), sizeof mine));
    return all;
  }

  // The lists of all ranks, in rank order; their lengths may differ.
  [[nodiscard]] std::vector<std::vector<std::uint64_t>> gather_lists(std::vector<std::uint64_t> mine) const {
    const std::vector<std::uint64_t> lengths = gather(static_cast<std::uint64_t>(mine.size()));
    std::uint64_t longest = 0;
    for (const std::uint64_t length : lengths) longest = length > longest ? length : longest;
    std::vector<std::vector<std::uint64_t>> lists(lengths.size());
    if (longest == 0) return lists;

    mine.resize(longest);
    std::vector<std::uint64_t> all(longest * lengths.size());
    require(farsum_allgather(farsum_world(), mine.data(), all.data(), longest * sizeof(std::uint64_t)));
    for (std::size_t r = 0; r < lists.size(); ++r) {
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(r * longest);
      lists[r].assign(first, first + static_cast<std::ptrdiff_t>(lengths[r]));
    }
    return lists;
  }

  // Every rank gets the root's value.
  template <class Value>
  [[nodiscard]] Value from_root(Value value) const {
    static_assert(std::is_trivially_copyable_v<Value>);
    require(farsum_broadcast(farsum_world(), &value, sizeof value, 0));
    return value;
  }

 private:
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace apps
