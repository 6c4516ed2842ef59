#include "paths.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace bench {
namespace {

// "MPI_Fetch_and_op", "fetch-and-op" and "Fetch_and_op" are the same thing.
std::string plain_name(std::string name) {
  for (char& letter : name) letter = letter == '-' ? '_' : static_cast<char>(std::tolower(letter));
  constexpr const char* prefix = "mpi_";
  return name.starts_with(prefix) ? name.substr(4) : name;
}

std::string text_at(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string whole_file(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// The operation that a case of lab-bench consists of, as the statistics name it; empty for calls that move nothing.
std::string operation_of(const std::string& case_name) {
  constexpr std::array<std::pair<const char*, const char*>, 11> prefixes{{{"put-", "put"},
                                                                          {"get-", "get"},
                                                                          {"accumulate-", "accumulate"},
                                                                          {"fetch-and-op", "fetch_and_op"},
                                                                          {"compare-and-swap", "compare_and_swap"},
                                                                          {"lock-put", "put"},
                                                                          {"fence-put", "put"},
                                                                          {"pscw", "put"},
                                                                          {"nwchem-put", "accumulate"},
                                                                          {"nwchem-acc", "accumulate"},
                                                                          {"nwchem-get", "get_accumulate"}}};
  for (const auto& [prefix, operation] : prefixes) {
    if (case_name.starts_with(prefix)) return operation;
  }
  return {};
}

// Operations and their cases, one case an operation; the rest stays in `cases`.
std::map<std::string, std::string> take_batch(std::vector<std::string>& cases) {
  std::map<std::string, std::string> batch;
  std::erase_if(cases, [&](const std::string& name) { return batch.emplace(operation_of(name), name).second; });
  return batch;
}

std::string key_of(const std::string& library, const std::string& memory, const std::string& name) {
  return fmt::format("{}/{}/{}", library, memory, name);
}

}  // namespace

void Paths::ask(const Lab& lab, const std::string& library, const std::string& memory,
                const std::vector<std::string>& cases) {
  std::vector<std::string> left;
  std::copy_if(cases.begin(), cases.end(), std::back_inserter(left),
               [](const std::string& name) { return !operation_of(name).empty(); });
  while (!left.empty()) ask_batch(lab, library, memory, take_batch(left));
}

void Paths::ask_batch(const Lab& lab, const std::string& library, const std::string& memory,
                      const std::map<std::string, std::string>& case_of_operation) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / fmt::format("farsum-bench-mpi-{}.jsonl", getpid());
  std::filesystem::remove(file);
  std::vector<std::string> names;
  names.reserve(case_of_operation.size());
  for (const auto& [operation, name] : case_of_operation) names.push_back(name);
  static_cast<void>(lab.run({.program = "bench",
                             .library = library,
                             .side = Side::with,
                             .arguments = {"--memory", memory, "--owner", "idle", "--repeats", "1", "--repeat-ms", "1",
                                           "--cases", joined(names)},
                             .environment = {{"FARSUM_MPI_STATS_FILE", file.string()}}}));
  for (const Json& record : json_lines(whole_file(file))) {
    const auto found = case_of_operation.find(plain_name(text_at(record, "operation")));
    const std::string path = text_at(record, "path");
    if (found != case_of_operation.end() && !path.empty()) paths_[key_of(library, memory, found->second)].insert(path);
  }
  std::filesystem::remove(file);
}

std::string Paths::of(const std::string& library, const std::string& memory, const std::string& name) const {
  const auto found = paths_.find(key_of(library, memory, name));
  return found == paths_.end() ? std::string() : fmt::format("{}", fmt::join(found->second, "+"));
}

}  // namespace bench
