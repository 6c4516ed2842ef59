// Making and freeing windows, attaching memory, and where a part can be addressed.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "calls.hpp"
#include "errors.hpp"
#include "farsum_embed.h"
#include "front.hpp"
#include "guard.hpp"
#include "info.hpp"
#include "library_traits.hpp"

namespace farsum::mpi {
namespace {

// What a creation asks for; one body makes all flavours.
struct Request {
  const char* call;
  int flavor;
  void* base = nullptr;
  MPI_Aint bytes = 0;
  MPI_Aint disp_unit = 1;
  MPI_Info info = MPI_INFO_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
};

bool is_true(const std::map<std::string, std::string>& info, const char* key) {
  const auto found = info.find(key);
  return found != info.end() && (found->second == "true" || found->second == "1");
}

// Of milliseconds; what is no number is as if it were not there.
std::uint32_t read_age(const std::string& text) {
  std::uint32_t age_ms = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), age_ms);
  if (error != std::errc{} || end != text.data() + text.size()) return 0;
  return age_ms == 0 ? FARSUM_READ_ANEW : age_ms;
}

farsum_window_options engine_options(const Request& request, const std::map<std::string, std::string>& info) {
  farsum_window_options options = {};
  options.struct_bytes = sizeof options;
  // no_locks and accumulate_ordering are not passed on: MPI_Win_set_info may take them back.
  options.promises = FARSUM_STRICT_EPOCHS;
  // Our own key, for no key of the standard promises it.
  if (is_true(info, "farsum_single_element")) options.promises |= FARSUM_SINGLE_ELEMENT;
  if (request.flavor != MPI_WIN_FLAVOR_SHARED && is_true(info, "farsum_network_only")) {
    options.promises |= FARSUM_NETWORK_ONLY;
  }
  if (const auto age = info.find("farsum_read_age"); age != info.end()) options.read_age_ms = read_age(age->second);
  // Else nobody would know when a rank has heard of others.
  if (!Front::get().calls_are_heard) options.read_age_ms = FARSUM_READ_ANEW;
  if (request.flavor == MPI_WIN_FLAVOR_SHARED && !is_true(info, "alloc_shared_noncontig")) {
    options.promises |= FARSUM_CONTIGUOUS_PARTS;
  }
  if (const auto alignment = info.find(alignment_key); alignment != info.end())
    options.alignment = alignment_of(alignment->second);
  return options;
}

bool is_allocated(const Window& window) {
  return window.flavor == MPI_WIN_FLAVOR_ALLOCATE || window.flavor == MPI_WIN_FLAVOR_SHARED;
}

bool gives_empty_parts_addresses(const Window& window) {
  return library_traits().empty_parts_have_addresses &&
         (window.flavor == MPI_WIN_FLAVOR_ALLOCATE || window.has_contiguous_parts);
}

// Together with the other ranks, also where this one has no draft of it, and refuses.
farsum_status make_engine_window(const Request& request, farsum_group group, const farsum_window_options& options,
                                 void** base, farsum_window* engine) {
  if (request.flavor == MPI_WIN_FLAVOR_DYNAMIC) return farsum_window_create_dynamic(group, &options, engine);
  // A size that is refused is none.
  const std::size_t bytes = options.layer->refusal != MPI_SUCCESS ? 0 : static_cast<std::size_t>(request.bytes);
  if (request.flavor == MPI_WIN_FLAVOR_CREATE) {
    return farsum_window_adopt(group, request.base, bytes, &options, engine);
  }
  return farsum_window_allocate(group, bytes, &options, base, engine);
}

void say_fallback(const Request& request) {
  int rank = 0;
  library().Comm_rank(request.comm, &rank);
  try {
    Front::get().notices.say_once(
        "strangers",
        std::string(request.call) +
            " stays the MPI library's own for communicators with ranks of a spawned job or of "
            "sessions that began apart",
        rank == 0 ? Notices::Voice::aloud : Notices::Voice::silent);
  } catch (const std::bad_alloc&) {
    // The other ranks are on their way into the library.
  }
}

// What this rank finds wrong; MPI_SUCCESS: nothing.
struct Refusal {
  int error_class = MPI_SUCCESS;
  const char* why = "";
};

// What is wrong with an argument that MPI forbids. The classes are those of the standard's list for window creation.
Refusal bad_argument(const Request& request) {
  if (request.bytes < 0) return {MPI_ERR_SIZE, "the size is negative; it must be 0 or more bytes"};
  const bool takes_any_unit = request.flavor == MPI_WIN_FLAVOR_SHARED && library_traits().shared_windows_take_any_unit;
  if (request.disp_unit <= 0 && !takes_any_unit) {
    return {MPI_ERR_DISP, "the displacement unit must be 1 byte or more"};
  }
  return {};
}

// A window in the making, with all that this rank allocates for it: with its handle, which the program has not seen,
// and which goes again unless it is released.
class Draft {
 public:
  explicit Draft(const Request& request, std::size_t size) : window_(std::make_unique<Window>()) {
    window_->size = static_cast<int>(size);
    library().Comm_rank(request.comm, &window_->rank);
    window_->base = request.base;
    window_->bytes = request.bytes;
    window_->disp_unit = static_cast<int>(request.disp_unit);
    window_->flavor = request.flavor;
    window_->info = read_info(request.info);
    if (Front::get().sessions.are_alone()) window_->memory_kinds = info_of(request.comm, kinds_key);
    window_->units.resize(size);
    options_ = engine_options(request, window_->info);
    window_->has_contiguous_parts = (options_.promises & FARSUM_CONTIGUOUS_PARTS) != 0;
    backed_ = Front::get().backed.enter(*window_);
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft() {
    if (window_ != nullptr && backed_) Front::get().backed.take_back(*window_);
  }

  bool backed() const { return backed_; }
  Window& window() { return *window_; }
  farsum_window_options& options() { return options_; }
  Window* release() { return window_.release(); }

 private:
  std::unique_ptr<Window> window_;
  farsum_window_options options_{};
  bool backed_ = false;
};

// All that this rank can do by itself.
Refusal prepare(const Request& request, std::size_t size, std::optional<Draft>& draft) {
  if (const Refusal bad = bad_argument(request); bad.error_class != MPI_SUCCESS) return bad;
  try {
    draft.emplace(request, size);
  } catch (const std::bad_alloc&) {
    return {MPI_ERR_NO_MEM, "the process has no memory left"};
  }
  if (draft->backed()) return {};
  return {MPI_ERR_OTHER,
          "the MPI library made no window for this process alone, which carries name, attributes and error handler"};
}

// How making it together ended, on all ranks alike.
struct Outcome {
  int error_class = MPI_SUCCESS;
  int refused_by = -1;  // a rank of the communicator; -1: the engine's last error says why
};

// Makes the window with the engine, where each rank tells the others its unit, or that it refuses.
Outcome make_together(const Request& request, farsum_group group, const Refusal& own, std::optional<Draft>& draft) {
  farsum_window_layer layer = {};
  layer.struct_bytes = sizeof layer;
  layer.refused_by = -1;
  layer.word = static_cast<std::uint64_t>(request.disp_unit);
  layer.refusal = own.error_class;
  farsum_window_options options = {};
  if (draft) {
    options = draft->options();
    layer.words = draft->window().units.data();
  }
  options.struct_bytes = sizeof options;
  options.layer = &layer;
  farsum_window engine{};
  void* base = request.base;
  const farsum_status made = make_engine_window(request, group, options, &base, &engine);
  if (own.error_class != MPI_SUCCESS) return {.error_class = own.error_class};
  if (made != FARSUM_OK) {
    if (layer.refused_by < 0) return {.error_class = error_class_of(made)};
    return {.error_class = layer.refused_with, .refused_by = layer.refused_by};
  }
  draft->window().engine = engine;
  draft->window().base = base;
  return {};
}

int raise_outcome(const Request& request, const Refusal& own, const Outcome& outcome) {
  if (own.error_class != MPI_SUCCESS) return raise(request.comm, request.call, own.error_class, own.why);
  if (outcome.refused_by < 0) return raise(request.comm, request.call, outcome.error_class, farsum_last_error());
  return raise(request.comm, request.call, outcome.error_class,
               "rank " + std::to_string(outcome.refused_by) +
                   " refused its own arguments, or has no memory; no rank has made the window");
}

// MPI declares the place of a pointer as void*.
void store_pointer(void* place, void* pointer) { std::memcpy(place, &pointer, sizeof pointer); }

// `fallback` makes the window with the library, where the engine does not reach all ranks. `memory`: where the address
// of memory that was allocated goes, or null.
template <class Fallback>
int create(const Request& request, void* memory, MPI_Win* handle, Fallback&& fallback) {
  Front& front = Front::get();
  int inter = 0;
  if (request.comm == MPI_COMM_NULL || library().Comm_test_inter(request.comm, &inter) != MPI_SUCCESS || inter != 0) {
    return fallback();  // the library words the error
  }
  // Memory is shared within a node; the library words the error where it is asked for beyond.
  GroupLease lease = front.engine_group(
      request.comm, request.flavor == MPI_WIN_FLAVOR_SHARED ? Groups::Reach::this_node : Groups::Reach::all_nodes);
  if (lease.refusal() == GroupLease::Refusal::no_memory) {
    return raise(request.comm, request.call, MPI_ERR_NO_MEM,
                 "a rank of the communicator has no memory left; no rank has made the window");
  }
  if (!lease) {
    if (lease.refusal() == GroupLease::Refusal::has_strangers) say_fallback(request);
    return fallback();
  }
  // From here on no rank fails by itself until the engine's call: what finds no memory is told there.
  std::optional<Draft> draft;
  int size = 0;
  library().Comm_size(request.comm, &size);
  const Refusal refusal = prepare(request, static_cast<std::size_t>(size), draft);
  const Outcome outcome = make_together(request, lease.group(), refusal, draft);
  if (draft) draft->window().own_group = lease.own();
  // Before anything is raised: a handler may come back here with the same communicator.
  lease.end();
  if (outcome.error_class != MPI_SUCCESS) return raise_outcome(request, refusal, outcome);
  Window& window = draft->window();
  if (window.bytes == 0 && is_allocated(window) && !gives_empty_parts_addresses(window)) window.base = nullptr;
  library().Comm_group(request.comm, &window.group);
  front.windows_made.fetch_add(1, std::memory_order_relaxed);
  if (!is_allocated(window)) front.copies_notice.say_if_refused();
  if (memory != nullptr) store_pointer(memory, window.base);
  *handle = draft->release()->handle;
  return MPI_SUCCESS;
}

template <class Unit>
int win_create(void* base, MPI_Aint size, Unit disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  return create({"MPI_Win_create", MPI_WIN_FLAVOR_CREATE, base, size, disp_unit, info, comm}, nullptr, win, [&] {
    return of_count<Unit>(library().Win_create, library().Win_create_c)(base, size, disp_unit, info, comm, win);
  });
}

template <class Unit>
int allocate(const char* call, int flavor, MPI_Aint size, Unit disp_unit, MPI_Info info, MPI_Comm comm, void* base,
             MPI_Win* win, int (*fallback)(MPI_Aint, Unit, MPI_Info, MPI_Comm, void*, MPI_Win*)) {
  return create({call, flavor, nullptr, size, disp_unit, info, comm}, base, win,
                [&] { return fallback(size, disp_unit, info, comm, base, win); });
}

int win_allocate(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win) {
  return allocate("MPI_Win_allocate", MPI_WIN_FLAVOR_ALLOCATE, size, unit, info, comm, base, win,
                  library().Win_allocate);
}
int win_allocate_c(MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win) {
  return allocate("MPI_Win_allocate_c", MPI_WIN_FLAVOR_ALLOCATE, size, unit, info, comm, base, win,
                  library().Win_allocate_c);
}
int win_allocate_shared(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win) {
  return allocate("MPI_Win_allocate_shared", MPI_WIN_FLAVOR_SHARED, size, unit, info, comm, base, win,
                  library().Win_allocate_shared);
}
int win_allocate_shared_c(MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win) {
  return allocate("MPI_Win_allocate_shared_c", MPI_WIN_FLAVOR_SHARED, size, unit, info, comm, base, win,
                  library().Win_allocate_shared_c);
}

int create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  return create({"MPI_Win_create_dynamic", MPI_WIN_FLAVOR_DYNAMIC, nullptr, 0, 1, info, comm}, nullptr, win,
                [&] { return library().Win_create_dynamic(info, comm, win); });
}

int attach_class(farsum_status status) { return status == FARSUM_ERR_NO_MEMORY ? MPI_ERR_NO_MEM : MPI_ERR_RMA_ATTACH; }

int attach(MPI_Win win, void* base, MPI_Aint size) {
  const Window* window = Front::get().windows.find(win);
  if (window == nullptr) return library().Win_attach(for_library(win), base, size);
  if (window->flavor != MPI_WIN_FLAVOR_DYNAMIC) {
    return raise(*window, "MPI_Win_attach", MPI_ERR_RMA_FLAVOR, "only dynamic windows take memory later");
  }
  if (size < 0)
    return raise(*window, "MPI_Win_attach", MPI_ERR_SIZE, "the size is negative; it must be 0 or more bytes");
  const farsum_status status = farsum_window_attach(window->engine, base, static_cast<std::size_t>(size));
  if (status == FARSUM_OK) return MPI_SUCCESS;
  return raise(*window, "MPI_Win_attach", attach_class(status), farsum_last_error());
}

int detach(MPI_Win win, const void* base) {
  const Window* window = Front::get().windows.find(win);
  if (window == nullptr) return library().Win_detach(for_library(win), base);
  if (window->flavor != MPI_WIN_FLAVOR_DYNAMIC) {
    return raise(*window, "MPI_Win_detach", MPI_ERR_RMA_FLAVOR, "only dynamic windows take memory later");
  }
  const farsum_status status = farsum_window_detach(window->engine, base);
  if (status == FARSUM_OK) return MPI_SUCCESS;
  if (status == FARSUM_ERR_RANGE && base != nullptr && library_traits().detaches_anything) return MPI_SUCCESS;
  return raise(*window, "MPI_Win_detach", attach_class(status), farsum_last_error());
}

// The library's, or one that is gone though its handle still means something to the library.
int free_unknown(MPI_Win* win) {
  // The library may wait for other ranks, and those for this one's other threads: not under the mutex.
  if (for_library(*win) == *win) return library().Win_free(win);
  return raise(MPI_COMM_WORLD, "MPI_Win_free", MPI_ERR_WIN, "the window has been freed before");
}

// The engine is asked first: it refuses on all ranks alike where an epoch is open, and then nothing is freed. The
// delete callbacks of the program's attributes run in the library's free, while window and memory are still there.
int win_free(MPI_Win* win) {
  Front& front = Front::get();
  Window* window = front.windows.find(*win);
  if (window == nullptr) return free_unknown(win);
  if (!window->may_be_freed) {
    const farsum_status status = farsum_window_prepare_free(window->engine);
    if (status != FARSUM_OK) return raise(*window, "MPI_Win_free", status);
    window->may_be_freed = true;  // also if a callback refuses below: the others have met
  }
  if (const int result = front.backed.leave(*window, win); result != MPI_SUCCESS) return result;
  const farsum_status status = farsum_window_free(&window->engine);
  library().Group_free(&window->group);
  const int ranks = window->size;
  delete window;
  const int result = status == FARSUM_OK
                         ? MPI_SUCCESS
                         : raise(front.self(), "MPI_Win_free", error_class_of(status), farsum_last_error());
  if (front.sessions.are_alone()) front.end_if_unused(ranks);
  return result;
}

template <class Unit>
int shared_query(Window& window, const char* call, int rank, MPI_Aint* size, Unit* disp_unit, void* base) {
  // MPI 4.1 lets all others be asked, and answers with nothing where memory is not shared.
  if (window.flavor == MPI_WIN_FLAVOR_DYNAMIC) {
    return raise(window, call, MPI_ERR_RMA_FLAVOR, "a dynamic window has no parts; what it has is attached later");
  }
  if (window.flavor != MPI_WIN_FLAVOR_SHARED && !library_follows(4, 1)) {
    return raise(window, call, MPI_ERR_RMA_FLAVOR, "the window was not made by MPI_Win_allocate_shared");
  }
  void* address = nullptr;
  std::size_t bytes = 0;
  const bool first_of_all = rank == MPI_PROC_NULL;
  if (first_of_all) rank = 0;
  for (;; ++rank) {
    const farsum_status status = farsum_window_shared_query(window.engine, rank, &address, &bytes);
    if (status != FARSUM_OK) return raise(window, call, status);
    // The first one that has memory, be it reachable from here or not (MPI-4.1, section 12.2.3).
    if (!first_of_all || bytes != 0 || rank + 1 == window.size) break;
  }
  const bool is_own = rank == window.rank;
  if (is_own) address = window.base;
  if (bytes == 0 && (first_of_all || !(is_own || gives_empty_parts_addresses(window)))) address = nullptr;
  store_pointer(base, address);
  // From address 0 there is a part, too, but only its owner reaches it there.
  *size = address == nullptr && !is_own ? 0 : static_cast<MPI_Aint>(bytes);
  *disp_unit = static_cast<Unit>(window.units[static_cast<std::size_t>(rank)]);
  return MPI_SUCCESS;
}

int win_shared_query(MPI_Win win, int rank, MPI_Aint* size, int* disp_unit, void* base) {
  Window* window = Front::get().windows.find(win);
  if (window == nullptr) return library().Win_shared_query(for_library(win), rank, size, disp_unit, base);
  return shared_query(*window, "MPI_Win_shared_query", rank, size, disp_unit, base);
}
int win_shared_query_c(MPI_Win win, int rank, MPI_Aint* size, MPI_Aint* disp_unit, void* base) {
  Window* window = Front::get().windows.find(win);
  if (window == nullptr) return library().Win_shared_query_c(for_library(win), rank, size, disp_unit, base);
  return shared_query(*window, "MPI_Win_shared_query_c", rank, size, disp_unit, base);
}

}  // namespace

void put_window_calls(farsum_mpi_calls& active) {
  active.Win_create = guard::Win_create<win_create<int>>::call;
  active.Win_create_c = guard::Win_create_c<win_create<MPI_Aint>>::call;
  active.Win_allocate = guard::Win_allocate<win_allocate>::call;
  active.Win_allocate_c = guard::Win_allocate_c<win_allocate_c>::call;
  active.Win_allocate_shared = guard::Win_allocate_shared<win_allocate_shared>::call;
  active.Win_allocate_shared_c = guard::Win_allocate_shared_c<win_allocate_shared_c>::call;
  active.Win_create_dynamic = guard::Win_create_dynamic<create_dynamic>::call;
  active.Win_attach = guard::Win_attach<attach>::call;
  active.Win_detach = guard::Win_detach<detach>::call;
  active.Win_free = guard::Win_free<win_free>::call;
  active.Win_shared_query = guard::Win_shared_query<win_shared_query>::call;
  active.Win_shared_query_c = guard::Win_shared_query_c<win_shared_query_c>::call;
}

}  // namespace farsum::mpi
