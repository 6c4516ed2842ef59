// The origin's half of caller-computes across nodes (paper 1): it fetches under leases, computes, puts back, and has
// the owner compute what others keep changing meanwhile, so that each element is updated exactly once. Longer
// operations go in pieces, several under way at once. It waits for nothing itself: whoever waits calls advance() after
// the engine's progress().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "memory/apply.hpp"
#include "protocol/origin/engine.hpp"
#include "variants/leases/lease_table.hpp"

namespace farsum {

class LeasedUpdate {
 public:
  struct Way {
    OriginEngine* engine = nullptr;
    const ops::KernelSet* kernels = nullptr;
    Capabilities room;
    Rank owner = 0;
    WindowId window = 0;
  };
  // Pieces that are under way at once.
  static constexpr std::size_t most_pieces = 4;

  // An atomic operation whose operand and result are packed. All that it points to, and `outstanding`, are borrowed
  // until it is finished or the engine has failed everything towards the owner.
  LeasedUpdate(const Way& way, const Operation& operation, Outstanding& outstanding);
  LeasedUpdate(const LeasedUpdate&) = delete;
  LeasedUpdate& operator=(const LeasedUpdate&) = delete;

  // Goes on as far as it gets without waiting; true once it is finished.
  bool advance();
  Code code() const { return code_; }
  // So many of the operation's bytes went to the owner to compute.
  std::uint64_t bytes_left_to_owner() const { return left_to_owner_; }

 private:
  enum class State : std::uint8_t { free, to_ask, asked, to_put, put, to_owner, at_owner };
  struct Slot {
    State state = State::free;
    std::uint64_t start = 0;  // payload bytes before the piece
    std::uint64_t bytes = 0;
    std::vector<ops::Piece> pieces;  // of the target, where that is not contiguous
    std::uint64_t lease = 0;
    unsigned puts = 0;
    PendingElements pending;
    std::vector<std::byte> reply;   // of the owner
    std::uint64_t contents_at = 0;  // in the reply: what is in the pending elements, then what they are to become
    std::vector<std::byte> operand, result;  // of the pending elements, where they are not all
    RequestState request;
  };

  void take_piece(Slot& slot);
  bool go_on(Slot& slot);
  bool send(Slot& slot, const wire::MessageHeader& header, std::span<const std::byte> body, std::uint64_t reply_bytes);
  bool ask(Slot& slot);
  bool put(Slot& slot);
  bool have_owner_compute(Slot& slot);
  void on_contents(Slot& slot);
  void on_put(Slot& slot);
  void on_computed_by_owner(Slot& slot);
  void compute(Slot& slot, std::uint64_t contents_at);
  const std::byte* open_operand(Slot& slot) const;
  std::byte* open_result(Slot& slot) const;
  void deliver(Slot& slot);
  void fail(Slot& slot, Code code);
  std::uint64_t size() const { return ops::size_of(operation_.type); }
  std::uint64_t pending_bytes(const Slot& slot) const { return slot.pending.count() * size(); }

  Way way_;
  const Operation& operation_;
  Outstanding& outstanding_;
  Reduction reduction_;
  ops::PieceCursor cursor_;
  std::uint64_t piece_bytes_;
  std::uint64_t most_layout_pieces_;
  std::uint64_t begun_ = 0;  // payload bytes of pieces that have a slot, or had one
  std::uint64_t left_to_owner_ = 0;
  Code code_ = Code::ok;
  std::vector<Slot> slots_;
};

}  // namespace farsum
