// The threads of this process as /proc lists them, read by the kernel's calls alone: for promotion/held_helper.cpp,
// under the rules of HeldWork.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace farsum::os {

// Whether /proc shows this process: in a container that shows another's, the numbers there are not ours.
bool proc_is_ours();

// The number that the text begins with.
pid_t parse_number(const char* text);

// Lies in zeroed memory, and is set up by open() before any thread is held. One caller at a time.
class TaskList {
 public:
  void open(pid_t process);

  // Calls `visitor(argument, name)` for each thread that is listed, until it says no. How many it was called for, or a
  // negated errno. A listing in which threads end may leave some out.
  using Visitor = bool (*)(void* argument, const char* name);
  long visit(Visitor visitor, void* argument);
  // The process's own count of its threads; 0 if it cannot be read.
  long count();
  // A file of one thread, ended by a zero; null, and error() says why, if it cannot be read. Until the next call.
  const char* read_file(const char* thread, const char* file);
  int error() const { return error_; }
  // Whether a thread has ended but is still listed: the first of a process is, until the last has ended.
  bool has_ended(const char* thread);

 private:
  const char* read_text(const char* path);

  int error_;
  char folder_[32];     // /proc/PID/task
  char stat_file_[32];  // /proc/PID/stat
  char text_[1024];
  alignas(16) char names_[std::size_t{32} << 10];
};

}  // namespace farsum::os
