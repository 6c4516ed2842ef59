// Operators as a sentence names them, for errors that say what would be right.
#pragma once

#include <string>

#include "ops/op_kind.hpp"

namespace farsum::ops {

// "sum, prod or max": those for which `is_taken` is true.
template <class Taken>
std::string list_operators(Taken&& is_taken) {
  std::string list;
  const char* last = nullptr;
  for (std::size_t index = 0; index < operator_count; ++index) {
    if (!is_taken(static_cast<Operator>(index))) continue;
    if (last != nullptr) list += (list.empty() ? "" : ", ") + std::string(last);
    last = operator_names[index];
  }
  if (last == nullptr) return "none";
  return list.empty() ? last : list + " or " + last;
}

}  // namespace farsum::ops
