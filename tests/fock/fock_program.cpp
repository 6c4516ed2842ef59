#include "fock_program.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace fock_test {
namespace {

std::string quoted(const std::string& argument) {
  std::string result = "'";
  for (char c : argument) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string command_line(const std::vector<std::string>& arguments, const How& how, const std::string& json_file) {
  std::string command = "timeout -k 5 60 env FARSUM_PATH=" + how.path + " ";
  if (how.ranks > 0) command += quoted(FARSUM_BIN_DIR "/farsum") + " run -n " + std::to_string(how.ranks) + " ";
  command += quoted(FARSUM_BIN_DIR "/fock");
  for (const std::string& argument : arguments) command += " " + quoted(argument);
  return command + " --json " + quoted(json_file) + " 2>&1 </dev/null";
}

}  // namespace

bool is_built() { return std::filesystem::exists(FARSUM_BIN_DIR "/fock"); }

std::string data_file(const std::string& name) { return FARSUM_SOURCE_DIR "/apps/fock/data/" + name; }

std::string scratch_file(const std::string& name) {
  static int count = 0;
  return testing::TempDir() + "fock-" + std::to_string(getpid()) + "-" + std::to_string(++count) + "-" + name;
}

Outcome run_fock(const std::vector<std::string>& arguments, const How& how) {
  const std::string json_file = scratch_file("record.json");
  Outcome run;
  FILE* pipe = popen(command_line(arguments, how, json_file).c_str(), "r");
  if (pipe == nullptr) return run;
  std::array<char, 4096> chunk{};
  for (std::size_t got = 0; (got = std::fread(chunk.data(), 1, chunk.size(), pipe)) > 0;)
    run.text.append(chunk.data(), got);
  const int status = pclose(pipe);
  run.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  if (std::ifstream file(json_file); file) run.record = nlohmann::json::parse(file, nullptr, false);
  std::filesystem::remove(json_file);
  return run;
}

}  // namespace fock_test
