// What an agent does in each turn beside serving.
#pragma once

#include <cstdint>

#include "collectives/letter_desk.hpp"
#include "progress/agenda.hpp"
#include "progress/agent.hpp"
#include "progress/attendance.hpp"
#include "progress/rank_bell.hpp"
#include "progress/thread_waiter.hpp"
#include "progress/wake_sources.hpp"
#include "protocol/owner/service.hpp"
#include "runtime/carries.hpp"
#include "runtime/network_side.hpp"

namespace farsum {

// What it comes back for by the clock is on its agenda. The network is looked after
// while threads sleep for what comes over it, or have gone on to other work.
class RankChores final : public AgentChores {
 public:
  RankChores(TargetService& service, LetterDesk& desk, NetworkSide& network, WakeSources& sources,
             Attendance& attendance, RankBell& bell, const ThreadWaiter& waiter, Carries& carries)
      : service_(service),
        desk_(desk),
        network_(network),
        carries_(carries),
        sources_(sources),
        attendance_(attendance),
        bell_(bell),
        waiter_(waiter) {}
  std::uint64_t run(bool has_unfinished) override;

 private:
  void go_on_serving(bool has_unfinished);
  void go_on_carrying();
  // Returns what time it is then: it may have sent to many.
  std::uint64_t send_kept_back(bool is_coalescing, std::uint64_t now_ns);
  void look_after_network();
  Network::Threads threads() const;

  TargetService& service_;
  LetterDesk& desk_;
  NetworkSide& network_;
  Carries& carries_;
  WakeSources& sources_;
  Attendance& attendance_;
  RankBell& bell_;
  const ThreadWaiter& waiter_;
  Agenda agenda_;
};

}  // namespace farsum
