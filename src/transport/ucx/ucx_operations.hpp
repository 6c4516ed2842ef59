// What one worker of UCX does with memory that another exposed, and how it connects to that other: the calls with
// their parameters. Each answers as UCX
// does: null, it is over; a request, its end is told; or an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "transport/rdma.hpp"
#include "transport/ucx/ucx_calls.hpp"
#include "transport/ucx/ucx_context.hpp"

namespace farsum {

// Called from within a call to UCX, where it has answered with a request. It frees that.
struct UcxEnd {
  ucp_send_nbx_callback_t call;
  void* argument;
};

struct UcxReached {
  ucp_ep_h endpoint = nullptr;
  ucp_rkey_h key = nullptr;
};

struct UcxWord {
  std::uint64_t address;
  std::uint8_t bytes;
  CardUpdate update;
};

constexpr bool is_of_bits(CardUpdate update) {
  return update == CardUpdate::bit_or || update == CardUpdate::bit_xor || update == CardUpdate::bit_and;
}

ucs_status_ptr_t ucx_put(const UcxCalls& calls, UcxReached memory, std::uint64_t address,
                         std::span<const std::byte> from, UcxEnd end);
ucs_status_ptr_t ucx_get(const UcxCalls& calls, UcxReached memory, std::uint64_t address, std::span<std::byte> into,
                         UcxEnd end);
// UCX may read the operand until the end.
ucs_status_ptr_t ucx_update(const UcxCalls& calls, UcxReached memory, UcxWord word, const std::uint64_t& operand,
                            UcxEnd end);
// compare_and_swap: `operand` is what is compared, and `reply` holds what is to be there. At the end `reply` holds what
// was.
ucs_status_ptr_t ucx_fetch(const UcxCalls& calls, UcxReached memory, UcxWord word, const std::uint64_t& operand,
                           std::uint64_t& reply, UcxEnd end);
ucs_status_ptr_t ucx_flush(const UcxCalls& calls, ucp_ep_h endpoint, UcxEnd end);
// An endpoint closed by force is gone after a few rounds of progress; one that cannot be forced waits for a peer that
// may be gone.
constexpr int most_closing_rounds = 10'000;
// Closes by force where endpoints are told of failures: others refuse that, and are flushed first.
ucs_status_ptr_t ucx_close(const UcxContext& context, ucp_ep_h endpoint, UcxEnd end);

// An endpoint to the worker of that address. Where UCX tells of its peer's end, `lost` is called.
struct UcxLost {
  ucp_err_handler_cb_t call;
  void* argument;
};
Result<ucp_ep_h> ucx_connect(const UcxContext& context, ucp_worker_h worker, std::span<const std::byte> address,
                             UcxLost lost);

}  // namespace farsum
