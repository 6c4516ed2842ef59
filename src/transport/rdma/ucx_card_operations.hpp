// Operations of a card: how each begins, what more steps it takes, and how it ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "transport/rdma.hpp"
#include "transport/rdma/card_waits.hpp"
#include "transport/rdma/ucx_card.hpp"
#include "transport/rdma/ucx_card_peers.hpp"
#include "transport/ucx/ucx_operations.hpp"

namespace farsum {

// Who owns it makes one call at a time, under the mutex of those who wait, and lets it take in what is unfinished
// before another may come.
class UcxCardOperations {
 public:
  UcxCardOperations(const UcxCard& card, UcxCardPeers& peers, CardWaits& waits);
  // The worker has ended: UCX holds none any more.
  ~UcxCardOperations();
  UcxCardOperations(const UcxCardOperations&) = delete;
  UcxCardOperations& operator=(const UcxCardOperations&) = delete;

  // As Rdma's.
  Status put(Rdma::Reached memory, std::uint64_t address, std::span<const std::byte> from, CardCompletion& completion);
  Status get(Rdma::Reached memory, std::uint64_t address, std::span<std::byte> into, CardCompletion& completion);
  Status update(Rdma::Reached memory, CardWord word, CardUpdate update, std::uint64_t operand);
  Status fetch(Rdma::Reached memory, CardWord word, CardUpdate update, std::uint64_t operand, std::uint64_t compare,
               std::byte* result, CardCompletion& completion);
  // Nothing where it takes a flush and a wait for its end.
  std::optional<Status> fence(Rank peer);
  Status flush(Rank peer, CardCompletion& completion);

  // Goes on with operations that need another step, now that UCX has returned. What was under way over a broken
  // endpoint ends with it.
  void take_in_unfinished();
  std::size_t under_way() const { return under_way_; }
  // Ends all that is under way. UCX works no more.
  void end_all();

 private:
  struct Operation;
  struct Callbacks;
  const UcxCalls& calls() const { return card_.context->calls(); }
  static bool has_answer(const Operation& operation);
  Operation& take(UcxCardPeer& peer, CardCompletion* completion);
  template <class Start>
  Status begin(Operation& operation, Start start);
  template <class Start>
  Status begin_counted(Operation& operation, Start start);
  void on_end(Operation& operation, ucs_status_t status);
  void end(Operation& operation, bool went_well);
  void go_on(Operation& operation, ucs_status_ptr_t answer);
  void confirm(Operation& operation);
  ucs_status_ptr_t compare_until_known(Operation& operation, UcxEnd end);
  UcxEnd end_of(Operation& operation);

  const UcxCard& card_;
  UcxCardPeers& peers_;
  CardWaits& waits_;
  std::list<Operation> operations_;  // never shrinks: as many as were ever under way at once
  std::vector<Operation*> free_;
  std::vector<Operation*> unfinished_;  // wait until UCX has returned
  std::size_t under_way_ = 0;
};

}  // namespace farsum
