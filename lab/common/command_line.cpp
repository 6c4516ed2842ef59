#include "common/command_line.hpp"

#include <CLI/CLI.hpp>
#include <cstdlib>

namespace lab {
namespace {

// The rank as launchers tell it in the environment, for words that are due before MPI_Init; 0 where none does.
int rank_before_init() {
  for (const char* name : {"PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}) {
    if (const char* text = std::getenv(name)) {
      return std::atoi(text);
    }
  }
  return 0;
}

}  // namespace

CommandLine::CommandLine(const std::string& description, const std::string& name)
    : app_(std::make_unique<CLI::App>(description, name)) {}

CommandLine::~CommandLine() = default;

void CommandLine::add_word(const std::string& name, std::string& value, const std::string& meaning,
                           const Words& allowed) {
  app_->add_option(name, value, meaning)->check(CLI::IsMember(allowed))->capture_default_str();
}

void CommandLine::add_words(const std::string& name, Words& values, const std::string& meaning) {
  app_->add_option(name, values, meaning)->delimiter(',');
}

void CommandLine::add_words(const std::string& name, Words& values, const std::string& meaning, const Words& allowed) {
  app_->add_option(name, values, meaning)->delimiter(',')->check(CLI::IsMember(allowed));
}

void CommandLine::add_checked_words(const std::string& name, Words& values, const std::string& meaning,
                                    const Complaint& check) {
  app_->add_option(name, values, meaning)->delimiter(',')->check(check);
}

template <typename Number>
void CommandLine::add_number(const std::string& name, Number& value, const std::string& meaning,
                             Limits<Number> limits) {
  app_->add_option(name, value, meaning)->check(CLI::Range(limits.least, limits.most))->capture_default_str();
}
template void CommandLine::add_number(const std::string&, int&, const std::string&, Limits<int>);
template void CommandLine::add_number(const std::string&, long&, const std::string&, Limits<long>);
template void CommandLine::add_number(const std::string&, double&, const std::string&, Limits<double>);

void CommandLine::add_any_number(const std::string& name, unsigned& value, const std::string& meaning) {
  app_->add_option(name, value, meaning)->capture_default_str();
}

void CommandLine::add_numbers(const std::string& name, std::vector<int>& values, const std::string& meaning,
                              Limits<int> limits) {
  app_->add_option(name, values, meaning)->delimiter(',')->check(CLI::Range(limits.least, limits.most));
}

void CommandLine::add_flag(const std::string& name, bool& value, const std::string& meaning) {
  app_->add_flag(name, value, meaning);
}

void CommandLine::add_memory(Words& memories) {
  add_words("--memory", memories, "allocate (MPI's memory), create (the program's); default: both",
            {"allocate", "create"});
}

void CommandLine::add_repeats(int& repeats, const std::string& meaning) {
  add_number("--repeats", repeats, meaning, {1, 1000});
}

void CommandLine::add_json(bool& json) { add_flag("--json", json, "one JSON object a line"); }

void CommandLine::set_footer(const std::string& text) { app_->footer(text); }

std::optional<int> CommandLine::parse(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (rank_before_init() == 0) {
      return app_->exit(error);
    }
    return error.get_exit_code();
  }
  return std::nullopt;
}

}  // namespace lab
