// The tables of options. They hold what has a value and the flags in wide use; mpi_arguments.cpp says what happens to
// others.
#include "cli/mpi_launcher.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "cli/captured_run.hpp"

namespace farsum::cli {

namespace {

// orterun(1); Open MPI 5 takes nearly all of them too.
constexpr LauncherOption openmpi_options[] = {
    {"n", 1},
    {"np", 1},
    {"c", 1},
    {"N", 1},
    {"H", 1},
    {"host", 1},
    {"hostfile", 1},
    {"machinefile", 1},
    {"default-hostfile", 1},
    {"x", 1},
    {"mca", 2},
    {"gmca", 2},
    {"am", 1},
    {"tune", 1},
    {"app", 1},
    {"wd", 1},
    {"wdir", 1},
    {"path", 1},
    {"prefix", 1},
    {"bind-to", 1},
    {"map-by", 1},
    {"rank-by", 1},
    {"ppr", 1},
    {"npernode", 1},
    {"npersocket", 1},
    {"cpus-per-proc", 1},
    {"cpus-per-rank", 1},
    {"cpu-list", 1},
    {"cpu-set", 1},
    {"slot-list", 1},
    {"cf", 1},
    {"cartofile", 1},
    {"rf", 1},
    {"rankfile", 1},
    {"stdin", 1},
    {"timeout", 1},
    {"output-filename", 1},
    {"xterm", 1},
    {"xml-file", 1},
    {"report-events", 1},
    {"report-pid", 1},
    {"report-uri", 1},
    {"personality", 1},
    {"preload-files", 1},
    {"ompi-server", 1},
    {"hnp", 1},
    {"launch-agent", 1},
    {"max-restarts", 1},
    {"max-vm-size", 1},
    {"debugger", 1},
    {"tmpdir", 1},
    {"server-wait-time", 1},
    {"allow-run-as-root", 0},
    {"bind-to-core", 0},
    {"bind-to-socket", 0},
    {"bycore", 0},
    {"bynode", 0},
    {"byslot", 0},
    {"bysocket", 0},
    {"continuous", 0},
    {"d", 0},
    {"debug", 0},
    {"debug-devel", 0},
    {"debug-daemons", 0},
    {"debug-daemons-file", 0},
    {"disable-recovery", 0},
    {"display-allocation", 0},
    {"display-devel-allocation", 0},
    {"display-devel-map", 0},
    {"display-diffable-map", 0},
    {"display-map", 0},
    {"display-topo", 0},
    {"do-not-launch", 0},
    {"do-not-resolve", 0},
    {"enable-recovery", 0},
    {"get-stack-traces", 0},
    {"index-argv-by-rank", 0},
    {"leave-session-attached", 0},
    {"merge-stderr-to-stdout", 0},
    {"nolocal", 0},
    {"nooversubscribe", 0},
    {"noprefix", 0},
    {"novm", 0},
    {"output-proctable", 0},
    {"oversubscribe", 0},
    {"pernode", 0},
    {"q", 0},
    {"quiet", 0},
    {"report-bindings", 0},
    {"report-child-jobs-separately", 0},
    {"report-state-on-timeout", 0},
    {"s", 0},
    {"preload-binary", 0},
    {"set-cwd-to-session-dir", 0},
    {"show-progress", 0},
    {"tag-output", 0},
    {"timestamp-output", 0},
    {"tv", 0},
    {"use-hwthread-cpus", 0},
    {"use-regexp", 0},
    {"v", 0},
    {"verbose", 0},
    {"xml", 0},
};

// prterun(1), where it differs.
constexpr LauncherOption prrte_options[] = {
    {"display", 1},
    {"output", 1},
    {"runtime-options", 1},
    {"prtemca", 2},
    {"gprtemca", 2},
    {"pmixmca", 2},
    {"gpmixmca", 2},
    {"omca", 2},
    {"gomca", 2},
    {"append-env", 2},
    {"prepend-env", 2},
    {"set-env", 1},
    {"unset-env", 1},
    {"add-host", 1},
    {"add-hostfile", 1},
    {"app-pmix-prefix", 1},
    {"pmix-prefix", 1},
    {"pset", 1},
    {"dvm", 1},
    {"dvm-hostfile", 1},
    {"forward-signals", 1},
    {"gpu-support", 1},
    {"keepalive", 1},
    {"singleton", 1},
    {"spawn-timeout", 1},
    {"hetero-nodes", 0},
    {"no-app-prefix", 0},
    {"no-ready-msg", 0},
    {"set-sid", 0},
    {"stop-in-app", 0},
    {"stop-in-init", 0},
    {"stop-on-exec", 0},
    {"system-server", 0},
    {"stream-buffering", 1},
    {"with-ft", 1},
    {"dash-host", 1},
};

constexpr LauncherOption hydra_options[] = {
    {"n", 1},
    {"np", 1},
    {"genv", 2},
    {"env", 2},
    {"genvlist", 1},
    {"envlist", 1},
    {"f", 1},
    {"hostfile", 1},
    {"hosts", 1},
    {"host", 1},
    {"hostlist", 1},
    {"machine", 1},
    {"machines", 1},
    {"machinefile", 1},
    {"wdir", 1},
    {"wd", 1},
    {"dir", 1},
    {"path", 1},
    {"configfile", 1},
    {"umask", 1},
    {"arch", 1},
    {"soft", 1},
    {"file", 1},
    {"launcher", 1},
    {"launcher-exec", 1},
    {"bootstrap", 1},
    {"bootstrap-exec", 1},
    {"bootstrap-exec-args", 1},
    {"rmk", 1},
    {"topolib", 1},
    {"bind-to", 1},
    {"binding", 1},
    {"map-by", 1},
    {"membind", 1},
    {"demux", 1},
    {"iface", 1},
    {"ppn", 1},
    {"perhost", 1},
    {"grr", 1},
    {"nameserver", 1},
    {"usize", 1},
    {"localhost", 1},
    {"localroot", 0},
    {"prepend-pattern", 1},
    {"outfile-pattern", 1},
    {"errfile-pattern", 1},
    {"outfile", 1},
    {"errfile", 1},
    {"gpus-per-proc", 1},
    {"gpu-subdevs-per-proc", 1},
    {"order-nodes", 1},
    {"rankmap", 1},
    {"memory-alloc-kinds", 1},
    {"pmi-port-range", 1},
    {"timeout", 1},
    {"genvall", 0},
    {"genvnone", 0},
    {"envall", 0},
    {"envnone", 0},
    {"enable-x", 0},
    {"disable-x", 0},
    {"verbose", 0},
    {"v", 0},
    {"debug", 0},
    {"info", 0},
    {"print-all-exitcodes", 0},
    {"profile", 0},
    {"prepend-rank", 0},
    {"l", 0},
    {"disable-auto-cleanup", 0},
    {"enable-auto-cleanup", 0},
    {"disable-hostname-propagation", 0},
    {"enable-hostname-propagation", 0},
    {"pmi-port", 0},
    {"skip-launch-node", 0},
    {"hybrid-hosts", 0},
    {"singleton-port", 1},
    {"singleton-pid", 1},
};

// mpiexec.hydra of Intel MPI, where it differs.
constexpr LauncherOption intel_options[] = {
    {"gtool", 1},
    {"gtoolfile", 1},
    {"hosts-group", 1},
    {"s", 1},
    {"cpu-bind", 1},
    {"branch-count", 1},
    {"rr", 0},
    {"aps", 0},
    {"mps", 0},
    {"gdb", 0},
    {"gdba", 1},
    {"gdb-args", 1},
    {"tv", 0},
    {"tva", 1},
    {"silent-abort", 0},
    {"nolocal", 0},
    {"print-rank-map", 0},
    {"prepend-timestamp", 0},
    {"prot", 0},
    {"ilp64", 0},
    {"ordered-output", 0},
    {"tune", values_vary},
    {"trace", values_vary},
    {"t", values_vary},
    {"check_mpi", values_vary},
    {"trace-collectives", 0},
    {"trace-pt2pt", 0},
};

// srun(1): what takes a value. A value that may be missing is always joined with =, so those count as flags.
constexpr LauncherOption slurm_options[] = {
    {"n", 1},
    {"ntasks", 1},
    {"N", 1},
    {"nodes", 1},
    {"c", 1},
    {"cpus-per-task", 1},
    {"p", 1},
    {"partition", 1},
    {"t", 1},
    {"time", 1},
    {"w", 1},
    {"nodelist", 1},
    {"x", 1},
    {"exclude", 1},
    {"A", 1},
    {"account", 1},
    {"J", 1},
    {"job-name", 1},
    {"o", 1},
    {"output", 1},
    {"e", 1},
    {"error", 1},
    {"i", 1},
    {"input", 1},
    {"C", 1},
    {"constraint", 1},
    {"D", 1},
    {"chdir", 1},
    {"d", 1},
    {"dependency", 1},
    {"m", 1},
    {"distribution", 1},
    {"q", 1},
    {"qos", 1},
    {"r", 1},
    {"relative", 1},
    {"T", 1},
    {"threads", 1},
    {"W", 1},
    {"wait", 1},
    {"G", 1},
    {"gpus", 1},
    {"gres", 1},
    {"gpus-per-node", 1},
    {"gpus-per-task", 1},
    {"gpus-per-socket", 1},
    {"gpu-bind", 1},
    {"gpu-freq", 1},
    {"cpus-per-gpu", 1},
    {"cpu-bind", 1},
    {"cpu-freq", 1},
    {"mem", 1},
    {"mem-per-cpu", 1},
    {"mem-per-gpu", 1},
    {"mem-bind", 1},
    {"ntasks-per-node", 1},
    {"ntasks-per-socket", 1},
    {"ntasks-per-core", 1},
    {"ntasks-per-gpu", 1},
    {"threads-per-core", 1},
    {"cores-per-socket", 1},
    {"sockets-per-node", 1},
    {"core-spec", 1},
    {"S", 1},
    {"thread-spec", 1},
    {"mpi", 1},
    {"export", 1},
    {"export-file", 1},
    {"bcast", 0},
    {"compress", 0},
    {"propagate", 0},
    {"het-group", 1},
    {"jobid", 1},
    {"epilog", 1},
    {"prolog", 1},
    {"task-epilog", 1},
    {"task-prolog", 1},
    {"comment", 1},
    {"deadline", 1},
    {"begin", 1},
    {"b", 1},
    {"clusters", 1},
    {"M", 1},
    {"cluster-constraint", 1},
    {"licenses", 1},
    {"L", 1},
    {"mail-type", 1},
    {"mail-user", 1},
    {"mcs-label", 1},
    {"network", 1},
    {"nice", 0},
    {"open-mode", 1},
    {"power", 1},
    {"priority", 1},
    {"profile", 1},
    {"reservation", 1},
    {"signal", 1},
    {"slurmd-debug", 1},
    {"switches", 1},
    {"time-min", 1},
    {"tmp", 1},
    {"tres-per-task", 1},
    {"tres-bind", 1},
    {"uid", 1},
    {"gid", 1},
    {"wckey", 1},
    {"acctg-freq", 1},
    {"bb", 1},
    {"bbf", 1},
    {"container", 1},
    {"container-id", 1},
    {"delay-boot", 1},
    {"kill-on-bad-exit", 0},
    {"K", 0},
    {"multi-prog", 0},
    {"label", 0},
    {"l", 0},
    {"unbuffered", 0},
    {"u", 0},
    {"verbose", 0},
    {"v", 0},
    {"quiet", 0},
    {"Q", 0},
    {"exclusive", 0},
    {"exact", 0},
    {"overlap", 0},
    {"overcommit", 0},
    {"O", 0},
    {"oversubscribe", 0},
    {"s", 0},
    {"contiguous", 0},
    {"no-kill", 0},
    {"k", 0},
    {"immediate", 0},
    {"I", 0},
    {"pty", 0},
    {"preserve-env", 0},
    {"E", 0},
    {"disable-status", 0},
    {"X", 0},
    {"hold", 0},
    {"H", 0},
    {"interactive", 0},
    {"no-allocate", 0},
    {"Z", 0},
    {"resv-ports", 0},
    {"spread-job", 0},
    {"use-min-nodes", 0},
    {"wait-for-switch", 0},
    {"whole", 0},
    {"reboot", 0},
};

const LauncherOption* find_in(std::span<const LauncherOption> options, std::string_view name) {
  const auto found =
      std::find_if(options.begin(), options.end(), [name](const auto& option) { return name == option.name; });
  return found == options.end() ? nullptr : &*found;
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// The first number behind a word; 0 when there is none.
int major_version_after(std::string_view text, std::string_view word) {
  std::size_t at = text.find(word);
  if (at == std::string_view::npos) return 0;
  for (at += word.size(); at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) == 0; ++at) {
  }
  int number = 0;
  for (; at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0; ++at) {
    number = number * 10 + (text[at] - '0');
  }
  return number;
}

bool contains(std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; }

}  // namespace

const char* describe(LauncherKind kind) {
  switch (kind) {
    case LauncherKind::openmpi4:
      return "Open MPI up to version 4";
    case LauncherKind::openmpi5:
      return "Open MPI 5 (PRRTE)";
    case LauncherKind::hydra:
      return "Hydra (MPICH)";
    case LauncherKind::intel:
      return "Intel MPI";
    case LauncherKind::slurm:
      return "Slurm";
  }
  return "";
}

std::optional<MpiAbi> usual_abi(LauncherKind kind) {
  switch (kind) {
    case LauncherKind::openmpi4:
    case LauncherKind::openmpi5:
      return MpiAbi::openmpi;
    case LauncherKind::hydra:
    case LauncherKind::intel:
      return MpiAbi::mpich;
    case LauncherKind::slurm:
      return std::nullopt;
  }
  return std::nullopt;
}

LauncherName judge_launcher_name(std::string_view path) {
  constexpr std::array unsupported = {
      "mpirun_rsh", "mpiexec.gforker", "mpiexec.remshell", "aprun", "jsrun",      "ibrun",
      "flux",       "sbatch",          "salloc",           "prun",  "mpiexec.mpd"};
  constexpr std::array candidates = {"mpirun", "mpiexec", "orterun", "prterun", "srun"};
  const std::string_view name = base_name(path);
  if (std::find(unsupported.begin(), unsupported.end(), name) != unsupported.end()) return LauncherName::unsupported;
  for (const std::string_view candidate : candidates) {
    if (!name.starts_with(candidate)) continue;
    const std::string_view rest = name.substr(candidate.size());
    if (rest.empty() || rest.front() == '.' || rest.front() == '-' || rest.front() == '_')
      return LauncherName::candidate;
  }
  return LauncherName::none;
}

std::optional<LauncherKind> classify_launcher(std::string_view text) {
  if (contains(text, "Intel(R) MPI")) return LauncherKind::intel;
  if (contains(text, "HYDRA build details")) return LauncherKind::hydra;
  if (contains(text, "PRRTE") || contains(text, "PMIx Reference")) return LauncherKind::openmpi5;
  if (contains(text, "OpenRTE")) return LauncherKind::openmpi4;
  if (contains(text, "Open MPI")) {
    return major_version_after(text, "Open MPI") >= 5 ? LauncherKind::openmpi5 : LauncherKind::openmpi4;
  }
  if (text.starts_with("slurm") || contains(text, "\nslurm")) return LauncherKind::slurm;
  return std::nullopt;
}

std::string ask_version(const std::string& path) { return run_captured({path, "--version"}, ErrorOutput::kept).out; }

const LauncherOption* find_option(LauncherKind kind, std::string_view name) {
  switch (kind) {
    case LauncherKind::openmpi4:
      return find_in(openmpi_options, name);
    case LauncherKind::openmpi5: {
      const LauncherOption* own = find_in(prrte_options, name);
      return own != nullptr ? own : find_in(openmpi_options, name);
    }
    case LauncherKind::hydra:
      return find_in(hydra_options, name);
    case LauncherKind::intel: {
      const LauncherOption* own = find_in(intel_options, name);
      return own != nullptr ? own : find_in(hydra_options, name);
    }
    case LauncherKind::slurm:
      return find_in(slurm_options, name);
  }
  return nullptr;
}

bool attaches_values(LauncherKind kind) { return kind == LauncherKind::slurm || kind == LauncherKind::openmpi5; }

bool variables_are_per_context(LauncherKind kind) {
  return kind == LauncherKind::openmpi4 || kind == LauncherKind::slurm;
}

}  // namespace farsum::cli
