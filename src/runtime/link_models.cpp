#include "runtime/link_models.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>

#include <fmt/compile.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/model_files.hpp"

namespace farsum {
namespace {

using nlohmann::json;

constexpr int version = 1;

std::string text_of(const Environment& environment, const char* name) {
  const char* value = environment(name);
  return value == nullptr ? std::string() : value;
}

// Why the file is no model; empty where it is one.
std::string read_document(const json& document, cost::LinkClass link, std::uint32_t partner,
                          LinkParameters& parameters) {
  if (!document.is_object() || document.value("version", json()) != version) return "it is no model of this version";
  if (document.value("class", json()) != cost::name_of(link)) return "it is of another class of link";
  if (document.value("machine", json()) != machine_kind()) return "it was measured on another kind of machine";
  const json led_to = document.value("partner", json());
  const bool names_partner = led_to.is_string() && machine_number(led_to.get<std::string>()) == partner;
  if (link != cost::LinkClass::node && !names_partner) return "it leads to another kind of machine";
  const json values = document.value("parameters", json());
  if (!values.is_object()) return "it has no parameters";
  for (const cost::Parameter& parameter : cost::parameters()) {
    const auto found = values.find(parameter.name);
    if (found == values.end()) continue;
    const double value = found->is_number() ? found->get<double>() : -1;
    constexpr double most = 1e12;
    if (!(value >= 0 && value < most)) return fmt::format("its {} is no number from 0 on", parameter.name);
    parameters.model.*parameter.value = value;
  }
  const json when = document.value("when", json());
  parameters.when = when.is_string() ? when.get<std::string>() : "";
  return {};
}

// In memory of its own: a rank without memory is asked for its machine, too.
class MachineKind {
 public:
  MachineKind(std::string_view cpuinfo, long processors) noexcept {
    const std::string_view model = value_of("model name", cpuinfo.substr(0, cpuinfo.find("\n\n")));
    const std::string_view named = model.empty() ? "unknown processor" : model.substr(0, longest_name);
    const auto end = fmt::format_to_n(text_.data(), text_.size(), FMT_COMPILE("{}, {} processors"), named, processors);
    bytes_ = std::min(end.size, text_.size());
  }

  std::string_view text() const noexcept { return {text_.data(), bytes_}; }

 private:
  static constexpr std::size_t longest_name = 192;

  // What stands behind "key ...: " in the first line that begins with the key.
  static std::string_view value_of(std::string_view key, std::string_view lines) noexcept {
    while (!lines.empty()) {
      const std::string_view line = lines.substr(0, lines.find('\n'));
      const std::size_t colon = line.find(": ");
      if (line.starts_with(key)) return colon == line.npos ? std::string_view() : line.substr(colon + 2);
      lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    }
    return {};
  }

  std::array<char, 256> text_{};
  std::size_t bytes_ = 0;
};

// The file's beginning; 0 bytes where it cannot be read.
std::size_t read_beginning(const char* path, std::span<char> into) noexcept {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t bytes = read(file, into.data(), into.size());
  close(file);
  return bytes < 0 ? 0 : static_cast<std::size_t>(bytes);
}

MachineKind find_kind() noexcept {
  std::array<char, 4096> cpuinfo{};
  const std::size_t bytes = read_beginning("/proc/cpuinfo", cpuinfo);
  return {std::string_view(cpuinfo.data(), bytes), sysconf(_SC_NPROCESSORS_ONLN)};
}

const MachineKind& kind_of_this_machine() noexcept {
  static const MachineKind kind = find_kind();
  return kind;
}

}  // namespace

std::string model_folder(const Settings& settings, const Environment& environment) {
  if (settings.model == "none") return {};
  if (!settings.model.empty()) return settings.model;
  const std::string cache = text_of(environment, "XDG_CACHE_HOME");
  if (!cache.empty()) return cache + "/farsum/model";
  const std::string home = text_of(environment, "HOME");
  return home.empty() ? std::string() : home + "/.cache/farsum/model";
}

std::string machine_kind() { return std::string(kind_of_this_machine().text()); }
std::string machine_kind(std::string_view cpuinfo, long processors) {
  return std::string(MachineKind(cpuinfo, processors).text());
}

// FNV-1a, the same on every machine.
std::uint32_t machine_number(std::string_view kind) {
  std::uint32_t number = 0x811c9dc5;
  for (const char letter : kind) number = (number ^ static_cast<unsigned char>(letter)) * 0x01000193;
  return number == 0 ? 1 : number;
}

std::uint32_t own_machine_number() noexcept {
  static const std::uint32_t number = machine_number(kind_of_this_machine().text());
  return number;
}

// A folder that several kinds of machines share has a file for each kind, and for each pair in each direction.
std::string model_file(const std::string& folder, cost::LinkClass link, std::uint32_t partner) {
  if (link == cost::LinkClass::node)
    return fmt::format("{}/{}-{:08x}.json", folder, cost::name_of(link), own_machine_number());
  return fmt::format("{}/{}-{:08x}-{:08x}.json", folder, cost::name_of(link), own_machine_number(), partner);
}

LinkParameters read_link_parameters(const std::string& folder, cost::LinkClass link, std::uint32_t partner) {
  LinkParameters built_in;
  built_in.model = cost::defaults(link);
  built_in.source = "built in";
  if (folder.empty()) return built_in;
  const std::string path = model_file(folder, link, partner);
  const std::optional<std::string> text = read_model_text(path);
  if (!text) return built_in;
  LinkParameters read = built_in;
  std::string complaint = "it is not JSON";
  const json document = json::parse(*text, nullptr, false);
  if (!document.is_discarded()) complaint = read_document(document, link, partner, read);
  if (!complaint.empty()) {
    built_in.complaint = fmt::format("{} is not used: {}", path, complaint);
    return built_in;
  }
  read.measured = true;
  read.source = path;
  return read;
}

Status write_link_parameters(const std::string& folder, cost::LinkClass link, const cost::LinkModel& model,
                             const std::string& when, const std::string& partner_kind) {
  json values = json::object();
  for (const cost::Parameter& parameter : cost::parameters()) values[parameter.name] = model.*parameter.value;
  json document = {{"version", version},
                   {"class", cost::name_of(link)},
                   {"machine", machine_kind()},
                   {"when", when},
                   {"parameters", values}};
  if (link != cost::LinkClass::node) document["partner"] = partner_kind;
  return write_model_text(folder, model_file(folder, link, machine_number(partner_kind)),
                          document.dump(2, ' ', false, json::error_handler_t::replace));
}

PathModel read_path_model(const Settings& settings, const Environment& environment, std::uint32_t partner) {
  const std::string folder = model_folder(settings, environment);
  const LinkParameters node = read_link_parameters(folder, cost::LinkClass::node);
  const LinkParameters network = read_link_parameters(folder, cost::LinkClass::tcp, partner);
  PathModel model;
  model.thresholds = cost::thresholds(node.model, network.model);
  const bool both = !node.complaint.empty() && !network.complaint.empty();
  model.note = node.complaint + (both ? "; " : "") + network.complaint;
  return model;
}

}  // namespace farsum
