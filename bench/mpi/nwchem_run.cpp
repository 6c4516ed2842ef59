#include "nwchem_run.hpp"

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <fmt/format.h>

namespace bench {
namespace {

constexpr const char* input = R"(start water
memory total 400 mb
geometry units angstrom
  O  0.0  0.0     0.1173
  H  0.0  0.7572 -0.4692
  H  0.0 -0.7572 -0.4692
end
basis spherical
  * library 6-31G*
end
scf
  thresh 1e-9
  tol2e 1e-13
end
hessian
  thresh 1e-7
end
task scf freq
)";

constexpr double energy_tolerance = 1e-7;  // Hartree

std::optional<double> energy_in(const std::string& output) {
  constexpr const char* key = "Total SCF energy =";
  const std::size_t at = output.find(key);
  if (at == std::string::npos) return std::nullopt;
  return std::strtod(output.c_str() + at + std::string(key).size(), nullptr);
}

std::string program_of(const std::string& library) { return "/usr/bin/nwchem." + library; }

std::vector<std::string> launcher_of(const std::string& library) {
  std::vector<std::string> words{"mpirun." + library};
  if (library != "openmpi") return words;
  words.emplace_back("--oversubscribe");
  if (geteuid() == 0) words.emplace_back("--allow-run-as-root");
  return words;
}

}  // namespace

NwchemWater::NwchemWater(std::string folder, std::int64_t cap_ms) : folder_(std::move(folder)), cap_ms_(cap_ms) {
  std::string name = (std::filesystem::temp_directory_path() / "bench-mpi-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder is to be had for NWChem");
  scratch_ = name;
}

NwchemWater::~NwchemWater() {
  std::error_code failed;
  std::filesystem::remove_all(scratch_, failed);
}

bool NwchemWater::is_here(const std::string& library) {
  return (library == "openmpi" || library == "mpich") && access(program_of(library).c_str(), X_OK) == 0;
}

Outcome NwchemWater::start(const std::string& library, Side side, int ranks,
                           const std::vector<std::string>& through) const {
  std::ofstream(scratch_ + "/water.nw") << input;
  Command command{.words = {"/usr/bin/env", "-C", scratch_},
                  .environment = {{"OMP_NUM_THREADS", "1"}, {"OPENBLAS_NUM_THREADS", "1"}},
                  .cap_ms = cap_ms_};
  const auto add = [&](const std::vector<std::string>& words) {
    command.words.insert(command.words.end(), words.begin(), words.end());
  };
  // Behind a wrapper that it does not know, farsum is told the program's MPI.
  if (side == Side::with) add({folder_ + "/farsum", "mpi", "--abi", library});
  add(launcher_of(library));
  add({"-n", std::to_string(ranks)});
  add(through);
  add({program_of(library), "water.nw"});
  return run_capped(command);
}

double NwchemWater::reference() {
  if (reference_) return *reference_;
  for (const char* library : {"openmpi", "mpich"}) {
    if (!is_here(library)) continue;
    const auto energy = energy_in(start(library, Side::without, 1, {}).output);
    if (energy) return *(reference_ = energy);
  }
  throw std::runtime_error("NWChem on one rank, without Farsum, gives no energy");
}

NwchemWater::Run NwchemWater::run(const std::string& library, Side side, int ranks,
                                  const std::vector<std::string>& through) {
  const double expected = reference();
  const auto begin = std::chrono::steady_clock::now();
  const Outcome outcome = start(library, side, ranks, through);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  Run run{.seconds = std::nullopt, .reason = {}, .errors = outcome.errors};
  const auto energy = energy_in(outcome.output);
  if (outcome.ending == Ending::capped) {
    run.reason = fmt::format("not done after {} s", cap_ms_ / 1000);
  } else if (outcome.ending != Ending::good || !energy) {
    run.reason = fmt::format("code {}", outcome.exit_code);
  } else if (std::abs(*energy - expected) > energy_tolerance) {
    run.reason = fmt::format("a wrong energy: {:.9f} where one rank gives {:.9f}", *energy, expected);
  } else {
    run.seconds = seconds.count();
  }
  return run;
}

}  // namespace bench
