// The test hosts of a lab run (docs/notes/hosts.md). Knows tools/hosts and nothing of programs.
#pragma once

#include <string>
#include <vector>

namespace farsum::cli {

// Made by tools/hosts under a name of this process, and gone with it, also once it has become another program.
class LabHosts {
 public:
  explicit LabHosts(int count);
  ~LabHosts();
  LabHosts(const LabHosts&) = delete;
  LabHosts& operator=(const LabHosts&) = delete;

  // 0, or the exit code of tools/hosts, 77 where it cannot make hosts; says why on stderr. Others are called behind 0.
  [[nodiscard]] int make();
  // The words before a program that run it on all hosts; empty where tools/hosts knows no way, which is said.
  [[nodiscard]] std::vector<std::string> launcher(const std::string& library, int ranks_per_host) const;
  // The command, said in the first host.
  [[nodiscard]] std::vector<std::string> in_first(const std::vector<std::string>& command) const;

 private:
  [[nodiscard]] std::vector<std::string> words(const std::vector<std::string>& more) const;

  int count_;
  std::string name_;
  bool are_up_ = false;
};

}  // namespace farsum::cli
