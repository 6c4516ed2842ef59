// Runs bin/fock, alone or under the launcher, and reads its answer. The tests see the program from outside only.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace fock_test {

struct Outcome {
  int exit_status = -1;
  std::string text;       // standard output and error together
  nlohmann::json record;  // what --json wrote; null where it wrote nothing
};

struct How {
  int ranks = 0;  // 0: without the launcher
  std::string path = "auto";
};

// Whether the program was built: it needs libint2 and Eigen.
bool is_built();

std::string data_file(const std::string& name);
// A file of this test process that does not exist yet; removed by nobody, so it lies in the test's temporary folder.
std::string scratch_file(const std::string& name);

Outcome run_fock(const std::vector<std::string>& arguments, const How& how = {});

// Where the program was not built the test is skipped, not passed.
#define SKIP_UNLESS_FOCK_IS_BUILT() \
  if (!fock_test::is_built()) GTEST_SKIP() << "bin/fock was not built: libint2 or Eigen is missing"

}  // namespace fock_test
