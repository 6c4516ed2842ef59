// The settings: environment variables FARSUM_*, read once when a context is made. One table holds name, type, unit,
// default and meaning; parsing, `farsum info --settings` and errors all read it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.hpp"

namespace farsum {

enum class PathChoice : std::uint8_t { automatic, direct, attach, caller, owner, aggregated, offload };
enum class AgentMode : std::uint8_t { sleep, dedicated };
enum class CallerLock : std::uint8_t { region, stripe, element };
enum class Permission : std::uint8_t { automatic, refuse };
// Of reductions: the ranks of a node first and then the nodes, or by ranks alone.
enum class ReduceOrder : std::uint8_t { nodes, ranks };
// Of reductions between nodes: by the model of rank 0's machine, where it is measured, or by their number alone.
enum class ReduceModel : std::uint8_t { automatic, off };
enum class PromotionChoice : std::uint8_t { automatic, refuse, always };

struct Settings {
  PathChoice path = PathChoice::automatic;
  AgentMode agent = AgentMode::sleep;
  std::int64_t agent_nice = 0;
  std::string agent_cpus;
  std::string model;
  CallerLock caller_lock = CallerLock::stripe;
  Permission attach = Permission::automatic;
  PromotionChoice promotion = PromotionChoice::automatic;
  Permission hold_threads = Permission::automatic;
  std::uint64_t inline_bytes = 8192;
  std::uint64_t pull_bytes = 65536;
  std::uint64_t aggregate = 1024;
  ReduceOrder reduce_order = ReduceOrder::nodes;
  std::uint64_t reduce_degree = 0;  // 0: chosen
  std::uint64_t reduce_splits = 0;
  ReduceModel reduce_model = ReduceModel::automatic;
  std::uint64_t spin_ns = 20000;
  std::uint64_t wait_gap_ns = 500'000'000;
  std::uint64_t wait_notice_s = 60;
  std::uint64_t wireup_timeout_s = 30;
  Permission pmix = Permission::automatic;
  std::string pmix_library;
  std::string node_name;
  std::uint64_t segment_bytes = 0;
  std::uint64_t channel_bytes = 131072;
  std::uint64_t promote_least_bytes = 262144;
  std::string isa;
  std::string ucx_library;
  std::string net_tls;
  std::string net_devices;
  std::uint64_t net_timeout_s = 30;  // 0: never
  std::uint64_t read_age_ms = 0;     // 0: every read asks its target
  std::uint64_t net_receive_bytes = std::uint64_t{64} << 20;
  // What the MPI fronts read; the engine does nothing with them.
  bool mpi_stats = false;
  std::string mpi_stats_file;
  bool mpi_launched = false;
  bool mpi_off = false;
  bool mpi_strict = false;
  bool mpi_yield = true;
  bool mpi_attend = true;
  std::string mpi_home;
  std::string mpi_witness;
  std::string mpi_runtimes;
};

// Looks a variable up; null when it is not set. Tests pass their own.
using Environment = std::function<const char*(const char* name)>;

// Reads every setting; a value that cannot be read is an error that names the variable and what would be right.
Result<Settings> read_settings(const Environment& environment);

struct SettingRow {
  std::string name, type, unit, default_value, value, meaning;
};
// One row a setting, with the values of `settings`; the last, without one, stands for the many that UCX reads.
std::vector<SettingRow> describe_settings(const Settings& settings);

const char* name_of(PathChoice choice);

}  // namespace farsum
