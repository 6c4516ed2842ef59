#include "runtime/model_json.hpp"

#include <utility>

#include "ops/element_type.hpp"
#include "ops/op_kind.hpp"
#include "runtime/link_models.hpp"

namespace farsum {

using nlohmann::json;

std::optional<std::uint64_t> whole_number(const json& value, std::uint64_t least, std::uint64_t most) {
  if (!value.is_number_unsigned()) return std::nullopt;
  const auto number = value.get<std::uint64_t>();
  if (number < least || number > most) return std::nullopt;
  return number;
}

std::optional<double> microseconds(const json& value) {
  const double us = value.is_number() ? value.get<double>() : -1;
  constexpr double most = 1e9;
  if (!(us >= 0 && us < most)) return std::nullopt;
  return us;
}

namespace {

std::optional<CountedTime> read_counted_time(const json& pair) {
  if (!pair.is_array() || pair.size() != 2) return std::nullopt;
  const auto count = whole_number(pair[0], 2, 65'536);
  const auto us = microseconds(pair[1]);
  if (!count || !us) return std::nullopt;
  return CountedTime{.count = *count, .us = *us};
}

std::optional<cost::ReducedVector> read_vector(const json& row) {
  if (!row.is_object()) return std::nullopt;
  const json op = row.value("operator", json());
  const json type = row.value("type", json());
  std::uint8_t which_op = 0;
  while (which_op < ops::operator_count && op != ops::name_of(static_cast<ops::Operator>(which_op))) ++which_op;
  std::uint8_t which_type = 0;
  while (which_type < ops::element_type_count && type != ops::name_of(static_cast<ops::ElementType>(which_type)))
    ++which_type;
  const auto elements = whole_number(row.value("elements", json()), 0, 1U << 20);
  if (which_op == ops::operator_count || which_type == ops::element_type_count || !elements) return std::nullopt;
  return cost::ReducedVector{static_cast<ops::Operator>(which_op), static_cast<ops::ElementType>(which_type),
                             *elements};
}

}  // namespace

std::optional<TimedVectorRow> read_timed_vector(const json& row) {
  const auto vector = read_vector(row);
  const json times = vector ? row.value("times", json()) : json();
  if (!times.is_array()) return std::nullopt;
  TimedVectorRow read{.vector = *vector, .times = {}};
  for (const json& pair : times) {
    const auto time = read_counted_time(pair);
    if (!time) return std::nullopt;
    read.times.push_back(*time);
  }
  return read;
}

json json_of(const TimedVectorRow& row) {
  json times = json::array();
  for (const CountedTime& time : row.times) times.push_back(json::array({time.count, time.us}));
  return {{"operator", ops::name_of(row.vector.op)},
          {"type", ops::name_of(row.vector.type)},
          {"elements", row.vector.elements},
          {"times", std::move(times)}};
}

std::string why_not_of(const json& document, const char* class_name, int version) {
  if (!document.is_object() || document.value("version", json()) != version) return "it is no model of this version";
  if (document.value("class", json()) != class_name) return "it is of something else";
  if (document.value("machine", json()) != machine_kind()) return "it was measured on another kind of machine";
  return {};
}

}  // namespace farsum
