// Every interleaving of the sender and the receiver of a ring small enough to wrap, pad and fill.
#include <cstring>

#include "lockfree/ring.hpp"
#include "model_atomics.hpp"
#include "model_check.hpp"

namespace farsum::model {
namespace {

constexpr std::size_t capacity = 512;
constexpr std::uint32_t records = 9;
// With the 32 bytes of header: records of 128, 128, 128, 64, then 128 that do not fit the last 64 of the ring, 64, 128,
// 128, and at last 64 that lie where the pad was.
constexpr std::size_t message_bytes[records] = {60, 8, 96, 8, 40, 0, 96, 90, 8};
constexpr std::size_t reply_bytes[records] = {36, 88, 0, 24, 8, 8, 0, 6, 16};

template <class Policy>
struct Shared {
  BasicRingShared<Policy> ring;
  std::byte storage[capacity];
  BasicRingSender<Policy> sender{ring, capacity};
  BasicRingReceiver<Policy> receiver{ring, capacity};
  std::uint32_t served;
  std::uint32_t reaped;
  bool asked_again;
};

bool all_are(std::span<const std::byte> bytes, std::uint32_t value) {
  return std::all_of(bytes.begin(), bytes.end(), [=](std::byte b) { return b == static_cast<std::byte>(value); });
}

template <class State>
std::size_t reap(State& state) {
  return state.sender.reap([&](std::uint64_t ticket, std::uint32_t status, std::span<const std::byte> reply) {
    const auto record = static_cast<std::uint32_t>(ticket);
    require(record == state.reaped, "replies out of order");
    require(status == record + 100, "the status of another record");
    require(reply.size() == reply_bytes[record] && all_are(reply, record + 200), "not the reply");
    ++state.reaped;
  });
}

// Pauses when nothing moved; false when the other side is dead and nothing moves any more.
bool goes_on(std::size_t moved, std::size_t other) {
  if (moved == 0) {
    if (Explorer::current->is_dead(other)) {
      return false;
    }
    Explorer::current->pause();
  }
  return true;
}

template <class State>
void send(State& state) {
  for (std::uint32_t record = 0; record < records; ++record) {
    std::byte message[96];
    std::memset(message, static_cast<int>(record + 1), sizeof(message));
    const std::span<const std::byte> whole(message, message_bytes[record]);
    const std::size_t head = whole.size() / 2;
    while (!state.sender.try_push(whole.first(head), whole.subspan(head), reply_bytes[record])) {
      forget_all_but({record});
      if (!goes_on(reap(state), 1)) {
        return;
      }
    }
  }
  while (!state.sender.empty()) {
    forget_all_but({records});
    if (!goes_on(reap(state), 1)) {
      return;
    }
  }
}

// Asks for the third record to be shown again, once.
template <class State>
RecordAnswer serve_one(State& state, std::span<const std::byte> message, std::span<std::byte> room) {
  const std::uint32_t record = state.served;
  require(message.size() == message_bytes[record] && all_are(message, record + 1), "not the message");
  require(room.size() == reply_bytes[record], "not the room for the reply");
  if (record == 2 && !state.asked_again) {
    state.asked_again = true;
    return {.kind = RecordAnswer::Kind::again};
  }
  std::fill(room.begin(), room.end(), static_cast<std::byte>(record + 200));
  ++state.served;
  return {.status = record + 100, .reply_bytes = static_cast<std::uint32_t>(room.size())};
}

template <class State>
void receive(State& state) {
  while (state.served < records) {
    forget_all_but({});
    const auto serve = [&](std::span<const std::byte> message, std::span<std::byte> room) {
      return serve_one(state, message, room);
    };
    if (!goes_on(state.receiver.serve(serve, 2), 0)) {
      return;
    }
  }
}

template <class State>
void require_all_done(State& state) {
  require(!state.sender.corrupt() && !state.receiver.corrupt(), "corrupt");
  require(Explorer::current->was_killed() || (state.served == records && state.reaped == records), "a record was lost");
  require(state.reaped <= state.served && state.served <= state.sender.posted() + 1, "a record came from nowhere");
}

template <class Policy>
Outcome pass_all(std::size_t killable = no_thread) {
  using State = Shared<Policy>;
  return explore<State>({.killable = killable}, {send<State>, receive<State>}, require_all_done<State>);
}

TEST(RingModel, passes_records_and_replies_through_wrap_and_again) { expect_holds(pass_all<ModelAtomics<>>()); }

TEST(RingModel, a_killed_sender_leaves_only_whole_records) { expect_holds(pass_all<ModelAtomics<>>(0)); }

TEST(RingModel, a_killed_receiver_leaves_only_whole_replies) { expect_holds(pass_all<ModelAtomics<>>(1)); }

TEST(RingModel, catches_a_publish_that_orders_nothing) {
  expect_caught(pass_all<ModelAtomics<Mutation::release_is_relaxed>>(), "race");
}

// A sender that publishes before it writes.
TEST(RingModel, catches_a_record_written_after_it_was_published) {
  using Policy = ModelAtomics<>;
  struct State {
    Policy::Atomic<std::uint64_t> published;
    std::uint64_t message;
  };
  const auto send_early = [](State& s) {
    s.published.store(1, std::memory_order_release);
    Policy::writes(&s.message, sizeof(s.message));
    s.message = 7;
  };
  const auto read_it = [](State& s) {
    while (s.published.load(std::memory_order_acquire) == 0) {
      Policy::pause();
    }
    Policy::reads(&s.message, sizeof(s.message));
  };
  expect_caught(explore<State>({}, {send_early, read_it}, [](State&) {}), "race");
}

}  // namespace
}  // namespace farsum::model
