// The options of a lab program, read before MPI is initialised. CLI11, which reads them, is seen by one file alone: it
// takes longer to compile than any of the programs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace lab {

using Words = std::vector<std::string>;
// What is wrong with a word; empty where nothing is.
using Complaint = std::function<std::string(const std::string&)>;

// Both ends are allowed.
template <typename Number>
struct Limits {
  Number least;
  Number most;
};

// What an option sets has to live until the options are read. A list's values are separated by commas.
class CommandLine {
 public:
  CommandLine(const std::string& description, const std::string& name);
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;
  ~CommandLine();

  void add_word(const std::string& name, std::string& value, const std::string& meaning, const Words& allowed);
  void add_words(const std::string& name, Words& values, const std::string& meaning);
  void add_words(const std::string& name, Words& values, const std::string& meaning, const Words& allowed);
  void add_checked_words(const std::string& name, Words& values, const std::string& meaning, const Complaint& check);
  // An int, a long or a double.
  template <typename Number>
  void add_number(const std::string& name, Number& value, const std::string& meaning, Limits<Number> limits);
  void add_any_number(const std::string& name, unsigned& value, const std::string& meaning);
  void add_numbers(const std::string& name, std::vector<int>& values, const std::string& meaning, Limits<int> limits);
  void add_flag(const std::string& name, bool& value, const std::string& meaning);

  // Options that several programs have.
  void add_memory(Words& memories);
  void add_repeats(int& repeats, const std::string& meaning);
  void add_json(bool& json);

  // What the help ends with.
  void set_footer(const std::string& text);

  // For options that are declared elsewhere.
  [[nodiscard]] CLI::App& app() { return *app_; }

  // Reads the options; an exit status means that the program ends with it (help, or options that cannot be). One rank
  // speaks.
  [[nodiscard]] std::optional<int> parse(int argc, char** argv);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace lab
