// The table of wrappers: which of their options have a value, and how many arguments stand before the program.
#include "cli/mpi/mpi_wrappers.hpp"

#include <algorithm>
#include <string_view>

#include "cli/base_name.hpp"

namespace farsum::cli {

namespace {

struct Wrapper {
  std::string_view name;
  std::string_view letters;  // short options with a value
  std::string_view words;    // long ones, each between spaces; those with = need no mention
  int before;                // arguments between the options and the program
};

constexpr Wrapper wrappers[] = {
    {"env", "uCS", " unset chdir split-string ", 0},
    {"time", "fo", " format output ", 0},
    {"timeout", "sk", " signal kill-after ", 1},
    {"nice", "n", " adjustment ", 0},
    {"ionice", "cn", " class classdata ", 0},
    {"chrt", "TPD", " sched-runtime sched-period sched-deadline ", 1},
    {"taskset", "", "", 1},
    {"numactl", "imNCpwP", " interleave membind cpunodebind physcpubind preferred preferred-many weighted-interleave ",
     0},
    {"setarch", "", "", 0},
    {"stdbuf", "ioe", " input output error ", 0},
    {"nohup", "", "", 0},
    {"setsid", "", "", 0},
    {"prlimit", "", "", 0},
    {"catchsegv", "", "", 0},
    {"hwloc-bind", "", " cpubind membind mempolicy ", 1},
    {"likwid-pin", "cs", "", 0},
    {"valgrind", "", "", 0},
    {"strace", "aebEIoOpPsSuUX", " output trace ", 0},
    {"ltrace", "aeAnopsulxDF", " output ", 0},
    {"perf", "eoFcCmpt", " event output freq count cpu ", 1},
    {"rr", "", "", 1},
    {"heaptrack", "o", " output ", 0},
};

constexpr std::string_view preload_setting = "LD_PRELOAD";

const Wrapper* find_wrapper(std::string_view program) {
  const std::string_view name = base_name(program);
  const auto* found =
      std::find_if(std::begin(wrappers), std::end(wrappers), [name](const auto& w) { return w.name == name; });
  return found == std::end(wrappers) ? nullptr : found;
}

bool is_option(const std::string& argument) { return argument.size() > 1 && argument.front() == '-'; }

// True when the next argument is this option's value.
bool value_follows(const Wrapper& wrapper, std::string_view option) {
  if (option.starts_with("--"))
    return wrapper.words.find(' ' + std::string(option.substr(2)) + ' ') != std::string_view::npos;
  // The value is attached when the letter is not the last of its word.
  return wrapper.letters.find(option.back()) != std::string_view::npos &&
         option.find_first_of(wrapper.letters, 1) == option.size() - 1;
}

bool is_assignment(const std::string& argument) { return argument.find('=') != std::string::npos; }

void note_env_argument(const std::vector<std::string>& arguments, std::size_t at, WrappedProgram& found) {
  const std::string& argument = arguments[at];
  const bool short_option = is_option(argument) && argument[1] != '-';
  const auto names_preload = [&](std::size_t index) {
    return index < arguments.size() && arguments[index] == preload_setting;
  };
  if (argument == "-" || argument == "--ignore-environment" ||
      (short_option && argument.find('i') != std::string::npos) || argument == "--unset=LD_PRELOAD" ||
      argument == "-uLD_PRELOAD" || ((argument == "-u" || argument == "--unset") && names_preload(at + 1))) {
    found.clears_environment = true;
  }
  if (argument.starts_with("LD_PRELOAD=")) found.sets_preload = true;
}

std::optional<WrappedProgram> behind(const std::vector<std::string>& arguments, const char* word, std::size_t from,
                                     std::size_t end) {
  const auto last = arguments.begin() + static_cast<std::ptrdiff_t>(end);
  const auto found = std::find(arguments.begin() + static_cast<std::ptrdiff_t>(from), last, word);
  if (found == last || found + 1 == last) return std::nullopt;
  return WrappedProgram{static_cast<std::size_t>(found - arguments.begin()) + 1, false, false};
}

}  // namespace

bool is_wrapper(const std::string& program) { return base_name(program) == "gdb" || find_wrapper(program) != nullptr; }

std::optional<WrappedProgram> look_through(const std::vector<std::string>& arguments, std::size_t wrapper,
                                           std::size_t end) {
  if (base_name(arguments[wrapper]) == "gdb") return behind(arguments, "--args", wrapper, end);
  const Wrapper* rules = find_wrapper(arguments[wrapper]);
  if (rules == nullptr) return std::nullopt;
  const bool is_env = rules->name == "env";
  // perf stat, rr record: the sub-command comes first; hwloc-bind and setarch may have their words first as well.
  int before = rules->before;
  WrappedProgram found;
  std::size_t at = wrapper + 1;
  for (; at < end; ++at) {
    const std::string& argument = arguments[at];
    if (is_env) note_env_argument(arguments, at, found);
    if (argument == "--") {
      ++at;
      break;
    }
    if (is_option(argument) || (is_env && argument == "-")) {
      if (value_follows(*rules, argument)) ++at;
    } else if (before > 0) {
      --before;
    } else if (!is_env || !is_assignment(argument)) {
      break;
    }
  }
  if (at >= end) return std::nullopt;
  found.position = at;
  return found;
}

}  // namespace farsum::cli
