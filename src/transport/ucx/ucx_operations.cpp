#include "transport/ucx/ucx_operations.hpp"

#include <fmt/format.h>

#include "transport/ucx/ucx_sockets.hpp"

namespace farsum {
namespace {

ucp_request_param_t parameters_of(UcxEnd end) {
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  parameters.cb.send = end.call;
  parameters.user_data = end.argument;
  return parameters;
}

ucp_atomic_op_t operation_of(CardUpdate update) {
  switch (update) {
    case CardUpdate::add:
      return UCP_ATOMIC_OP_ADD;
    case CardUpdate::bit_and:
      return UCP_ATOMIC_OP_AND;
    case CardUpdate::bit_or:
      return UCP_ATOMIC_OP_OR;
    case CardUpdate::bit_xor:
      return UCP_ATOMIC_OP_XOR;
    case CardUpdate::swap:
      return UCP_ATOMIC_OP_SWAP;
    case CardUpdate::compare_and_swap:
      return UCP_ATOMIC_OP_CSWAP;
  }
  return UCP_ATOMIC_OP_LAST;
}

}  // namespace

ucs_status_ptr_t ucx_put(const UcxCalls& calls, UcxReached memory, std::uint64_t address,
                         std::span<const std::byte> from, UcxEnd end) {
  const ucp_request_param_t parameters = parameters_of(end);
  return calls.put_nbx(memory.endpoint, from.data(), from.size(), address, memory.key, &parameters);
}

ucs_status_ptr_t ucx_get(const UcxCalls& calls, UcxReached memory, std::uint64_t address, std::span<std::byte> into,
                         UcxEnd end) {
  const ucp_request_param_t parameters = parameters_of(end);
  return calls.get_nbx(memory.endpoint, into.data(), into.size(), address, memory.key, &parameters);
}

ucs_status_ptr_t ucx_update(const UcxCalls& calls, UcxReached memory, UcxWord word, const std::uint64_t& operand,
                            UcxEnd end) {
  ucp_request_param_t parameters = parameters_of(end);
  parameters.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
  parameters.datatype = ucp_dt_make_contig(word.bytes);
  return calls.atomic_op_nbx(memory.endpoint, operation_of(word.update), &operand, 1, word.address, memory.key,
                             &parameters);
}

ucs_status_ptr_t ucx_fetch(const UcxCalls& calls, UcxReached memory, UcxWord word, const std::uint64_t& operand,
                           std::uint64_t& reply, UcxEnd end) {
  ucp_request_param_t parameters = parameters_of(end);
  parameters.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER;
  parameters.datatype = ucp_dt_make_contig(word.bytes);
  parameters.reply_buffer = &reply;
  return calls.atomic_op_nbx(memory.endpoint, operation_of(word.update), &operand, 1, word.address, memory.key,
                             &parameters);
}

ucs_status_ptr_t ucx_flush(const UcxCalls& calls, ucp_ep_h endpoint, UcxEnd end) {
  const ucp_request_param_t parameters = parameters_of(end);
  return calls.ep_flush_nbx(endpoint, &parameters);
}

ucs_status_ptr_t ucx_close(const UcxContext& context, ucp_ep_h endpoint, UcxEnd end) {
  ucp_request_param_t parameters = parameters_of(end);
  parameters.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
  parameters.flags = context.tells_of_failures() ? UCP_EP_CLOSE_FLAG_FORCE : 0;
  return context.calls().ep_close_nbx(endpoint, &parameters);
}

Result<ucp_ep_h> ucx_connect(const UcxContext& context, ucp_worker_h worker, std::span<const std::byte> address,
                             UcxLost lost) {
  const std::vector<int> before = open_tcp_sockets();
  ucp_ep_params_t parameters{};
  parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
  parameters.address = reinterpret_cast<const ucp_address_t*>(address.data());
  parameters.err_mode = UCP_ERR_HANDLING_MODE_NONE;
  if (context.tells_of_failures()) {
    parameters.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLER;
    parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    parameters.err_handler.cb = lost.call;
    parameters.err_handler.arg = lost.argument;
  }
  ucp_ep_h endpoint = nullptr;
  const ucs_status_t status = context.calls().ep_create(worker, &parameters, &endpoint);
  close_on_exec(new_sockets(before, open_tcp_sockets()));
  if (status != UCS_OK) {
    return Status(Code::unreachable, fmt::format("UCX: connecting failed: {}", context.calls().status_string(status)));
  }
  return endpoint;
}

}  // namespace farsum
