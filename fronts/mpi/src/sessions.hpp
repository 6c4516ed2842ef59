// Programs of sessions: they have no moment at which all ranks begin or end the engine, so that those of a
// communicator agree on it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine_life.hpp"
#include "library.hpp"

namespace farsum::mpi {

// Any thread may call.
class Sessions {
 public:
  enum class Answer : std::uint8_t {
    runs_for_all,
    not_for_all,  // it runs for some of them only, or ends there
    start,        // by all of them, who hold a claim each
  };
  struct Agreement {
    Answer answer;
    EngineLife::Claim claim;  // held where they start
  };
  // What is true of some rank, each 0 or 1.
  enum Fact : std::size_t { runs, runs_not, ends, is_busy, facts };
  using Facts = std::array<int, facts>;
  static Facts facts_of(const EngineLife::Claim& claim);
  // Of what any rank has said; nothing: they ask again.
  static std::optional<Answer> answer_to(const Facts& any);

  explicit Sessions(EngineLife& life) : life_(life) {}

  // Collective over the ranks of `comm`.
  Agreement agree(MPI_Comm comm);

  // The program has not called MPI_Init. Relaxed, both: one that calls it beside its sessions orders them itself.
  bool are_alone() const { return are_alone_.load(std::memory_order_relaxed); }
  void set_are_alone(bool are_alone) { are_alone_.store(are_alone, std::memory_order_relaxed); }

 private:
  EngineLife& life_;
  std::atomic<bool> are_alone_{false};
};

}  // namespace farsum::mpi
