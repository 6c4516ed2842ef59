// The tables of options. They hold what has a value and the flags in wide use; mpi_arguments.cpp says what happens to
// others.
#include "cli/mpi/mpi_launcher.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "cli/base_name.hpp"
#include "cli/captured_run.hpp"

namespace farsum::cli {

namespace {

// Names between spaces, without their dashes.
struct OptionTable {
  std::string_view one_value = " ";
  std::string_view two_values = " ";
  std::string_view value_may_be_missing = " ";
  std::string_view flags = " ";
};

// orterun(1); Open MPI 5 takes nearly all of them too.
constexpr OptionTable openmpi_options = {
    .one_value =
        " n np c N H host hostfile machinefile default-hostfile x am tune app wd wdir path prefix bind-to "
        "map-by rank-by ppr npernode npersocket cpus-per-proc cpus-per-rank cpu-list cpu-set slot-list cf "
        "cartofile rf rankfile stdin timeout output-filename xterm xml-file report-events report-pid "
        "report-uri personality preload-files ompi-server hnp launch-agent max-restarts max-vm-size debugger "
        "tmpdir server-wait-time ",
    .two_values = " mca gmca ",
    .flags =
        " allow-run-as-root bind-to-core bind-to-socket bycore bynode byslot bysocket continuous d debug "
        "debug-devel debug-daemons debug-daemons-file disable-recovery display-allocation "
        "display-devel-allocation display-devel-map display-diffable-map display-map display-topo "
        "do-not-launch do-not-resolve enable-recovery get-stack-traces index-argv-by-rank "
        "leave-session-attached merge-stderr-to-stdout nolocal nooversubscribe noprefix novm output-proctable "
        "oversubscribe pernode q quiet report-bindings report-child-jobs-separately report-state-on-timeout s "
        "preload-binary set-cwd-to-session-dir show-progress tag-output timestamp-output tv use-hwthread-cpus "
        "use-regexp v verbose xml ",
};

// prterun(1), where it differs.
constexpr OptionTable prrte_options = {
    .one_value =
        " display output runtime-options set-env unset-env add-host add-hostfile app-pmix-prefix pmix-prefix "
        "pset dvm dvm-hostfile forward-signals gpu-support keepalive singleton spawn-timeout stream-buffering "
        "with-ft dash-host ",
    .two_values = " prtemca gprtemca pmixmca gpmixmca omca gomca append-env prepend-env ",
    .flags = " hetero-nodes no-app-prefix no-ready-msg set-sid stop-in-app stop-in-init stop-on-exec system-server ",
};

constexpr OptionTable hydra_options = {
    .one_value =
        " n np genvlist envlist f hostfile hosts host hostlist machine machines machinefile wdir wd dir path "
        "configfile umask arch soft file launcher launcher-exec bootstrap bootstrap-exec bootstrap-exec-args "
        "rmk topolib bind-to binding map-by membind demux iface ppn perhost grr nameserver usize localhost "
        "prepend-pattern outfile-pattern errfile-pattern outfile errfile gpus-per-proc gpu-subdevs-per-proc "
        "order-nodes rankmap memory-alloc-kinds pmi-port-range timeout singleton-port singleton-pid ",
    .two_values = " genv env ",
    .flags =
        " localroot genvall genvnone envall envnone enable-x disable-x verbose v debug info "
        "print-all-exitcodes profile prepend-rank l disable-auto-cleanup enable-auto-cleanup "
        "disable-hostname-propagation enable-hostname-propagation pmi-port skip-launch-node hybrid-hosts ",
};

// mpiexec.hydra of Intel MPI, where it differs.
constexpr OptionTable intel_options = {
    .one_value = " gtool gtoolfile hosts-group s cpu-bind branch-count gdba gdb-args tva ",
    .value_may_be_missing = " tune trace t check_mpi ",
    .flags =
        " rr aps mps gdb tv silent-abort nolocal print-rank-map prepend-timestamp prot ilp64 ordered-output "
        "trace-collectives trace-pt2pt ",
};

// srun(1): what takes a value. A value that may be missing is always joined with =, so those count as flags.
constexpr OptionTable slurm_options = {
    .one_value =
        " n ntasks N nodes c cpus-per-task p partition t time w nodelist x exclude A account J job-name o "
        "output e error i input C constraint D chdir d dependency m distribution q qos r relative T threads W "
        "wait G gpus gres gpus-per-node gpus-per-task gpus-per-socket gpu-bind gpu-freq cpus-per-gpu cpu-bind "
        "cpu-freq mem mem-per-cpu mem-per-gpu mem-bind ntasks-per-node ntasks-per-socket ntasks-per-core "
        "ntasks-per-gpu threads-per-core cores-per-socket sockets-per-node core-spec S thread-spec mpi export "
        "export-file het-group jobid epilog prolog task-epilog task-prolog comment deadline begin b clusters "
        "M cluster-constraint licenses L mail-type mail-user mcs-label network open-mode power priority "
        "profile reservation signal slurmd-debug switches time-min tmp tres-per-task tres-bind uid gid wckey "
        "acctg-freq bb bbf container container-id delay-boot ",
    .flags =
        " bcast compress propagate nice kill-on-bad-exit K multi-prog label l unbuffered u verbose v quiet Q "
        "exclusive exact overlap overcommit O oversubscribe s contiguous no-kill k immediate I pty "
        "preserve-env E disable-status X hold H interactive no-allocate Z resv-ports spread-job use-min-nodes "
        "wait-for-switch whole reboot ",
};

bool lists(std::string_view words, std::string_view name) {
  return !name.empty() && name.find(' ') == std::string_view::npos &&
         words.find(' ' + std::string(name) + ' ') != std::string_view::npos;
}

std::optional<OptionValues> find_in(const OptionTable& table, std::string_view name) {
  if (lists(table.one_value, name)) return OptionValues::one;
  if (lists(table.two_values, name)) return OptionValues::two;
  if (lists(table.value_may_be_missing, name)) return OptionValues::vary;
  if (lists(table.flags, name)) return OptionValues::none;
  return std::nullopt;
}

std::optional<OptionValues> find_in(const OptionTable& first, const OptionTable& second, std::string_view name) {
  const auto found = find_in(first, name);
  return found ? found : find_in(second, name);
}

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

std::optional<OptionValues> find_option(LauncherKind kind, std::string_view name) {
  switch (kind) {
    case LauncherKind::openmpi4:
      return find_in(openmpi_options, name);
    case LauncherKind::openmpi5:
      return find_in(prrte_options, openmpi_options, name);
    case LauncherKind::hydra:
      return find_in(hydra_options, name);
    case LauncherKind::intel:
      return find_in(intel_options, hydra_options, name);
    case LauncherKind::slurm:
      return find_in(slurm_options, name);
  }
  return std::nullopt;
}

bool attaches_values(LauncherKind kind) { return kind == LauncherKind::slurm || kind == LauncherKind::openmpi5; }

bool variables_are_per_context(LauncherKind kind) {
  return kind == LauncherKind::openmpi4 || kind == LauncherKind::slurm;
}

}  // namespace farsum::cli
