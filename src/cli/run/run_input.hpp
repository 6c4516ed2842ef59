// Gives rank 0 the launcher's stdin. A file or pipe is simply inherited; a terminal cannot be, as ranks are no
// foreground job of it, so the launcher reads it for them, and only while it is in the foreground itself.
#pragma once

#include <cstddef>
#include <string>

#include "cli/event_loop.hpp"
#include "cli/unique_fd.hpp"

namespace farsum::cli {

class InputForwarder {
 public:
  InputForwarder(EventLoop& loop, UniqueFd to_rank);

  // Waits for input: from the start, and again after SIGCONT, when the foreground may have changed.
  void watch_terminal();
  void stop();

 private:
  void read_terminal();
  void write_rank();

  EventLoop& loop_;
  UniqueFd to_rank_;
  std::string waiting_;
};

}  // namespace farsum::cli
