// Paper 1, figure 2, for this machine: the bandwidth of sums of doubles by message size, on every path. Every sample is
// one or more accumulates, each with its flush: the data is at its target. Paths are settings, so each has a context of
// its own; rounds go through all of them in turn, and figures that are compared come from the same round.
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "cases.hpp"
#include "context.hpp"
#include "sizes.hpp"

namespace bench {
namespace {

// The paper's point: 720 KB, taken as 720,000 bytes.
constexpr std::size_t paper_bytes = 720'000;
constexpr double paper_owner_mb = 181.0;
constexpr double paper_caller_mb = 99.8;
constexpr std::size_t most_summed_bytes = 16 << 20;

enum class Memory : std::uint8_t { adopted, mapped };
const char* name_of(Memory memory) { return memory == Memory::adopted ? "adopted" : "mapped"; }

struct Way {
  const char* name;
  const char* path;  // FARSUM_PATH
  const char* lock;  // FARSUM_CALLER_LOCK, or null
  farsum_path expected;
  std::size_t most;  // longer messages would take seconds each
};
constexpr std::size_t few_bytes = 1 << 20;
constexpr Way ways[] = {
    {"caller, region lock", "caller", "region", FARSUM_PATH_CALLER, most_summed_bytes},
    {"caller, stripe locks", "caller", "stripe", FARSUM_PATH_CALLER, most_summed_bytes},
    {"caller, element locks", "caller", "element", FARSUM_PATH_CALLER, few_bytes},
    {"owner", "owner", nullptr, FARSUM_PATH_OWNER, most_summed_bytes},
    {"direct", "direct", nullptr, FARSUM_PATH_DIRECT, most_summed_bytes},
    {"attach", "attach", nullptr, FARSUM_PATH_ATTACH, most_summed_bytes},
    {"aggregated", "aggregated", nullptr, FARSUM_PATH_AGGREGATED, few_bytes},
};

// Powers of two, the paper's size, and both sides of the limit up to which an operand rides in the message.
std::vector<std::size_t> message_sizes(bool quick) {
  const std::size_t inline_limit = std::getenv("FARSUM_INLINE_BYTES") != nullptr
                                       ? std::strtoull(std::getenv("FARSUM_INLINE_BYTES"), nullptr, 10)
                                       : 8192;
  if (quick) return {8, inline_limit, inline_limit + 8, paper_bytes};
  std::vector<std::size_t> sizes = {paper_bytes, inline_limit + 8};
  for (std::size_t bytes = 8; bytes <= most_summed_bytes; bytes *= 2) sizes.push_back(bytes);
  sizes.push_back(6144);
  sizes.push_back(12288);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

struct Key {
  Memory memory;
  std::size_t way;
  bool computes;
  std::size_t bytes;
  bool operator<(const Key& other) const {
    return std::tie(memory, way, computes, bytes) < std::tie(other.memory, other.way, other.computes, other.bytes);
  }
};
using Figures = std::map<Key, std::vector<double>>;  // MB/s by round

// User memory that lies on the heap's side of things: an anonymous map of its own.
class UserMemory {
 public:
  UserMemory()
      : memory_(static_cast<double*>(mmap(nullptr, most_summed_bytes, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0))) {
    if (memory_ == MAP_FAILED) throw std::runtime_error("cannot map memory for the benchmark");
  }
  ~UserMemory() { munmap(memory_, most_summed_bytes); }
  UserMemory(const UserMemory&) = delete;
  UserMemory& operator=(const UserMemory&) = delete;
  [[nodiscard]] double* data() const { return memory_; }

 private:
  double* memory_;
};

void sum_once(const Window& window, const Way& way, const double* operand, std::size_t bytes) {
  const std::size_t count = bytes / sizeof(double);
  if (way.expected == FARSUM_PATH_AGGREGATED) {
    // This path gathers single elements: the message is given to it one by one.
    for (std::size_t i = 0; i < count; ++i) {
      require(farsum_accumulate(window.handle(), 1, i * sizeof(double), operand + i, 1, FARSUM_DOUBLE, FARSUM_SUM));
    }
  } else {
    require(farsum_accumulate(window.handle(), 1, 0, operand, count, FARSUM_DOUBLE, FARSUM_SUM));
  }
  require(farsum_flush(window.handle(), 1));
}

// About a millisecond of work, at least two messages.
double bandwidth_mb(Session& session, const Window& window, const Way& way, const double* operand, std::size_t bytes) {
  const std::uint64_t before = now_ns();
  sum_once(window, way, operand, bytes);
  const std::uint64_t once_ns = now_ns() - before + 1;
  const std::uint64_t wanted_ns = session.options().quick ? 200'000 : 2'000'000;
  const std::uint64_t count = std::clamp<std::uint64_t>(wanted_ns / once_ns, 2, 100'000);
  const Sample sample = time_per_operation(count, [&](std::uint64_t) { sum_once(window, way, operand, bytes); });
  return static_cast<double>(bytes) / sample.figure * 1e3;
}

// The owner looks at its own memory after one sum of `bytes`, and clears it.
void check(Session& session, const Window& window, double* target, const Way& way, const double* operand,
           std::size_t bytes) {
  if (session.is_root()) sum_once(window, way, operand, bytes);
  session.arena().gate();
  if (!session.is_root()) {
    for (std::size_t i = 0; i < bytes / sizeof(double); ++i) {
      require_answer(target[i] == operand[i], "a sum at its owner is wrong");
      target[i] = 0;
    }
  }
  session.arena().gate();
}

Settings settings_for(Memory memory, const Way& way) {
  Settings settings = {{"FARSUM_PATH", way.path}};
  if (way.lock != nullptr) settings.emplace_back("FARSUM_CALLER_LOCK", way.lock);
  if (memory == Memory::adopted) settings.emplace_back("FARSUM_PROMOTION", "refuse");
  return settings;
}

std::unique_ptr<Window> make_window(Memory memory, double* user) {
  return memory == Memory::adopted ? std::make_unique<Window>(user, most_summed_bytes, FARSUM_NO_PROMOTION)
                                   : std::make_unique<Window>(most_summed_bytes, 0);
}

// One context: all sizes, the owner idle and then computing.
void measure_way(Session& session, Memory memory, std::size_t index, const double* operand, double* user,
                 Figures& figures) {
  const Way& way = ways[index];
  const Context context(settings_for(memory, way));
  const std::unique_ptr<Window> window = make_window(memory, user);
  const farsum_region_info region = window->region(1);
  if (region.bulk_path != way.expected && region.atomic_path != way.expected) {
    session.report().progress(fmt::format("{} is left out on {} memory: {}", way.name, name_of(memory), region.reason));
    return;
  }
  double* target = memory == Memory::adopted ? user : window->elements<double>(session.rank());
  const std::vector<std::size_t> sizes = message_sizes(session.options().quick);
  for (const std::size_t bytes : {sizes.front(), paper_bytes}) check(session, *window, target, way, operand, bytes);

  const auto all_sizes = [&](bool computes) {
    for (const std::size_t bytes : sizes) {
      if (bytes > way.most) break;
      figures[{memory, index, computes, bytes}].push_back(bandwidth_mb(session, *window, way, operand, bytes));
    }
    return Sample{};
  };
  session.alone([&] { return all_sizes(false); })();
  session.arena().gate();
  session.while_peer_computes([&] { return all_sizes(true); })();
  session.arena().gate();
}

void report_points(Session& session, const Figures& figures) {
  for (const auto& [key, rounds] : figures) {
    session.report().point({{"bench", "sum-bandwidth"},
                            {"memory", name_of(key.memory)},
                            {"path", ways[key.way].name},
                            {"owner", key.computes ? "computing" : "idle"},
                            {"bytes", key.bytes},
                            {"mb_per_s", median(rounds)},
                            {"low", quantile(rounds, 0.25)},
                            {"high", quantile(rounds, 0.75)}});
  }
}

// Owner over caller at the paper's size, pair by pair. Shown beside the paper's 1.8; it is no aim.
void report_ratio(Session& session, const Figures& figures, Memory memory, std::size_t caller, bool computes) {
  constexpr std::size_t owner = 3;
  const auto owner_figures = figures.find({memory, owner, computes, paper_bytes});
  const auto caller_figures = figures.find({memory, caller, computes, paper_bytes});
  if (owner_figures == figures.end() || caller_figures == figures.end()) return;
  Row row{.bench = "sum-bandwidth",
          .name = fmt::format("720 KB, {}, owner {}: owner / {}", name_of(memory), computes ? "computing" : "idle",
                              ways[caller].name),
          .unit = "MB/s",
          .aim = {Better::higher, {}}};
  row.pairs = {.ours = owner_figures->second, .limit = caller_figures->second};
  row.more["paper_ratio"] = paper_owner_mb / paper_caller_mb;
  session.report().row(row);
}

}  // namespace

void run_sum_bandwidth(Session& session) {
  const UserMemory user;
  const UserMemory operand;
  for (std::size_t i = 0; i < most_summed_bytes / sizeof(double); ++i)
    operand.data()[i] = static_cast<double>(1 + i % 1000);

  Figures figures;
  const int rounds = session.options().quick ? 1 : 5;
  for (int round = 0; round < rounds; ++round) {
    for (const Memory memory : {Memory::adopted, Memory::mapped}) {
      for (std::size_t way = 0; way < std::size(ways); ++way) {
        if (memory == Memory::adopted && ways[way].expected == FARSUM_PATH_DIRECT) continue;
        session.report().progress(
            fmt::format("round {} of {}: {} memory, {}", round + 1, rounds, name_of(memory), ways[way].name));
        std::fill(user.data(), user.data() + most_summed_bytes / sizeof(double), 0.0);
        measure_way(session, memory, way, operand.data(), user.data(), figures);
      }
    }
  }
  if (!session.is_root()) return;
  report_points(session, figures);
  for (const Memory memory : {Memory::adopted, Memory::mapped}) {
    for (const bool computes : {false, true}) {
      for (const std::size_t caller : {std::size_t{0}, std::size_t{1}})
        report_ratio(session, figures, memory, caller, computes);
    }
  }
}

}  // namespace bench
