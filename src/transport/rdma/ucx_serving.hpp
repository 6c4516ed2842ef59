// The worker by which cards of others reach this rank: it serves what they ask without knowing, which is connections.
// The agent drives it, so that the ends of the rank's own operations do not wake its agent.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "base/thread_mutex.hpp"
#include "transport/rdma/ucx_card.hpp"
#include "transport/ucx/ucx_bare_worker.hpp"

namespace farsum {

// Any thread may call. The card must outlive it.
class UcxServing {
 public:
  static Result<std::unique_ptr<UcxServing>> make(const UcxCard& card);
  ~UcxServing();
  UcxServing(const UcxServing&) = delete;
  UcxServing& operator=(const UcxServing&) = delete;

  std::span<const std::byte> address() const { return address_; }  // sealed
  // As Rdma's.
  int descriptor() const { return worker_.event_descriptor; }
  Result<bool> arm();
  void look_after();

 private:
  UcxServing(const UcxCard& card, UcxBareWorker worker);

  const UcxCard& card_;
  const UcxBareWorker worker_;
  const std::vector<std::byte> address_;
  ThreadMutex mutex_;  // one thread at a time calls UCX for the worker
};

}  // namespace farsum
