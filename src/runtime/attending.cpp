#include "runtime/attending.hpp"

namespace farsum {

Status Attending::begin() {
  if (parts_.agent == AgentMode::dedicated)
    return {Code::unsupported, "farsum_attend_begin: the agent never sleeps (FARSUM_AGENT)"};
  switch (const Code code = parts_.attendance.begin()) {
    case Code::ok:
      return {};
    case Code::unsupported:
      return {code, "farsum_attend_begin: no rank of another node is reached over a network"};
    default:
      return {code, "farsum_attend_begin: another thread attends, or the agent serves at the moment"};
  }
}

bool Attending::attend() {
  const bool attends = parts_.attendance.attend();
  go_on_carrying();
  return attends;
}

void Attending::end() {
  parts_.attendance.end();
  go_on_carrying();
}

// What a thread has served may have been a letter for which a collective waits.
void Attending::go_on_carrying() {
  const Carry::Turn turn = parts_.carries.take_turns();
  if (turn.is_unfinished || turn.is_refused) parts_.transport.ring(parts_.my_place);
}

}  // namespace farsum
