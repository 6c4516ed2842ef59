// What an operation cost besides time: messages, bytes, locks, wake-ups, from Farsum's statistics, and context
// switches, from the kernel. They show that a path is the path and that a sleeping agent sleeps.
#pragma once

#include <cstdint>

#include <nlohmann/json.hpp>

namespace bench {

struct Counters {
  std::uint64_t messages = 0;          // sent to agents
  std::uint64_t bytes = 0;             // payload moved; caller moves it twice
  std::uint64_t locks = 0;             // stripe locks that were not free at once
  std::uint64_t wakeups = 0;           // of agents
  std::uint64_t doorbells = 0;         // system calls made to wake an agent
  std::uint64_t context_switches = 0;  // of all threads of the process, wanted or not

  Counters& operator+=(const Counters& other);
};

// Of this process, since its context was made.
Counters read_counters();
Counters operator-(Counters later, const Counters& earlier);

// Per operation, under the names that every line of output uses.
nlohmann::ordered_json per_operation(const Counters& counters, std::uint64_t operations);

// The agent's thread as the kernel sees it.
struct AgentThread {
  std::uint64_t processor_ns = 0;
  std::uint64_t context_switches = 0;
};
AgentThread read_agent_thread();

}  // namespace bench
