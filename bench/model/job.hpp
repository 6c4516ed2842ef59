// What the ranks of `farsum bench model` have in common: how they find each other, a context with a forced path, and a
// window in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "farsum.h"

namespace bench {

// A failure of Farsum, or an answer that is wrong, ends the benchmark: a time without an answer is worth nothing.
inline void require(farsum_status status) {
  if (status != FARSUM_OK) throw std::runtime_error(farsum_last_error());
}

// Ranks that no launcher knows meet in a folder that all of them see; without one `farsum run` tells who they are.
class Meeting {
 public:
  Meeting(std::string folder, int rank, int size) : folder_(std::move(folder)), rank_(rank), size_(size) {}
  void join();

 private:
  // As farsum_allgather_fn wants it; `meeting` is a Meeting.
  static int gather(const void* mine, void* all, std::size_t bytes, void* meeting);
  [[nodiscard]] std::string file_of(int rank) const;

  std::string folder_;
  int rank_;
  int size_;
  int round_ = 0;
};

// Leaving is collective; while a failure unwinds, the others are somewhere else.
inline bool is_unwinding() { return std::uncaught_exceptions() > 0; }

class Context {
 public:
  // Collective. `path` is a value of FARSUM_PATH.
  Context(Meeting& meeting, const std::string& path);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }

 private:
  int rank_ = 0;
  int size_ = 0;
};

enum class Memory : std::uint8_t { allocated, adopted };

// A window over all ranks, under lock_all from its making to its end.
class Window {
 public:
  Window(Memory memory, std::size_t bytes);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  [[nodiscard]] farsum_window handle() const { return window_; }
  [[nodiscard]] double* own() const { return own_; }
  // The first region of a rank's part.
  [[nodiscard]] farsum_region_info region(int rank) const;

 private:
  farsum_window window_{};
  std::vector<double> user_;
  double* own_ = nullptr;
};

}  // namespace bench
