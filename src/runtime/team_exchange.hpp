// What the first ranks of nodes tell each other before there is a team, and what is too long for its letters: sent as
// requests of the engine, taken in by the agent, and kept until the one they are for comes for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "base/thread_mutex.hpp"
#include "collectives/team_post.hpp"
#include "progress/waiter.hpp"
#include "protocol/messages.hpp"
#include "protocol/origin/engine.hpp"
#include "protocol/team_mail.hpp"

namespace farsum {

// Any thread may call.
class TeamExchange final : public TeamPost, public TeamMail {
 public:
  TeamExchange(OriginEngine& engine, Waiter& waiter) : engine_(engine), waiter_(waiter) {}

  bool try_send(Rank to, std::uint64_t team, std::uint64_t round, std::span<const std::byte> bytes,
                std::size_t& sent) override;
  bool take(Rank from, std::uint64_t team, std::uint64_t round,
            FunctionRef<void(std::span<const std::byte>)> use) override;
  bool has_failed() const override;
  Status failure(const char* doing) const override;
  // Takes what a team gets before its members here know of it. Refuses what no member that keeps to the rounds sends:
  // more rounds of one sender than it can be ahead, and more than a round has.
  Code on_team_message(Rank from, std::uint64_t team, std::uint64_t round, std::span<const std::byte> bytes,
                       bool is_last) override;

 private:
  using Key = std::tuple<std::uint64_t, Rank, std::uint64_t>;  // team, sender, round

  struct Letter {
    std::vector<std::byte> bytes;
    bool is_whole = false;
  };

  void make_progress(Rank rank);

  OriginEngine& engine_;
  Waiter& waiter_;
  Outstanding outstanding_;  // of all that was sent
  ThreadMutex mutex_;
  std::map<Key, Letter> arrived_ FARSUM_GUARDED_BY(mutex_);
};

}  // namespace farsum
