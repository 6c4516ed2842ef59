// Put, get, accumulate and their kin. The usual shape, one predefined type on both sides, goes straight to the engine;
// all else is flattened to layouts first.
#include <optional>

#include "calls.hpp"
#include "datatypes.hpp"
#include "errors.hpp"
#include "front.hpp"
#include "guard.hpp"
#include "requests.hpp"

namespace farsum::mpi {
namespace {

// Which call it is, for errors, and where its request goes.
struct Call {
  const char* name;
  bool has_request = false;
  MPI_Request* request = nullptr;
};

// One side as MPI describes it, and flattened.
struct Side {
  Side(MPI_Count items, MPI_Datatype of) : count(items), type(of) {}

  MPI_Count count;
  MPI_Datatype type;
  const BasicType* basic = nullptr;  // of all its elements; null if there is no such one
  std::optional<FlatType> scratch;
  Layout layout;
};

Front& front() { return Front::get(); }

// What the call returns where it is refused, which may be MPI_SUCCESS (see Raised); none where it goes on.
using Refused = std::optional<int>;

[[gnu::cold]] int bad_rank(const Window& window, const Call& call, int target) {
  return raise(window, call.name, MPI_ERR_RANK,
               "target rank " + std::to_string(target) + " is outside the window's group of " +
                   std::to_string(window.size) + " ranks (0 to " + std::to_string(window.size - 1) + ")");
}

[[gnu::always_inline]] inline int finish(const Window& window, const Call& call, farsum_status status) {
  if (status != FARSUM_OK) [[unlikely]] {
    return raise(window, call.name, status);
  }
  return MPI_SUCCESS;
}

// To nobody: done at once.
int to_nobody(const Call& call) {
  return call.has_request ? front().requests.give_complete(call.request) : MPI_SUCCESS;
}

// The byte where displacement `disp` lies at the target. False: below it or too far for an address.
bool offset_of(const Window& window, int target, MPI_Aint disp, std::int64_t* offset) {
  const auto unit = static_cast<std::int64_t>(window.units[static_cast<std::size_t>(target)]);
  return !__builtin_mul_overflow(static_cast<std::int64_t>(disp), unit, offset);
}

Refused check_target(const Window& window, const Call& call, int target, MPI_Aint disp) {
  if (target < 0 || target >= window.size) return bad_rank(window, call, target);
  if (disp < 0 && window.flavor != MPI_WIN_FLAVOR_DYNAMIC) {
    return raise(window, call.name, MPI_ERR_DISP,
                 "the displacement " + std::to_string(disp) +
                     " is negative; it counts units from the start of the target's part");
  }
  return {};
}

[[gnu::cold]] int too_large(const Window& window, const Call& call, const char* which) {
  return raise(window, call.name, MPI_ERR_COUNT, std::string("the ") + which + " side is larger than an address space");
}

Refused flatten_side(const Window& window, const Call& call, const char* which, View view, Side& side) {
  if (side.count < 0) {
    return raise(window, call.name, MPI_ERR_COUNT, std::string("the ") + which + " count is negative");
  }
  const auto count = static_cast<std::size_t>(side.count);
  const BasicType* basic = front().datatypes.basic(side.type);
  if (basic != nullptr && (view == View::elements || !basic->padded())) {
    std::size_t bytes = 0;
    side.basic = basic;
    const bool fits = !__builtin_mul_overflow(count, basic->extent, &bytes) && side.layout.set_run(bytes);
    return fits ? Refused() : too_large(window, call, which);
  }
  FlattenResult result = FlattenResult::ok;
  const FlatType* flat =
      side.type == MPI_DATATYPE_NULL ? nullptr : front().datatypes.flat(side.type, side.scratch, result);
  if (flat == nullptr) {
    const bool memory = result == FlattenResult::no_memory;
    return raise(window, call.name, memory ? MPI_ERR_NO_MEM : MPI_ERR_TYPE,
                 std::string("the ") + which + (memory ? " type does not fit into memory" : " type is no datatype"));
  }
  side.basic = flat->basic;
  return side.layout.set(flat->pattern(view), flat->extent, count) ? Refused() : too_large(window, call, which);
}

// The same for memory of this rank that starts at `base`.
Refused flatten_memory(const Window& window, const Call& call, const char* which, View view, const void* base,
                       Side& side) {
  const Refused refused = flatten_side(window, call, which, view, side);
  if (refused || base != nullptr || side.layout.begin_at_first_piece()) return refused;
  return raise(window, call.name, MPI_ERR_NO_MEM, std::string("the ") + which + " type does not fit into memory");
}

const void* moved(const void* base, const Layout& layout) {
  return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(base) +
                                       static_cast<std::uintptr_t>(layout.shift()));
}
void* moved(void* base, const Layout& layout) {
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(base) + static_cast<std::uintptr_t>(layout.shift()));
}

int different_sizes(const Window& window, const Call& call, std::size_t origin_bytes, std::size_t target_bytes) {
  return raise(window, call.name, origin_bytes > target_bytes ? MPI_ERR_TRUNCATE : MPI_ERR_TYPE,
               "the origin describes " + std::to_string(origin_bytes) + " bytes and the target " +
                   std::to_string(target_bytes) + "; both must be the same");
}

Refused set_target(const Window& window, const Call& call, MPI_Aint disp, const Side& target_side,
                   farsum_operation& operation) {
  operation.target_layout = &target_side.layout.shape();
  // Nothing is touched, wherever that would be.
  if (target_side.layout.bytes() == 0) return {};
  std::int64_t offset = 0;
  if (!offset_of(window, operation.target, disp, &offset) ||
      __builtin_add_overflow(offset, target_side.layout.shift(), &offset)) {
    return raise(window, call.name, MPI_ERR_DISP, "the displacement lies outside any address space");
  }
  if (offset < 0 && window.flavor != MPI_WIN_FLAVOR_DYNAMIC) {
    return raise(window, call.name, MPI_ERR_RMA_RANGE,
                 "the target type reaches " + std::to_string(-offset) + " bytes below the start of the target's part");
  }
  operation.offset = static_cast<std::uint64_t>(offset);
  return {};
}

int carry_out(const Window& window, const Call& call, farsum_operation& operation) {
  if (!call.has_request) return finish(window, call, farsum_operate(window.engine, &operation, nullptr));
  operation.completion = FARSUM_EXPLICIT;
  farsum_request request = {};
  const farsum_status status = farsum_operate(window.engine, &operation, &request);
  if (status != FARSUM_OK) return raise(window, call.name, status);
  return front().requests.give(window, call.name, request, call.request);
}

// No data on either side: the engine only looks whether the target may be accessed now.
int move_nothing(const Window& window, const Call& call, int target) {
  farsum_operation operation = {};
  operation.struct_bytes = sizeof operation;
  operation.kind = FARSUM_PUT;
  operation.target = target;
  return carry_out(window, call, operation);
}

// ---- put and get ----

// `Pointer` is const void* for put and void* for get.
template <class Pointer>
int move_layouts(Window& window, const Call& call, farsum_kind kind, Pointer origin, MPI_Count origin_count,
                 MPI_Datatype origin_type, int target, MPI_Aint disp, MPI_Count target_count,
                 MPI_Datatype target_type) {
  if (target == MPI_PROC_NULL) return to_nobody(call);
  if (const Refused refused = check_target(window, call, target, disp)) return *refused;
  Side here{origin_count, origin_type};
  Side there{target_count, target_type};
  if (const Refused refused = flatten_memory(window, call, "origin", View::bytes, origin, here)) return *refused;
  if (const Refused refused = flatten_side(window, call, "target", View::bytes, there)) return *refused;
  if (here.layout.bytes() != there.layout.bytes()) {
    return different_sizes(window, call, here.layout.bytes(), there.layout.bytes());
  }
  farsum_operation operation = {};
  operation.struct_bytes = sizeof operation;
  operation.kind = kind;
  operation.target = target;
  operation.origin_layout = &here.layout.shape();
  if constexpr (std::is_const_v<std::remove_pointer_t<Pointer>>) {
    operation.origin = moved(origin, here.layout);
  } else {
    operation.result = moved(origin, here.layout);
  }
  if (const Refused refused = set_target(window, call, disp, there, operation)) return *refused;
  return carry_out(window, call, operation);
}

// What the straight way needs: the same predefined type and count on both sides, and a displacement that makes an
// offset.
struct Straight {
  bool possible = false;
  const BasicType* basic = nullptr;
  std::uint64_t offset = 0;
};

inline Straight straight(const Window& window, MPI_Count origin_count, MPI_Datatype origin_type, int target,
                         MPI_Aint disp, MPI_Count target_count, MPI_Datatype target_type) {
  Straight way;
  way.basic = front().datatypes.basic(origin_type);
  if (way.basic == nullptr || origin_type != target_type || origin_count != target_count || origin_count < 0 ||
      static_cast<unsigned>(target) >= static_cast<unsigned>(window.size) || disp < 0) [[unlikely]] {
    return way;
  }
  std::int64_t offset = 0;
  std::size_t bytes = 0;
  if (!offset_of(window, target, disp, &offset) ||
      __builtin_mul_overflow(static_cast<std::size_t>(origin_count), way.basic->extent, &bytes)) [[unlikely]] {
    return way;
  }
  way.offset = static_cast<std::uint64_t>(offset);
  way.possible = true;
  return way;
}

// The straight way of a call with a request: what is finished in the caller gets a completed one.
int straight_with_request(const Window& window, const Call& call, farsum_kind kind, const Straight& way, int target,
                          const void* origin, void* result, std::size_t count, farsum_op op) {
  farsum_operation operation = {};
  operation.struct_bytes = sizeof operation;
  operation.kind = kind;
  operation.target = target;
  operation.offset = way.offset;
  operation.origin = origin;
  operation.result = result;
  operation.count = count;
  operation.type = way.basic->element;
  operation.op = op;
  return carry_out(window, call, operation);
}

[[gnu::always_inline]] inline int put_to(Window& window, const Call call, const void* origin, MPI_Count origin_count,
                                         MPI_Datatype origin_type, int target, MPI_Aint disp, MPI_Count target_count,
                                         MPI_Datatype target_type) {
  const Straight way = straight(window, origin_count, origin_type, target, disp, target_count, target_type);
  if (way.possible && !way.basic->padded()) [[likely]] {
    const std::size_t bytes = static_cast<std::size_t>(origin_count) * way.basic->size;
    if (!call.has_request) return finish(window, call, farsum_put(window.engine, target, way.offset, origin, bytes));
    return straight_with_request(window, call, FARSUM_PUT, way, target, origin, nullptr,
                                 static_cast<std::size_t>(origin_count), FARSUM_REPLACE);
  }
  return move_layouts(window, call, FARSUM_PUT, origin, origin_count, origin_type, target, disp, target_count,
                      target_type);
}

[[gnu::always_inline]] inline int get_from(Window& window, const Call call, void* origin, MPI_Count origin_count,
                                           MPI_Datatype origin_type, int target, MPI_Aint disp, MPI_Count target_count,
                                           MPI_Datatype target_type) {
  const Straight way = straight(window, origin_count, origin_type, target, disp, target_count, target_type);
  if (way.possible && !way.basic->padded()) [[likely]] {
    const std::size_t bytes = static_cast<std::size_t>(origin_count) * way.basic->size;
    if (!call.has_request) return finish(window, call, farsum_get(window.engine, target, way.offset, origin, bytes));
    return straight_with_request(window, call, FARSUM_GET, way, target, nullptr, origin,
                                 static_cast<std::size_t>(origin_count), FARSUM_NO_OP);
  }
  return move_layouts(window, call, FARSUM_GET, origin, origin_count, origin_type, target, disp, target_count,
                      target_type);
}

// ---- accumulate and get_accumulate ----

// Null where there is none; then `error` is what the call returns.
const BasicOp* find_op(const Window& window, const Call& call, MPI_Op op, int* error) {
  const BasicOp* found = front().datatypes.op(op);
  *error = found != nullptr ? MPI_SUCCESS
                            : raise(window, call.name, MPI_ERR_OP,
                                    "the operator is none of the predefined ones; one-sided calls take no others");
  return found;
}

// The element type that both sides are made of; null, with the error raised, where there is none that the operator
// takes. What is only moved may be of any types: then it is bytes.
const BasicType* common_element(const Window& window, const Call& call, farsum_op op, const Side* origin,
                                const Side& target, int* error) {
  const BasicType* basic = target.basic;
  *error = MPI_SUCCESS;
  const bool moves = op == FARSUM_REPLACE || op == FARSUM_NO_OP;
  if (moves && (basic == nullptr || (origin != nullptr && origin->basic != basic))) {
    return front().datatypes.basic(MPI_BYTE);
  }
  if (basic == nullptr ||
      (origin != nullptr && (origin->basic == nullptr || origin->basic->element != basic->element))) {
    *error = raise(window, call.name, MPI_ERR_TYPE,
                   "accumulates need one and the same predefined type on both sides, in all pieces of a derived type");
    return nullptr;
  }
  if (!legal(op, *basic)) {
    *error = raise(window, call.name, MPI_ERR_OP, "the operator is not defined for this datatype");
    return nullptr;
  }
  return basic;
}

struct Result {
  void* base;
  MPI_Count count;
  MPI_Datatype type;
};

// With `result`: get_accumulate.
int accumulate_layouts(Window& window, const Call& call, const void* origin, MPI_Count origin_count,
                       MPI_Datatype origin_type, const Result* result, int target, MPI_Aint disp,
                       MPI_Count target_count, MPI_Datatype target_type, MPI_Op mpi_op) {
  if (target == MPI_PROC_NULL) return to_nobody(call);
  if (const Refused refused = check_target(window, call, target, disp)) return *refused;
  int error = MPI_SUCCESS;
  const BasicOp* op = find_op(window, call, mpi_op, &error);
  if (op == nullptr) return error;
  const bool reads_origin = op->op != FARSUM_NO_OP;
  if (!reads_origin && result == nullptr) {
    return raise(window, call.name, MPI_ERR_OP, "MPI_NO_OP is for the calls that fetch");
  }
  Side here{origin_count, origin_type};
  Side there{target_count, target_type};
  Side back{result != nullptr ? result->count : 0, result != nullptr ? result->type : MPI_DATATYPE_NULL};
  if (reads_origin) {
    if (const Refused refused = flatten_memory(window, call, "origin", View::elements, origin, here)) return *refused;
  }
  if (const Refused refused = flatten_side(window, call, "target", View::elements, there)) return *refused;
  if (result != nullptr) {
    if (const Refused refused = flatten_memory(window, call, "result", View::elements, result->base, back))
      return *refused;
    if (back.layout.bytes() != there.layout.bytes()) {
      return different_sizes(window, call, back.layout.bytes(), there.layout.bytes());
    }
  }
  if (reads_origin && here.layout.bytes() != there.layout.bytes()) {
    return different_sizes(window, call, here.layout.bytes(), there.layout.bytes());
  }
  // There is no element then, whose type could be asked for.
  if (there.layout.bytes() == 0) return move_nothing(window, call, target);
  const BasicType* basic = common_element(window, call, op->op, reads_origin ? &here : nullptr, there, &error);
  if (basic == nullptr) return error;
  farsum_operation operation = {};
  operation.struct_bytes = sizeof operation;
  operation.kind = result != nullptr ? FARSUM_GET_ACCUMULATE : FARSUM_ACCUMULATE;
  operation.target = target;
  operation.type = basic->element;
  operation.op = op->op;
  if (reads_origin) {
    operation.origin = moved(origin, here.layout);
    operation.origin_layout = &here.layout.shape();
  }
  if (result != nullptr) {
    operation.result = moved(result->base, back.layout);
    operation.result_layout = &back.layout.shape();
  }
  if (const Refused refused = set_target(window, call, disp, there, operation)) return *refused;
  return carry_out(window, call, operation);
}

[[gnu::always_inline]] inline int accumulate_to(Window& window, const Call call, const void* origin,
                                                MPI_Count origin_count, MPI_Datatype origin_type, int target,
                                                MPI_Aint disp, MPI_Count target_count, MPI_Datatype target_type,
                                                MPI_Op mpi_op) {
  const Straight way = straight(window, origin_count, origin_type, target, disp, target_count, target_type);
  const BasicOp* op = front().datatypes.op(mpi_op);
  if (way.possible && op != nullptr && op->op != FARSUM_NO_OP && legal(op->op, *way.basic)) [[likely]] {
    if (call.has_request) {
      return straight_with_request(window, call, FARSUM_ACCUMULATE, way, target, origin, nullptr,
                                   static_cast<std::size_t>(origin_count), op->op);
    }
    return finish(window, call,
                  farsum_accumulate(window.engine, target, way.offset, origin, static_cast<std::size_t>(origin_count),
                                    way.basic->element, op->op));
  }
  return accumulate_layouts(window, call, origin, origin_count, origin_type, nullptr, target, disp, target_count,
                            target_type, mpi_op);
}

int get_accumulate_at(Window& window, const Call& call, const void* origin, MPI_Count origin_count,
                      MPI_Datatype origin_type, const Result& result, int target, MPI_Aint disp, MPI_Count target_count,
                      MPI_Datatype target_type, MPI_Op mpi_op) {
  const BasicOp* op = front().datatypes.op(mpi_op);
  // The origin of MPI_NO_OP is not looked at, whatever it says.
  const bool reads = op == nullptr || op->op != FARSUM_NO_OP;
  const Straight way = straight(window, result.count, result.type, target, disp, target_count, target_type);
  const bool same = !reads || (origin_type == target_type && origin_count == target_count);
  if (way.possible && op != nullptr && same && legal(op->op, *way.basic)) [[likely]] {
    if (call.has_request) {
      return straight_with_request(window, call, FARSUM_GET_ACCUMULATE, way, target, reads ? origin : nullptr,
                                   result.base, static_cast<std::size_t>(target_count), op->op);
    }
    return finish(window, call,
                  farsum_get_accumulate(window.engine, target, way.offset, reads ? origin : nullptr, result.base,
                                        static_cast<std::size_t>(target_count), way.basic->element, op->op));
  }
  return accumulate_layouts(window, call, origin, origin_count, origin_type, &result, target, disp, target_count,
                            target_type, mpi_op);
}

// ---- the calls ----

// Calls on windows that are not the front's. Out of line they do not make those on the front's keep their arguments
// for them, which matters where every instruction counts.
template <class Count>
[[gnu::noinline]] int put_by_library(const void* origin, Count origin_count, MPI_Datatype origin_type, int target,
                                     MPI_Aint disp, Count target_count, MPI_Datatype target_type, MPI_Win win) {
  return of_count<Count>(library().Put, library().Put_c)(origin, origin_count, origin_type, target, disp, target_count,
                                                         target_type, for_library(win));
}

template <class Count>
[[gnu::noinline]] int get_by_library(void* origin, Count origin_count, MPI_Datatype origin_type, int target,
                                     MPI_Aint disp, Count target_count, MPI_Datatype target_type, MPI_Win win) {
  return of_count<Count>(library().Get, library().Get_c)(origin, origin_count, origin_type, target, disp, target_count,
                                                         target_type, for_library(win));
}

[[gnu::noinline]] int fetch_and_op_by_library(const void* origin, void* result, MPI_Datatype type, int target,
                                              MPI_Aint disp, MPI_Op mpi_op, MPI_Win win) {
  return library().Fetch_and_op(origin, result, type, target, disp, mpi_op, for_library(win));
}

template <class Count>
int put(const void* origin, Count origin_count, MPI_Datatype origin_type, int target, MPI_Aint disp, Count target_count,
        MPI_Datatype target_type, MPI_Win win) {
  Window* window = front().windows.find(win);
  if (window == nullptr) [[unlikely]] {
    return put_by_library(origin, origin_count, origin_type, target, disp, target_count, target_type, win);
  }
  return put_to(*window, {"MPI_Put"}, origin, origin_count, origin_type, target, disp, target_count, target_type);
}

template <class Count>
int get(void* origin, Count origin_count, MPI_Datatype origin_type, int target, MPI_Aint disp, Count target_count,
        MPI_Datatype target_type, MPI_Win win) {
  Window* window = front().windows.find(win);
  if (window == nullptr) [[unlikely]] {
    return get_by_library(origin, origin_count, origin_type, target, disp, target_count, target_type, win);
  }
  return get_from(*window, {"MPI_Get"}, origin, origin_count, origin_type, target, disp, target_count, target_type);
}

template <class Count>
int accumulate(const void* origin, Count origin_count, MPI_Datatype origin_type, int target, MPI_Aint disp,
               Count target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win) {
  Window* window = front().windows.find(win);
  if (window == nullptr) [[unlikely]] {
    return of_count<Count>(library().Accumulate, library().Accumulate_c)(
        origin, origin_count, origin_type, target, disp, target_count, target_type, op, for_library(win));
  }
  return accumulate_to(*window, {"MPI_Accumulate"}, origin, origin_count, origin_type, target, disp, target_count,
                       target_type, op);
}

template <class Count>
int get_accumulate(const void* origin, Count origin_count, MPI_Datatype origin_type, void* result, Count result_count,
                   MPI_Datatype result_type, int target, MPI_Aint disp, Count target_count, MPI_Datatype target_type,
                   MPI_Op op, MPI_Win win) {
  Window* window = front().windows.find(win);
  if (window == nullptr) [[unlikely]] {
    return of_count<Count>(library().Get_accumulate, library().Get_accumulate_c)(
        origin, origin_count, origin_type, result, result_count, result_type, target, disp, target_count, target_type,
        op, for_library(win));
  }
  return get_accumulate_at(*window, {"MPI_Get_accumulate"}, origin, origin_count, origin_type,
                           {result, result_count, result_type}, target, disp, target_count, target_type, op);
}

template <class Count>
int rput(const void* origin, Count origin_count, MPI_Datatype origin_type, int target, MPI_Aint disp,
         Count target_count, MPI_Datatype target_type, MPI_Win win, MPI_Request* request) {
  Window* window = front().windows.find(win);
  if (window == nullptr) [[unlikely]] {
    return of_count<Count>(library().Rput, library().Rput_c)(origin, origin_count, origin_type, target, disp,
                                                             target_count, target_type, for_library(win), request);
  }
  return put_to(*window, {"MPI_Rput", true, request}, origin, origin_count, origin_type, target, disp, target_count,
                target_type);
}

template <class Count>
int rget(void* origin, Count origin_count, MPI_Datatype origin_type, int target, MPI_Aint disp, Count target_count,
         MPI_Datatype target_type, MPI_Win win, MPI_Request* request) {
  Window* window = front().windows.find(win);
  if (window == nullptr) [[unlikely]] {
    return of_count<Count>(library().Rget, library().Rget_c)(origin, origin_count, origin_type, target, disp,
                                                             target_count, target_type, for_library(win), request);
  }
  return get_from(*window, {"MPI_Rget", true, request}, origin, origin_count, origin_type, target, disp, target_count,
                  target_type);
}

template <class Count>
int raccumulate(const void* origin, Count origin_count, MPI_Datatype origin_type, int target, MPI_Aint disp,
                Count target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win, MPI_Request* request) {
  Window* window = front().windows.find(win);
  if (window == nullptr) [[unlikely]] {
    return of_count<Count>(library().Raccumulate, library().Raccumulate_c)(
        origin, origin_count, origin_type, target, disp, target_count, target_type, op, for_library(win), request);
  }
  return accumulate_to(*window, {"MPI_Raccumulate", true, request}, origin, origin_count, origin_type, target, disp,
                       target_count, target_type, op);
}

template <class Count>
int rget_accumulate(const void* origin, Count origin_count, MPI_Datatype origin_type, void* result, Count result_count,
                    MPI_Datatype result_type, int target, MPI_Aint disp, Count target_count, MPI_Datatype target_type,
                    MPI_Op op, MPI_Win win, MPI_Request* request) {
  Window* window = front().windows.find(win);
  if (window == nullptr) [[unlikely]] {
    return of_count<Count>(library().Rget_accumulate, library().Rget_accumulate_c)(
        origin, origin_count, origin_type, result, result_count, result_type, target, disp, target_count, target_type,
        op, for_library(win), request);
  }
  return get_accumulate_at(*window, {"MPI_Rget_accumulate", true, request}, origin, origin_count, origin_type,
                           {result, result_count, result_type}, target, disp, target_count, target_type, op);
}

// One element of a predefined type, for fetch_and_op and compare_and_swap.
int bad_element(const Window& window, const Call& call, int target, MPI_Aint disp) {
  if (const Refused refused = check_target(window, call, target, disp)) return *refused;
  std::int64_t offset = 0;
  if (!offset_of(window, target, disp, &offset)) {
    return raise(window, call.name, MPI_ERR_DISP, "the displacement lies outside any address space");
  }
  return raise(window, call.name, MPI_ERR_TYPE, "the datatype must be a predefined one that this call takes");
}

// Another element than a predefined one, another operator, nobody, or what is wrong with the call.
[[gnu::noinline, gnu::cold]] int refuse_fetch_and_op(const Window& window, MPI_Datatype type, int target, MPI_Aint disp,
                                                     MPI_Op mpi_op) {
  const Call call{"MPI_Fetch_and_op"};
  if (target == MPI_PROC_NULL) return to_nobody(call);
  const Straight way = straight(window, 1, type, target, disp, 1, type);
  if (!way.possible) return bad_element(window, call, target, disp);
  int error = MPI_SUCCESS;
  if (find_op(window, call, mpi_op, &error) == nullptr) return error;
  return raise(window, call.name, MPI_ERR_OP, "the operator is not defined for this datatype");
}

int fetch_and_op(const void* origin, void* result, MPI_Datatype type, int target, MPI_Aint disp, MPI_Op mpi_op,
                 MPI_Win win) {
  Window* window = front().windows.find(win);
  if (window == nullptr) [[unlikely]] {
    return fetch_and_op_by_library(origin, result, type, target, disp, mpi_op, win);
  }
  const Straight way = straight(*window, 1, type, target, disp, 1, type);
  const BasicOp* op = front().datatypes.op(mpi_op);
  if (!way.possible || op == nullptr || !legal(op->op, *way.basic)) [[unlikely]]
    return refuse_fetch_and_op(*window, type, target, disp, mpi_op);
  const farsum_status status =
      farsum_fetch_op(window->engine, target, way.offset, op->op == FARSUM_NO_OP ? nullptr : origin, result,
                      way.basic->element, op->op);
  front().progress.tick();
  if (status != FARSUM_OK) [[unlikely]]
    return raise(*window, "MPI_Fetch_and_op", status);
  return MPI_SUCCESS;
}

int compare_and_swap(const void* origin, const void* compare, void* result, MPI_Datatype type, int target,
                     MPI_Aint disp, MPI_Win win) {
  Window* window = front().windows.find(win);
  if (window == nullptr) [[unlikely]] {
    return library().Compare_and_swap(origin, compare, result, type, target, disp, for_library(win));
  }
  const Straight way = straight(*window, 1, type, target, disp, 1, type);
  if (!way.possible || !way.basic->swappable) [[unlikely]] {
    const Call call{"MPI_Compare_and_swap"};
    return target == MPI_PROC_NULL ? to_nobody(call) : bad_element(*window, call, target, disp);
  }
  const farsum_status status =
      farsum_compare_and_swap(window->engine, target, way.offset, compare, origin, result, way.basic->swap_element);
  front().progress.tick();
  if (status != FARSUM_OK) [[unlikely]]
    return raise(*window, "MPI_Compare_and_swap", status);
  return MPI_SUCCESS;
}

// Puts a call whose counts are int and its twin with MPI_Count into their two slots.
#define FARSUM_MPI_BOTH(name, plain, large) \
  active.name = guard::name<plain>::call;   \
  active.name##_c = guard::name##_c<large>::call

}  // namespace

void put_operation_calls(farsum_mpi_calls& active) {
  FARSUM_MPI_BOTH(Put, put<int>, put<MPI_Count>);
  FARSUM_MPI_BOTH(Get, get<int>, get<MPI_Count>);
  FARSUM_MPI_BOTH(Accumulate, accumulate<int>, accumulate<MPI_Count>);
  FARSUM_MPI_BOTH(Get_accumulate, get_accumulate<int>, get_accumulate<MPI_Count>);
  FARSUM_MPI_BOTH(Rput, rput<int>, rput<MPI_Count>);
  FARSUM_MPI_BOTH(Rget, rget<int>, rget<MPI_Count>);
  FARSUM_MPI_BOTH(Raccumulate, raccumulate<int>, raccumulate<MPI_Count>);
  FARSUM_MPI_BOTH(Rget_accumulate, rget_accumulate<int>, rget_accumulate<MPI_Count>);
#undef FARSUM_MPI_BOTH
  active.Fetch_and_op = guard::Fetch_and_op<fetch_and_op>::call;
  active.Compare_and_swap = guard::Compare_and_swap<compare_and_swap>::call;
}

}  // namespace farsum::mpi
