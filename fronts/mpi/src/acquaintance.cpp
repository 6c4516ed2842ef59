#include "acquaintance.hpp"

#include <array>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <new>
#include <span>
#include <string>

#include "context_ranks.hpp"
#include "farsum.h"
#include "farsum_embed.h"

namespace farsum::mpi {
namespace {

bool make_room_for_cards(MPI_Comm comm, std::vector<unsigned char>& cards) {
  int size = 0;
  library().Comm_size(comm, &size);
  try {
    cards.resize(static_cast<std::size_t>(size) * FARSUM_NETWORK_CARD_BYTES);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// What the engine has just refused; its sentence names the host.
void tell_cause(std::span<char> why) { std::snprintf(why.data(), why.size(), "%s", farsum_last_error()); }

}  // namespace

// All of the ranks see the same list. With one thread at a time each knows by itself what became of an earlier time;
// with several, one that is in its midst elsewhere may know on some ranks and not on others.
Introductions::Outcome Introductions::introduce(MPI_Comm comm, std::atomic<Acquaintance>* known) {
  // Relaxed: only says what this rank tells the others.
  Acquaintance now = known == nullptr ? Acquaintance::unknown : known->load(std::memory_order_relaxed);
  if (now != Acquaintance::unknown && !ranks_.threads_multiple()) return {.are_acquainted = now == Acquaintance::made};
  enum : std::size_t { no_memory, not_yet, never, facts };
  std::vector<unsigned char> cards;
  std::array<int, facts> here{};
  here[no_memory] = known == nullptr || !make_room_for_cards(comm, cards) ? 1 : 0;
  here[not_yet] = now == Acquaintance::unknown ? 1 : 0;
  here[never] = now == Acquaintance::refused ? 1 : 0;
  std::array<int, facts> any{};
  if (library().Allreduce(here.data(), any.data(), facts, MPI_INT, MPI_MAX, comm) != MPI_SUCCESS) return {};
  if (any[no_memory] != 0) return {.no_memory = true};
  now = any[never] == 0 && (any[not_yet] == 0 || make_acquaintance(comm, cards)) ? Acquaintance::made
                                                                                 : Acquaintance::refused;
  known->store(now, std::memory_order_relaxed);
  return {.are_acquainted = now == Acquaintance::made};
}

// All ranks or none. Of several that cannot, the lowest that cannot even be reached itself says why.
bool Introductions::make_acquaintance(MPI_Comm comm, std::vector<unsigned char>& cards) {
  int rank = 0;
  int size = 0;
  library().Comm_rank(comm, &rank);
  library().Comm_size(comm, &size);
  constexpr int agreed = std::numeric_limits<int>::max();
  std::array<unsigned char, FARSUM_NETWORK_CARD_BYTES> card{};
  std::array<char, 512> why{};
  int mine = agreed;
  if (farsum_network_card(card.data()) != FARSUM_OK) mine = rank;
  if (mine != agreed) tell_cause(why);
  library().Allgather(card.data(), FARSUM_NETWORK_CARD_BYTES, MPI_BYTE, cards.data(), FARSUM_NETWORK_CARD_BYTES,
                      MPI_BYTE, comm);
  if (mine == agreed && farsum_network_introduce(cards.data(), size) != FARSUM_OK) {
    mine = size + rank;
    tell_cause(why);
  }
  int first = agreed;
  library().Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, comm);
  if (first == agreed) return true;
  library().Bcast(why.data(), static_cast<int>(why.size()), MPI_CHAR, first % size, comm);
  say_unreachable(why.data(), rank == 0 ? Notices::Voice::aloud : Notices::Voice::silent);
  return false;
}

// The other ranks are on their way into the library, also where there is no memory for words.
void Introductions::say_unreachable(const char* why, Notices::Voice voice) {
  try {
    notices_.say_once("network", std::string("windows over several hosts stay the MPI library's own: ") + why, voice);
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace farsum::mpi
