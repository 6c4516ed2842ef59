// farsum_collect, and what farsum_test and farsum_wait do for its requests. What one rank can see to be wrong is
// refused before the others learn of the call.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "capi/buffer_checks.hpp"
#include "capi/global.hpp"
#include "capi/struct_sizes.hpp"
#include "collectives/carry.hpp"

namespace farsum::capi {
namespace {

constexpr const char* collecting = "farsum_collect";

using Kind = CarriedCall::Kind;

bool has_root(Kind kind) { return kind == Kind::broadcast || kind == Kind::reduce; }

Status check_kind_and_root(const farsum_collective& asked, const Group& group) {
  if (asked.kind < 0 || asked.kind >= static_cast<int>(CarriedCall::kinds))
    return {Code::unsupported, fmt::format("{}: unknown kind {}", collecting, asked.kind)};
  if (!has_root(static_cast<Kind>(asked.kind)) || (asked.root >= 0 && asked.root < static_cast<int>(group.size())))
    return {};
  return {Code::rank, fmt::format("{}: root {} is not in the group, whose ranks are 0 to {}", collecting, asked.root,
                                  group.size() - 1)};
}

// What of the buffers this rank uses.
struct Buffers {
  const std::byte* mine;
  std::byte* result;
};

Buffers used_buffers(const farsum_collective& asked, const CarriedCall& call, const Group& group) {
  Buffers used{static_cast<const std::byte*>(asked.mine), static_cast<std::byte*>(asked.result)};
  if (call.part_bytes(group.my_rank(), group.size()) == 0) used.mine = nullptr;
  if (call.share_of(group.my_rank(), group.size()).bytes == 0) used.result = nullptr;
  return used;
}

// In an allgather what this rank brings may lie where it is to come.
bool is_in_its_place(const CarriedCall& call, const Buffers& used, const Group& group) {
  return call.kind == Kind::allgather && used.mine == used.result + group.my_rank() * call.bytes();
}

Status check_used(const CarriedCall& call, const Buffers& used, const Group& group) {
  const std::size_t brings = call.part_bytes(group.my_rank(), group.size());
  const std::size_t gets = call.share_of(group.my_rank(), group.size()).bytes;
  if ((brings != 0 && used.mine == nullptr) || (gets != 0 && used.result == nullptr))
    return {Code::argument, fmt::format("{}: a buffer is null", collecting)};
  if (brings == 0 || gets == 0 || is_in_its_place(call, used, group)) return {};
  return check_buffers(collecting, used.mine, used.result, {.mine = brings, .result = gets});
}

Result<std::shared_ptr<CarriedRequest>> make_request(const farsum_collective& asked, const Group& group) {
  if (Status status = check_kind_and_root(asked, group); !status.is_ok()) return status;
  auto request = std::make_shared<CarriedRequest>();
  CarriedCall& call = request->call;
  call.kind = static_cast<Kind>(asked.kind);
  if (call.kind == Kind::barrier) return request;
  if (has_root(call.kind)) call.root = static_cast<std::uint32_t>(asked.root);
  Status status =
      call.reduces() ? check_reducible(collecting, asked.type, asked.op) : check_element(collecting, asked.type);
  if (!status.is_ok()) return status;
  call.type = static_cast<ops::ElementType>(asked.type);
  if (call.reduces()) {
    call.op = static_cast<ops::Operator>(asked.op);
    call.order = live_context()->settings().reduce_order;
  }
  call.count = asked.count;
  const bool has_blocks = call.kind == Kind::allgather || call.kind == Kind::reduce_scatter_block;
  Lengths lengths;
  status = measure(collecting, asked.count, ops::size_of(call.type), has_blocks ? group.size() : 1, lengths);
  if (!status.is_ok()) return status;
  const Buffers used = used_buffers(asked, call, group);
  if (status = check_used(call, used, group); !status.is_ok()) return status;
  request->mine = used.mine;
  request->result = used.result;
  return request;
}

Status collect(Group& group, const farsum_collective& asked, farsum_request& handle) {
  Result<std::shared_ptr<CarriedRequest>> request = make_request(asked, group);
  if (!request.is_ok()) return request.take_status();
  Result<Carry*> carry = live_context()->groups().carry_of(group);
  if (!carry.is_ok()) {
    const Status why = carry.take_status();
    return {why.code(), fmt::format("{}: {}", collecting, why.text())};
  }
  HandleTable<RequestSlot>::Reservation reservation(global().requests);
  if (reservation.lacks_memory()) throw std::bad_alloc();
  if (Status status = carry.value()->begin(request.value(), group.blocking_calls(), collecting); !status.is_ok())
    return status;
  RequestSlot slot;
  slot.carried = std::move(request.value());
  slot.carry = carry.value();
  handle.bits = reservation.give_to(std::move(slot));
  return {};
}

// The request is no more where it is over.
farsum_status finish(farsum_request* request, bool is_over, const Status& status) {
  if (is_over) {
    heard();
    global().requests.remove(request->bits);
    request->bits = 0;
  }
  return report(status);
}

}  // namespace

farsum_status test_carried(farsum_request* request, const RequestSlot& slot, int* done) {
  // The slot goes with the request, which another thread may complete.
  const std::shared_ptr<CarriedRequest> carried = slot.carried;
  bool is_over = false;
  const Status status = slot.carry->test(*carried, is_over, "farsum_test");
  *done = is_over ? 1 : 0;
  return finish(request, is_over, status);
}

farsum_status wait_for_carried(farsum_request* request, const RequestSlot& slot) {
  const std::shared_ptr<CarriedRequest> carried = slot.carried;
  bool is_over = false;
  const Status status = slot.carry->wait(*carried, is_over, "farsum_wait");
  return finish(request, is_over, status);
}

}  // namespace farsum::capi

using namespace farsum;
using namespace farsum::capi;

extern "C" {

farsum_status farsum_collect(farsum_group handle, const farsum_collective* collective, farsum_request* request) {
  return guarded(collecting, [&]() -> farsum_status {
    Group* group = nullptr;
    if (const farsum_status status = find_meeting_group(collecting, handle, group); status != FARSUM_OK) return status;
    if (collective == nullptr || request == nullptr)
      return fail(Code::argument, "farsum_collect: null collective, or no place for the request");
    if (!has_known_size(*collective))
      return fail(Code::argument, "farsum_collect: struct_bytes must be sizeof(farsum_collective)");
    return report(collect(*group, completed(*collective), *request));
  });
}

}  // extern "C"
