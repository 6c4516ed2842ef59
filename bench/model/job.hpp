// What the ranks of `farsum bench model` have in common: how they find each other, a context with a forced path, and a
// window in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/file_meeting.hpp"
#include "farsum.h"

namespace bench {

// A failure of Farsum, or an answer that is wrong, ends the benchmark: a time without an answer is worth nothing.
inline void require(farsum_status status) {
  if (status != FARSUM_OK) throw std::runtime_error(farsum_last_error());
}

// How the ranks find each other: in a folder, or as `farsum run` tells them where none is named.
class Meeting {
 public:
  Meeting(const std::string& folder, int rank, int size) {
    if (!folder.empty()) files_.emplace(folder, rank, size);
  }
  void join();

 private:
  std::optional<meeting::FileMeeting> files_;
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
