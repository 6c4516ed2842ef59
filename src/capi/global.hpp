// The one context that the C interface needs, and the tables behind its handles. What the library keeps beside a
// context and may change lies here and in memory.cpp, but for what a thread keeps of itself, what waits for fork()
// (promotion/promotion.cpp, promotion/promoted_files.cpp), the turn of who holds threads (promotion/held_threads.cpp)
// and the last mark of a thread (os/thread_mark.cpp).
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "capi/handles.hpp"
#include "farsum_embed.h"
#include "runtime/context.hpp"
#include "runtime/counter.hpp"

namespace farsum::capi {

struct RequestSlot {
  // Shared with nobody but the engine, which must find it until the operation ends.
  std::shared_ptr<RequestState> state;
  Rank peer = 0;
  std::string call;
  bool writes = false;  // then that it is complete counts as heard
  // Of a collective there is this instead, and who carries it.
  std::shared_ptr<CarriedRequest> carried{};
  Carry* carry = nullptr;
};

struct GroupSlot {
  Group* group = nullptr;
};
struct MutexSlot {
  Mutexes* mutexes = nullptr;
};
struct CounterSlot {
  std::shared_ptr<Counter> counter;
};

struct Global {
  std::mutex life;                           // init and finalize
  std::unique_ptr<Credentials> credentials;  // that PMIx gave to this process
  pid_t credentials_owner = 0;               // that process, where the credentials keep PMIx
  std::unique_ptr<Context> context;
  std::atomic<Context*> live{nullptr};
  std::atomic<bool> is_forked_child{false};  // of a process with a context: it has none, and is no rank
  farsum_group world{0};
  HandleTable<GroupSlot> groups;
  HandleTable<RequestSlot> requests;
  HandleTable<MutexSlot> mutexes;
  HandleTable<CounterSlot> counters;
  std::mutex windows_mutex;                       // taking and freeing window slots
  ViewRuns view_runs;                             // under windows_mutex
  std::atomic<std::size_t> window_slots_used{0};  // no slot from here on was ever taken
  std::vector<std::size_t> vacant_windows;        // of those before, which are free; under windows_mutex
  std::once_flag fork_handler;
  std::once_flag exit_handler;
};

Global& global();
extern WindowSlot window_slots[most_windows];
extern TargetView view_arena[most_views];

// A request that was complete when it was made.
inline constexpr std::uint64_t completed_request = ~std::uint64_t{0};

// Keeps the sentence for farsum_last_error and returns the code.
farsum_status fail(const Status& status);
farsum_status fail(Code code, std::string text);
// The process has no memory left, or something else was thrown: told without allocating.
farsum_status fail_thrown(const char* call) noexcept;

// Runs the body of a call of the C interface; no exception passes it. What threw may have been done in part.
template <class Body>
farsum_status guarded(const char* call, Body&& body) noexcept {
  try {
    return body();
  } catch (...) {
    return fail_thrown(call);
  }
}

// A negative rank wraps around, and is out of range so.
inline std::span<const std::uint32_t> ranks_of(const int* ranks, int count) {
  if (count <= 0 || ranks == nullptr) return {};
  return {reinterpret_cast<const std::uint32_t*>(ranks), static_cast<std::size_t>(count)};
}

inline farsum_status report(const Status& status) { return status.is_ok() ? FARSUM_OK : fail(status); }

// The live context; null when there is none, or in a forked child.
Context* live_context();
farsum_status no_context(const char* call);

// Whether a window of this process may answer reads from copies (ReadCopies::are_used, where the hot path finds it, and
// for as long as the context lives): then it counts how often it hears of others. Relaxed: whoever made such a window
// and reads from it is ordered behind this, and no copy is older.
extern std::atomic<bool> reads_have_copies;
inline bool copies_answer_reads() { return reads_have_copies.load(std::memory_order_relaxed); }

// This process synchronises with others in the call.
[[gnu::cold]] void hear();
[[gnu::always_inline]] inline void heard() {
  if (copies_answer_reads()) [[unlikely]]
    hear();
}
// The same at the end of a scope.
class HearsAtEnd {
 public:
  HearsAtEnd() = default;
  ~HearsAtEnd() { heard(); }
  HearsAtEnd(const HearsAtEnd&) = delete;
  HearsAtEnd& operator=(const HearsAtEnd&) = delete;
};

// What the hot path has changed; counted when it is done.
extern UnheardChanges hot_changes;
[[gnu::always_inline]] inline void note_hot_change() {
  if (copies_answer_reads()) [[unlikely]]
    hot_changes.count();
}

// The hot window of a handle whose slot was found.
inline HotWindow hot_window(const WindowSlot& slot, farsum_window window) {
  return {.views = view_arena + (window.bits >> index_bits & view_mask), .parts = slot.parts};
}

inline WindowSlot* find_window(farsum_window window) {
  WindowSlot& slot = window_slots[window.bits & index_mask];
  // Relaxed: the handle reached this thread through something that orders it after the window's making.
  return window.bits != 0 && slot.bits.load(std::memory_order_relaxed) == window.bits ? &slot : nullptr;
}
farsum_status bad_window(const char* call, farsum_window window);
// Of a collective's request.
farsum_status test_carried(farsum_request* request, const RequestSlot& slot, int* done);
farsum_status wait_for_carried(farsum_request* request, const RequestSlot& slot);
farsum_status find_group(const char* call, farsum_group handle, Group*& group);
// The same for calls in which its ranks meet: refused where some have not been introduced to each other.
farsum_status find_meeting_group(const char* call, farsum_group handle, Group*& group);

// A slot is taken before its window is made, so that a rank that has none can tell the others in time. no_window_slot:
// all are taken.
inline constexpr std::size_t no_window_slot = ~std::size_t{0};
std::size_t take_window_slot();
void give_window_slot_back(std::size_t index);
farsum_window add_window(std::size_t index, WindowObject* object);
void remove_window(WindowSlot& slot);

}  // namespace farsum::capi
