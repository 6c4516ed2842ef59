// HPCC RandomAccess's updates, 64-bit XORs of random words of a table past the last-level cache, by both ranks at once
// on both parts; beside the same loop with an inline `lock xor` on the same table.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "cases.hpp"
#include "context.hpp"
#include "limits.hpp"
#include "sizes.hpp"

namespace bench {
namespace {

// HPCC allows a process to look this many updates ahead.
constexpr std::uint64_t look_ahead = 1024;
constexpr std::uint64_t table_word_bytes = sizeof(std::uint64_t);

// HPCC's generator: a shift register over GF(2).
class RandomStream {
 public:
  explicit RandomStream(std::uint64_t seed) : value_(seed) {}
  std::uint64_t next() {
    constexpr std::uint64_t polynomial = 7;
    value_ = (value_ << 1) ^ ((value_ >> 63) != 0 ? polynomial : 0);
    return value_;
  }

 private:
  std::uint64_t value_;
};

std::uint64_t seed_of(int rank) { return 0x9e3779b97f4a7c15ULL * static_cast<std::uint64_t>(rank + 1); }

// Four times the last-level cache over both ranks, so that most updates miss it.
std::uint64_t table_part_bytes(const Session& session) {
  const long cache_bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  const std::uint64_t cache = cache_bytes > 0 ? static_cast<std::uint64_t>(cache_bytes) : 32u << 20;
  return std::bit_ceil(session.options().quick ? cache : 2 * cache);
}

// Where the update with this random number falls.
struct Split {
  std::uint64_t word_mask;
  unsigned rank_shift;

  [[nodiscard]] int rank(std::uint64_t random) const { return static_cast<int>((random >> rank_shift) & 1); }
  [[nodiscard]] std::uint64_t word(std::uint64_t random) const { return random & word_mask; }
};

// The ways to do the next `look_ahead` updates.
class Table {
 public:
  Table(Session& session, const Window& window)
      : window_(window),
        split_{.word_mask = window.bytes() / table_word_bytes - 1,
               .rank_shift = static_cast<unsigned>(std::countr_zero(window.bytes() / table_word_bytes))},
        stream_(seed_of(session.rank())),
        parts_{window.elements<std::uint64_t>(0), window.elements<std::uint64_t>(1)} {}

  void restart(int rank) { stream_ = RandomStream(seed_of(rank)); }

  void by_processor() {
    for (std::uint64_t i = 0; i < look_ahead; ++i) {
      const std::uint64_t random = stream_.next();
      atomic_xor(parts_[static_cast<std::size_t>(split_.rank(random))][split_.word(random)], random);
    }
  }

  void one_by_one() {
    for (std::uint64_t i = 0; i < look_ahead; ++i) {
      const std::uint64_t random = stream_.next();
      require(farsum_accumulate(window_.handle(), split_.rank(random), split_.word(random) * table_word_bytes, &random,
                                1, FARSUM_UINT64, FARSUM_BXOR));
    }
    require(farsum_flush(window_.handle(), FARSUM_ALL_RANKS));
  }

  // One operation per target with an indexed layout.
  void batched() {
    std::array<std::size_t, rank_count> filled{};
    for (std::uint64_t i = 0; i < look_ahead; ++i) {
      const std::uint64_t random = stream_.next();
      const auto rank = static_cast<std::size_t>(split_.rank(random));
      offsets_[rank][filled[rank]] = static_cast<std::int64_t>(split_.word(random) * table_word_bytes);
      values_[rank][filled[rank]++] = random;
    }
    for (int rank = 0; rank < rank_count; ++rank) send(rank, filled[static_cast<std::size_t>(rank)]);
    require(farsum_flush(window_.handle(), FARSUM_ALL_RANKS));
  }

 private:
  void send(int rank, std::size_t count) {
    farsum_layout words{};
    words.kind = FARSUM_INDEXED;
    words.bytes = table_word_bytes;
    words.pieces = count;
    words.offsets = offsets_[static_cast<std::size_t>(rank)].data();
    farsum_operation operation{};
    operation.struct_bytes = sizeof operation;
    operation.kind = FARSUM_ACCUMULATE;
    operation.target = rank;
    operation.type = FARSUM_UINT64;
    operation.op = FARSUM_BXOR;
    operation.count = count;
    operation.origin = values_[static_cast<std::size_t>(rank)].data();
    operation.target_layout = &words;
    require(farsum_operate(window_.handle(), &operation, nullptr));
  }

  const Window& window_;
  Split split_;
  RandomStream stream_;
  std::array<std::uint64_t*, rank_count> parts_;
  std::array<std::array<std::int64_t, look_ahead>, rank_count> offsets_{};
  std::array<std::array<std::uint64_t, look_ahead>, rank_count> values_{};
};

using Update = void (Table::*)();

// An XOR done twice is none: each rank's stream by the way under test and again by the processor must leave the table
// as it was.
void check(Session& session, const Window& window, Table& table, Update way) {
  const std::uint64_t batches = session.scaled(2000);
  table.restart(session.rank());
  session.arena().start_together();
  for (std::uint64_t i = 0; i < batches; ++i) (table.*way)();
  session.arena().gate();
  table.restart(session.rank());
  for (std::uint64_t i = 0; i < batches; ++i) table.by_processor();
  session.arena().gate();
  const auto* mine = window.elements<std::uint64_t>(session.rank());
  for (std::uint64_t i = 0; i < window.bytes() / table_word_bytes; ++i)
    require_answer(mine[i] == 0, "random updates were lost");
  session.arena().gate();
}

void compare_ways(Session& session, const char* window_name, std::uint32_t promises) {
  const Window window(table_part_bytes(session), promises);
  // Every page is there before anything is timed.
  const auto table = std::make_unique<Table>(session, window);
  struct Named {
    const char* name;
    Update way;
  };
  for (const Named& named : {Named{"one by one", &Table::one_by_one}, Named{"batched", &Table::batched}}) {
    check(session, window, *table, named.way);
    Row row{.bench = "random-updates",
            .name = fmt::format("{}, {} / lock xor", named.name, window_name),
            .unit = "up/s",
            .aim = {Better::higher, 0.8}};
    row.more["table_bytes"] = window.bytes() * rank_count;
    session.compare(row, session.together(look_ahead, [&] { table->by_processor(); }),
                    session.together(look_ahead, [&] { ((*table).*named.way)(); }));
    // The timed updates are of unlike numbers on the two sides, so the table starts again from nothing.
    auto* mine = window.elements<std::uint64_t>(session.rank());
    std::fill(mine, mine + window.bytes() / table_word_bytes, 0);
    session.arena().gate();
  }
}

}  // namespace

void run_random_updates(Session& session) {
  const Context context;
  compare_ways(session, "declared single elements", FARSUM_SINGLE_ELEMENT);
  compare_ways(session, "any window", 0);
}

}  // namespace bench
