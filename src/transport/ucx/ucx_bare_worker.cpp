#include "transport/ucx/ucx_bare_worker.hpp"

#include <fmt/format.h>

#include "os/blocked_signals.hpp"
#include "transport/ucx/ucx_calls.hpp"
#include "transport/ucx/ucx_sockets.hpp"

namespace farsum {
namespace {

Status failure(const UcxCalls& calls, const char* what, ucs_status_t status) {
  return {Code::system, fmt::format("UCX: {} failed: {}", what, calls.status_string(status))};
}

Status ask(const UcxCalls& calls, UcxBareWorker& worker) {
  ucs_status_t status = calls.worker_get_efd(worker.handle, &worker.event_descriptor);
  if (status != UCS_OK) return failure(calls, "asking for a descriptor to sleep on", status);
  ucp_address_t* address = nullptr;
  std::size_t bytes = 0;
  status = calls.worker_get_address(worker.handle, &address, &bytes);
  if (status != UCS_OK) return failure(calls, "asking for the worker's address", status);
  const auto* begin = reinterpret_cast<const std::byte*>(address);
  worker.address.assign(begin, begin + bytes);
  calls.worker_release_address(worker.handle, address);
  return {};
}

bool is_flushed(const UcxCalls& calls, ucp_worker* worker) {
  const ucp_request_param_t parameters{};
  const ucs_status_ptr_t request = calls.worker_flush_nbx(worker, &parameters);
  if (request == nullptr) return true;
  if (UCS_PTR_IS_PTR(request)) calls.request_free(request);
  return false;
}

}  // namespace

Result<UcxBareWorker> make_worker(UcxContext& context) {
  const UcxCalls& calls = context.calls();
  UcxBareWorker worker;
  const os::BlockedSignals blocked;  // UCX starts the thread that accepts connections
  const std::vector<int> before = open_tcp_sockets();
  ucp_worker_params_t parameters{};
  parameters.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_EVENTS;
  parameters.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  parameters.events = UCP_WAKEUP_RX | UCP_WAKEUP_TX;
  const ucs_status_t status = calls.worker_create(context.handle(), &parameters, &worker.handle);
  if (status != UCS_OK) return failure(calls, "making a worker", status);
  const std::vector<int> sockets = new_sockets(before, open_tcp_sockets());
  close_on_exec(sockets);
  worker.listening = listening(sockets);
  worker.ports = listening_ports(worker.listening);
  if (Status refused = ask(calls, worker); !refused.is_ok()) {
    calls.worker_destroy(worker.handle);
    return refused;
  }
  return worker;
}

void end_worker(UcxContext& context, const UcxBareWorker& worker) {
  const UcxCalls& calls = context.calls();
  if (context.ends_unfinished_workers() || is_flushed(calls, worker.handle)) {
    calls.worker_destroy(worker.handle);
  } else {
    mark_accepted_sockets(worker);
    context.leave();
  }
}

void mark_accepted_sockets(const UcxBareWorker& worker) {
  close_on_exec(accepted_on(worker.ports, open_tcp_sockets()));
}

}  // namespace farsum
