// The lab programs as benchmarks use them: `farsum lab` finds library and launcher, the program prints JSON lines.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/capped_run.hpp"

namespace bench {

using Json = nlohmann::ordered_json;

enum class Side : std::uint8_t { without, with };

[[nodiscard]] const char* name_of(Side side);

struct LabRun {
  std::string program;
  std::string library;
  Side side = Side::without;
  int ranks = 2;
  int hosts = 0;  // test hosts, made for the run; 0: this machine
  std::vector<std::string> arguments = {};
  std::map<std::string, std::string> environment = {};
  std::vector<std::string> through = {};  // the words by which each rank is started
};

struct LabOutcome {
  std::vector<Json> records;  // also those of a run that ended badly
  Ending ending = Ending::good;
  std::string reason;  // why it ended badly, in one line
  std::string errors;  // all it wrote on stderr
};

class Lab {
 public:
  // `folder` holds farsum and the lab programs. Runs end once `stop_fd` can be read.
  Lab(std::string folder, std::int64_t cap_ms, int stop_fd = -1)
      : folder_(std::move(folder)), cap_ms_(cap_ms), stop_fd_(stop_fd) {}

  // The libraries on this machine that this program can run under.
  [[nodiscard]] std::set<std::string> libraries_for(const std::string& program) const;
  // The names of lab-bench's cases, in the order in which it runs them.
  [[nodiscard]] std::vector<std::string> call_names(const std::string& library) const;
  [[nodiscard]] LabOutcome run(const LabRun& run) const;
  // Any program that prints JSON lines, ended as the runs of lab programs are.
  [[nodiscard]] LabOutcome run_words(const std::vector<std::string>& words) const {
    return run_command({.words = words});
  }
  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] std::int64_t cap_ms() const { return cap_ms_; }

 private:
  [[nodiscard]] LabOutcome run_command(Command command) const;

  std::string folder_;
  std::int64_t cap_ms_;
  int stop_fd_;
};

// What lets every rank of a library use every processor, as Farsum's and bare ones may: threads of a bound rank would
// share one. And nothing is started on another machine, so that Open MPI looks for no ssh, which there may be none of.
[[nodiscard]] const std::map<std::string, std::string>& unbound_on_this_machine();

// The objects among these lines.
[[nodiscard]] std::vector<Json> json_lines(const std::string& text);
[[nodiscard]] std::string joined(const std::vector<std::string>& words);

}  // namespace bench
