// Small operations through the owner's agent: how long one takes while the owner sleeps, beside a bare futex wake with
// a cache line handed over; while the owner computes; and how many a second when they follow each other.
//
// Ranks are pinned before the context is made, and the agent keeps the mask that the process had then: agent and raw
// sleeper wake on the same processor.
#include <array>

#include <fmt/format.h>

#include "cases.hpp"
#include "context.hpp"

namespace bench {
namespace {

// One request in 100 us, each of about 5 us, is a twentieth of the owner's core.
constexpr std::uint64_t gap_ns = 100'000;
constexpr std::size_t shared_part_bytes = 4096;
const Settings through_owner = {{"FARSUM_PATH", "owner"}};

void fetch_add_8(const Window& window, std::uint64_t) {
  const std::uint64_t one = 1;
  std::uint64_t before = 0;
  require(farsum_fetch_op(window.handle(), 1, 0, &one, &before, FARSUM_UINT64, FARSUM_SUM));
}

void sum_64(const Window& window, std::uint64_t) {
  constexpr std::array<double, 8> operand = {1, 2, 3, 4, 5, 6, 7, 8};
  require(farsum_accumulate(window.handle(), 1, 64, operand.data(), operand.size(), FARSUM_DOUBLE, FARSUM_SUM));
  window.flush(1);
}

void put_64(const Window& window, std::uint64_t i) {
  const std::array<std::uint64_t, 8> values = {i, i + 1, i + 2, i + 3, i + 4, i + 5, i + 6, i + 7};
  require(farsum_put(window.handle(), 1, 128, values.data(), sizeof values));
  window.flush(1);
}

struct Small {
  const char* name;
  void (*run)(const Window& window, std::uint64_t i);
};
constexpr std::array<Small, 3> small_operations = {
    {{"fetch-add 8 B", fetch_add_8}, {"sum 64 B + flush", sum_64}, {"put 64 B + flush", put_64}}};

// Rank 0 calls; the owner looks at its own memory.
void check_values(Session& session, const Window& window) {
  constexpr std::uint64_t calls = 100;
  require_answer(window.region(1).bulk_path == FARSUM_PATH_OWNER && window.region(1).atomic_path == FARSUM_PATH_OWNER,
                 "FARSUM_PATH=owner is not what the window uses");
  if (session.is_root()) {
    for (const Small& operation : small_operations) {
      for (std::uint64_t i = 0; i < calls; ++i) operation.run(window, i);
    }
  }
  session.arena().gate();
  if (session.is_root()) return;
  const auto* words = window.elements<std::uint64_t>(1);
  const auto* doubles = window.elements<double>(1);
  require_answer(words[0] == calls, "the agent lost fetch-and-adds");
  for (std::uint64_t i = 0; i < 8; ++i) {
    require_answer(doubles[8 + i] == static_cast<double>(calls * (i + 1)), "the agent's sum is wrong");
    require_answer(words[16 + i] == calls - 1 + i, "the agent's put is wrong");
  }
}

Side paced(Session& session, const Window& window, const Small& operation, bool owner_computes) {
  const auto work = [&session, &window, operation] {
    return paced_latency(session.scaled(2000), gap_ns, [&](std::uint64_t i) { operation.run(window, i); });
  };
  return owner_computes ? session.while_peer_computes(work) : session.alone(work);
}

// Rank 1 sleeps on the request word and answers on another line; rank 0 wakes it and looks at the answer without
// sleeping.
Side raw_hand_over(Session& session) {
  return [&session]() -> Sample {
    ArenaWords& words = session.arena().words();
    const std::uint64_t count = session.scaled(2000);
    if (!session.is_root()) {
      // The last request that was answered: rank 0 may be ahead of this rank already.
      std::uint32_t seen = words.answer.load(std::memory_order_relaxed);
      for (std::uint64_t i = 0; i < count; ++i) {
        while (words.request.load(std::memory_order_acquire) == seen) futex_wait(words.request, seen);
        words.answer.store(++seen, std::memory_order_release);
      }
      return {};
    }
    return paced_latency(count, gap_ns, [&](std::uint64_t) {
      const std::uint32_t number = words.request.load(std::memory_order_relaxed) + 1;
      words.request.store(number, std::memory_order_release);
      futex_wake(words.request);
      while (words.answer.load(std::memory_order_acquire) != number) pause();
    });
  };
}

// The share of the owner's core that its agent takes at this pace.
double agent_share(Session& session, const Side& side) {
  session.arena().gate();
  const std::uint64_t start = now_ns();
  const std::uint64_t before = read_agent_thread().processor_ns;
  static_cast<void>(side());
  const auto used = static_cast<double>(read_agent_thread().processor_ns - before);
  session.arena().mine().figures[0] = used / static_cast<double>(now_ns() - start);
  session.arena().gate();
  const double share = session.arena().of(1).figures[0];
  session.arena().gate();
  return share;
}

double one_at_a_time_rate(Session& session, const Window& window) {
  const std::uint64_t duration_ns = 200 * session.slice_ns();
  const std::uint64_t start = now_ns();
  std::uint64_t done = 0;
  for (; now_ns() - start < duration_ns; ++done) fetch_add_8(window, done);
  return static_cast<double>(done) * 1e9 / static_cast<double>(now_ns() - start);
}

}  // namespace

void run_owner_idle(Session& session) {
  const Context context(through_owner);
  const Window window(shared_part_bytes, 0);
  check_values(session, window);
  for (const Small& operation : small_operations) {
    Row row{.bench = "owner-idle",
            .name = fmt::format("{} by the owner's agent / futex hand-over", operation.name),
            .unit = "ns",
            .aim = {Better::lower, 1.2}};
    session.compare(row, raw_hand_over(session), paced(session, window, operation, false));
  }
}

void run_owner_computing(Session& session) {
  const Context context(through_owner);
  const Window window(shared_part_bytes, 0);
  check_values(session, window);
  for (const Small& operation : small_operations) {
    Row row{.bench = "owner-computing",
            .name = fmt::format("{}, owner computing / owner idle", operation.name),
            .unit = "ns",
            .aim = {Better::lower, 1.3}};
    const Side computing = paced(session, window, operation, true);
    row.more["agent_share_of_core"] = agent_share(session, computing);
    session.compare(row, paced(session, window, operation, false), computing);
  }
}

void run_owner_load(Session& session) {
  const Context context(through_owner);
  const Window window(shared_part_bytes, 0);
  check_values(session, window);
  const auto work = [&]() -> Sample {
    const double rate = one_at_a_time_rate(session, window);
    return {.figure = rate,
            .operations = static_cast<std::uint64_t>(rate * 200e-9 * static_cast<double>(session.slice_ns()))};
  };
  Row row{.bench = "owner-load",
          .name = "rate of fetch-adds, owner computing / owner idle",
          .unit = "op/s",
          .aim = {Better::higher, 0.45}};
  session.compare(row, session.alone(work), session.while_peer_computes(work));
}

}  // namespace bench
