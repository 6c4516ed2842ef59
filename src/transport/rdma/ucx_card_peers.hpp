// Ranks that a card reaches and memory of theirs, as the worker that asks sees them: connections are made with the
// first operation, and broken ones are noted, told of and closed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/status.hpp"
#include "base/units.hpp"
#include "transport/rdma.hpp"
#include "transport/rdma/ucx_card.hpp"
#include "transport/rdma/ucx_key.hpp"
#include "transport/ucx/ucx_bare_worker.hpp"
#include "transport/ucx/ucx_operations.hpp"

namespace farsum {

class UcxCardPeers;

struct UcxCardPeer {
  UcxCardPeer(UcxCardPeers& owner, Rank number) : peers(owner), rank(number) {}

  UcxCardPeers& peers;
  const Rank rank;
  std::vector<std::byte> address;  // empty: what was introduced is none
  ucp_ep_h endpoint = nullptr;
  std::string refusal;  // why cards alone do not reach it
  std::string broken;   // why; empty: it is not
  bool is_one_lane = false;
  // How many operations were started, and how many of them a flush has seen through.
  std::uint64_t started = 0, confirmed = 0;
  bool closing = false;
  bool closed = false;
};

// Memory of a peer's.
struct UcxCardReach {
  Rank rank = 0;
  UcxCardPeer* peer = nullptr;  // null: it was never introduced
  bool is_valid = false;        // what was given was a key
  UcxKey key;
  ucp_rkey_h handle = nullptr;  // null: not asked for yet

  UcxReached asked() const { return {peer->endpoint, handle}; }
};

// Who owns it makes one call at a time. The card must outlive it.
class UcxCardPeers {
 public:
  // A peer's connection broke, and why; as RdmaOptions::on_lost.
  using OnLost = std::function<void(Rank, const std::string&)>;

  static Result<std::unique_ptr<UcxCardPeers>> make(const UcxCard& card, OnLost on_lost);
  // give_up() has been called, and all are closed that UCX closes.
  ~UcxCardPeers();
  UcxCardPeers(const UcxCardPeers&) = delete;
  UcxCardPeers& operator=(const UcxCardPeers&) = delete;

  // As Rdma's.
  void introduce(Rank peer, std::span<const std::byte> address);
  Rdma::Reached reach(Rank peer, std::span<const std::byte> key);
  void let_go(Rdma::Reached memory);

  // Null where it was never introduced.
  UcxCardPeer* find(Rank peer);
  // Finds what `bytes` there lie in, and connects where there are any.
  Status find(Rdma::Reached memory, std::uint64_t address, std::uint64_t bytes, UcxCardReach*& found);
  Status find_word(Rdma::Reached memory, CardWord word, UcxCardReach*& found);
  // Memory of that peer that can be asked for; null where there is none.
  const UcxCardReach* any_memory_of(const UcxCardPeer& peer) const;
  Status connect(UcxCardPeer& peer);
  // Orders what is asked of one lane.
  Status fence();

  void note_broken(UcxCardPeer& peer, const std::string& why);
  // Never called from within a call of UCX's.
  void close_broken();
  // The job is over: no connection is made or noted as broken any more, and all are being closed.
  void give_up();
  bool has_given_up() const { return has_given_up_; }
  bool are_closed() const;

  // The worker.
  unsigned progress();
  bool arm();
  int descriptor() const { return worker_.event_descriptor; }

 private:
  struct Callbacks;
  UcxCardPeers(const UcxCard& card, UcxBareWorker worker, OnLost on_lost);
  const UcxCalls& calls() const { return card_.context->calls(); }
  Status prepare(UcxCardReach& memory);
  Status look_at_lanes(UcxCardPeer& peer) const;
  void close(UcxCardPeer& peer);

  const UcxCard& card_;
  const UcxBareWorker worker_;
  const OnLost on_lost_;
  std::unordered_map<Rank, std::unique_ptr<UcxCardPeer>> peers_;
  std::unordered_map<Rdma::Reached, std::unique_ptr<UcxCardReach>> reached_;
  Rdma::Reached next_reached_ = 1;
  std::vector<UcxCardPeer*> broken_;  // to be closed once UCX has returned
  bool has_given_up_ = false;
};

}  // namespace farsum
