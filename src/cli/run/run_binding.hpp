// Turns --bind into the processing units of each rank.
#pragma once

#include <string>
#include <vector>

#include "cli/run/run_spec.hpp"

namespace farsum::cli {

struct ParsedCpus {
  CpuList cpus;
  std::string sentence;  // what is wrong with the list; empty when nothing is
};

// "0,1" or "0-3,6".
[[nodiscard]] ParsedCpus parse_cpu_list(const std::string& text);

struct Bindings {
  std::vector<CpuList> of_ranks;  // rank r takes [r % size]; empty: not bound
  std::string sentence;           // why the request cannot be met; empty otherwise
};

// `request` is none, core, or a list. With fewer cores than ranks, `core` binds nothing: two ranks nailed to one core
// while another idles is worse than what the scheduler does.
[[nodiscard]] Bindings choose_bindings(const std::string& request, int ranks, const std::vector<CpuList>& cores);

}  // namespace farsum::cli
