#include "common/record.hpp"

#include <nlohmann/json.hpp>

namespace lab {
namespace {

using Json = nlohmann::ordered_json;

template <typename Value>
Json to_json(const Value& value) {
  return value;
}
Json to_json(const Spread& spread) {
  return Json{{"median", spread.median}, {"low", spread.low}, {"high", spread.high}, {"mean", spread.mean}};
}

}  // namespace

std::string json_of(const Record& record) {
  Json object = Json::object();
  for (const Named& named : record) {
    object[named.name] = std::visit([](const auto& value) { return to_json(value); }, named.value);
  }
  return object.dump();
}

}  // namespace lab
