// The helper of promotion/held_threads.hpp: a process that shares our memory, holds our threads by ptrace, does the
// work and lets them go. Everything in it runs under the rules of HeldWork.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "promotion/held_threads.hpp"
#include "promotion/task_list.hpp"

namespace farsum::os {

constexpr std::size_t most_held_threads = 8192;

enum class HoldFailure : std::uint8_t { none, list, too_many, seize, patience, calls, in_call };

struct HeldThread {
  enum class Stage : std::uint8_t { asked, stopped, gone };

  pid_t id = 0;
  Stage stage = Stage::asked;
  std::uint8_t signal = 0;  // it stopped when this one was to be delivered
};

// What the caller and the helper share. Lies in zeroed memory. Written by the caller before, by the helper until it
// ends.
struct Hold {
  HeldWork work;
  void* argument;
  const pid_t* left_alone;
  std::size_t left_alone_count;
  pid_t caller;
  pid_t process;
  std::int64_t patience_ns;
  std::int64_t deadline_ns;
  TaskList tasks;

  HoldFailure failure;
  int error_number;
  pid_t failed_thread;
  bool has_worked;
  std::size_t count;
  HeldThread threads[most_held_threads];
};

// What the helper runs; `hold` is a Hold.
int run_held_helper(void* hold);

}  // namespace farsum::os
