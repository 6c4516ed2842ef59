// Paper 4's RandomAccess (HPC Challenge) in plain MPI: random updates of a table that all ranks share, two-sided and
// one-sided. Every mode is verified against a serial run before it is timed.
#include <mpi.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "common/command_line.hpp"
#include "common/report.hpp"
#include "common/timing.hpp"
#include "common/window.hpp"
#include "updaters.hpp"

namespace lab {
namespace {

struct Options {
  std::vector<std::string> mode_names;
  std::vector<std::string> memories{"allocate", "create"};
  std::vector<std::string> operators{"xor", "sum"};
  std::vector<int> depths{1024};
  std::string gathering = "indexed-block";
  int log2_words = 18;
  long updates_per_rank = 1L << 16U;
  int repeats = 5;
  bool json = false;
};

struct Setting {
  const Mode* mode;
  std::string memory;
  std::string op;
  int depth;
};

class Benchmark {
 public:
  Benchmark(const Session& session, const Options& options)
      : session_(session),
        options_(options),
        layout_(Word{1} << static_cast<unsigned>(options.log2_words), session.size()) {}

  // The seconds of one run from a fresh table, on every rank; the table is verified if asked.
  double run(const Setting& setting, const Window& window, bool verify) {
    const Operator op = setting.op == "xor" ? Operator::bxor : Operator::sum;
    reset(window);
    const auto updater = setting.mode->make(
        {.win = window.win(),
         .local = window.as<Word>(),
         .layout = layout_,
         .op = op,
         .depth = setting.depth,
         .gathering = options_.gathering == "struct" ? Gathering::structure : Gathering::indexed_block});
    RandomStream stream = RandomStream::starting_at(first_update(session_.rank()));
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = now_ns();
    updater->begin();
    for (long i = 0; i < options_.updates_per_rank; ++i) {
      updater->update(stream.next());
    }
    updater->finish();
    const double seconds = (now_ns() - start) / 1e9;
    if (verify) {
      check(setting, op, window);
    }
    return seconds;
  }

  [[nodiscard]] std::size_t bytes_per_rank() const { return layout_.words_per_rank() * sizeof(Word); }
  [[nodiscard]] double lost_share() const { return lost_share_; }

 private:
  [[nodiscard]] std::uint64_t first_update(int rank) const {
    return static_cast<std::uint64_t>(rank) * static_cast<std::uint64_t>(options_.updates_per_rank);
  }
  [[nodiscard]] Word first_index() const { return layout_.words_per_rank() * static_cast<Word>(session_.rank()); }

  // The benchmark's table begins as its own indices.
  void reset(const Window& window) const {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, session_.rank(), 0, window.win());
    for (Word i = 0; i < layout_.words_per_rank(); ++i) {
      window.as<Word>()[i] = first_index() + i;
    }
    MPI_Win_unlock(session_.rank(), window.win());
    MPI_Barrier(MPI_COMM_WORLD);
  }

  // This rank's part of the table after a serial run of all updates of all ranks.
  [[nodiscard]] std::vector<Word> serial_result(Operator op) const {
    std::vector<Word> table(layout_.words_per_rank());
    for (Word i = 0; i < table.size(); ++i) {
      table[i] = first_index() + i;
    }
    RandomStream stream = RandomStream::starting_at(0);
    for (long i = options_.updates_per_rank * session_.size(); i > 0; --i) {
      const Word random = stream.next();
      const Word index = layout_.index_of(random);
      if (layout_.owner_of(index) == session_.rank()) {
        Word& word = table[layout_.offset_of(index)];
        word = combine(op, word, random);
      }
    }
    return table;
  }

  void check(const Setting& setting, Operator op, const Window& window) {
    const std::vector<Word> expected = serial_result(op);
    long wrong = 0;
    MPI_Win_lock(MPI_LOCK_SHARED, session_.rank(), 0, window.win());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      wrong += window.as<Word>()[i] != expected[i] ? 1 : 0;
    }
    MPI_Win_unlock(session_.rank(), window.win());
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    lost_share_ = static_cast<double>(wrong) / static_cast<double>(options_.updates_per_rank * session_.size());
    constexpr double allowed_share = 0.01;
    if (wrong != 0 && (setting.mode->exact || lost_share_ > allowed_share)) {
      fail("{} {} {} at depth {}: {} words of {} are wrong", setting.mode->name, setting.memory, setting.op,
           setting.depth, wrong, layout_.words());
    }
  }

  const Session& session_;
  const Options& options_;
  Layout layout_;
  double lost_share_ = 0;
};

void measure(const Session& session, const Options& options, const Report& report, const Setting& setting,
             Progress& progress) {
  Benchmark benchmark(session, options);
  const Window window(memory_names().at(setting.memory), benchmark.bytes_per_rank(), sizeof(Word), MPI_COMM_WORLD);
  benchmark.run(setting, window, true);
  const double updates = static_cast<double>(options.updates_per_rank) * session.size();
  std::vector<double> rates;
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    rates.push_back(updates / benchmark.run(setting, window, false) / 1e6);
    progress.tell(fmt::format("{} {} {}: repetition {} of {}", setting.mode->name, setting.memory, setting.op,
                              repeat + 1, options.repeats));
  }
  const Spread spread = spread_of(rates);
  const Record record{{"mode", setting.mode->name},
                      {"memory", setting.memory},
                      {"op", setting.op},
                      {"depth", setting.depth},
                      {"gathering", options.gathering},
                      {"words", Word{1} << static_cast<unsigned>(options.log2_words)},
                      {"updates_per_rank", options.updates_per_rank},
                      {"repeats", options.repeats},
                      {"wrong_share", benchmark.lost_share()},
                      {"million_updates_per_s", spread}};
  report.measured(record, fmt::format("{:<22} {:<9} {:<4} {:>5} {:>11.3f}  {:>9.3f} .. {:<9.3f} {:.6f}",
                                      setting.mode->name, setting.memory, setting.op, setting.depth, spread.median,
                                      spread.low, spread.high, benchmark.lost_share()));
}

bool uses_depth(const std::string& mode) {
  return mode == "two-sided" || mode == "accumulate-flush" || mode == "accumulate-gathered";
}

void run_all(const Session& session, const Options& options) {
  const Report report(session, "lab-randomaccess", options.json);
  report.measured({{"mode", "fence"}, {"excluded", why_no_fence}}, why_no_fence);
  report.say(fmt::format("{:<22} {:<9} {:<4} {:>5} {:>11}  {:>9} .. {:<9} {}", "mode", "memory", "op", "depth",
                         "M updates/s", "low", "high", "share of wrong words"));
  Progress progress(session.speaks());
  for (const Mode& mode : modes()) {
    if (std::count(options.mode_names.begin(), options.mode_names.end(), mode.name) == 0) {
      continue;
    }
    const auto depths = uses_depth(mode.name) ? options.depths : std::vector<int>{1};
    for (const std::string& memory : options.memories) {
      for (const std::string& op : options.operators) {
        for (const int depth : depths) {
          measure(session, options, report, {&mode, memory, op, depth}, progress);
        }
      }
    }
  }
}

void declare_options(CommandLine& line, Options& options) {
  std::vector<std::string> names;
  for (const Mode& mode : modes()) {
    names.emplace_back(mode.name);
  }
  options.mode_names = names;
  line.set_footer(std::string("Example: mpirun -n 2 lab-randomaccess-" LAB_ABI
                              " --modes two-sided,accumulate-gathered --depths 64,1024\n") +
                  why_no_fence + ".");
  line.add_checked_words("--modes", options.mode_names, "which ways to update (default: all but fence, see below)",
                         [names](const std::string& name) {
                           if (name == "fence") {
                             return std::string(why_no_fence);
                           }
                           const bool known = std::count(names.begin(), names.end(), name) != 0;
                           return known ? std::string()
                                        : fmt::format("{} is not one of {}", name, fmt::join(names, ", "));
                         });
  line.add_memory(options.memories);
  line.add_words("--ops", options.operators, "xor, sum (default: both)", {"xor", "sum"});
  line.add_numbers("--depths", options.depths,
                   "updates that may wait at a rank, where a mode lets them (default: 1024)", {1, 1024});
  line.add_word("--gathering", options.gathering,
                "the datatype of gathered updates: indexed-block, struct (the paper's)", {"indexed-block", "struct"});
  line.add_number("--log2-words", options.log2_words, "the table has 2 to this power words of 64 bits", {4, 34});
  line.add_number("--updates", options.updates_per_rank, "updates of each rank", {1L, 1L << 40U});
  line.add_repeats(options.repeats, "repetitions of each measurement");
  line.add_json(options.json);
}

int run(int argc, char** argv) {
  Options options;
  CommandLine line("RandomAccess of paper 4: random 64-bit updates of a table that all ranks share",
                   "lab-randomaccess-" LAB_ABI);
  declare_options(line, options);
  if (const auto status = line.parse(argc, argv)) {
    return *status;
  }
  const Session session(MPI_THREAD_SINGLE);
  run_all(session, options);
  return 0;
}

}  // namespace
}  // namespace lab

int main(int argc, char** argv) { return lab::run(argc, argv); }
