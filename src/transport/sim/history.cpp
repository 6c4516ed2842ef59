#include "transport/sim/history.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace farsum {

const char* name_of(HistoryAction action) {
  switch (action) {
    case HistoryAction::fetch_add:
      return "fetch_add";
    case HistoryAction::add:
      return "add";
    case HistoryAction::read:
      return "read";
    case HistoryAction::write:
      return "write";
    case HistoryAction::swap:
      return "swap";
    case HistoryAction::compare_and_swap:
      return "compare_and_swap";
    case HistoryAction::lock_shared:
      return "lock_shared";
    case HistoryAction::lock_exclusive:
      return "lock_exclusive";
    case HistoryAction::unlock_shared:
      return "unlock_shared";
    case HistoryAction::unlock_exclusive:
      return "unlock_exclusive";
  }
  return "unknown";
}

std::string HistoryCall::text() const {
  const std::string end =
      is_answered() ? fmt::format("{} ({} ns)", responded, responded_ns) : std::string("never answered");
  return fmt::format("rank {} {} object {} operand {} compare {} result {} from {} ({} ns) to {}", rank,
                     name_of(action), object, operand, compare, result, invoked, invoked_ns, end);
}

History::CallId History::invoke(HistoryCall call, SimTime now_ns) {
  call.invoked = ++moment_;
  call.invoked_ns = now_ns;
  call.responded = no_moment;
  calls_.push_back(call);
  return calls_.size() - 1;
}

void History::respond(CallId id, std::uint64_t result, SimTime now_ns) {
  HistoryCall& call = calls_[id];
  call.result = result;
  call.responded = ++moment_;
  call.responded_ns = now_ns;
}

std::vector<HistoryCall> History::calls_on(std::uint64_t object) const {
  std::vector<HistoryCall> found;
  std::copy_if(calls_.begin(), calls_.end(), std::back_inserter(found),
               [object](const HistoryCall& call) { return call.object == object; });
  return found;
}

std::vector<std::uint64_t> History::objects() const {
  std::vector<std::uint64_t> found;
  for (const HistoryCall& call : calls_) found.push_back(call.object);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace farsum
