// A Farsum context with given settings, and a window in it, for one case. Contexts follow one another in a process;
// FARSUM_* settings are read when one is made, so that each case can force its own path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "farsum.h"

namespace bench {

// A failure of Farsum, or an answer that is wrong, ends the benchmark: a time without an answer is worth nothing.
inline void require(farsum_status status) {
  if (status != FARSUM_OK) throw std::runtime_error(farsum_last_error());
}

// Cheap while the answer is right: it stands in loops over whole tables.
inline void require_answer(bool right, const char* what) {
  if (!right) throw std::runtime_error(std::string("wrong answer: ") + what);
}

using Settings = std::vector<std::pair<std::string, std::string>>;

class Context {
 public:
  // Collective. The settings are unset again with the context.
  explicit Context(Settings settings = {});
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

 private:
  Settings settings_;
};

// A window over both ranks, the same size on each, under lock_all from its making to its end.
class Window {
 public:
  // Farsum's own memory.
  Window(std::size_t bytes, std::uint32_t promises);
  // The program's memory.
  Window(void* memory, std::size_t bytes, std::uint32_t promises);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  [[nodiscard]] farsum_window handle() const { return window_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  // Where this process addresses the part of `rank`; null where it is not mapped.
  [[nodiscard]] std::byte* part(int rank) const;
  template <class Element>
  [[nodiscard]] Element* elements(int rank) const {
    return reinterpret_cast<Element*>(part(rank));
  }
  // The first region of a rank's part.
  [[nodiscard]] farsum_region_info region(int rank) const;

  void flush(int target) const { require(farsum_flush(window_, target)); }

 private:
  farsum_window window_{};
  std::size_t bytes_;
};

}  // namespace bench
