// The contract between windows and network cards that reach the memory of other ranks by themselves: put, get, and
// atomics on 4 and 8 bytes, while nothing of the owner runs. Cards of one job are atomic to each other and to nothing
// else: which memory they may update is for windows to say (memory/atomicity.hpp).
//
// What every implementation promises:
//  - Operations towards one peer take effect in any order, but for fence() and flush().
//  - An operation that was started is counted in its CardCompletion until it is over, however it ends; what belongs to
//    the caller is not touched after that.
//  - One owner's memory is reached by one card, whoever comes: cards of one host are not atomic to each other. Where a
//    peer cannot be reached by cards alone, operations towards it fail with unsupported and do nothing.
//  - What cannot be carried out any more ends with Code::peer_failed. Nothing is ever tried again: nobody knows whether
//    it took effect.
//  - Peers are ranks of the job, the own one among them; a peer is connected with the first operation towards it.
//
// Threads: any thread may call anything at any time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/function_ref.hpp"
#include "base/settings.hpp"
#include "base/status.hpp"
#include "base/units.hpp"

namespace farsum {

enum class CardUpdate : std::uint8_t { add, bit_and, bit_or, bit_xor, swap, compare_and_swap };

// Operations that are not over yet, and what became of the others. Borrowed by them.
struct CardCompletion {
  std::atomic<std::uint32_t> pending{0};
  std::atomic<Code> failure{Code::ok};  // of one that failed
};

// Memory that the cards of other ranks may touch.
struct CardMemory {
  std::byte* memory = nullptr;
  std::uint64_t bytes = 0;
  std::vector<std::byte> key;  // what others need to reach it
};

// A word of a peer's exposed memory: 4 or 8 bytes at a multiple of that.
struct CardWord {
  std::uint64_t address = 0;  // in the owner
  std::uint8_t bytes = 8;
};

class Rdma {
 public:
  static constexpr std::size_t most_address_bytes = 1024;
  static constexpr std::size_t most_key_bytes = 512;
  using Reached = std::uint64_t;  // names a peer's memory; never used twice

  virtual ~Rdma() = default;

  // Which card and transport, as users know it: "rc_mlx5/mlx5_0:1".
  virtual std::string description() const = 0;

  // ---- the owner ----

  // Where cards of other ranks reach this one.
  virtual std::span<const std::byte> address() const = 0;
  // Exposes memory of the caller's, or for null zeroed memory of its own making, page-aligned. Fails with unsupported,
  // saying why, where the card cannot reach such memory.
  virtual Result<CardMemory> expose(std::byte* memory, std::uint64_t bytes) = 0;
  // Ends that, and gives back memory of its own making. Nobody may be operating on it.
  virtual void conceal(const CardMemory& memory) = 0;

  // ---- the origin ----

  virtual void introduce(Rank peer, std::span<const std::byte> address) = 0;
  virtual Reached reach(Rank peer, std::span<const std::byte> key) = 0;
  virtual void let_go(Reached memory) = 0;

  // Over when `from` may be reused, which does not say that the bytes have arrived.
  virtual Status put(Reached memory, std::uint64_t address, std::span<const std::byte> from,
                     CardCompletion& completion) = 0;
  // Over when the bytes are there.
  virtual Status get(Reached memory, std::uint64_t address, std::span<std::byte> into, CardCompletion& completion) = 0;
  // Any but compare_and_swap, without a result; flush() says when it has taken effect. The operand lies in the low
  // bytes.
  virtual Status update(Reached memory, CardWord word, CardUpdate update, std::uint64_t operand) = 0;
  // Over when the word's old value is in `result` (word.bytes of it).
  virtual Status fetch(Reached memory, CardWord word, CardUpdate update, std::uint64_t operand, std::uint64_t compare,
                       std::byte* result, CardCompletion& completion) = 0;
  // What is started towards the peer from here on takes effect after what was started before.
  virtual Status fence(Rank peer) = 0;
  // Over when all that was started towards the peer has taken effect in its memory, as its own loads see it.
  virtual Status flush(Rank peer, CardCompletion& completion) = 0;

  // Waits until nothing is pending: looks for a while, then sleeps. `look` is called at least every 100 ms of sleep;
  // what it fails with ends the wait.
  virtual Status wait(const CardCompletion& completion, FunctionRef<Status()> look) = 0;
  // ---- the agent, for what others ask of this half without knowing: connections ----

  // Readable when look_after() has something to do, once arm() has answered true; false: there is something to do now.
  virtual int descriptor() const = 0;
  virtual Result<bool> arm() = 0;
  virtual void look_after() = 0;

  // The job is over: ends everything with Code::peer_failed. When this returns nothing is under way.
  virtual void abandon() = 0;
};

struct RdmaOptions {
  Rank rank = 0;
  // A peer's connection broke, and why; called once for each, before anything ends with peer_failed for it, from
  // whatever thread is in here, which must not be called from there, and with its lock held.
  std::function<void(Rank, const std::string&)> on_lost;
};

// Over UCX, as the settings say. Fails with unsupported, saying why, where no card does all of this by itself: what
// UCX would have the owner's program do is done faster by messages to its agent.
Result<std::unique_ptr<Rdma>> open_rdma(const RdmaOptions& options, const Settings& settings);

}  // namespace farsum
