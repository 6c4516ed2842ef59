// Windows, epochs, notifications, mutexes and counters of the C interface: handles are checked here, everything else
// below.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <iterator>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "capi/global.hpp"
#include "capi/struct_sizes.hpp"

namespace farsum::capi {

farsum_status bad_window(const char* call, farsum_window window) {
  if (live_context() == nullptr) return no_context(call);
  return fail(Code::handle,
              fmt::format("{}: the window {:#x} does not live; it was freed, or never made", call, window.bits));
}

std::uint64_t ViewRuns::take(std::uint64_t count) {
  for (auto run = free_.begin(); run != free_.end(); ++run) {
    if (run->second < count) continue;
    const std::uint64_t first = run->first;
    const std::uint64_t left = run->second - count;
    auto rest = free_.extract(run);
    if (left != 0) {
      rest.key() = first + count;
      rest.mapped() = left;
      free_.insert(std::move(rest));
    }
    return first;
  }
  return 0;
}

void ViewRuns::give_back(std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t view = first; view < first + count; ++view) {
    std::destroy_at(&view_arena[view]);
    std::construct_at(&view_arena[view]);
  }
  auto after = free_.lower_bound(first);
  if (after != free_.end() && first + count == after->first) {
    count += after->second;
    after = free_.erase(after);
  }
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == first) {
      before->second += count;
      return;
    }
  }
  try {
    free_.emplace(first, count);
  } catch (const std::bad_alloc&) {
    // Without memory to note them these are not used again; what they belonged to is gone all the same.
  }
}

namespace {

constexpr std::uint64_t generation_mask = (std::uint64_t{1} << (64 - index_bits - view_bits)) - 1;

// Where a window's views begin in the arena; 0, the closed ones, when they lie elsewhere.
std::uint64_t first_view_of(const Window& window) {
  const TargetView* views = window.hot().views;
  return views >= view_arena && views < view_arena + most_views ? static_cast<std::uint64_t>(views - view_arena) : 0;
}

// Closes the parts of a window of more ranks than there are closed views, behind which lie those of other windows:
// everything takes the long way, a flush of all targets too.
void close(HotParts& parts) {
  parts.size = 0;
  parts.aggregates = true;
}

}  // namespace

std::size_t take_window_slot() {
  Global& state = global();
  const std::lock_guard lock(state.windows_mutex);
  if (!state.vacant_windows.empty()) {
    const std::size_t index = state.vacant_windows.back();
    state.vacant_windows.pop_back();
    return index;
  }
  // Relaxed: written under the mutex; a forked child reads what its parent had.
  const std::size_t used = state.window_slots_used.load(std::memory_order_relaxed);
  if (used == most_windows) return no_window_slot;
  // So that no slot is ever given back where there is no room to note it.
  if (state.vacant_windows.capacity() <= used) state.vacant_windows.reserve(std::max<std::size_t>(64, 2 * used));
  state.window_slots_used.store(used + 1, std::memory_order_relaxed);
  return used;
}

void give_window_slot_back(std::size_t index) {
  const std::lock_guard lock(global().windows_mutex);
  global().vacant_windows.push_back(index);
}

farsum_window add_window(std::size_t index, WindowObject* object) {
  const std::lock_guard lock(global().windows_mutex);
  WindowSlot& slot = window_slots[index];
  slot.parts = object->window->hot().parts;
  slot.parts.permit = &global().context->own_permit();
  slot.object = object;
  slot.generation = (slot.generation + 1) & generation_mask;
  const std::uint64_t generation = slot.generation == 0 ? ++slot.generation : slot.generation;
  const std::uint64_t first_view = first_view_of(*object->window);
  if (first_view == 0 && slot.parts.size > ViewRuns::closed_views) close(slot.parts);
  const std::uint64_t bits = generation << (index_bits + view_bits) | first_view << index_bits | index;
  // Release: the slot is filled before its handle can be found.
  slot.bits.store(bits, std::memory_order_release);
  return {bits};
}

void remove_window(WindowSlot& slot) {
  const std::lock_guard lock(global().windows_mutex);
  const std::uint64_t first_view = slot.bits.load(std::memory_order_relaxed) >> index_bits & view_mask;
  if (first_view != 0) global().view_runs.give_back(first_view, slot.parts.size);
  slot.bits.store(0, std::memory_order_relaxed);
  slot.parts.size = 0;
  slot.object = nullptr;
  global().vacant_windows.push_back(static_cast<std::size_t>(&slot - window_slots));
}

namespace {

// The window behind a handle in a live process; null with the error told.
Window* window_of(const char* call, farsum_window handle, farsum_status& status) {
  WindowSlot* slot = live_context() == nullptr ? nullptr : find_window(handle);
  if (slot == nullptr) {
    status = bad_window(call, handle);
    return nullptr;
  }
  return slot->object->window.get();
}

Status read_alignment(const char* call, const farsum_window_options& from, WindowOptions& options) {
  if (from.alignment == 0) return {};
  if (!std::has_single_bit(from.alignment) || from.alignment > FARSUM_MOST_ALIGNMENT) {
    return {Code::argument, fmt::format("{}: alignment {}; it must be a power of two up to {}", call, from.alignment,
                                        FARSUM_MOST_ALIGNMENT)};
  }
  options.alignment = from.alignment;
  return {};
}

farsum_window_layer* layer_of(const farsum_window_options* from) {
  return from != nullptr && has_known_size(*from) ? completed(*from).layer : nullptr;
}

// Nobody has refused yet, whatever this call comes to.
Status begin_layer(const char* call, farsum_window_layer* layer) {
  if (layer == nullptr) return {};
  if (!has_known_size(*layer))
    return {Code::argument, fmt::format("{}: struct_bytes of the layer must be sizeof(farsum_window_layer)", call)};
  layer->refused_by = -1;
  layer->refused_with = 0;
  return {};
}

Status read_options(const char* call, const farsum_window_options* given, WindowOptions& options) {
  if (given == nullptr) return {};
  if (!has_known_size(*given)) {
    return {Code::argument, fmt::format("{}: struct_bytes must be sizeof(farsum_window_options)", call)};
  }
  const farsum_window_options from = completed(*given);
  if (Status status = begin_layer(call, from.layer); !status.is_ok()) return status;
  if (from.promises >> 7 != 0) return {Code::argument, fmt::format("{}: unknown promises {:#x}", call, from.promises)};
  if (from.notification_slots > 65536) {
    return {Code::argument,
            fmt::format("{}: {} notification slots; at most 65536 are possible", call, from.notification_slots)};
  }
  if (from.aggregate_limit > 1024) {
    return {Code::argument, fmt::format("{}: aggregate_limit {}; at most 1024 updates are gathered per target", call,
                                        from.aggregate_limit)};
  }
  options.promises = from.promises;
  if (from.notification_slots != 0) options.notification_slots = from.notification_slots;
  options.aggregate_limit = from.aggregate_limit;
  if (from.read_age_ms == FARSUM_READ_ANEW)
    options.read_age_ms = 0;
  else if (from.read_age_ms != 0)
    options.read_age_ms = from.read_age_ms;
  try {
    if (from.name != nullptr) options.name = from.name;
  } catch (const std::bad_alloc&) {
    options.lacks_memory = true;
  }
  return read_alignment(call, from, options);
}

// Reads the options of a window whose parts are where the program says.
Status read_options_of_given_memory(const char* call, const farsum_window_options* from, WindowOptions& options) {
  if (from != nullptr && has_known_size(*from) && (from->promises & FARSUM_CONTIGUOUS_PARTS) != 0) {
    return {Code::argument, fmt::format("{}: FARSUM_CONTIGUOUS_PARTS is for farsum_window_allocate", call)};
  }
  return read_options(call, from, options);
}

// The slot and the views of a window that is being made; given back where it is not.
class WindowReservation {
 public:
  WindowReservation() = default;
  ~WindowReservation() {
    if (slot_ != no_window_slot) give_window_slot_back(slot_);
    if (first_view_ == 0) return;
    const std::lock_guard lock(global().windows_mutex);
    global().view_runs.give_back(first_view_, views_);
  }
  WindowReservation(const WindowReservation&) = delete;
  WindowReservation& operator=(const WindowReservation&) = delete;

  // False where as many windows live as there can be.
  bool take_slot() {
    slot_ = take_window_slot();
    return slot_ != no_window_slot;
  }
  TargetView* place_views(std::uint32_t ranks) {
    const std::lock_guard lock(global().windows_mutex);
    first_view_ = global().view_runs.take(ranks);
    views_ = ranks;
    return first_view_ == 0 ? nullptr : &view_arena[first_view_];
  }
  // The slot, which is the window's from here on, as the views are.
  std::size_t take() {
    first_view_ = 0;
    return std::exchange(slot_, no_window_slot);
  }

 private:
  std::size_t slot_ = no_window_slot;
  std::uint64_t first_view_ = 0;
  std::uint32_t views_ = 0;
};

// What the layer above tells the other ranks, and is told.
class LayerAbove {
 public:
  LayerAbove(farsum_window_layer* from, WindowOptions& options) : from_(from) {
    if (from == nullptr) return;
    layer_ = {.word = from->word, .refusal = from->refusal, .words = from->words};
    options.layer = &layer_;
  }
  ~LayerAbove() {
    if (from_ == nullptr) return;
    from_->refused_by = layer_.refused_by;
    from_->refused_with = layer_.refused_with;
  }
  LayerAbove(const LayerAbove&) = delete;
  LayerAbove& operator=(const LayerAbove&) = delete;

 private:
  farsum_window_layer* from_;
  WindowLayer layer_;
};

// Makes a window with `make(options)` and gives its handle out.
template <class Make>
farsum_status make_window(const char* call, const farsum_window_options* from, WindowOptions& options,
                          farsum_window* window, Make&& make) {
  const HearsAtEnd hears;
  const LayerAbove layer(layer_of(from), options);
  WindowReservation reservation;
  options.place_views = [&reservation](std::uint32_t ranks) { return reservation.place_views(ranks); };
  try {
    if (!reservation.take_slot()) {
      options.refusal =
          Status(Code::no_memory,
                 fmt::format("{}: {} windows live, the most there can be; free some first", call, most_windows));
    }
  } catch (const std::bad_alloc&) {
    options.lacks_memory = true;
  }
  Result<WindowObject*> made = make(options);
  if (!made.is_ok()) return fail(made.take_status());
  if (made.value()->window->answers_reads())
    reads_have_copies.store(true, std::memory_order_relaxed);  // see global.hpp
  *window = add_window(reservation.take(), made.value());
  return FARSUM_OK;
}

// Where a part of so many bytes lies in this process, if all of it does and in one piece; else null.
std::byte* where_mapped(const std::vector<Region>& regions, std::uint64_t bytes) {
  if (regions.empty() || regions.front().offset != 0) return nullptr;
  std::byte* const begin = regions.front().mapped;
  std::uint64_t end = 0;
  for (const Region& region : regions) {
    if (begin == nullptr || region.offset != end || region.mapped != begin + end) return nullptr;
    end += region.bytes;
  }
  return end == bytes ? begin : nullptr;
}

}  // namespace
}  // namespace farsum::capi

using namespace farsum;
using namespace farsum::capi;

// One line for the calls that only pass a window on.
template <class Call>
static farsum_status on_window(const char* name, farsum_window handle, Call&& call) {
  return guarded(name, [&]() -> farsum_status {
    farsum_status status = FARSUM_OK;
    Window* window = window_of(name, handle, status);
    const HearsAtEnd hears;
    return window == nullptr ? status : report(call(*window));
  });
}

extern "C" {

farsum_status farsum_window_allocate(farsum_group handle, size_t bytes, const farsum_window_options* from,
                                     void** memory, farsum_window* window) {
  return guarded("farsum_window_allocate", [&]() -> farsum_status {
    Group* group = nullptr;
    if (const farsum_status status = find_group("farsum_window_allocate", handle, group); status != FARSUM_OK)
      return status;
    if (memory == nullptr || window == nullptr)
      return fail(Code::argument, "farsum_window_allocate: memory and window must not be null");
    WindowOptions options;
    if (const Status status = read_options("farsum_window_allocate", from, options); !status.is_ok())
      return fail(status);
    return make_window("farsum_window_allocate", from, options, window, [&](const WindowOptions& wish) {
      Result<WindowObject*> made = live_context()->windows().allocate(*group, bytes, wish);
      if (made.is_ok()) *memory = made.value()->memory;
      return made;
    });
  });
}

farsum_status farsum_window_adopt(farsum_group handle, void* memory, size_t bytes, const farsum_window_options* from,
                                  farsum_window* window) {
  return guarded("farsum_window_adopt", [&]() -> farsum_status {
    Group* group = nullptr;
    if (const farsum_status status = find_group("farsum_window_adopt", handle, group); status != FARSUM_OK)
      return status;
    if (window == nullptr) return fail(Code::argument, "farsum_window_adopt: window must not be null");
    WindowOptions options;
    if (const Status status = read_options_of_given_memory("farsum_window_adopt", from, options); !status.is_ok())
      return fail(status);
    return make_window("farsum_window_adopt", from, options, window, [&](const WindowOptions& wish) {
      return live_context()->windows().adopt(*group, memory, bytes, wish);
    });
  });
}

farsum_status farsum_window_create_dynamic(farsum_group handle, const farsum_window_options* from,
                                           farsum_window* window) {
  return guarded("farsum_window_create_dynamic", [&]() -> farsum_status {
    Group* group = nullptr;
    if (const farsum_status status = find_group("farsum_window_create_dynamic", handle, group); status != FARSUM_OK)
      return status;
    if (window == nullptr) return fail(Code::argument, "farsum_window_create_dynamic: window must not be null");
    WindowOptions options;
    if (const Status status = read_options_of_given_memory("farsum_window_create_dynamic", from, options);
        !status.is_ok())
      return fail(status);
    return make_window("farsum_window_create_dynamic", from, options, window, [&](const WindowOptions& wish) {
      return live_context()->windows().create_dynamic(*group, wish);
    });
  });
}

farsum_status farsum_window_attach(farsum_window handle, void* memory, size_t bytes) {
  return guarded("farsum_window_attach", [&]() -> farsum_status {
    WindowSlot* slot = live_context() == nullptr ? nullptr : find_window(handle);
    if (slot == nullptr) return bad_window("farsum_window_attach", handle);
    return report(live_context()->windows().attach(*slot->object, memory, bytes));
  });
}

farsum_status farsum_window_detach(farsum_window handle, const void* memory) {
  return guarded("farsum_window_detach", [&]() -> farsum_status {
    WindowSlot* slot = live_context() == nullptr ? nullptr : find_window(handle);
    if (slot == nullptr) return bad_window("farsum_window_detach", handle);
    return report(live_context()->windows().detach(*slot->object, memory));
  });
}

farsum_status farsum_window_free(farsum_window* handle) {
  return guarded("farsum_window_free", [&]() -> farsum_status {
    const HearsAtEnd hears;
    if (handle == nullptr) return fail(Code::argument, "farsum_window_free: null handle");
    WindowSlot* slot = live_context() == nullptr ? nullptr : find_window(*handle);
    if (slot == nullptr) return bad_window("farsum_window_free", *handle);
    if (const Status status = live_context()->windows().free(slot->object); !status.is_ok()) return fail(status);
    remove_window(*slot);
    handle->bits = 0;
    return FARSUM_OK;
  });
}

farsum_status farsum_window_prepare_free(farsum_window handle) {
  return guarded("farsum_window_prepare_free", [&]() -> farsum_status {
    const HearsAtEnd hears;
    WindowSlot* slot = live_context() == nullptr ? nullptr : find_window(handle);
    if (slot == nullptr) return bad_window("farsum_window_prepare_free", handle);
    return report(live_context()->windows().prepare_free(*slot->object));
  });
}

farsum_status farsum_window_shared_query(farsum_window handle, int rank, void** address, size_t* bytes) {
  return guarded("farsum_window_shared_query", [&]() -> farsum_status {
    farsum_status status = FARSUM_OK;
    Window* window = window_of("farsum_window_shared_query", handle, status);
    if (window == nullptr) return status;
    if (rank < 0 || rank >= static_cast<int>(window->size())) {
      return fail(
          Code::rank,
          fmt::format("farsum_window_shared_query: rank {} is not in the window's group, whose ranks are 0 to {}", rank,
                      window->size() - 1));
    }
    const auto of = static_cast<std::uint32_t>(rank);
    *bytes = window->part_bytes(of);
    const WindowObject& object = *find_window(handle)->object;
    const bool is_own = of == window->my_rank() && !object.dynamic;
    *address = is_own ? object.memory : where_mapped(window->regions_of(of), *bytes);
    return FARSUM_OK;
  });
}

farsum_status farsum_window_region(farsum_window handle, int rank, int index, farsum_region_info* info) {
  return guarded("farsum_window_region", [&]() -> farsum_status {
    farsum_status status = FARSUM_OK;
    Window* window = window_of("farsum_window_region", handle, status);
    if (window == nullptr) return status;
    if (rank < 0 || rank >= static_cast<int>(window->size())) {
      return fail(Code::rank,
                  fmt::format("farsum_window_region: rank {} is not in the window's group, whose ranks are 0 to {}",
                              rank, window->size() - 1));
    }
    const std::vector<Region> regions = window->regions_of(static_cast<std::uint32_t>(rank));
    if (index < 0 || index >= static_cast<int>(regions.size())) {
      return fail(Code::range, fmt::format("farsum_window_region: region {} was asked for, but rank {} has {}", index,
                                           rank, regions.size()));
    }
    const Region& region = regions[static_cast<std::size_t>(index)];
    *info = farsum_region_info{};
    info->offset = region.offset;
    info->bytes = region.bytes;
    info->bulk_path = static_cast<farsum_path>(region.bulk);
    info->atomic_path = static_cast<farsum_path>(region.atomic);
    info->promoted = region.promoted ? 1 : 0;
    region.reason.copy(info->reason, sizeof info->reason - 1);
    return FARSUM_OK;
  });
}

farsum_status farsum_fence(farsum_window handle, uint32_t assertions) {
  return on_window("farsum_fence", handle, [&](Window& window) {
    return window.fence((assertions & FARSUM_FENCE_NO_PRECEDE) == 0, (assertions & FARSUM_FENCE_NO_SUCCEED) == 0);
  });
}

static farsum_status check_list(const char* call, const int* ranks, int count) {
  if (count >= 0 && (count == 0 || ranks != nullptr)) return FARSUM_OK;
  return fail(Code::argument,
              fmt::format("{}: the count must not be negative, nor the list of {} ranks null", call, count));
}

farsum_status farsum_post(farsum_window handle, const int* origins, int count) {
  if (const farsum_status status = check_list("farsum_post", origins, count); status != FARSUM_OK) return status;
  return on_window("farsum_post", handle,
                   [&](Window& window) { return window.posts().post(ranks_of(origins, count)); });
}
farsum_status farsum_start(farsum_window handle, const int* targets, int count) {
  if (const farsum_status status = check_list("farsum_start", targets, count); status != FARSUM_OK) return status;
  return on_window("farsum_start", handle,
                   [&](Window& window) { return window.posts().start(ranks_of(targets, count)); });
}
farsum_status farsum_start_unchecked(farsum_window handle, const int* targets, int count) {
  if (const farsum_status status = check_list("farsum_start_unchecked", targets, count); status != FARSUM_OK)
    return status;
  return on_window("farsum_start_unchecked", handle, [&](Window& window) {
    return window.posts().start(ranks_of(targets, count), PostEpochs::Posts::known);
  });
}
farsum_status farsum_complete(farsum_window handle) {
  return on_window("farsum_complete", handle, [](Window& window) { return window.posts().complete(); });
}
farsum_status farsum_wait_exposure(farsum_window handle) {
  return on_window("farsum_wait_exposure", handle, [](Window& window) { return window.posts().wait(); });
}
farsum_status farsum_test_exposure(farsum_window handle, int* done) {
  return on_window("farsum_test_exposure", handle, [&](Window& window) {
    bool answer = false;
    Status status = window.posts().test(answer);
    if (status.is_ok()) *done = answer ? 1 : 0;
    return status;
  });
}

// Locks in a mode that takes no lock, or refuses one that is none.
[[gnu::noinline]] static farsum_status lock_unchecked(farsum_window handle, int target, farsum_lock_mode mode) {
  if (mode != FARSUM_LOCK_UNCHECKED) {
    return fail(Code::argument, fmt::format("farsum_lock: mode {}; it must be FARSUM_LOCK_SHARED, "
                                            "FARSUM_LOCK_EXCLUSIVE or FARSUM_LOCK_UNCHECKED",
                                            static_cast<int>(mode)));
  }
  return on_window("farsum_lock", handle,
                   [&](Window& window) { return window.locks().lock_unchecked(static_cast<std::uint32_t>(target)); });
}

// Goes on where the hot path has not finished: it may have queued.
[[gnu::noinline]] static farsum_status lock_slowly(farsum_window handle, std::uint32_t target, LockMode mode,
                                                   Requested so_far) {
  return on_window("farsum_lock", handle, [&](Window& window) {
    return so_far.kind == Requested::Kind::queued ? window.locks().await_queued(target, mode, so_far.slot)
                                                  : window.locks().lock(target, mode);
  });
}

farsum_status farsum_lock(farsum_window handle, int target, farsum_lock_mode farsum_mode) {
  if (farsum_mode != FARSUM_LOCK_SHARED && farsum_mode != FARSUM_LOCK_EXCLUSIVE)
    return lock_unchecked(handle, target, farsum_mode);
  const LockMode mode = farsum_mode == FARSUM_LOCK_EXCLUSIVE ? LockMode::exclusive : LockMode::shared;
  const WindowSlot* slot = find_window(handle);
  Requested so_far{.kind = Requested::Kind::refused};
  if (slot != nullptr) [[likely]] {
    so_far = hot_window(*slot, handle).lock(static_cast<std::uint32_t>(target), mode);
    if (so_far.kind == Requested::Kind::granted) [[likely]] {
      heard();
      return FARSUM_OK;
    }
  }
  return lock_slowly(handle, static_cast<std::uint32_t>(target), mode, so_far);
}
farsum_status farsum_unlock(farsum_window handle, int target) {
  const WindowSlot* slot = find_window(handle);
  if (slot != nullptr && hot_window(*slot, handle).unlock(static_cast<std::uint32_t>(target))) [[likely]] {
    heard();
    return FARSUM_OK;
  }
  return on_window("farsum_unlock", handle,
                   [&](Window& window) { return window.locks().unlock(static_cast<std::uint32_t>(target)); });
}
farsum_status farsum_lock_all(farsum_window handle) {
  return on_window("farsum_lock_all", handle, [](Window& window) { return window.all_locks().lock(); });
}
farsum_status farsum_lock_all_unchecked(farsum_window handle) {
  return on_window("farsum_lock_all_unchecked", handle,
                   [](Window& window) { return window.all_locks().lock_unchecked(); });
}
farsum_status farsum_unlock_all(farsum_window handle) {
  return on_window("farsum_unlock_all", handle, [](Window& window) { return window.all_locks().unlock(); });
}
farsum_status farsum_sync(farsum_window handle) {
  return on_window("farsum_sync", handle, [](Window&) {
    flush_fence();
    return Status();
  });
}
farsum_status farsum_order(farsum_window handle) {
  return on_window("farsum_order", handle, [](Window& window) {
    window.order();
    return Status();
  });
}

farsum_status farsum_notify_wait(farsum_window handle, uint32_t slot, uint64_t at_least) {
  return on_window("farsum_notify_wait", handle,
                   [&](Window& window) { return window.notifications().wait(slot, at_least); });
}
farsum_status farsum_notify_value(farsum_window handle, uint32_t slot, uint64_t* value) {
  return on_window("farsum_notify_value", handle,
                   [&](Window& window) { return window.notifications().value(slot, *value); });
}

// ---- mutexes ----

farsum_status farsum_mutex_create(farsum_group handle, int count, farsum_mutex* mutexes) {
  return guarded("farsum_mutex_create", [&]() -> farsum_status {
    const HearsAtEnd hears;
    Group* group = nullptr;
    if (const farsum_status status = find_group("farsum_mutex_create", handle, group); status != FARSUM_OK)
      return status;
    if (count < 0 || mutexes == nullptr)
      return fail(Code::argument, "farsum_mutex_create: the count must not be negative, nor the handle null");
    HandleTable<MutexSlot>::Reservation reservation(global().mutexes);
    Result<Mutexes*> made =
        live_context()->mutexes().create(*group, static_cast<std::uint32_t>(count), reservation.lacks_memory());
    if (!made.is_ok()) return fail(made.take_status());
    *mutexes = {reservation.give_to({made.value()})};
    return FARSUM_OK;
  });
}

static farsum_status find_mutex(const char* call, farsum_mutex handle, int rank, int index, Mutexes*& mutexes) {
  if (live_context() == nullptr) return no_context(call);
  MutexSlot* slot = global().mutexes.find(handle.bits);
  if (slot == nullptr) return fail(Code::handle, fmt::format("{}: the mutexes {:#x} do not live", call, handle.bits));
  mutexes = slot->mutexes;
  if (rank < 0 || rank >= static_cast<int>(mutexes->counts().size())) {
    return fail(Code::rank, fmt::format("{}: rank {} is not in the group, whose ranks are 0 to {}", call, rank,
                                        mutexes->counts().size() - 1));
  }
  const std::uint32_t count = mutexes->counts()[static_cast<std::size_t>(rank)];
  if (index < 0 || index >= static_cast<int>(count)) {
    return fail(Code::range, fmt::format("{}: mutex {} was asked for, but rank {} keeps {}", call, index, rank, count));
  }
  return FARSUM_OK;
}

farsum_status farsum_mutex_free(farsum_mutex* mutexes) {
  return guarded("farsum_mutex_free", [&]() -> farsum_status {
    const HearsAtEnd hears;
    if (mutexes == nullptr) return fail(Code::argument, "farsum_mutex_free: null handle");
    if (live_context() == nullptr) return no_context("farsum_mutex_free");
    MutexSlot* slot = global().mutexes.find(mutexes->bits);
    if (slot == nullptr)
      return fail(Code::handle, fmt::format("farsum_mutex_free: the mutexes {:#x} do not live", mutexes->bits));
    if (const Status status = live_context()->mutexes().free(slot->mutexes); !status.is_ok()) return fail(status);
    global().mutexes.remove(mutexes->bits);
    mutexes->bits = 0;
    return FARSUM_OK;
  });
}

farsum_status farsum_mutex_lock(farsum_mutex handle, int rank, int index) {
  return guarded("farsum_mutex_lock", [&]() -> farsum_status {
    const HearsAtEnd hears;
    Mutexes* mutexes = nullptr;
    if (const farsum_status status = find_mutex("farsum_mutex_lock", handle, rank, index, mutexes); status != FARSUM_OK)
      return status;
    return report(mutexes->lock(static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(index)));
  });
}

farsum_status farsum_mutex_unlock(farsum_mutex handle, int rank, int index) {
  return guarded("farsum_mutex_unlock", [&]() -> farsum_status {
    const HearsAtEnd hears;
    Mutexes* mutexes = nullptr;
    if (const farsum_status status = find_mutex("farsum_mutex_unlock", handle, rank, index, mutexes);
        status != FARSUM_OK)
      return status;
    return report(mutexes->unlock(static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(index)));
  });
}

// ---- counters ----

farsum_status farsum_counter_create(farsum_group handle, const farsum_counter_options* from, farsum_counter* counter) {
  return guarded("farsum_counter_create", [&]() -> farsum_status {
    const HearsAtEnd hears;
    Group* group = nullptr;
    if (const farsum_status status = find_group("farsum_counter_create", handle, group); status != FARSUM_OK)
      return status;
    if (from == nullptr || !has_known_size(*from) || counter == nullptr) {
      return fail(Code::argument,
                  "farsum_counter_create: options with struct_bytes = sizeof(farsum_counter_options) and a place for "
                  "the handle "
                  "must be given");
    }
    if (from->kind < FARSUM_COUNTER_STRICT || from->kind > FARSUM_COUNTER_LEASED) {
      return fail(Code::argument, fmt::format("farsum_counter_create: unknown kind {}", static_cast<int>(from->kind)));
    }
    Counter::Options options;
    options.kind = static_cast<CounterKind>(from->kind);
    options.home = static_cast<std::uint32_t>(from->home);
    options.limit = from->limit;
    HandleTable<CounterSlot>::Reservation reservation(global().counters);
    options.lacks_memory = reservation.lacks_memory();
    Result<std::shared_ptr<Counter>> made = Counter::create(live_context()->windows(), *group, options);
    if (!made.is_ok()) return fail(made.take_status());
    *counter = {reservation.give_to({std::move(made.value())})};
    return FARSUM_OK;
  });
}

static farsum_status find_counter(const char* call, farsum_counter handle, std::shared_ptr<Counter>& counter) {
  if (live_context() == nullptr) return no_context(call);
  CounterSlot* slot = global().counters.find(handle.bits);
  if (slot == nullptr) return fail(Code::handle, fmt::format("{}: the counter {:#x} does not live", call, handle.bits));
  counter = slot->counter;
  return FARSUM_OK;
}

farsum_status farsum_counter_next(farsum_counter handle, uint64_t* ticket) {
  return guarded("farsum_counter_next", [&]() -> farsum_status {
    const HearsAtEnd hears;
    std::shared_ptr<Counter> counter;
    if (const farsum_status status = find_counter("farsum_counter_next", handle, counter); status != FARSUM_OK)
      return status;
    Result<std::uint64_t> next = counter->next();
    if (!next.is_ok()) return fail(next.take_status());
    *ticket = next.value();
    return FARSUM_OK;
  });
}

farsum_status farsum_counter_reset(farsum_counter handle) {
  return guarded("farsum_counter_reset", [&]() -> farsum_status {
    const HearsAtEnd hears;
    std::shared_ptr<Counter> counter;
    if (const farsum_status status = find_counter("farsum_counter_reset", handle, counter); status != FARSUM_OK)
      return status;
    return report(counter->reset());
  });
}

farsum_status farsum_counter_free(farsum_counter* handle) {
  return guarded("farsum_counter_free", [&]() -> farsum_status {
    const HearsAtEnd hears;
    if (handle == nullptr) return fail(Code::argument, "farsum_counter_free: null handle");
    std::shared_ptr<Counter> counter;
    if (const farsum_status status = find_counter("farsum_counter_free", *handle, counter); status != FARSUM_OK)
      return status;
    if (const Status status = counter->free(); !status.is_ok()) return fail(status);
    global().counters.remove(handle->bits);
    handle->bits = 0;
    return FARSUM_OK;
  });
}

}  // extern "C"
