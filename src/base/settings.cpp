#include "base/settings.hpp"

#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>

#include <fmt/format.h>

namespace farsum {
namespace {

using Words = std::span<const char* const>;

constexpr std::array<const char*, 7> path_words = {"auto",  "direct",     "attach", "caller",
                                                   "owner", "aggregated", "offload"};
constexpr std::array<const char*, 2> agent_words = {"sleep", "dedicated"};
constexpr std::array<const char*, 3> caller_lock_words = {"region", "stripe", "element"};
constexpr std::array<const char*, 2> permission_words = {"auto", "refuse"};
constexpr std::array<const char*, 2> reduce_order_words = {"nodes", "ranks"};
constexpr std::array<const char*, 2> reduce_model_words = {"auto", "off"};
constexpr std::uint64_t most_reduce_degree = 1024;
constexpr std::array<const char*, 3> promotion_words = {"auto", "refuse", "always"};

std::string joined(Words words) { return fmt::format("{}", fmt::join(words, "|")); }

// One setting: how to write it into Settings and how to print it.
struct Entry {
  const char* name;
  std::string type;
  const char* unit;
  const char* meaning;
  std::function<bool(Settings&, std::string_view)> parse;
  std::function<std::string(const Settings&)> print;
};

template <class Enum>
Entry choice(const char* name, Words words, Enum Settings::*member, const char* meaning) {
  return {name,
          joined(words),
          "",
          meaning,
          [words, member](Settings& settings, std::string_view text) {
            for (std::size_t index = 0; index < words.size(); ++index) {
              if (text == words[index]) {
                settings.*member = static_cast<Enum>(index);
                return true;
              }
            }
            return false;
          },
          [words, member](const Settings& settings) {
            return std::string(words[static_cast<std::size_t>(settings.*member)]);
          }};
}

template <class Number>
Entry number(const char* name, const char* unit, Number Settings::*member, Number least, Number most,
             const char* meaning) {
  const std::string type = most == std::numeric_limits<Number>::max() ? fmt::format("integer >= {}", least)
                                                                      : fmt::format("integer {} to {}", least, most);
  return {name,
          type,
          unit,
          meaning,
          [member, least, most](Settings& settings, std::string_view text) {
            Number value{};
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
            if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most) return false;
            settings.*member = value;
            return true;
          },
          [member](const Settings& settings) { return fmt::format("{}", settings.*member); }};
}

Entry flag(const char* name, bool Settings::*member, const char* meaning) {
  return {name,
          "0|1",
          "",
          meaning,
          [member](Settings& settings, std::string_view value) {
            settings.*member = value == "1";
            return value == "0" || value == "1";
          },
          [member](const Settings& settings) { return std::string(settings.*member ? "1" : "0"); }};
}

Entry text(const char* name, const char* type, std::string Settings::*member, const char* meaning) {
  return {name,
          type,
          "",
          meaning,
          [member](Settings& settings, std::string_view value) {
            settings.*member = std::string(value);
            return true;
          },
          [member](const Settings& settings) { return settings.*member; }};
}

std::vector<Entry> entries() {
  constexpr auto unbounded = std::numeric_limits<std::uint64_t>::max();
  return {
      choice("FARSUM_PATH", path_words, &Settings::path,
             "forces a path wherever it is possible; a region says why where it is not"),
      text("FARSUM_MODEL", "folder, or none", &Settings::model,
           "where `farsum info --model --measure` leaves what paths are chosen by; empty: farsum/model in the user's "
           "cache; none: the built-in parameters"),
      choice("FARSUM_AGENT", agent_words, &Settings::agent,
             "sleep: the agent sleeps when idle; dedicated: it spins on a core given to it"),
      number<std::int64_t>("FARSUM_AGENT_NICE", "", &Settings::agent_nice, -20, 19,
                           "scheduling priority of the agent thread"),
      text("FARSUM_AGENT_CPUS", "list such as 0,2-3", &Settings::agent_cpus,
           "processors of the agent thread; empty: those of the thread that calls farsum_init"),
      choice("FARSUM_CALLER_LOCK", caller_lock_words, &Settings::caller_lock,
             "what caller-computes locks on a node while it works: the whole region, a stripe, or one element"),
      choice("FARSUM_ATTACH", permission_words, &Settings::attach,
             "refuse: behave as if the kernel refused copies between processes"),
      choice("FARSUM_PROMOTION", promotion_words, &Settings::promotion,
             "auto: user memory is made shareable in place while that pays; always: wherever it can be; refuse: never"),
      choice("FARSUM_HOLD_THREADS", permission_words, &Settings::hold_threads,
             "refuse: the program's threads are not held while memory is promoted; beside any, it is not"),
      number<std::uint64_t>("FARSUM_INLINE_BYTES", "bytes", &Settings::inline_bytes, 64, 24576,
                            "owner path: operands up to this ride in the message, longer ones are pulled"),
      number<std::uint64_t>("FARSUM_PULL_BYTES", "bytes", &Settings::pull_bytes, 4096, 1u << 24,
                            "owner path: piece in which the agent pulls a long operand"),
      number<std::uint64_t>("FARSUM_AGGREGATE", "updates", &Settings::aggregate, 1, 1024,
                            "aggregated path: updates gathered per target before a message is sent"),
      choice(
          "FARSUM_REDUCE_ORDER", reduce_order_words, &Settings::reduce_order,
          "nodes: a reduction combines the ranks of each node, then the nodes; ranks: in brackets that the ranks alone "
          "decide, so that its bits are the same however they are placed; the same on all ranks"),
      number<std::uint64_t>("FARSUM_REDUCE_DEGREE", "", &Settings::reduce_degree, 0, most_reduce_degree,
                            "degree of the tree in which nodes reduce, from 2 on; 0: as FARSUM_REDUCE_MODEL says; what "
                            "rank 0 has holds for the whole job, and others' is not read"),
      number<std::uint64_t>("FARSUM_REDUCE_SPLITS", "", &Settings::reduce_splits, 0, 16,
                            "how often a farsum_reduce over nodes halves its vector and the nodes before each half is "
                            "reduced by a tree; what rank 0 has holds for the whole job"),
      choice("FARSUM_REDUCE_MODEL", reduce_model_words, &Settings::reduce_model,
             "auto: nodes reduce by the trees that the model of rank 0's machine chooses, where that is measured "
             "(farsum info --model --measure --reductions); off, or where it is not: up to 12 nodes tell each other, "
             "more have degree 2; what rank 0 has holds for the whole job"),
      number<std::uint64_t>("FARSUM_SPIN_NS", "ns", &Settings::spin_ns, 0, 1'000'000'000,
                            "how long a waiting thread looks before it sleeps, for what comes over a network twice as "
                            "long, ten times in the middle of a stream; on a crowded node it yields up to 100 us "
                            "instead; 0: it sleeps at once"),
      number<std::uint64_t>("FARSUM_WAIT_GAP_NS", "ns", &Settings::wait_gap_ns, 10'000, 1'000'000'000,
                            "longest sleep of a waiting thread before it looks whether its peers live"),
      number<std::uint64_t>("FARSUM_WAIT_NOTICE", "s", &Settings::wait_notice_s, 0, 1'000'000,
                            "a call that waits for so long for other ranks says so on standard error, and the next "
                            "that waits for twice as long; farsum mpi says after as long, or 10 s where it is not "
                            "set, which ranks have come to MPI_Init; 0: nothing is said"),
      number<std::uint64_t>("FARSUM_WIREUP_TIMEOUT", "s", &Settings::wireup_timeout_s, 1, 86400,
                            "how long farsum_init waits for the other ranks and for the launcher's PMIx server"),
      choice("FARSUM_PMIX", permission_words, &Settings::pmix,
             "refuse: a program started by a PMIx launcher (mpirun, prterun, srun) is a rank alone"),
      text("FARSUM_PMIX_LIBRARY", "path or name", &Settings::pmix_library,
           "PMIx's library; empty: the one in the process, else libpmix.so.2"),
      text("FARSUM_NODE_NAME", "text", &Settings::node_name,
           "the host's name in messages; ranks whose names differ count as on different hosts; empty: the host's own"),
      number<std::uint64_t>("FARSUM_SEGMENT_BYTES", "bytes", &Settings::segment_bytes, 0, unbounded,
                            "the most shared memory that a node can have; 0: chosen from the layout of the process and "
                            "its limit on file size"),
      number<std::uint64_t>("FARSUM_CHANNEL_BYTES", "bytes", &Settings::channel_bytes, 131072, 1u << 24,
                            "room for messages from one rank to another on a node; a power of two"),
      number<std::uint64_t>("FARSUM_PROMOTE_BYTES", "bytes", &Settings::promote_least_bytes, 4096, unbounded,
                            "adopted memory smaller than this is not promoted"),
      text("FARSUM_ISA", "baseline|avx2|avx512", &Settings::isa,
           "kernels to use; empty: the best that the processor has"),
      text("FARSUM_UCX_LIBRARY", "path", &Settings::ucx_library,
           "the libucp.so.0 to use between hosts where the program has loaded none; empty: the system's"),
      text("FARSUM_NET_TLS", "list such as tcp,rc", &Settings::net_tls,
           "transports of UCX to use between hosts, as its TLS; empty: all but those within a host"),
      text("FARSUM_NET_DEVICES", "list such as eth0,mlx5_0:1", &Settings::net_devices,
           "devices to use between hosts, as UCX's NET_DEVICES; empty: all"),
      number<std::uint64_t>("FARSUM_NET_TIMEOUT", "s", &Settings::net_timeout_s, 0, 86400,
                            "how long a host may be silent before its ranks are given up; 0: for ever"),
      number<std::uint64_t>("FARSUM_NET_RECEIVE_BYTES", "bytes", &Settings::net_receive_bytes, 1u << 20, unbounded,
                            "memory that requests from other hosts may take up here, whatever their number"),
      number<std::uint64_t>("FARSUM_READ_AGE", "ms", &Settings::read_age_ms, 0, 86'400'000,
                            "how old what a rank reads of other hosts' memory may be, unless it has synchronised with "
                            "others since (read_age_ms in farsum.h); 0: every read asks its target"),
      flag("FARSUM_MPI_STATS", &Settings::mpi_stats,
           "MPI: at the end print, per window and operation, count, bytes, path and times"),
      text("FARSUM_MPI_STATS_FILE", "path", &Settings::mpi_stats_file,
           "MPI: where the same goes as JSON lines; empty: nowhere"),
      flag("FARSUM_MPI_OFF", &Settings::mpi_off, "MPI: the preloaded library does nothing"),
      flag("FARSUM_MPI_STRICT", &Settings::mpi_strict,
           "MPI: a one-sided routine of the MPI library's own ends the program"),
      flag("FARSUM_MPI_YIELD", &Settings::mpi_yield,
           "MPI: ranks that wait in the MPI library, or poll through calls that do not wait, let others of their "
           "processor run"),
      flag("FARSUM_MPI_ATTEND", &Settings::mpi_attend,
           "MPI: ranks that wait in the MPI library serve meanwhile what other hosts ask of them"),
      flag("FARSUM_MPI_LAUNCHED", &Settings::mpi_launched,
           "MPI: set by farsum mpi; a program that made no window is told so at its end"),
      text("FARSUM_MPI_HOME", "path", &Settings::mpi_home,
           "MPI: where tools/mpi_libraries installs; empty: ~/.cache/farsum/mpi"),
      text("FARSUM_MPI_WITNESS", "socket", &Settings::mpi_witness,
           "MPI: set by farsum mpi; where ranks report, so that one that dies is named; empty: nowhere"),
      text("FARSUM_MPI_RUNTIMES", "list such as /lib/libasan.so.8", &Settings::mpi_runtimes,
           "MPI: set by farsum mpi; the runtimes of sanitizers that it put first in LD_PRELOAD, between colons"),
  };
}

}  // namespace

const char* name_of(PathChoice choice) { return path_words[static_cast<std::size_t>(choice)]; }

Result<Settings> read_settings(const Environment& environment) {
  Settings settings;
  for (const Entry& entry : entries()) {
    const char* value = environment(entry.name);
    if (value == nullptr || *value == '\0') continue;
    if (!entry.parse(settings, value)) {
      return Status(Code::argument, fmt::format("setting {} is '{}', but must be {}", entry.name, value, entry.type));
    }
  }
  if (settings.reduce_degree == 1) {
    return Status(Code::argument,
                  fmt::format("setting FARSUM_REDUCE_DEGREE is 1, but must be 0 or 2 to {}", most_reduce_degree));
  }
  if ((settings.channel_bytes & (settings.channel_bytes - 1)) != 0) {
    return Status(Code::argument, fmt::format("setting FARSUM_CHANNEL_BYTES is {}, but must be a power of two",
                                              settings.channel_bytes));
  }
  if (!settings.isa.empty() && settings.isa != "baseline" && settings.isa != "avx2" && settings.isa != "avx512") {
    return Status(Code::argument,
                  fmt::format("setting FARSUM_ISA is '{}', but must be baseline, avx2 or avx512", settings.isa));
  }
  return settings;
}

std::vector<SettingRow> describe_settings(const Settings& settings) {
  const Settings defaults;
  std::vector<SettingRow> rows;
  for (const Entry& entry : entries()) {
    rows.push_back({entry.name, entry.type, entry.unit, entry.print(defaults), entry.print(settings), entry.meaning});
  }
  // UCX reads these itself, under the prefix that its context is given.
  rows.push_back(
      {"FARSUM_NET_UCX_*", "as UCX's UCX_*", "", "", "",
       "UCX's own variables for Farsum's use of it alone; what decides how messages travel is set by Farsum"});
  return rows;
}

}  // namespace farsum
