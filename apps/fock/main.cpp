// fock: restricted Hartree-Fock with distributed density and Fock matrices. Reads the command line, runs, reports.
// Exit status: 0 done and, with --compare, in agreement; 1 not converged, not in agreement, or a failure; 2 bad input.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>

#include "input_error.hpp"
#include "report.hpp"

namespace {

using namespace fock;

enum ExitStatus : int { exit_right = 0, exit_wrong = 1, exit_bad_input = 2 };

struct Settings {
  std::string molecule_file;
  std::string basis_name = "6-31G*";
  std::string basis_file;
  std::string json_file;
  std::string reference_file;
  LengthUnit unit = LengthUnit::from_file;
  Angular angular = Angular::cartesian;
  int charge = 0;
  int block_functions = 0;
  bool compare = false;
  bool full_builds = false;
  ScfOptions scf;
};

constexpr const char* example_text =
    "Example:\n"
    "  farsum run -n 2 fock apps/fock/data/water.xyz --basis '6-31G*' --compare\n"
    "prints an energy of -76.0105038209 Hartree and how far that is from NWChem's.";

// A value is chosen by name.
template <typename Value>
void add_choice(CLI::App& app, const std::string& name, Value& value, const std::map<std::string, Value>& choices,
                const std::string& help) {
  std::vector<std::string> names;
  std::string default_name;
  for (const auto& [choice, meaning] : choices) {
    names.push_back(choice);
    if (meaning == value) default_name = choice;
  }
  CLI::IsMember known(names, CLI::ignore_case);
  known.description("");
  app.add_option_function<std::string>(
         name, [&value, choices](const std::string& chosen) { value = choices.at(chosen); }, help)
      ->transform(known)
      ->type_name(fmt::format("{}", fmt::join(names, "|")))
      ->default_str(default_name);
}

void declare_options(CLI::App& app, Settings& s) {
  app.footer(example_text);
  app.add_option("molecule", s.molecule_file,
                 "the nuclei: an .xyz file, in angstrom unless its comment says units=bohr")
      ->required();
  app.add_option("--basis", s.basis_name,
                 "basis set: sto-3g, 6-31g, 6-31g*, 6-31g** (H to Ar), or one of NWChem's library")
      ->capture_default_str();
  app.add_option("--basis-file", s.basis_file, "read the basis set from this file, in NWChem's format");
  app.add_flag_callback(
      "--spherical", [&s] { s.angular = Angular::spherical; }, "five d functions a shell instead of six");
  auto* bohr = app.add_flag_callback(
      "--bohr", [&s] { s.unit = LengthUnit::bohr; }, "the .xyz file is in bohr");
  app.add_flag_callback(
         "--angstrom", [&s] { s.unit = LengthUnit::angstrom; }, "the .xyz file is in angstrom")
      ->excludes(bohr);
  app.add_option("--charge", s.charge, "total charge of the molecule")->capture_default_str();

  ScfOptions& scf = s.scf;
  app.add_option("--iterations", scf.most_iterations, "give up after this many")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--energy-tolerance", scf.energy_tolerance, "largest change of the energy at the end, Hartree")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--error-tolerance", scf.error_tolerance, "largest element of FDS - SDF at the end")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--screen", scf.build.threshold, "leave out integrals whose bound times the density is below this")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--diis", scf.diis_depth, "Fock matrices that are mixed; 1 mixes nothing")
      ->check(CLI::Range(1, 30))
      ->capture_default_str();
  add_choice<Guess>(app, "--guess", scf.guess, {{"atoms", Guess::atoms}, {"core", Guess::core}},
                    "first density: that of free atoms (atoms), or none (core)");
  app.add_flag("--full-builds", s.full_builds, "build each Fock matrix from the whole density, not from its change");

  add_choice<TaskSize>(app, "--task", scf.build.task, {{"quartet", TaskSize::quartet}, {"pair", TaskSize::pair}},
                       "a ticket is one quartet of blocks (ij|kl), or all kl of a pair ij");
  app.add_option("--block", s.block_functions, "most functions in a block; 0: one block per atom")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  add_choice<apps::CounterKind>(app, "--counter", scf.build.counter, apps::counter_kinds(), "kind of shared counter");
  app.add_flag("--compare", s.compare, "compare with the energy NWChem gave; fail beyond 1e-8 Hartree");
  app.add_option("--reference", s.reference_file, "recorded energies; default: reference.json beside the molecule");
  app.add_option("--json", s.json_file, "write the record of the run to this file ('-': standard output)");
}

// How the blocks of the last rank are reached from the first, in Farsum's words.
std::string path_description(Job& job) {
  constexpr std::array<const char*, 6> names = {"direct", "attach", "caller", "owner", "aggregated", "offload"};
  farsum_window window{};
  void* memory = nullptr;
  require(farsum_window_allocate(farsum_world(), 64, nullptr, &memory, &window));
  farsum_region_info info{};
  std::string text = "paths unknown";
  if (farsum_window_region(window, job.size() - 1, 0, &info) == FARSUM_OK) {
    text = fmt::format("bulk path {}, atomic path {}", names.at(info.bulk_path), names.at(info.atomic_path));
  }
  require(farsum_window_free(&window));
  return text;
}

std::uint64_t sum_of_bytes(Job& job, std::uint64_t bytes) {
  std::vector<double> sum = {static_cast<double>(bytes)};
  job.sum(sum);
  return static_cast<std::uint64_t>(sum[0]);
}

void write_json(const std::string& file, const std::string& text) {
  if (file == "-") {
    fmt::print("{}\n", text);
    return;
  }
  std::ofstream stream(file);
  stream << text << '\n';
  if (!stream.flush()) throw InputError(fmt::format("cannot write '{}'", file));
}

int run(Job& job, const Settings& settings) {
  const auto start = std::chrono::steady_clock::now();
  const IntegralLibrary library;
  const Molecule molecule = read_xyz(settings.molecule_file, settings.unit);
  const int electrons = electron_count(molecule, settings.charge);
  const Basis basis = make_basis(molecule, settings.basis_name, settings.basis_file, settings.angular);
  if (electrons / 2 > basis.functions) {
    throw InputError(fmt::format("{} electron pairs do not fit into {} functions", electrons / 2, basis.functions));
  }
  std::optional<Reference> reference;
  if (settings.compare) {
    const std::filesystem::path beside = std::filesystem::path(settings.molecule_file).parent_path() / "reference.json";
    reference = find_reference(settings.reference_file.empty() ? beside.string() : settings.reference_file, molecule,
                               basis, settings.charge);
  }

  Integrals integrals(molecule, basis);
  const BlockLayout layout(make_blocking(basis, settings.block_functions), job.size());
  ScfOptions options = settings.scf;
  options.incremental = !settings.full_builds;
  Scf scf(job, molecule, basis, electrons, integrals, layout, options);
  const Blocking& blocking = layout.blocking();
  RunDescription description{
      .molecule = molecule.name,
      .basis = basis.name,
      .angular = basis.angular == Angular::cartesian ? "cartesian" : "spherical",
      .path = path_description(job),
      .electrons = electrons,
      .functions = basis.functions,
      .shells = integrals.shell_count(),
      .ranks = job.size(),
      .blocks = static_cast<std::uint64_t>(blocking.count()),
      .tickets_per_build = options.build.task == TaskSize::pair ? blocking.pair_count() : blocking.quartet_count(),
      .window_bytes = sum_of_bytes(job, scf.window_bytes()),
      .seconds = 0};
  if (job.is_root()) print_header(description);

  ScfObserver observer{[](const Iteration&) {}, [](int, double) {}};
  if (job.is_root()) observer = {print_iteration, print_progress};
  const ScfResult result = scf.run(observer);
  description.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  const std::vector<Activity> activities = job.all_activities();
  bool agree = true;
  if (job.is_root()) {
    print_result(description, result, activities);
    if (reference) agree = print_comparison(result, *reference);
    if (!settings.json_file.empty())
      write_json(settings.json_file, to_json(description, result, activities, reference));
  }
  return result.converged && agree ? exit_right : exit_wrong;
}

// Joins the job only to learn which rank prints, so that one text comes out whatever the number of ranks.
template <typename Print>
void print_once(Print&& print) {
  int rank = 0;
  const bool joined = farsum_init(nullptr) == FARSUM_OK && farsum_rank(farsum_world(), &rank) == FARSUM_OK;
  if (rank == 0) print();
  std::fflush(nullptr);
  if (joined) static_cast<void>(farsum_finalize());
}

// Every rank finds the same fault in the input; one of them says so.
int run_and_explain(const Settings& settings) {
  Job job;
  try {
    return run(job, settings);
  } catch (const InputError& error) {
    if (job.is_root()) fmt::print(stderr, "fock: {}\n", error.what());
    std::fflush(stderr);
    return exit_bad_input;
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Restricted Hartree-Fock energy of a molecule, with the density and Fock matrices distributed over all ranks."};
  Settings settings;
  declare_options(app, settings);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    print_once([&] { app.exit(error); });
    return error.get_exit_code() == 0 ? exit_right : exit_bad_input;
  }
  try {
    return run_and_explain(settings);
  } catch (const std::exception& error) {
    fmt::print(stderr, "fock: {}\n", error.what());
    return exit_wrong;
  }
}
