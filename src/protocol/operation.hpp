// What is to be done at a target: the one form in which windows hand operations to whatever carries them out.
#pragma once

#include <cstddef>
#include <cstdint>

#include "memory/apply.hpp"
#include "ops/element_type.hpp"
#include "ops/layout.hpp"
#include "ops/op_kind.hpp"

namespace farsum {

// One operation towards one target, as all paths understand it. Everything it points to is borrowed: arrays and alpha
// until submit() returns, operand and result until the operation completes.
struct Operation {
  OperationKind kind = OperationKind::put;
  ops::ElementType type = ops::ElementType::byte;
  ops::Operator op = ops::Operator::replace;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  // payload; the same for all layouts
  const std::byte* operand = nullptr;
  const std::byte* compare = nullptr;
  std::byte* result = nullptr;
  const void* alpha = nullptr;
  ops::LayoutView operand_layout;
  ops::LayoutView target_layout;
  ops::LayoutView result_layout;
  bool notify = false;
  std::uint32_t notify_slot = 0;
  bool may_wait = false;         // rides behind a lock that may not be granted yet
  bool leaves_with_end = false;  // or before, with the first message to that rank which may not
};

inline bool tells_of_others(const Operation& operation) { return tells_of_others(operation.kind, operation.op); }
// Whether there is something to compute. All else is moved: replacing without looking, looking without replacing.
inline bool computes(const Operation& operation) {
  switch (operation.kind) {
    case OperationKind::put:
    case OperationKind::get:
      return false;
    case OperationKind::accumulate:
      return operation.op != ops::Operator::replace && operation.op != ops::Operator::no_op;
    case OperationKind::get_accumulate:
      return operation.op != ops::Operator::no_op;
    case OperationKind::compare_and_swap:
      return true;
  }
  return false;
}
inline bool needs_operand(const Operation& operation) {
  if (operation.kind == OperationKind::get) return false;
  return operation.kind == OperationKind::put || operation.kind == OperationKind::compare_and_swap ||
         ops::reads_operand(operation.op);
}

// Elements that are accumulated one behind the other, and that nobody waits for.
struct Update {
  ops::ElementType type = ops::ElementType::byte;
  ops::Operator op = ops::Operator::replace;
  std::uint64_t offset = 0;
  const std::byte* operand = nullptr;
  std::uint64_t bytes = 0;
  const void* alpha = nullptr;
};

}  // namespace farsum
