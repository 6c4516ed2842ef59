// `farsum info`: chooses sections and prints them, as text or as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>

#include "base/settings.hpp"
#include "cli/commands.hpp"
#include "cli/exit_codes.hpp"
#include "cli/info/info_machine.hpp"
#include "cli/info/info_measure.hpp"
#include "cli/info/info_model.hpp"
#include "cli/info/info_mpi.hpp"
#include "cli/info/info_network.hpp"
#include "cli/info/info_paths.hpp"
#include "cli/info/info_serial.hpp"
#include "cli/info/info_trees.hpp"
#include "runtime/link_models.hpp"

namespace farsum::cli {

namespace {

constexpr const char* info_epilogue = R"(
Examples:
  farsum info                    whether Farsum works here, and with which MPI libraries
  farsum info --all              the build, the machine, what its kernel permits, the network, and MPI
  farsum info --paths            how operations travel here, and why
  farsum info --model            what an operation costs on each path, what is chosen by it, and where its numbers are from
  farsum info --model --measure  measures them first, on this machine or as the ranks of a job, and keeps them
  farsum info --model --measure --reductions  measures instead what reductions over nodes cost
  farsum info --model --measure --trees       measures trees beside what the model predicts of them
  farsum info --settings         every FARSUM_ variable with its meaning and its value now
  farsum info --json | jq .machine.cores

Exit code: 0; 2 wrong usage, or a FARSUM_ variable that cannot be read.)";

struct InfoOptions {
  bool all = false;
  bool settings = false;
  bool paths = false;
  bool model = false;
  bool measure = false;
  bool reductions = false;
  bool trees = false;
  int nodes = 13;
  bool json = false;
};

Report settings_table(const Settings& settings) {
  Report table = Report::array();
  for (const SettingRow& row : describe_settings(settings)) {
    table.push_back({{"name", row.name},
                     {"value", row.value},
                     {"default", row.default_value},
                     {"type", row.type},
                     {"unit", row.unit},
                     {"meaning", row.meaning}});
  }
  return table;
}

Report paths_table(const Settings& settings) {
  Report table = Report::array();
  const cost::Thresholds model = read_path_model(settings, environment).thresholds;
  for (const PathRow& row : explain_paths({probe_attach(), yama_scope(), settings, probe_held_threads(), model})) {
    table.push_back(
        {{"memory", row.memory}, {"operations", row.operations}, {"path", row.path}, {"reason", row.reason}});
  }
  return table;
}

std::string text_of(const Report& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string joined;
  for (const Report& item : value) joined += (joined.empty() ? "" : ", ") + text_of(item);
  return joined;
}

void print_section(const std::string& title, const Report& section) {
  fmt::print("{}\n", title);
  for (const auto& [name, value] : section.items()) {
    std::string words = name;
    std::replace(words.begin(), words.end(), '_', ' ');
    fmt::print("  {:<30} {}\n", words, text_of(value));
  }
  fmt::print("\n");
}

// A table whose rows are objects with the same keys; the last column is as long as it likes.
void print_table(const Report& rows) {
  if (rows.empty()) return;
  std::vector<std::string> keys;
  std::vector<std::size_t> widths;
  for (const auto& [key, value] : rows.front().items()) {
    std::size_t width = key.size();
    for (const Report& row : rows) width = std::max(width, text_of(row[key]).size());
    keys.push_back(key);
    widths.push_back(width);
  }
  const auto print_row = [&](const auto& cell) {
    for (std::size_t i = 0; i + 1 < keys.size(); ++i) fmt::print("{:<{}}  ", cell(keys[i]), widths[i]);
    fmt::print("{}\n", cell(keys.back()));
  };
  print_row([](const std::string& key) { return key; });
  for (const Report& row : rows) {
    print_row([&](const std::string& key) { return text_of(row[key]); });
  }
  fmt::print("\n");
}

// The model between hosts is that towards `partner`; 0: towards machines like this one.
Report collect(const InfoOptions& options, const Settings& settings, std::uint32_t partner) {
  Report report;
  if (options.all || (!options.settings && !options.paths && !options.model)) {
    report["build"] = describe_build(settings);
    report["machine"] = describe_machine();
    report["permissions"] = describe_permissions();
    report["network"] = describe_network(probe_network(settings));
    report["mpi_fronts"] = describe_mpi_fronts();
    report["mpi_libraries"] = describe_mpi_libraries();
  }
  if (options.paths) {
    report["paths"] = paths_table(settings);
    const std::string note = forced_path_note(settings);
    if (!note.empty()) report["forced_path"] = note;
    const NetworkProbe network = probe_network(settings);
    report["windows_across_hosts"] =
        fmt::format("Windows across hosts: {}. Their paths:", windows_across_hosts(network));
    report["paths_across_hosts"] = describe_paths_across_hosts(network, settings);
  }
  if (options.model) {
    if (partner == 0) partner = own_machine_number();
    report.update(options.json ? describe_model(settings, partner) : describe_model_shortly(settings, partner));
  }
  if (options.settings) report["settings"] = settings_table(settings);
  return report;
}

// ---- the verdict ---------------------------------------------------------------------------------------------------

void print_line(const char* title, const std::string& words) { fmt::print("  {:<11} {}\n", title, words); }

// An MPI library as a user knows it, with what is missing for it.
std::string words_of_mpi(const Report& library, const Report& fronts) {
  const auto text = [&](const char* key) { return library[key].get<std::string>(); };
  const auto front =
      std::find_if(fronts.begin(), fronts.end(), [&](const Report& one) { return one["mpi_front"] == library["abi"]; });
  const bool is_served = front != fronts.end() && (*front)["built"] == "yes";
  const std::string version = text("version") == "unknown" ? "" : " " + text("version");
  const std::string launcher = text("launcher").empty() ? text("library") : text("launcher");
  return fmt::format("{}{}, {}{}", text("mpi_library"), version, launcher,
                     is_served ? "" : fmt::format(": no front was built for it (ABI {})", text("abi")));
}

// What a user asks first, of the sections of `collect`.
void print_verdict(const Report& report) {
  const auto text = [&](const char* section, const char* key) { return text_of(report[section][key]); };
  const std::string version = text("build", "version");
  const std::string memory_files = text("permissions", "memory_files");
  const bool works = memory_files == "work";
  const std::string copies = text("permissions", "cross_memory_attach");
  const bool copies_work = copies.starts_with("works");
  if (!works) {
    fmt::print("Farsum {} does not work here: memory that ranks share is {}\n", version, memory_files);
  } else if (!copies_work) {
    fmt::print("Farsum {} works here, but slower: copies between ranks are {}\n", version, copies);
  } else {
    fmt::print("Farsum {} works here\n", version);
  }
  print_line("processors", fmt::format("{} usable of {}", text("machine", "processors_usable"),
                                       text("machine", "processors_online")));
  const Report& libraries = report["mpi_libraries"];
  if (libraries.empty()) {
    print_line("MPI", "none at the places known here; farsum mpi finds that of a program");
  }
  for (const Report& library : libraries) print_line("MPI", words_of_mpi(library, report["mpi_fronts"]));
  print_line("other hosts", text("network", "windows_across_hosts"));
}

void print_text(const Report& report) {
  for (const auto& [title, section] : report.items()) {
    if (section.is_string()) {
      fmt::print("{}\n\n", section.get<std::string>());
    } else if (section.is_array()) {
      print_table(section);
    } else {
      print_section(title, section);
    }
  }
}

int info(const InfoOptions& options) {
  auto settings = read_settings(environment);
  if (!settings.is_ok()) {
    fmt::print(stderr, "farsum info: {}\n", settings.take_status().text());
    return exit_usage;
  }
  MeasuredModel measured;
  std::optional<Report> trees;
  if (options.reductions) {
    if (const int failed = measure_serial_reductions(settings.value(), options.nodes); failed != exit_ok) return failed;
  }
  if (options.trees) {
    trees = measure_trees(settings.value(), options.nodes);
    if (!trees) return exit_failure;
  }
  if (options.measure && !options.reductions && !options.trees) {
    measured = measure_model(settings.value());
    if (!measured.reports || measured.exit_code != exit_ok) return measured.exit_code;
  }
  Report report = collect(options, settings.value(), measured.partner);
  if (trees) report.update(*trees);
  if (options.json) {
    fmt::print("{}\n", report.dump(2));
    return exit_ok;
  }
  if (!report.contains("build")) {
    print_text(report);
    return exit_ok;
  }
  print_verdict(report);
  fmt::print("\n");
  if (options.all) {
    print_text(report);
  } else {
    fmt::print("farsum info --all says more of each.\n");
  }
  return exit_ok;
}

}  // namespace

void add_info_command(CLI::App& farsum, CommandLine& line) {
  CLI::App* command = farsum.add_subcommand("info", info_description);
  auto options = std::make_shared<InfoOptions>();
  command->footer(info_epilogue);
  command->add_flag("--all", options->all, "The build, the machine, permissions, network and MPI in full");
  command->add_flag("--settings", options->settings, "The settings (environment variables) and their values");
  command->add_flag("--paths", options->paths, "Which path each kind of operation takes here, and why");
  CLI::Option* model =
      command->add_flag("--model", options->model, "The cost model: parameters, and what is chosen by them");
  CLI::Option* measure =
      command->add_flag("--measure", options->measure, "Measure the parameters first (seconds) and keep them")
          ->needs(model);
  command
      ->add_flag("--reductions", options->reductions,
                 "Measure instead what reductions over nodes cost, which are processes of this machine (half a minute)")
      ->needs(measure);
  command
      ->add_flag("--trees", options->trees,
                 "Measure reductions by trees of several degrees, and set them beside what the model predicts")
      ->needs(measure);
  command
      ->add_option("--nodes", options->nodes,
                   "Of reductions: over 2 nodes to so many, of trees over so many (default: 13)")
      ->needs(measure)
      ->check(CLI::Range(3, 64));
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback([options, &line] { line.exit_code = info(*options); });
}

}  // namespace farsum::cli
