// Whether the ranks of a list know each other's ways over the network, and how they come to.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "library.hpp"
#include "notices.hpp"

namespace farsum::mpi {

class ContextRanks;

enum class Acquaintance : std::uint8_t { unknown, made, refused };

// Any thread may call.
class Introductions {
 public:
  Introductions(const ContextRanks& ranks, Notices& notices) : ranks_(ranks), notices_(notices) {}

  struct Outcome {
    bool are_acquainted = false;
    bool no_memory = false;  // of some rank; all ranks are told so
  };
  // Of ranks on several nodes. `known` is what this list of ranks has found out before, and what it finds out; nullptr:
  // this rank has no memory for the list. Collective unless all ranks know by themselves.
  Outcome introduce(MPI_Comm comm, std::atomic<Acquaintance>* known);

 private:
  bool make_acquaintance(MPI_Comm comm, std::vector<unsigned char>& cards);
  void say_unreachable(const char* why, Notices::Voice voice);

  const ContextRanks& ranks_;
  Notices& notices_;
};

}  // namespace farsum::mpi
