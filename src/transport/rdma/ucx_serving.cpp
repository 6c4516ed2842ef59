#include "transport/rdma/ucx_serving.hpp"

#include <utility>

#include <fmt/format.h>

#include "transport/rdma.hpp"
#include "transport/ucx/ucx_calls.hpp"
#include "transport/ucx/ucx_sealed.hpp"

namespace farsum {

Result<std::unique_ptr<UcxServing>> UcxServing::make(const UcxCard& card) {
  auto worker = make_worker(*card.context);
  if (!worker.is_ok()) return worker.take_status();
  std::unique_ptr<UcxServing> serving(new UcxServing(card, std::move(worker.value())));
  const std::size_t bytes = serving->address_.size();
  if (bytes <= Rdma::most_address_bytes) return serving;
  return Status(Code::unsupported,
                fmt::format("UCX: an address over {} has {} bytes, and {} are the most; fewer devices in "
                            "FARSUM_NET_DEVICES make it shorter",
                            card.description, bytes, Rdma::most_address_bytes));
}

UcxServing::UcxServing(const UcxCard& card, UcxBareWorker worker)
    : card_(card), worker_(std::move(worker)), address_(sealed(UcxSeal::address, worker_.address)) {}

UcxServing::~UcxServing() { end_worker(*card_.context, worker_); }

Result<bool> UcxServing::arm() {
  const MutexGuard serving(mutex_);
  const UcxCalls& calls = card_.context->calls();
  const ucs_status_t status = calls.worker_arm(worker_.handle);
  if (status == UCS_OK) return true;
  if (status == UCS_ERR_BUSY) return false;
  return Status(Code::system,
                fmt::format("UCX: arming the descriptor to sleep on failed: {}", calls.status_string(status)));
}

void UcxServing::look_after() {
  const MutexGuard serving(mutex_);
  for (int round = 0; round < most_rounds; ++round) {
    if (card_.context->calls().worker_progress(worker_.handle) == 0) return;
  }
}

}  // namespace farsum
