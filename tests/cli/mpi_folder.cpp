// The files behind MpiFolder.
#include "mpi_folder.hpp"

#include <cstdlib>
#include <fstream>

namespace farsum::cli::test {

namespace {

namespace fs = std::filesystem;

constexpr const char* compiler = "/usr/bin/cc";

void compile(std::vector<std::string> command) {
  command.insert(command.begin(), compiler);
  const CapturedRun run = run_captured(command, ErrorOutput::kept);
  if (run.exit_code != 0) {
    std::fprintf(stderr, "%s: %s\n", shell_words(command).c_str(), run.out.c_str());
    std::abort();
  }
}

void write_file(const fs::path& file, const std::string& text) { std::ofstream(file) << text; }

}  // namespace

MpiFolder::MpiFolder() {
  for (const char* folder : {"bin", "lib", "mpi"}) fs::create_directory(root_ / folder);
  fs::copy_file(FARSUM_BIN_DIR "/farsum", root_ / "bin" / "farsum");
  // Nothing is run with these: the linker complains about an empty library and goes on.
  for (const MpiAbi abi : mpi_abis) write_file(front(abi), "");
}

std::string MpiFolder::add_script(const std::string& name, const std::string& text) const {
  write_file(root_ / name, text);
  fs::permissions(root_ / name, fs::perms::owner_all);
  return path(name);
}

std::string MpiFolder::add_launcher(const std::string& name, const std::string& version) const {
  return add_script(name, "#!/bin/sh\nif [ \"$1\" = --version ]; then echo '" + version +
                              "'; exit; fi\necho \"own preload: $LD_PRELOAD\"\nprintf '%s\\n' \"$@\"\nexit 7\n");
}

std::string MpiFolder::add_library(const std::string& soname, const std::string& source) const {
  const std::string file = path("mpi/" + soname);
  write_file(root_ / "source.c", source);
  compile({"-shared", "-fPIC", "-Wl,-soname," + soname, path("source.c"), "-o", file});
  return file;
}

std::string MpiFolder::add_program(const std::string& name, const std::vector<std::string>& sonames,
                                   const std::string& source, const std::vector<std::string>& flags) const {
  write_file(root_ / "source.c", source);
  std::vector<std::string> command{path("source.c"), "-o", path(name), "-Wl,--no-as-needed"};
  for (const std::string& soname : sonames) command.push_back(add_library(soname));
  // add_library wrote its own source meanwhile.
  write_file(root_ / "source.c", source);
  command.insert(command.end(), flags.begin(), flags.end());
  compile(command);
  return path(name);
}

LaunchRequest MpiFolder::request(const std::vector<std::string>& command) const {
  LaunchRequest request;
  request.command = command;
  request.libraries = path("lib");
  request.environment = {{"PATH", root_.string() + ":/usr/bin:/bin"}};
  return request;
}

CapturedRun MpiFolder::farsum_mpi(const std::vector<std::string>& arguments) const {
  std::vector<std::string> command{path("bin/farsum"), "mpi"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_captured(command, ErrorOutput::kept);
}

bool has_compiler() { return access(compiler, X_OK) == 0; }

}  // namespace farsum::cli::test
