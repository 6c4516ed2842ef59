// Memory of the program's in other processes of the node, as far as this rank may copy it. Owner: collectives; made by
// the runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace farsum {

// How a copy went.
enum class PeerCopy : std::uint8_t {
  done,
  not_mapped,  // some of it is not mapped, here or there, or not for that
  refused,     // the kernel copies nothing between the two processes
  gone,        // the rank is
};

// Ranks are those of the node, by their places in it. Any thread may call. Nothing here waits.
class PeerMemory {
 public:
  virtual ~PeerMemory() = default;
  virtual std::uint32_t my_place() const = 0;
  // Whether copies from and to all the node's ranks are allowed.
  virtual bool reaches_all() const = 0;
  // Whether a byte of this rank's own can be copied at each of the addresses; it looks by one system call.
  virtual bool can_copy_own(std::span<const std::uintptr_t> addresses) = 0;
  // At most so many of them.
  static constexpr std::size_t most_addresses = 4;
  // Until as many calls of let_go() nothing of this rank's memory is put on other pages, of which others would not
  // know. False: some is just now, and there is nothing to let go.
  virtual bool hold_pages() = 0;
  virtual void let_go() = 0;
  virtual PeerCopy read(std::uint32_t place, std::uintptr_t address, std::span<std::byte> into) = 0;
  virtual PeerCopy write(std::uint32_t place, std::uintptr_t address, std::span<const std::byte> from) = 0;
};

}  // namespace farsum
