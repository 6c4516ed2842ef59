// How much more memory this process may use before some limit is reached. It reads; it reserves nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace farsum::os {

enum class RoomLimit : std::uint8_t {
  unknown,        // nothing could be read; bytes is then the largest number
  machine,        // MemAvailable
  cgroup,         // memory.max or memory.limit_in_bytes of the process's group or of one above it
  commit_limit,   // CommitLimit, where overcommit is strict
  address_space,  // RLIMIT_AS
};

[[nodiscard]] std::string_view name_of(RoomLimit limit);

struct MemoryRoom {
  std::uint64_t bytes = UINT64_MAX;
  RoomLimit bound = RoomLimit::unknown;
  std::string where;  // the file, or the cgroup's folder, that sets the bound
};

// The least of all limits. `root` is "/" but in tests, which put proc/ and sys/ below a folder of their own. RLIMIT_AS
// bounds what this process can map, the others what a node can hold: pass {.count_address_space = false} for memory
// that peers map already.
struct RoomQuery {
  std::filesystem::path root = "/";
  bool count_address_space = true;
};
[[nodiscard]] MemoryRoom available(const RoomQuery& query = {});

// Bytes of this process that mlock and mlockall keep in RAM; 0 where none, or where /proc cannot be read.
[[nodiscard]] std::uint64_t locked_bytes();

}  // namespace farsum::os
