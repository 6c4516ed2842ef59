// One measurement is one JSON object on one line, or one line of a table for people.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "common/record.hpp"
#include "common/session.hpp"

#ifndef LAB_ABI
#define LAB_ABI "unknown"
#endif

namespace lab {

// Prints on the one rank that speaks.
class Report {
 public:
  Report(const Session& session, const std::string& program, bool json)
      : speaks_(session.speaks()),
        json_(json),
        head_{{"program", program}, {"abi", LAB_ABI}, {"library", Session::library()}, {"ranks", session.size()}} {
    if (speaks_ && !json_) {
      fmt::print("{} on {} ranks, {} ABI, {}\n", program, session.size(), LAB_ABI, Session::library());
    }
  }

  void measured(const Record& record, const std::string& line) const {
    if (!speaks_) {
      return;
    }
    if (json_) {
      Record whole = head_;
      whole.insert(whole.end(), record.begin(), record.end());
      fmt::print("{}\n", json_of(whole));
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
  Record head_;
};

}  // namespace lab
