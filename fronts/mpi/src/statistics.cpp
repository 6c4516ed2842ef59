#include "statistics.hpp"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <new>
#include <string_view>

#include "absent.hpp"
#include "front.hpp"
#include "handlers.hpp"
#include "quick_table.hpp"
#include "setting.h"
#include "statistics_data.hpp"

namespace farsum::mpi {

Statistics::Statistics() : memory_(std::make_shared<WindowRecord>()) {
  memory_->flavor = "memory";
  all_.push_back(memory_);
}

Statistics& Statistics::get() {
  static auto* const statistics = new Statistics;
  return *statistics;
}

std::shared_ptr<WindowRecord> Statistics::find(MPI_Win handle) {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(handle_key(handle));
  return found == live_.end() ? nullptr : found->second;
}

void Statistics::add(MPI_Win handle, std::shared_ptr<WindowRecord> record) {
  const std::lock_guard lock(mutex_);
  record->handle = handle;
  if (std::find(all_.begin(), all_.end(), record) == all_.end()) all_.push_back(record);
  live_[handle_key(handle)] = std::move(record);
}

std::shared_ptr<WindowRecord> Statistics::take(MPI_Win handle) {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(handle_key(handle));
  if (found == live_.end()) return nullptr;
  std::shared_ptr<WindowRecord> record = std::move(found->second);
  live_.erase(found);
  record->handle = MPI_WIN_NULL;
  return record;
}

void Statistics::count(const CollectiveKey& key, std::uint64_t spent_ns) {
  const std::lock_guard lock(mutex_);
  collectives_[key].add({1, 0, spent_ns, 0});
}

namespace {

farsum_mpi_calls& below() {
  static farsum_mpi_calls calls;
  return calls;
}

class Timer {
 public:
  std::uint64_t ns() const {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start_).count());
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Calls whose time is spent on other ranks.
constexpr bool waits_for_others(std::string_view call) {
  constexpr std::string_view waiting[] = {"Win_fence", "Win_start",          "Win_complete",    "Win_wait",
                                          "Win_test",  "Win_lock",           "Win_lock_all",    "Win_unlock",
                                          "Win_flush", "Win_flush_all",      "Win_flush_local", "Win_unlock_all",
                                          "Win_free",  "Win_flush_local_all"};
  return std::find(std::begin(waiting), std::end(waiting), call) != std::end(waiting);
}

// ---- what a call moved, and how ----

template <class Value, class Otherwise>
auto or_else(Value value, Otherwise otherwise) {
  if constexpr (std::is_same_v<Value, Absent>) {
    return otherwise;
  } else {
    return value;
  }
}

struct Access {
  bool exists = false;         // the call moves data
  int target = MPI_PROC_NULL;  // of calls that move nothing too
  MPI_Aint disp = 0;
  MPI_Count count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
};

// `count` and `type` are those of the target where a call names several.
template <class Target, class Rank, class Disp, class TargetCount, class TargetType, class Type>
Access access_of(Target target, Rank rank, Disp disp, TargetCount count, TargetType target_type, Type type) {
  if constexpr (std::is_same_v<Disp, Absent>) {
    return {.target = or_else(rank, MPI_PROC_NULL)};
  } else {
    return {true, target, disp, or_else(count, MPI_Count{1}), or_else(target_type, or_else(type, MPI_DATATYPE_NULL))};
  }
}

std::uint64_t bytes_of(const Access& access) {
  if (const BasicType* basic = Front::get().datatypes.basic(access.type)) {
    return basic->size * static_cast<std::uint64_t>(access.count);
  }
  MPI_Count size = 0;
  library().Type_size_x(access.type, &size);
  return static_cast<std::uint64_t>(size * access.count);
}

const char* name_of(farsum_path path) {
  switch (path) {
    case FARSUM_PATH_DIRECT:
      return "direct";
    case FARSUM_PATH_ATTACH:
      return "attach";
    case FARSUM_PATH_CALLER:
      return "caller";
    case FARSUM_PATH_OWNER:
      return "owner";
    case FARSUM_PATH_AGGREGATED:
      return "aggregated";
    case FARSUM_PATH_OFFLOAD:
      return "offload";
  }
  return "?";
}

// How the engine reaches the byte at `offset` of a target.
WindowRecord::Region ask_engine(farsum_window window, int target, std::uint64_t offset) {
  constexpr std::uint32_t uses = 256;
  farsum_region_info info = {};
  for (int i = 0; farsum_window_region(window, target, i, &info) == FARSUM_OK; ++i) {
    if (offset >= info.offset && offset - info.offset < info.bytes) {
      return {info.offset, info.bytes, name_of(info.bulk_path), name_of(info.atomic_path), uses};
    }
  }
  return {offset, 0, "-", "-", 0};
}

// The record is locked.
const char* path_of(WindowRecord& record, const Window* window, const Access& access, bool atomic) {
  if (window == nullptr) return "library";
  if (!access.exists || access.target < 0 || access.target >= window->size) return "-";
  const auto target = static_cast<std::size_t>(access.target);
  const std::uint64_t offset = static_cast<std::uint64_t>(access.disp) * window->units[target];
  record.regions.resize(std::max(record.regions.size(), target + 1));
  WindowRecord::Region& region = record.regions[target];
  if (region.uses_left == 0 || offset - region.offset >= region.bytes)
    region = ask_engine(window->engine, access.target, offset);
  if (region.uses_left != 0) --region.uses_left;
  return atomic ? region.atomic : region.bulk;
}

// The record is locked.
bool goes_over_network(WindowRecord& record, const Window& window, int target) {
  if (target < 0 || target >= window.size) return false;
  record.ways.resize(static_cast<std::size_t>(window.size));
  WindowRecord::Way& way = record.ways[static_cast<std::size_t>(target)];
  if (way == WindowRecord::Way::unknown) {
    way = Front::get().ranks.is_on_other_node(window.group, target) ? WindowRecord::Way::network
                                                                    : WindowRecord::Way::memory;
  }
  return way == WindowRecord::Way::network;
}

constexpr bool always_atomic(std::string_view call) { return call == "Fetch_and_op" || call == "Compare_and_swap"; }
constexpr bool accumulates(std::string_view call) { return call.find("ccumulate") != std::string_view::npos; }

// ---- one call on a window ----

// From before a call on.
class Failure {
 public:
  bool has_come(int result) const { return result != MPI_SUCCESS || errors_told() != before_; }

 private:
  std::uint64_t before_ = errors_told();
};

// What there is no memory to count is not counted: the call was made, and other ranks may have taken part.
template <class Count>
void count_if_possible(Count count) {
  try {
    count();
  } catch (const std::bad_alloc&) {
  }
}

void tally(WindowRecord& record, const char* call, const Window* window, const Access& access, std::uint64_t spent_ns) {
  const bool to_somebody = access.exists && access.target != MPI_PROC_NULL;
  const bool atomic = always_atomic(call) || (accumulates(call) && access.count == 1);
  const std::uint64_t bytes = to_somebody ? bytes_of(access) : 0;
  const std::uint64_t waited_ns = waits_for_others(call) ? spent_ns : 0;
  Tally one{1, bytes, spent_ns, waited_ns};
  if (window != nullptr && access.target != MPI_PROC_NULL) {
    const bool own = access.target == window->rank;
    (own ? one.own_count : one.peer_count) = 1;
    (own ? one.own_bytes : one.peer_bytes) = bytes;
  }
  const std::lock_guard lock(record.mutex);
  if (one.peer_count != 0 && goes_over_network(record, *window, access.target)) {
    one.network_count = 1;
    one.network_bytes = bytes;
  }
  record.operations[{call, path_of(record, window, access, atomic)}].add(one);
}

template <class Call>
int counted(const char* name, MPI_Win win, Absent, const Access& access, Call call) {
  const Failure failure;
  const Timer timer;
  const int result = call();
  if (failure.has_come(result)) return result;
  const std::uint64_t spent_ns = timer.ns();
  if (const auto record = Statistics::get().find(win)) {
    count_if_possible([&] { tally(*record, name, Front::get().windows.find(win), access, spent_ns); });
  }
  return result;
}

const char* flavor_of(std::string_view call) {
  if (call.starts_with("Win_create_dynamic")) return "dynamic";
  if (call.starts_with("Win_create")) return "created";
  return call.starts_with("Win_allocate_shared") ? "shared" : "allocated";
}

// A window is made. Its ranks agree on a name for it, by which the report brings their numbers together.
template <class Call>
int counted(const char* name, MPI_Win* win, MPI_Comm comm, const Access&, Call call) {
  const Failure failure;
  const Timer timer;
  const int result = call();
  if (failure.has_come(result)) return result;
  const std::uint64_t spent_ns = timer.ns();
  // Sessions have no world to number the ranks in.
  int maker = getpid();
  if (!Front::get().sessions.are_alone()) library().Comm_rank(MPI_COMM_WORLD, &maker);
  std::uint64_t id = static_cast<std::uint64_t>(maker) << 32 | Statistics::get().next_window();
  library().Bcast(&id, 1, MPI_UINT64_T, 0, comm);
  count_if_possible([&] {
    const auto record = std::make_shared<WindowRecord>();
    record->id = id;
    record->flavor = flavor_of(name);
    const Window* window = Front::get().windows.find(*win);
    record->bytes = window == nullptr ? 0 : static_cast<std::uint64_t>(window->bytes);
    Statistics::get().add(*win, record);
    tally(*record, name, window, {}, spent_ns);
  });
  return result;
}

// A window is freed: the handle may be another's when the call returns.
template <class Call>
int counted(const char* name, MPI_Win* win, Absent, const Access&, Call call) {
  const MPI_Win handle = *win;
  const auto record = Statistics::get().take(handle);
  if (record == nullptr) return call();
  char title[MPI_MAX_OBJECT_NAME + 1] = "";
  int length = 0;
  if (library().Win_get_name(handle, title, &length) == MPI_SUCCESS) count_if_possible([&] { record->name = title; });
  const bool engines = Front::get().windows.find(handle) != nullptr;
  const Failure failure;
  const Timer timer;
  const int result = call();
  if (!failure.has_come(result)) {
    const std::uint64_t spent_ns = timer.ns();
    const std::lock_guard lock(record->mutex);
    count_if_possible([&] { record->operations[{name, engines ? "-" : "library"}].add({1, 0, spent_ns, spent_ns}); });
  } else {
    count_if_possible([&] { Statistics::get().add(handle, record); });
  }
  return result;
}

// Memory without a window.
template <class Call>
int counted(const char* name, Absent, Absent, const Access&, Call call) {
  const Timer timer;
  const int result = call();
  const std::uint64_t spent_ns = timer.ns();
  WindowRecord& record = *Statistics::get().memory();
  const std::lock_guard lock(record.mutex);
  count_if_possible([&] { record.operations[{name, "-"}].add({1, 0, spent_ns, 0}); });
  return result;
}

// ---- one collective call ----

template <class Count>
std::uint64_t elements_of(Count count, Absent, MPI_Comm) {
  return static_cast<std::uint64_t>(std::max<Count>(count, 0));
}
std::uint64_t elements_of(Absent, Absent, MPI_Comm) { return 0; }
template <class Count>
std::uint64_t elements_of(Absent, const Count* counts, MPI_Comm comm) {
  int size = 0;
  library().Comm_size(comm, &size);
  std::uint64_t sum = 0;
  for (int i = 0; i < size; ++i) sum += static_cast<std::uint64_t>(counts[i]);
  return sum;
}

MPI_Datatype known(MPI_Datatype type) {
  return Front::get().datatypes.basic(type) != nullptr ? type : MPI_DATATYPE_NULL;
}

// What a call moves, by its arguments for what is sent and for what is received. MPI_IN_PLACE for what is sent leaves
// the count and the type beside it without a meaning.
template <class From, class FromValue, class ToValue>
auto of_sender(From from, FromValue sent, ToValue received) {
  if constexpr (std::is_same_v<ToValue, Absent>) {
    return sent;
  } else {
    return from == MPI_IN_PLACE ? received : sent;
  }
}

template <class Count, class Counts, class Type, class Op, class Call>
int counted_collective(const char* name, Count count, Counts counts, Type type, Op op, MPI_Comm comm, Call call) {
  const Timer timer;
  const int result = call();
  const std::uint64_t spent_ns = timer.ns();
  const std::uint64_t elements = elements_of(count, counts, comm);
  const CollectiveKey key{name, or_else(op, MPI_OP_NULL), known(or_else(type, MPI_DATATYPE_NULL)),
                          std::bit_floor(elements)};
  count_if_possible([&] { Statistics::get().count(key, spent_ns); });
  return result;
}

// ---- the calls ----

// In a call that has no parameter of these names, the names mean these.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
constexpr Absent win;
constexpr Absent comm;
constexpr Absent target;
constexpr Absent rank;
constexpr Absent disp;
constexpr Absent target_count;
constexpr Absent target_type;
constexpr Absent type;
constexpr Absent op;
constexpr Absent count;
constexpr Absent counts;
constexpr Absent from_count;
constexpr Absent from_type;
constexpr Absent from;
constexpr Absent to_count;
constexpr Absent to_type;

#define FARSUM_MPI_COUNTED(name, parameters, arguments)                                              \
  int counted_##name parameters {                                                                    \
    return counted(#name, win, comm, access_of(target, rank, disp, target_count, target_type, type), \
                   [&] { return below().name arguments; });                                          \
  }
FARSUM_MPI_COUNTED_CALLS(FARSUM_MPI_COUNTED, , int, int)
FARSUM_MPI_COUNTED_CALLS(FARSUM_MPI_COUNTED, _c, MPI_Count, MPI_Aint)
FARSUM_MPI_PLAIN_CALLS(FARSUM_MPI_COUNTED)

#define FARSUM_MPI_COUNTED_COLLECTIVE(name, parameters, arguments)                                  \
  int counted_##name parameters {                                                                   \
    return counted_collective(#name, or_else(count, of_sender(from, from_count, to_count)), counts, \
                              or_else(type, of_sender(from, from_type, to_type)), op, comm,         \
                              [&] { return below().name arguments; });                              \
  }
FARSUM_MPI_WITH_COUNTS(FARSUM_MPI_COLLECTIVE_CALLS, FARSUM_MPI_COUNTED_COLLECTIVE)
FARSUM_MPI_BARRIER(FARSUM_MPI_COUNTED_COLLECTIVE)
#pragma GCC diagnostic pop

}  // namespace

bool statistics_wanted() {
  return farsum_mpi_setting_is_on("FARSUM_MPI_STATS") != 0 || farsum_mpi_setting_is_on("FARSUM_MPI_STATS_FILE") != 0;
}

void put_statistics(farsum_mpi_calls& active) {
  below() = active;
  static_cast<void>(Front::get().datatypes.open());  // names of types and operators
#define FARSUM_MPI_PUT_COUNTED(name, parameters, arguments) \
  if (active.name != nullptr) active.name = counted_##name;
  FARSUM_MPI_COUNTED_CALLS(FARSUM_MPI_PUT_COUNTED, , int, int)
  FARSUM_MPI_COUNTED_CALLS(FARSUM_MPI_PUT_COUNTED, _c, MPI_Count, MPI_Aint)
  FARSUM_MPI_PLAIN_CALLS(FARSUM_MPI_PUT_COUNTED)
  FARSUM_MPI_WITH_COUNTS(FARSUM_MPI_COLLECTIVE_CALLS, FARSUM_MPI_PUT_COUNTED)
  FARSUM_MPI_BARRIER(FARSUM_MPI_PUT_COUNTED)
}

}  // namespace farsum::mpi
