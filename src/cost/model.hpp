// What an operation costs on each path, from the parameters of a link: pure arithmetic, no clock, no file. Times are in
// microseconds. docs/notes/model.md has the formulas and where they are wrong.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>

namespace farsum::cost {

// What lies between origin and target.
enum class LinkClass : std::uint8_t { node, tcp };
inline constexpr LinkClass link_classes[] = {LinkClass::node, LinkClass::tcp};
const char* name_of(LinkClass link);

// The paths of window/paths.hpp that cost anything different. Across hosts `direct` and `attach` do not exist, on a
// node `caller` is a copy through the kernel where the memory is not mapped, else through the mapping.
enum class Way : std::uint8_t { direct, attach, caller, owner, aggregated };
inline constexpr Way ways[] = {Way::direct, Way::attach, Way::caller, Way::owner, Way::aggregated};
const char* name_of(Way way);

enum class Kind : std::uint8_t { put, get, accumulate, get_accumulate };
inline constexpr Kind kinds[] = {Kind::put, Kind::get, Kind::accumulate, Kind::get_accumulate};
const char* name_of(Kind kind);

struct Work {
  Kind kind = Kind::put;
  std::uint64_t bytes = 8;
  std::uint32_t contenders = 1;  // origins that do the same to the same memory at once
  std::uint32_t burst = 1;       // operations between two flushes
  bool guarded = false;          // user memory, which its owner's agent touches through the kernel
};

struct LinkModel {
  // Messages to the owner's agent.
  double send_us = 0;           // o(s): the origin's time for a message
  double receive_us = 0;        // o(r): the agent's time for a message and its answer
  double gap_us = 0;            // g: least time between two messages of a stream
  double per_byte_us = 0;       // G: of an operand on its way there, while it rides in the message
  double back_per_byte_us = 0;  // of a result on its way back
  double latency_us = 0;        // L: one way
  double wake_up_us = 0;        // of an agent that sleeps
  // A longer operand is asked for by the agent, or cut into messages.
  double inline_bytes = 0;        // the longest that rides in the message
  double pull_us = 0;             // once, beside a pull's round trip
  double pull_per_byte_us = 0;    // instead of per_byte_us
  double pull_round_trips = 0;    // 0 where operands are cut
  double pull_wake_ups = 0;       // of the agent, which waits for the operand
  double gather_us = 0;           // aggregated: putting one update beside others
  double gathered_us = 0;         // aggregated: the agent's time for one of them
  double gathered_bytes = 0;      // aggregated: what one takes up in the message
  double bundled_bytes = 0;       // between hosts: sums up to this that nobody waits for leave as one message
  double bundled_us = 0;          // the origin's time for one of them
  double caller_round_trips = 0;  // caller-computes between hosts: lock, get, put and unlock, as far as they are apart
  double caller_wake_ups = 0;     // of the agent, in these
  // Memory and its locks.
  double direct_us = 0;                 // a put or get of mapped memory
  double move_per_byte_us = 0;          // mapped memory, by the processor
  double copy_us = 0;                   // a call of the kernel that copies between processes
  double copy_per_byte_us = 0;          // and what it copies
  double lock_us = 0;                   // a stripe's lock, taken and given back
  double contended_us = 0;              // more, where another has just had it
  double reduce_per_byte_us = 0;        // operator and stores, at the origin
  double owner_reduce_per_byte_us = 0;  // the same by the owner's agent
};

// Bytes that one stripe lock guards; see memory/atomicity.hpp, which checks that they are the same.
inline constexpr std::uint64_t stripe_bytes = 16384;

// Of every parameter: the file of a measurement, `farsum info --model` and the documentation go by this table.
struct Parameter {
  const char* name;
  const char* unit;
  double LinkModel::*value;
  const char* meaning;
};
std::span<const Parameter> parameters();

// Measured on the machine of docs/notes/model.md.
const LinkModel& defaults(LinkClass link);

// Microseconds of one operation that is complete at its target; in a burst, its share of the burst's time.
double predict(const LinkModel& model, LinkClass link, Way way, const Work& work);

// The cheapest of `possible`, which is not empty; of equals the first.
Way choose(const LinkModel& model, LinkClass link, std::span<const Way> possible, const Work& work);
// The same for all sizes from `from` to `to` bytes at once: the least geometric mean.
Way choose_for_sizes(const LinkModel& model, LinkClass link, std::span<const Way> possible, Work work,
                     std::uint64_t from, std::uint64_t to);

inline constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();
// The size from which on, up to 64 MiB, `way` is cheaper than `other`; never where there is none.
std::uint64_t cheaper_from(const LinkModel& model, LinkClass link, Way way, Way other, Work work);

// What a window's paths are chosen by.
struct Thresholds {
  // Between hosts: FARSUM_PATH=caller would be faster for sums of so many bytes than the owner. Told, not done.
  std::uint64_t caller_from_bytes = never;
  // The same of FARSUM_PATH=aggregated in a burst, beside the messages that the owner path makes of one by itself.
  bool aggregates = false;
  Way user_bulk = Way::attach;    // user memory of one node: attach or owner
  Way user_single = Way::attach;  // the same for single elements
};
Thresholds thresholds(const LinkModel& node, const LinkModel& network);
// What a window takes by these: on a node mapped memory or, guarded, user memory. `single`: of one element.
Way chosen(const Thresholds& thresholds, LinkClass link, const Work& work, bool single);

}  // namespace farsum::cost
