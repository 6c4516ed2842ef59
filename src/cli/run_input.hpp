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

  // Looks again whether the terminal may be read: after start, and after SIGCONT.
  void foreground_may_have_changed();
  void stop();

 private:
  void read_terminal();
  void write_rank();

  EventLoop& loop_;
  UniqueFd to_rank_;
  std::string waiting_;
};

}  // namespace farsum::cli
