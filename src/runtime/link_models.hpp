// The parameters of the cost model as this machine knows them: a file for its kind, and one for each kind of machine at
// the other end of the network, that measurements have left in the user's cache; else the built-in ones. Decides
// nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/settings.hpp"
#include "base/status.hpp"
#include "cost/model.hpp"

namespace farsum {

struct LinkParameters {
  cost::LinkModel model;
  bool measured = false;
  std::string source;     // the file, or "built in"
  std::string when;       // it was measured
  std::string complaint;  // why a file that is there is not used; empty where all is well
};

// Where the files lie: FARSUM_MODEL, else farsum/model in the user's cache. Empty: nowhere.
std::string model_folder(const Settings& settings, const Environment& environment);

// Such as "AMD EPYC, 2 processors": what was measured on another kind says nothing here.
std::string machine_kind();
// By what stands in /proc/cpuinfo, or its beginning.
std::string machine_kind(std::string_view cpuinfo, long processors);
// A kind in one number, by which ranks tell each other. Never 0.
std::uint32_t machine_number(std::string_view kind);
// This machine's; needs no memory.
std::uint32_t own_machine_number() noexcept;

// `partner` is the machine that the link leads to; no matter on a node.
std::string model_file(const std::string& folder, cost::LinkClass link, std::uint32_t partner = own_machine_number());
// The built-in ones for an empty folder, and for a file that is missing, damaged or of other kinds of machines.
LinkParameters read_link_parameters(const std::string& folder, cost::LinkClass link,
                                    std::uint32_t partner = own_machine_number());
// Whoever reads meanwhile has the old file or the new one, whole.
Status write_link_parameters(const std::string& folder, cost::LinkClass link, const cost::LinkModel& model,
                             const std::string& when, const std::string& partner_kind = machine_kind());

// What the paths of windows are chosen by, and what is to be said with the choice.
struct PathModel {
  cost::Thresholds thresholds;
  std::string note;
};
// Towards a machine of that kind.
PathModel read_path_model(const Settings& settings, const Environment& environment,
                          std::uint32_t partner = own_machine_number());

}  // namespace farsum
