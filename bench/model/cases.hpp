// The operations of `farsum bench model`: each kind, size and pattern, with what it leaves behind and the check of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "job.hpp"

namespace bench {

enum class Kind : std::uint8_t { put, get, accumulate, get_accumulate, fetch_and_op };
inline constexpr Kind kinds[] = {Kind::put, Kind::get, Kind::accumulate, Kind::get_accumulate, Kind::fetch_and_op};
const char* name_of(Kind kind);

struct Case {
  Kind kind = Kind::put;
  std::size_t bytes = 8;
  // Operations between two flushes: 1 where each is waited for.
  int burst = 1;
};

inline constexpr int stream_burst = 64;
inline constexpr std::size_t most_bytes = 1 << 20;
// Of a stream every operation has a place of its own.
inline constexpr std::size_t window_bytes = most_bytes + stream_burst * sizeof(double);

std::vector<Case> cases_for(const std::vector<std::size_t>& sizes);

// What the owner's part holds before a check.
void fill_held(double* owned);

// One rank's part in the work on the part of rank `owner`.
class Worker {
 public:
  Worker(const Window& window, int owner);
  // A burst and its flush.
  void run(const Case& one);
  // All ranks call both, over memory of fill_held(): what each origin does once, then whether the owner and the origins
  // have what they should.
  void run_checked(const Case& one, int rank);
  void check(const Case& one, int rank, int origins, const double* owned) const;

 private:
  void issue(const Case& one, std::uint64_t offset);

  farsum_window window_;
  int owner_;
  std::vector<double> operand_;
  std::vector<double> result_;
};

}  // namespace bench
