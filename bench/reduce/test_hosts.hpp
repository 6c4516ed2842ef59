// Test hosts on this machine (docs/notes/hosts.md) for the ranks of Farsum's C interface, which Open MPI's launcher
// starts there.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace bench {

// Made by tools/hosts under a name of this process; they go with it, however that ends.
class TestHosts {
 public:
  // `folder` has the launcher of tools/hosts. No hosts: none are made.
  TestHosts(const std::string& folder, int count);
  ~TestHosts();
  TestHosts(const TestHosts&) = delete;
  TestHosts& operator=(const TestHosts&) = delete;

  [[nodiscard]] int count() const { return count_; }
  // Why there are none, in a sentence; empty where all is well.
  [[nodiscard]] const std::string& why_not() const { return why_not_; }
  // What starts the program on all hosts, with these variables. `ranks` are as many on each.
  [[nodiscard]] std::vector<std::string> started(int ranks, const std::map<std::string, std::string>& environment,
                                                 const std::vector<std::string>& program) const;

 private:
  [[nodiscard]] std::vector<std::string> words(const std::vector<std::string>& more) const;
  [[nodiscard]] std::vector<std::string> launcher(int ranks_a_host) const;

  const std::string tool_;
  const int count_;
  std::string why_not_;
};

}  // namespace bench
