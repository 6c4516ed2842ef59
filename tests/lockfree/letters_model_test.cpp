// Interleavings, of one preemption at most, of who files a team's letters, in any order and too early now and then,
// with those of the node who take them, one after the other: each letter is taken once, whole and in order, and no slot
// is written to while it is read.
#include "collectives/letters.hpp"

#include <array>
#include <cstring>
#include <vector>

#include "model_atomics.hpp"
#include "model_check.hpp"

namespace farsum::model {
namespace {

constexpr LettersShape shape{.neighbours = 1, .slots = 2, .slot_bytes = 64};
constexpr std::uint64_t letters_filed = 4;
constexpr std::size_t most_block_bytes = 512;

// Numbers in the order in which two roads, which know nothing of each other, bring them.
constexpr std::array<std::uint64_t, letters_filed> in_order = {0, 1, 2, 3};
constexpr std::array<std::uint64_t, letters_filed> overtaken = {1, 0, 3, 2};

// What a member does otherwise than it should.
enum class Fault : std::uint8_t {
  none,
  gives_a_slot_back_before_it_reads,
  walks_without_the_claim,
};

struct Plan {
  std::array<std::uint64_t, letters_filed> order = in_order;
  std::size_t bytes = 8;  // of a letter: in the line, or in a slot
  Fault fault = Fault::none;
};

template <class Policy>
struct Shared {
  alignas(2 * cache_line_bytes) std::byte block[most_block_bytes];
  typename Policy::template Atomic<std::uint32_t> turn;  // of who has the claim
  std::uint64_t taken;                                   // guarded by the claim

  BasicLetters<Policy> letters() { return {block, shape}; }
};

std::array<std::uint64_t, 8> content_of(std::uint64_t number) {
  std::array<std::uint64_t, 8> content;
  content.fill(100 + number);
  return content;
}

// It asks for no credit, as one does whose neighbour lies about it: what comes too early is refused, and comes again.
template <class Policy>
void file_all(Shared<Policy>& shared, const Plan& plan) {
  BasicLetters<Policy> letters = shared.letters();
  for (std::size_t at = 0; at < plan.order.size(); ++at) {
    forget_all_but({at});
    const std::uint64_t number = plan.order[at];
    const auto content = content_of(number);
    const auto bytes = std::as_bytes(std::span(content)).first(plan.bytes);
    while (letters.file(0, {number, 0}, bytes) == BasicLetters<Policy>::Filed::refused) Policy::pause();
  }
}

// Has the claim from its turn on until it has taken so many.
template <class Policy>
void take_in_turn(Shared<Policy>& shared, const Plan& plan, std::uint32_t turn, std::uint64_t last) {
  BasicLetters<Policy> letters = shared.letters();
  if (plan.fault != Fault::walks_without_the_claim) {
    while (shared.turn.load(std::memory_order_acquire) != turn) Policy::pause();
  }
  Policy::writes(&shared.taken, sizeof shared.taken);
  while (shared.taken < last) {
    const auto letter = letters.take(0);
    if (!letter) {
      Policy::pause();
      continue;
    }
    if (plan.fault == Fault::gives_a_slot_back_before_it_reads) letters.consumed(0);
    Policy::reads(letter->data(), letter->size());
    const auto content = content_of(shared.taken);
    require(letter->size() == plan.bytes && std::memcmp(letter->data(), content.data(), plan.bytes) == 0,
            "it is not the next letter");
    if (plan.fault != Fault::gives_a_slot_back_before_it_reads) letters.consumed(0);
    ++shared.taken;
  }
  shared.turn.store(turn + 1, std::memory_order_release);
}

// One files, and two take, one half each.
template <Mutation M = Mutation::none>
Outcome all_go(const Plan& plan, const Options& options = {.max_preemptions = 1}) {
  using State = Shared<ModelAtomics<M>>;
  static_assert(sizeof State::block >= 256 + 2 * 64);
  const std::vector<std::function<void(State&)>> bodies = {
      [&plan](State& state) { file_all(state, plan); },
      [&plan](State& state) { take_in_turn(state, plan, 0, letters_filed / 2); },
      [&plan](State& state) { take_in_turn(state, plan, 1, letters_filed); },
  };
  return explore<State>(options, bodies,
                        [](State& state) { require(state.taken == letters_filed, "not all letters were taken"); });
}

TEST(LettersModel, take_each_once_and_in_order_however_they_were_filed) {
  expect_holds(all_go({.order = in_order}));
  expect_holds(all_go({.order = overtaken}));
  expect_holds(all_go({.order = overtaken, .bytes = 64}));
}

TEST(LettersModel, catches_a_letter_that_is_seen_before_it_is_whole) {
  expect_caught(all_go<Mutation::release_is_relaxed>({}), "race");
  expect_caught(all_go<Mutation::release_is_relaxed>({.bytes = 64}), "race");
}

TEST(LettersModel, catches_who_gives_a_slot_back_before_it_reads) {
  expect_caught(all_go({.fault = Fault::gives_a_slot_back_before_it_reads}), "race");
  expect_caught(all_go({.bytes = 64, .fault = Fault::gives_a_slot_back_before_it_reads}), "race");
}

TEST(LettersModel, catches_two_who_walk_at_once) {
  expect_caught(all_go({.fault = Fault::walks_without_the_claim}), "race");
}

}  // namespace
}  // namespace farsum::model
