// What the files of measured reductions have in common inside: numbers and vectors, each checked before it is used.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cost/reduction_model.hpp"

namespace farsum {

// From `least` to `most`; nothing where it is anything else.
std::optional<std::uint64_t> whole_number(const nlohmann::json& value, std::uint64_t least, std::uint64_t most);
std::optional<double> microseconds(const nlohmann::json& value);
// A pair of a whole number, of ranks or of a degree, from 2 on and the time that was measured with it.
struct CountedTime {
  std::uint64_t count = 2;
  double us = 0;
};
// An object's operator, type and elements, and the times that such a vector takes.
struct TimedVectorRow {
  cost::ReducedVector vector;
  std::vector<CountedTime> times;
};
std::optional<TimedVectorRow> read_timed_vector(const nlohmann::json& row);
nlohmann::json json_of(const TimedVectorRow& row);

// Why the document is none of that class and version of this kind of machine; empty where it is one.
std::string why_not_of(const nlohmann::json& document, const char* class_name, int version);

}  // namespace farsum
