// What is made and freed: windows of all kinds, groups, counters, mutexes; and the collectives.
#include <algorithm>
#include <cstdio>
#include <numeric>

#include "../../../apps/common/any_counter.hpp"
#include "across.hpp"
#include "collective_of.hpp"

namespace across {
namespace {

void add_one(farsum_window window, int target, std::uint64_t offset) {
  static constexpr std::uint64_t one = 1;
  FINE(farsum_accumulate(window, target, offset, &one, 1, FARSUM_UINT64, FARSUM_SUM));
}

// Memory of the program, on its heap and from farsum_memory_allocate; what it held before stays.
void adopted(const Job& job) {
  constexpr std::size_t count = 3000;
  std::vector<std::uint64_t> heap(count, 5);
  void* given = nullptr;
  FINE(farsum_memory_allocate(count * 8, &given));
  auto* const node = static_cast<std::uint64_t*>(given);
  std::fill_n(node, count, 5);
  for (std::uint64_t* memory : {heap.data(), node}) {
    farsum_window window{};
    FINE(farsum_window_adopt(farsum_world(), memory, count * 8, nullptr, &window));
    FINE(farsum_lock_all(window));
    const std::vector<std::uint64_t> ones(count, 1);
    for (int target = 0; target < job.size; ++target)
      FINE(farsum_accumulate(window, target, 0, ones.data(), count, FARSUM_UINT64, FARSUM_SUM));
    FINE(farsum_unlock_all(window));
    release(window);
    for (std::size_t i = 0; i < count; ++i)
      equal(memory[i], 5 + static_cast<std::uint64_t>(job.size), of("adopted word", job.rank, i));
  }
  FINE(farsum_memory_free(given));
}

// Regions come and go while the window lives; offsets are addresses of the target.
void dynamic(const Job& job) {
  constexpr std::size_t count = 1000;
  farsum_window window{};
  FINE(farsum_window_create_dynamic(farsum_world(), nullptr, &window));
  FINE(farsum_lock_all(window));
  for (std::size_t round = 0; round < 4; ++round) {
    std::vector<std::uint64_t> first(count), second(count + round);
    FINE(farsum_window_attach(window, first.data(), first.size() * 8));
    FINE(farsum_window_attach(window, second.data(), second.size() * 8));
    const std::uint64_t mine[2] = {reinterpret_cast<std::uint64_t>(first.data()),
                                   reinterpret_cast<std::uint64_t>(second.data())};
    std::vector<std::uint64_t> all(2 * static_cast<std::size_t>(job.size));
    FINE(farsum_allgather(farsum_world(), mine, all.data(), sizeof mine));
    for (int target = 0; target < job.size; ++target) {
      const std::uint64_t* there = &all[2 * static_cast<std::size_t>(target)];
      for (std::size_t i = 0; i < count; i += 100) add_one(window, target, there[0] + 8 * i);
      std::uint64_t old = 0;
      const std::uint64_t one = 1;
      FINE(farsum_fetch_op(window, target, there[1] + 8 * round, &one, &old, FARSUM_UINT64, FARSUM_SUM));
    }
    FINE(farsum_flush(window, FARSUM_ALL_RANKS));
    barrier();
    for (std::size_t i = 0; i < count; ++i)
      equal(first[i], i % 100 == 0 ? static_cast<std::uint64_t>(job.size) : 0, of("attached word", job.rank, i));
    equal(second[round], static_cast<std::uint64_t>(job.size), "the word of the second region");
    FINE(farsum_window_detach(window, first.data()));
    FINE(farsum_window_detach(window, second.data()));
    barrier();
    const std::uint64_t gone = all[2 * static_cast<std::size_t>(job.right())];
    const farsum_status refused = farsum_put(window, job.right(), gone, mine, 8);
    const farsum_status at_the_latest = refused == FARSUM_OK ? farsum_flush(window, job.right()) : refused;
    holds(at_the_latest == FARSUM_ERR_RANGE,
          std::string("a put to what was detached: ") + farsum_status_name(at_the_latest));
    barrier();
  }
  FINE(farsum_unlock_all(window));
  release(window);
}

// Several windows at a time, freed in another order than they were made, again and again.
void many_windows(const Job& job) {
  for (std::size_t round = 0; round < 6; ++round) {
    std::vector<Words> windows;
    for (std::size_t i = 0; i < 5; ++i) windows.push_back(allocate(10 + 100 * i));
    for (const Words& words : windows) {
      FINE(farsum_lock_all(words.window));
      for (int target = 0; target < job.size; ++target) add_one(words.window, target, 72);
      FINE(farsum_unlock_all(words.window));
    }
    barrier();
    for (std::size_t i = 0; i < windows.size(); ++i) {
      Words& words = windows[i * 2 % windows.size()];
      equal(words.mine[9], static_cast<std::uint64_t>(job.size), of("the word of window", job.rank, i));
      release(words.window);
    }
  }
}

void collectives(const Job& job) {
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{1000}, std::size_t{100'000}}) {
    for (int root = 0; root < job.size; ++root) {
      std::vector<std::uint64_t> buffer(bytes / 8, job.rank == root ? mark(root, root, bytes) : 0);
      FINE(farsum_broadcast(farsum_world(), buffer.data(), bytes, root));
      for (std::size_t i = 0; i < buffer.size(); ++i)
        equal(buffer[i], mark(root, root, bytes), of("broadcast word", root, i));
    }
    std::vector<std::uint64_t> mine(bytes / 8, mark(job.rank, 0, bytes));
    std::vector<std::uint64_t> all(mine.size() * static_cast<std::size_t>(job.size));
    FINE(farsum_allgather(farsum_world(), mine.data(), all.data(), bytes));
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto from = static_cast<int>(i / mine.size());
      equal(all[i], mark(from, 0, bytes), of("gathered word", from, i));
    }
  }
  for (int i = 0; i < 200; ++i) barrier();
}

// Of each kind, short and long, waited for in the call or begun beside others. Sums of words tell who is in them.
void reductions(const Job& job) {
  const auto ranks = static_cast<std::size_t>(job.size);
  const auto brought = [&](int rank, std::size_t i) { return (std::uint64_t{1} << (4 * rank)) + (i << 40); };
  const auto summed = [&](std::size_t i) {
    std::uint64_t sum = 0;
    for (int rank = 0; rank < job.size; ++rank) sum += brought(rank, i);
    return sum;
  };
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{100}, std::size_t{20'000}}) {
    std::vector<std::uint64_t> mine(count * ranks), begun_sum(count), all(count), at_root(count), block(count);
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = brought(job.rank, i);
    const farsum_collective collective = farsum::test::allreduce_of(mine.data(), begun_sum.data(), count);
    farsum_request request{};
    FINE(farsum_collect(farsum_world(), &collective, &request));
    FINE(farsum_wait(&request));
    FINE(farsum_allreduce(farsum_world(), mine.data(), all.data(), count, FARSUM_UINT64, FARSUM_SUM));
    const int root = job.size - 1;
    FINE(farsum_reduce(farsum_world(), mine.data(), job.rank == root ? at_root.data() : nullptr, count, FARSUM_UINT64,
                       FARSUM_SUM, root));
    FINE(farsum_reduce_scatter_block(farsum_world(), mine.data(), block.data(), count, FARSUM_UINT64, FARSUM_SUM));
    for (std::size_t i = 0; i < count; ++i) {
      equal(begun_sum[i], summed(i), of("sum begun", job.rank, i));
      equal(all[i], summed(i), of("sum", job.rank, i));
      if (job.rank == root) equal(at_root[i], summed(i), of("sum at the root", job.rank, i));
      equal(block[i], summed(static_cast<std::size_t>(job.rank) * count + i), of("sum of the block", job.rank, i));
    }
  }
}

// One window over a group, whose ranks are numbered as the list says.
void use_group(const Job& job, const std::vector<int>& ranks) {
  const auto found = std::ranges::find(ranks, job.rank);
  if (found == ranks.end()) return;
  farsum_group group{};
  FINE(farsum_group_create(farsum_world(), ranks.data(), static_cast<int>(ranks.size()), &group));
  int me = -1, size = 0;
  FINE(farsum_rank(group, &me));
  FINE(farsum_size(group, &size));
  equal(static_cast<std::uint64_t>(me), static_cast<std::uint64_t>(found - ranks.begin()), "the rank in the group");
  Words words = allocate(static_cast<std::size_t>(size), group);
  FINE(farsum_lock_all(words.window));
  const std::uint64_t mine = mark(job.rank, 0, 1);
  for (int target = 0; target < size; ++target)
    FINE(farsum_put(words.window, target, 8 * static_cast<std::uint64_t>(me), &mine, 8));
  FINE(farsum_unlock_all(words.window));
  barrier(group);
  std::vector<std::uint64_t> all(ranks.size());
  FINE(farsum_allgather(group, &mine, all.data(), sizeof mine));
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    equal(words.mine[i], mark(ranks[i], 0, 1), of("the group's word", ranks[i], i));
    equal(all[i], mark(ranks[i], 0, 1), of("the word gathered in the group", ranks[i], i));
  }
  release(words.window);
  FINE(farsum_group_free(&group));
}

void groups(const Job& job) {
  std::vector<int> all(static_cast<std::size_t>(job.size));
  std::iota(all.begin(), all.end(), 0);
  const std::vector<int> backwards(all.rbegin(), all.rend());
  std::vector<int> parts[2];
  for (const int rank : all) parts[rank % 2].push_back(rank);
  for (int round = 0; round < 3; ++round) {
    use_group(job, backwards);
    for (const std::vector<int>& part : parts) use_group(job, part);
    use_group(job, {job.rank});
    if (job.size > 2) use_group(job, {job.size - 1, 0});
  }
}

void counters(const Job& job) {
  constexpr std::uint64_t each = 60;
  const auto all = each * static_cast<std::uint64_t>(job.size);
  for (const auto& [name, kind] : apps::counter_kinds()) {
    const bool is_leased = kind == apps::CounterKind::leased;
    apps::AnyCounter counter;
    FINE(counter.create(kind, job.size - 1, all));
    for (int round = 0; round < 2; ++round) {
      std::vector<std::uint64_t> tickets;
      for (std::uint64_t ticket = 0; is_leased ? ticket < all : tickets.size() < each;) {
        FINE(counter.next(&ticket));
        if (!is_leased || ticket < all) tickets.push_back(ticket);
      }
      equal_tickets(tickets, all, job, "counter " + name);
      FINE(counter.reset());
    }
    FINE(counter.free());
  }
}

void mutexes(const Job& job) {
  constexpr std::uint64_t each = 400;
  Words words = allocate(2);
  farsum_mutex mutexes{};
  FINE(farsum_mutex_create(farsum_world(), 2 + job.rank, &mutexes));
  // The last of the last rank's.
  FINE(farsum_mutex_lock(mutexes, job.size - 1, job.size));
  FINE(farsum_mutex_unlock(mutexes, job.size - 1, job.size));
  FINE(farsum_lock_all(words.window));
  for (std::uint64_t round = 0; round < each; ++round) {
    for (int target = 0; target < job.size; ++target) {
      const auto index = static_cast<int>(round % 2);
      const auto offset = static_cast<std::uint64_t>(index) * 8;
      std::uint64_t word = 0;
      FINE(farsum_mutex_lock(mutexes, target, index));
      FINE(farsum_get(words.window, target, offset, &word, 8));
      FINE(farsum_flush(words.window, target));
      ++word;
      FINE(farsum_put(words.window, target, offset, &word, 8));
      FINE(farsum_flush(words.window, target));
      FINE(farsum_mutex_unlock(mutexes, target, index));
    }
  }
  FINE(farsum_unlock_all(words.window));
  barrier();
  for (std::size_t i = 0; i < 2; ++i)
    equal(words.mine[i], each / 2 * static_cast<std::uint64_t>(job.size), of("the word under mutex", job.rank, i));
  FINE(farsum_mutex_free(&mutexes));
  release(words.window);
}

// farsum_finalize frees it.
void left_open(const Job&) {
  const Words words = allocate(100);
  FINE(farsum_lock_all(words.window));
  add_one(words.window, 0, 0);
  FINE(farsum_unlock_all(words.window));
}

constexpr Case cases[] = {{"collectives", collectives}, {"reductions", reductions},     {"groups", groups},
                          {"adopted", adopted},         {"dynamic", dynamic},           {"counters", counters},
                          {"mutexes", mutexes},         {"many_windows", many_windows}, {"left_open", left_open}};

}  // namespace

std::span<const Case> object_cases() { return cases; }

}  // namespace across
