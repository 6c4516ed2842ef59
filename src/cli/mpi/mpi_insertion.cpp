// -x for Open MPI, -genv for Hydra and Intel MPI, --export for Slurm.
#include "cli/mpi/mpi_insertion.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "cli/mpi/mpi_preload.hpp"

namespace farsum::cli {

namespace {

constexpr const char* preload = "LD_PRELOAD";

bool is_hydra(LauncherKind kind) { return kind == LauncherKind::hydra || kind == LauncherKind::intel; }

// The option that sets a variable, in the user's arguments.
struct Setting {
  std::string name;
  std::string value;
  bool has_value = false;
};

std::optional<Setting> split_assignment(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) return Setting{text, "", false};
  return Setting{text.substr(0, equals), text.substr(equals + 1), true};
}

// What one option of Open MPI or Hydra sets.
std::optional<Setting> setting_of(LauncherKind kind, const GivenOption& option) {
  if (is_hydra(kind)) {
    if ((option.name == "genv" || option.name == "env") && option.values.size() == 2) {
      return Setting{option.values[0], option.values[1], true};
    }
    return std::nullopt;
  }
  if ((option.name == "x" || option.name == "set-env") && option.values.size() == 1) {
    return split_assignment(option.values[0]);
  }
  return std::nullopt;
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  for (std::size_t end = 0; end != std::string::npos && !text.empty(); start = end + 1) {
    end = text.find(',', start);
    parts.push_back(text.substr(start, end == std::string::npos ? end : end - start));
  }
  return parts;
}

// Writes the merged value over the one that the user gave, so that it does not matter which of two the launcher takes.
void rewrite_preload(const InsertionRequest& request, const LaunchContext& context,
                     std::vector<std::string>& arguments) {
  for (const GivenOption& option : context.options) {
    const auto setting = setting_of(request.kind, option);
    if (!setting || setting->name != preload) continue;
    const std::string merged =
        merge_preload(request.library, context.runtimes, setting->has_value ? setting->value : request.user_preload);
    if (is_hydra(request.kind)) {
      arguments[option.position + 2] = merged;
    } else if (option.joined) {
      arguments[option.position] = fmt::format("--{}={}={}", option.name, preload, merged);
    } else {
      arguments[option.position + 1] = fmt::format("{}={}", preload, merged);
    }
  }
}

std::string refuse_context(LauncherKind kind, const LaunchContext& context) {
  for (const GivenOption& option : context.options) {
    if (option.name == "app" || option.name == "configfile") {
      return fmt::format(
          "with {} the launcher reads its options from a file, which Farsum does not change; write the programs on "
          "the command line, with ':' between them",
          option.name);
    }
    const bool edits = option.name == "unset-env" || option.name == "prepend-env" || option.name == "append-env";
    if (edits && kind == LauncherKind::openmpi5 && !option.values.empty() && option.values[0].starts_with(preload)) {
      return fmt::format("--{} {} would change Farsum's preload; give the whole value with -x {}=...", option.name,
                         preload, preload);
    }
  }
  return {};
}

std::set<std::string> names_set_by_user(const InsertionRequest& request) {
  std::set<std::string> names;
  for (const LaunchContext& context : request.contexts) {
    for (const GivenOption& option : context.options) {
      const auto setting = setting_of(request.kind, option);
      if (setting && setting->has_value) names.insert(setting->name);
    }
  }
  return names;
}

std::vector<std::string> launcher_options(const InsertionRequest& request, const LaunchContext& context) {
  Variables variables = request.variables;
  for (const std::string& name : names_set_by_user(request)) variables.erase(name);
  for (const auto& [name, value] : request.overriding) variables[name] = value;
  variables[preload] = merge_preload(request.library, context.runtimes, request.user_preload);
  std::vector<std::string> options;
  for (const auto& [name, value] : variables) {
    if (is_hydra(request.kind)) {
      options.insert(options.end(), {"-genv", name, value});
    } else {
      options.insert(options.end(), {"-x", fmt::format("{}={}", name, value)});
    }
  }
  return options;
}

Insertion insert_options(const InsertionRequest& request) {
  Insertion result;
  std::vector<std::string> arguments = request.arguments;
  for (const LaunchContext& context : request.contexts) rewrite_preload(request, context, arguments);
  for (const LaunchContext& context : request.contexts) {
    const std::vector<std::string> options = launcher_options(request, context);
    const bool first = context.begin == 0;
    if (!first) result.arguments.emplace_back(":");
    if (first || variables_are_per_context(request.kind)) {
      result.arguments.insert(result.arguments.end(), options.begin(), options.end());
    }
    result.arguments.insert(result.arguments.end(), arguments.begin() + static_cast<std::ptrdiff_t>(context.begin),
                            arguments.begin() + static_cast<std::ptrdiff_t>(context.end));
  }
  return result;
}

// ---- Slurm: one option with commas between its parts, so that a value must not hold one --------------------------

struct SlurmExport {
  std::vector<std::string> parts;
  std::string user_preload;
};

SlurmExport read_export(const std::string& written, const std::string& environment_preload) {
  SlurmExport read{{}, environment_preload};
  for (const std::string& part : split_at_commas(written)) {
    if (part.starts_with("LD_PRELOAD=")) {
      read.user_preload = part.substr(std::string("LD_PRELOAD=").size());
    } else if (part != preload && part != "NONE" && part != "NIL") {
      read.parts.push_back(part);
    }
  }
  return read;
}

const GivenOption* find_export(const LaunchContext& context) {
  const GivenOption* given = nullptr;
  for (const GivenOption& option : context.options) {
    if (option.name == "export" && !option.values.empty()) given = &option;
  }
  return given;
}

// The names of settings that the parts do not hand on already.
std::vector<std::string> names_to_add(const std::vector<std::string>& parts, const Variables& settings) {
  std::vector<std::string> names;
  if (std::find(parts.begin(), parts.end(), "ALL") != parts.end()) return names;
  for (const auto& setting : settings) {
    const std::string assignment = setting.first + "=";
    const bool there = std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
      return part == setting.first || part.starts_with(assignment);
    });
    if (!there) names.push_back(setting.first);
  }
  return names;
}

void insert_export(const InsertionRequest& request, const LaunchContext& context, Insertion& result) {
  const GivenOption* given = find_export(context);
  const std::string otherwise = request.slurm_exports.empty() ? "ALL" : request.slurm_exports;
  SlurmExport exported = read_export(given != nullptr ? given->values[0] : otherwise, request.user_preload);
  const std::string value = merge_preload(request.library, context.runtimes, exported.user_preload);
  const bool fits = value.find_first_of(", '\"\\") == std::string::npos;
  const auto names = names_to_add(exported.parts, result.own_environment);
  exported.parts.insert(exported.parts.end(), names.begin(), names.end());
  if (fits) exported.parts.push_back(fmt::format("{}={}", preload, value));
  result.arguments.push_back(
      fmt::format("--export={}", exported.parts.empty() ? "NONE" : fmt::format("{}", fmt::join(exported.parts, ","))));
  for (std::size_t at = context.begin; at < context.end; ++at) {
    if (given != nullptr && (at == given->position || (!given->joined && at == given->position + 1))) continue;
    if (!fits && context.program == at) {
      result.arguments.insert(result.arguments.end(), {"env", fmt::format("{}={}", preload, value)});
    }
    result.arguments.push_back(request.arguments[at]);
  }
  if (!fits && !context.program) {
    result.refusal = fmt::format("srun cannot pass LD_PRELOAD={}, for it holds a comma, a space or a quote", value);
  }
}

// Values travel in srun's own environment, where commas do no harm; --export names them.
Insertion insert_exports(const InsertionRequest& request) {
  Insertion result;
  result.own_environment = request.variables;
  for (const auto& [name, value] : request.overriding) result.own_environment[name] = value;
  for (const LaunchContext& context : request.contexts) {
    if (context.begin != 0) result.arguments.emplace_back(":");
    insert_export(request, context, result);
  }
  return result;
}

}  // namespace

Insertion insert_variables(const InsertionRequest& request) {
  for (const LaunchContext& context : request.contexts) {
    std::string refusal = refuse_context(request.kind, context);
    if (!refusal.empty()) return {std::move(refusal), {}, {}};
  }
  return request.kind == LauncherKind::slurm ? insert_exports(request) : insert_options(request);
}

std::optional<std::string> passed_value(LauncherKind kind, const LaunchContext& context, const std::string& name) {
  std::optional<std::string> value;
  for (const GivenOption& option : context.options) {
    if (kind == LauncherKind::slurm && option.name == "export" && !option.values.empty()) {
      for (const std::string& part : split_at_commas(option.values[0])) {
        if (part.starts_with(name + "=")) value = part.substr(name.size() + 1);
      }
    }
    const auto setting = setting_of(kind, option);
    if (setting && setting->has_value && setting->name == name) value = setting->value;
  }
  return value;
}

}  // namespace farsum::cli
