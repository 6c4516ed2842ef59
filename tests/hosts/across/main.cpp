// across CASE... [-- WORD...]           each case in turn; `all` is all but those of faults, `list` names them
//   --meet FOLDER RANK SIZE             in front: the ranks meet in the folder; without it the launcher says who is who
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "across.hpp"
#include "common/file_meeting.hpp"

namespace {

using namespace across;

struct Order {
  std::optional<meeting::FileMeeting> meeting;
  farsum_init_options options{};
  std::vector<std::string> cases;
  std::vector<std::string> words;
};

void read(Order& order, std::vector<std::string> arguments) {
  order.options.struct_bytes = sizeof order.options;
  if (arguments.size() >= 4 && arguments[0] == "--meet") {
    order.options.rank = std::stoi(arguments[2]);
    order.options.size = std::stoi(arguments[3]);
    order.meeting.emplace(arguments[1], order.options.rank, order.options.size);
    order.options.allgather = meeting::FileMeeting::gather;
    order.options.allgather_user = &*order.meeting;
    arguments.erase(arguments.begin(), arguments.begin() + 4);
  }
  bool is_word = false;
  for (const std::string& argument : arguments) {
    if (argument == "--" && !is_word) {
      is_word = true;
    } else {
      (is_word ? order.words : order.cases).push_back(argument);
    }
  }
}

std::vector<Case> chosen(const Order& order) {
  std::vector<Case> cases;
  for (const std::string& name : order.cases) {
    const std::size_t before = cases.size();
    for (const Case& known : every_case()) {
      if (name == "all" || name == known.name) cases.push_back(known);
    }
    for (const std::span<const Case> some : {fault_cases(), named_card_cases()}) {
      for (const Case& known : some) {
        if (name == known.name) cases.push_back(known);
      }
    }
    if (cases.size() == before) throw Failed("there is no case " + name + " (across list)");
  }
  return cases;
}

int run(const Order& order) {
  Job job;
  job.words = order.words;
  job.rank = order.options.rank;
  const char* current = "farsum_init";
  try {
    const std::vector<Case> cases = chosen(order);
    FINE(farsum_init(order.meeting ? &order.options : nullptr));
    FINE(farsum_rank(farsum_world(), &job.rank));
    FINE(farsum_size(farsum_world(), &job.size));
    for (const Case& one : cases) {
      current = one.name;
      one.body(job);
      barrier();
      if (job.rank == 0) std::printf("ok %s\n", one.name);
      std::fflush(stdout);
    }
    current = "farsum_finalize";
    FINE(farsum_finalize());
    if (job.rank == 0) std::printf("all of %zu cases on %d ranks\n", cases.size(), job.size);
  } catch (const Failed& failed) {
    std::printf("FAILED %s at rank %d: %s\n", current, job.rank, failed.what());
    std::fflush(stdout);
    // Windows and epochs are as the case left them: nothing can be wound up.
    std::_Exit(1);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Order order;
  read(order, {argv + 1, argv + argc});
  if (order.cases == std::vector<std::string>{"list"}) {
    for (const Case& one : every_case()) std::puts(one.name);
    return 0;
  }
  return run(order);
}
