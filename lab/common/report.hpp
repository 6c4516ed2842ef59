// One measurement is one JSON object on one line, or one line of a table for people.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "common/session.hpp"
#include "common/timing.hpp"

#ifndef LAB_ABI
#define LAB_ABI "unknown"
#endif

namespace lab {

using Json = nlohmann::ordered_json;

inline Json to_json(const Spread& spread) {
  return Json{{"median", spread.median}, {"low", spread.low}, {"high", spread.high}, {"mean", spread.mean}};
}

// Prints on the one rank that speaks.
class Report {
 public:
  Report(const Session& session, std::string program, bool json)
      : speaks_(session.speaks()), json_(json), head_{{"program", std::move(program)}, {"abi", LAB_ABI}} {
    head_["library"] = Session::library();
    head_["ranks"] = session.size();
    if (speaks_ && !json_) {
      fmt::print("{} on {} ranks, {} ABI, {}\n", head_["program"].get<std::string>(), session.size(), LAB_ABI,
                 head_["library"].get<std::string>());
    }
  }

  void measured(const Json& record, const std::string& line) const {
    if (!speaks_) {
      return;
    }
    if (json_) {
      Json whole = head_;
      whole.update(record);
      fmt::print("{}\n", whole.dump());
    } else {
      fmt::print("{}\n", line);
    }
    std::fflush(stdout);
  }

  // For people only.
  void say(const std::string& line) const {
    if (speaks_ && !json_) {
      fmt::print("{}\n", line);
      std::fflush(stdout);
    }
  }

 private:
  bool speaks_;
  bool json_;
  Json head_;
};

}  // namespace lab
