// Sums, tickets, swaps and replacements of several ranks on the same memory, each rank by another path: totals are
// exact. FARSUM_SOAK_UPDATES sets how many updates are made in all (10^7 by default, 10^9 in `make soak`).
#include <sys/mman.h>

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "job.hpp"

namespace farsum::faults {
namespace {

constexpr int ranks = 4;
constexpr std::size_t elements = 24 * 1024;  // of each array: 12 stripes
constexpr std::size_t most_bulk = 4096;
constexpr std::size_t tickets_per_round = 2;

// The window: integers, doubles, one word of tickets, one word that is swapped, and a strip of each rank.
constexpr std::size_t integers_at = 0;
constexpr std::size_t doubles_at = integers_at + elements * 8;
constexpr std::size_t ticket_at = doubles_at + elements * 8;
constexpr std::size_t swapped_at = ticket_at + 8;
constexpr std::size_t strips_at =
    swapped_at + 8 + 48;  // begins amid a stripe, so that strips share stripes with the rest
constexpr std::size_t strip_elements = 3000;
constexpr std::size_t window_bytes = strips_at + ranks * strip_elements * 8;

// What each rank did, for the test to add up.
struct Tally {
  std::array<std::array<std::int64_t, elements>, ranks> integers;
  std::array<std::array<std::int64_t, elements>, ranks> doubles;
  std::array<std::uint64_t, ranks> swaps;
  std::array<std::uint64_t, ranks> tickets;
  std::array<std::uint64_t, ranks> ticket_sums;
  std::array<std::uint64_t, ranks> torn_strips;
  std::array<std::byte, window_bytes> end;  // the memory, written by its owner
};

class SharedTally {
 public:
  SharedTally()
      : tally_(static_cast<Tally*>(
            mmap(nullptr, sizeof(Tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~SharedTally() { munmap(tally_, sizeof(Tally)); }
  SharedTally(const SharedTally&) = delete;
  SharedTally& operator=(const SharedTally&) = delete;
  Tally& operator*() { return *tally_; }
  Tally* operator->() { return tally_; }

 private:
  Tally* tally_;
};

struct Worker {
  const Rank& self;
  Tally& tally;
  farsum_window window;
  Random random;
  std::vector<std::int64_t> ones = std::vector<std::int64_t>(most_bulk, 1);
  std::vector<double> twos = std::vector<double>(most_bulk, 2.0);
  std::vector<std::int64_t> strip = std::vector<std::int64_t>(strip_elements);

  std::size_t me() const { return static_cast<std::size_t>(self.rank); }

  std::uint64_t add_integers(std::size_t count) {
    const std::size_t first = random.below(elements - count + 1);
    if (!self.ok(farsum_accumulate(window, 0, integers_at + first * 8, ones.data(), count, FARSUM_INT64, FARSUM_SUM)))
      return 0;
    for (std::size_t i = 0; i < count; ++i) ++tally.integers[me()][first + i];
    return count;
  }

  std::uint64_t add_doubles(std::size_t count) {
    const std::size_t first = random.below(elements - count + 1);
    if (!self.ok(farsum_accumulate(window, 0, doubles_at + first * 8, twos.data(), count, FARSUM_DOUBLE, FARSUM_SUM)))
      return 0;
    for (std::size_t i = 0; i < count; ++i) ++tally.doubles[me()][first + i];
    return count;
  }

  bool take_tickets() {
    for (std::size_t i = 0; i < tickets_per_round; ++i) {
      std::int64_t ticket = 0;
      if (!self.ok(farsum_fetch_op(window, 0, ticket_at, ones.data(), &ticket, FARSUM_INT64, FARSUM_SUM))) return false;
      ++tally.tickets[me()];
      tally.ticket_sums[me()] += static_cast<std::uint64_t>(ticket);
    }
    return true;
  }

  // One increment by compare-and-swap, as often as it takes.
  bool swap() {
    std::int64_t seen = 0;
    for (;;) {
      const std::int64_t wish = seen + 1;
      std::int64_t found = 0;
      if (!self.ok(farsum_compare_and_swap(window, 0, swapped_at, &seen, &wish, &found, FARSUM_INT64))) return false;
      if (found == seen) break;
      seen = found;
    }
    ++tally.swaps[me()];
    return true;
  }

  // Writes this rank's strip and reads it back: nobody else's may be in it.
  bool replace(std::int64_t round) {
    const std::size_t at = strips_at + me() * strip_elements * 8;
    std::fill(strip.begin(), strip.end(), round * ranks + self.rank);
    std::vector<std::int64_t> back(strip_elements);
    if (!self.ok(farsum_accumulate(window, 0, at, strip.data(), strip_elements, FARSUM_INT64, FARSUM_REPLACE)))
      return false;
    if (!self.ok(
            farsum_get_accumulate(window, 0, at, nullptr, back.data(), strip_elements, FARSUM_INT64, FARSUM_NO_OP)))
      return false;
    if (!self.ok(farsum_flush(window, 0))) return false;
    if (back != strip) ++tally.torn_strips[me()];
    return true;
  }
};

bool work(Worker& worker, std::uint64_t updates) {
  std::uint64_t done = 0;
  for (std::int64_t round = 0; done < updates; ++round) {
    done += worker.add_integers(1 + worker.random.below(most_bulk));
    done += worker.add_doubles(1 + worker.random.below(most_bulk));
    for (int single = 0; single < 16; ++single) done += worker.add_integers(1) + worker.add_doubles(1);
    if (!worker.take_tickets() || !worker.swap()) return false;
    if (round % 16 == 0 && !worker.replace(round)) return false;
    if (worker.self.words().status.load() != FARSUM_OK) return false;
    worker.self.words().rounds.store(done);
  }
  return true;
}

int update_all(const Rank& self, Tally& tally, bool adopted, std::uint64_t updates) {
  farsum_window window{};
  std::vector<std::byte> user(adopted && self.rank == 0 ? window_bytes : 0);
  void* memory = user.data();
  if (!self.ok(self.init())) return 1;
  const std::size_t bytes = self.rank == 0 ? window_bytes : 0;
  const farsum_status made = adopted ? farsum_window_adopt(farsum_world(), memory, bytes, nullptr, &window)
                                     : farsum_window_allocate(farsum_world(), bytes, nullptr, &memory, &window);
  if (!self.ok(made) || !self.ok(farsum_lock_all(window))) return 1;
  Worker worker{self, tally, window,
                Random(environment_number("FARSUM_FAULT_SEED", 1) * ranks + static_cast<std::uint64_t>(self.rank))};
  if (!work(worker, updates)) return 1;
  if (!self.ok(farsum_unlock_all(window)) || !self.ok(farsum_barrier(farsum_world()))) return 1;
  if (self.rank == 0) std::memcpy(tally.end.data(), memory, window_bytes);
  return self.ok(farsum_window_free(&window)) && self.ok(farsum_finalize()) ? 0 : 1;
}

struct Mix {
  const char* name;
  bool adopted;
  std::array<const char*, ranks> paths;  // rank 0 owns the memory
  const char* promotion;
};

constexpr Mix mixes[] = {
    {"allocated_owner_direct", false, {"direct", "owner", "caller", "aggregated"}, "auto"},
    {"allocated_owner_by_message", false, {"owner", "direct", "attach", "direct"}, "auto"},
    {"allocated_without_owner", false, {"auto", "aggregated", "owner", "direct"}, "auto"},
    {"user_memory", true, {"auto", "attach", "owner", "caller"}, "refuse"},
    {"promoted_memory", true, {"direct", "direct", "owner", "attach"}, "auto"},
};

class MixedUpdates : public testing::TestWithParam<Mix> {};

TEST_P(MixedUpdates, have_exact_totals) {
  const Mix& mix = GetParam();
  const std::uint64_t updates = environment_number("FARSUM_SOAK_UPDATES", 10'000'000) / std::size(mixes) / ranks;
  SharedTally tally;
  JobOptions options;
  options.ranks = ranks;
  options.environment = {{"FARSUM_PROMOTION", mix.promotion}};
  options.environment_of = [&](int rank) {
    return std::vector<std::pair<std::string, std::string>>{{"FARSUM_PATH", mix.paths[static_cast<std::size_t>(rank)]}};
  };
  Job job(options);
  job.start([&](const Rank& self) { return update_all(self, *tally, mix.adopted, updates); });
  for (int rank = 0; rank < ranks; ++rank) {
    // As long as it takes: ctest and `make soak` have the watchdog.
    ASSERT_EQ(job.wait_rank(rank, ~std::uint64_t{0}), 0) << job.words(rank).text.data();
  }
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < elements; ++i) {
    std::int64_t expected_integer = 0;
    std::int64_t expected_double = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      expected_integer += tally->integers[rank][i];
      expected_double += 2 * tally->doubles[rank][i];
    }
    std::int64_t integer = 0;
    double real = 0;
    std::memcpy(&integer, &tally->end[integers_at + i * 8], 8);
    std::memcpy(&real, &tally->end[doubles_at + i * 8], 8);
    if (integer != expected_integer || real != static_cast<double>(expected_double)) ++wrong;
  }
  EXPECT_EQ(wrong, 0U) << "elements whose totals are not exact";
  std::uint64_t swaps = 0;
  std::uint64_t tickets = 0;
  std::uint64_t ticket_sum = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    swaps += tally->swaps[rank];
    tickets += tally->tickets[rank];
    ticket_sum += tally->ticket_sums[rank];
    EXPECT_EQ(tally->torn_strips[rank], 0U) << "rank " << rank;
  }
  std::uint64_t swapped = 0;
  std::uint64_t last_ticket = 0;
  std::memcpy(&swapped, &tally->end[swapped_at], 8);
  std::memcpy(&last_ticket, &tally->end[ticket_at], 8);
  EXPECT_EQ(swapped, swaps);
  EXPECT_EQ(last_ticket, tickets);
  // Tickets 0, 1, ... each once have this sum.
  EXPECT_EQ(ticket_sum, tickets * (tickets - 1) / 2);
}

INSTANTIATE_TEST_SUITE_P(By, MixedUpdates, testing::ValuesIn(mixes),
                         [](const auto& one) { return std::string(one.param.name); });
void PrintTo(const Mix& mix, std::ostream* out) { *out << mix.name; }

// ---- the agent gets its turn at a stripe that others take again and again ----

// Rank 1 asks the owner's agent; all others sum directly, without a pause, until it is done.
int compete(const Rank& self) {
  farsum_window window{};
  void* memory = nullptr;
  if (!self.ok(self.init())) return 1;
  if (!self.ok(farsum_window_allocate(farsum_world(), self.rank == 0 ? 16384 : 0, nullptr, &memory, &window))) return 1;
  if (!self.ok(farsum_lock_all(window)) || !self.ok(farsum_barrier(farsum_world()))) return 1;
  const std::vector<std::int64_t> ones(1024, 1);
  std::int64_t old = 0;
  if (self.rank == 1) {
    for (int i = 0; i < 2000; ++i) {
      if (!self.ok(farsum_fetch_op(window, 0, 8, ones.data(), &old, FARSUM_INT64, FARSUM_SUM))) return 1;
      self.words().rounds.store(static_cast<std::uint64_t>(i) + 1);
    }
    self.control->stop.store(1);
  }
  while (self.control->stop.load() == 0) {
    if (!self.ok(farsum_accumulate(window, 0, 16, ones.data(), ones.size(), FARSUM_INT64, FARSUM_SUM))) return 1;
  }
  return self.ok(farsum_unlock_all(window)) && self.ok(farsum_window_free(&window)) && self.ok(farsum_finalize()) ? 0
                                                                                                                  : 1;
}

TEST(Agent, gets_its_turn_at_a_stripe_that_others_take_without_a_pause) {
  JobOptions options;
  options.ranks = 3;
  options.environment_of = [](int rank) {
    return std::vector<std::pair<std::string, std::string>>{{"FARSUM_PATH", rank == 1 ? "owner" : "direct"}};
  };
  Job job(options);
  job.start(compete);
  const std::uint64_t deadline = now_ns() + 60'000'000'000;
  for (int rank = 0; rank < job.size(); ++rank) {
    EXPECT_EQ(job.wait_rank(rank, deadline), 0)
        << job.words(rank).text.data() << "; fetch_ops done: " << job.words(1).rounds;
  }
  EXPECT_EQ(job.leftovers(), "");
}

}  // namespace
}  // namespace farsum::faults
