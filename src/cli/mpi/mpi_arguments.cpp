// The walk over the arguments.
#include "cli/mpi/mpi_arguments.hpp"

#include <algorithm>

namespace farsum::cli {

namespace {

constexpr std::string_view separator = ":";

class ContextReader {
 public:
  ContextReader(LauncherKind kind, const std::vector<std::string>& arguments, IsProgram is_program)
      : kind_(kind), arguments_(arguments), is_program_(is_program) {}

  LaunchContext read(std::size_t begin, std::size_t end) {
    LaunchContext context{begin, end, {}, {}, {}};
    std::size_t at = begin;
    while (at < end && arguments_[at].size() > 1 && arguments_[at].starts_with('-') && arguments_[at] != "--") {
      context.options.push_back(read_option(at, end));
      at += 1 + (context.options.back().joined ? 0 : context.options.back().values.size());
    }
    if (at < end && arguments_[at] == "--") ++at;
    if (at < end) context.program = at;
    return context;
  }

 private:
  GivenOption read_option(std::size_t at, std::size_t end) {
    const std::string& argument = arguments_[at];
    const std::string written = argument.substr(argument.starts_with("--") ? 2 : 1);
    GivenOption option{written, at, {}, false, true};
    const auto known = find_option(kind_, written);
    if (!known && take_joined_value(written, argument.starts_with("--"), option)) return option;
    option.known = known.has_value();
    const std::size_t count = count_values(known.value_or(OptionValues::vary), at, end);
    for (std::size_t i = 1; i <= count && at + i < end; ++i) option.values.push_back(arguments_[at + i]);
    return option;
  }

  // --name=value, and -n4 where the launcher reads it so.
  bool take_joined_value(const std::string& written, bool is_long, GivenOption& option) const {
    const std::size_t equals = written.find('=');
    if (equals != std::string::npos && equals > 0) {
      option.name = written.substr(0, equals);
      option.values = {written.substr(equals + 1)};
      option.joined = true;
      option.known = find_option(kind_, option.name).has_value();
      return true;
    }
    if (is_long || !attaches_values(kind_)) return false;
    const auto letter = find_option(kind_, std::string_view(written).substr(0, 1));
    if (!letter) return false;
    option.name = written.substr(0, 1);
    option.joined = true;
    // A word of single letters without values (-lu) is one argument as well.
    if (*letter != OptionValues::none) option.values = {written.substr(1)};
    return true;
  }

  std::size_t count_values(OptionValues values, std::size_t at, std::size_t end) {
    if (values == OptionValues::none) return 0;
    if (values == OptionValues::one) return 1;
    if (values == OptionValues::two) return 2;
    if (at + 1 >= end) return 0;
    const std::string& next = arguments_[at + 1];
    return next.starts_with('-') || is_program_(next) ? 0 : 1;
  }

  LauncherKind kind_;
  const std::vector<std::string>& arguments_;
  IsProgram is_program_;
};

}  // namespace

std::vector<LaunchContext> read_launch(LauncherKind kind, const std::vector<std::string>& arguments,
                                       IsProgram is_program) {
  ContextReader reader(kind, arguments, is_program);
  std::vector<LaunchContext> contexts;
  for (std::size_t begin = 0; begin <= arguments.size();) {
    const auto colon = std::find(arguments.begin() + static_cast<std::ptrdiff_t>(begin), arguments.end(), separator);
    const auto end = static_cast<std::size_t>(colon - arguments.begin());
    contexts.push_back(reader.read(begin, end));
    begin = end + 1;
  }
  return contexts;
}

}  // namespace farsum::cli
