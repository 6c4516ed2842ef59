// Life, groups and collectives of the C interface.
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iterator>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/no_room.hpp"
#include "capi/global.hpp"
#include "capi/memory.hpp"
#include "capi/struct_sizes.hpp"
#include "liveness/network_card.hpp"

namespace farsum::capi {

static_assert(static_cast<int>(Code::ok) == FARSUM_OK && static_cast<int>(Code::argument) == FARSUM_ERR_ARGUMENT);
static_assert(static_cast<int>(Code::handle) == FARSUM_ERR_HANDLE && static_cast<int>(Code::range) == FARSUM_ERR_RANGE);
static_assert(static_cast<int>(Code::type) == FARSUM_ERR_TYPE && static_cast<int>(Code::sync) == FARSUM_ERR_SYNC);
static_assert(static_cast<int>(Code::pending) == FARSUM_ERR_PENDING &&
              static_cast<int>(Code::peer_failed) == FARSUM_ERR_PEER_FAILED);
static_assert(static_cast<int>(Code::system) == FARSUM_ERR_SYSTEM &&
              static_cast<int>(Code::no_memory) == FARSUM_ERR_NO_MEMORY);

WindowSlot window_slots[most_windows];
std::atomic<bool> reads_have_copies{false};
UnheardChanges hot_changes;
// Zero until used: costs address space, not memory.
TargetView view_arena[most_views];

Global& global() {
  // Never destroyed: threads may still be inside Farsum while static destructors run.
  static Global* const instance = new Global;
  return *instance;
}

namespace {

// What a thread's latest calls said.
struct Texts {
  std::string last_error;
  std::string settings;
};
constinit thread_local Texts* own_texts = nullptr;
constinit thread_local bool texts_are_over = false;

// Gives a thread's texts back when it ends.
struct TextsEnd {
  ~TextsEnd() {
    texts_are_over = true;
    delete std::exchange(own_texts, nullptr);
  }
};

// Also after the end: exit handlers run when the thread_locals of the thread that calls exit are gone, and what they
// are told stays. Null where there is no memory. Out of line, so that tools/check_destructors finds the one place.
[[gnu::noinline]] Texts* texts_of_thread() {
  if (own_texts == nullptr) {
    own_texts = new (std::nothrow) Texts;
    if (own_texts != nullptr && !texts_are_over) {
      thread_local TextsEnd end;
    }
  }
  return own_texts;
}

// What is told where there is no memory for a sentence; "" while that in Texts counts.
thread_local std::array<char, 160> told_without_memory{};

}  // namespace

farsum_status fail(Code code, std::string text) {
  if (Texts* texts = texts_of_thread(); texts != nullptr) {
    texts->last_error = std::move(text);
    told_without_memory[0] = '\0';
  } else {
    std::snprintf(told_without_memory.data(), told_without_memory.size(), "%s", text.c_str());
  }
  return static_cast<farsum_status>(code);
}

farsum_status fail_thrown(const char* call) noexcept {
  std::array<char, 160>& text = told_without_memory;
  try {
    throw;
  } catch (const NoRoom& no_room) {
    std::snprintf(text.data(), text.size(), "%s: %s", call, no_room.what());
    return FARSUM_ERR_NO_MEMORY;
  } catch (const std::bad_alloc&) {
    std::snprintf(text.data(), text.size(), "%s: the process has no memory left", call);
    return FARSUM_ERR_NO_MEMORY;
  } catch (const std::exception& error) {
    std::snprintf(text.data(), text.size(), "%s: %s", call, error.what());
  } catch (...) {
    std::snprintf(text.data(), text.size(), "%s: something unknown was thrown", call);
  }
  return FARSUM_ERR_SYSTEM;
}

farsum_status fail(const Status& status) { return fail(status.code(), status.text()); }

Context* live_context() { return global().live.load(std::memory_order_acquire); }

void hear() {
  if (Context* context = live_context(); context != nullptr) context->hearing().hear();
}

farsum_status no_context(const char* call) {
  if (global().is_forked_child.load(std::memory_order_relaxed)) {
    return fail(Code::not_initialized, fmt::format("{}: called in a forked child, which is no rank of the job", call));
  }
  return fail(Code::not_initialized, fmt::format("{}: there is no context; call farsum_init first", call));
}

farsum_status find_group(const char* call, farsum_group handle, Group*& group) {
  if (live_context() == nullptr) return no_context(call);
  GroupSlot* slot = global().groups.find(handle.bits);
  if (slot == nullptr) return fail(Code::handle, fmt::format("{}: the group {:#x} does not live", call, handle.bits));
  group = slot->group;
  return FARSUM_OK;
}

farsum_status find_meeting_group(const char* call, farsum_group handle, Group*& group) {
  if (const farsum_status status = find_group(call, handle, group); status != FARSUM_OK) return status;
  if (group->meets()) return FARSUM_OK;
  return fail(Code::unsupported, fmt::format("{}: some ranks of the group have not been introduced to each other "
                                             "(farsum_network_introduce)",
                                             call));
}

namespace {

// A forked child has the parent's windows in its memory but is no rank: its handles stop working.
void forget_windows_in_child() {
  if (global().live.load(std::memory_order_relaxed) == nullptr) return;
  global().live.store(nullptr, std::memory_order_relaxed);
  global().is_forked_child.store(true, std::memory_order_relaxed);
  forget_memory_in_child();
  const std::size_t used = global().window_slots_used.load(std::memory_order_relaxed);
  for (std::size_t index = 0; index < used; ++index) window_slots[index].bits.store(0, std::memory_order_relaxed);
}

static_assert(sizeof(NetworkCard) <= FARSUM_NETWORK_CARD_BYTES);

Status check_ranks(const char* what, int rank, int size) {
  if (size >= 1 && rank >= 0 && rank < size) return {};
  return {Code::argument,
          fmt::format("farsum_init: {}rank {} of {} ranks; there must be 1 or more ranks, numbered from 0", what, rank,
                      size)};
}

// Credentials that keep PMIx hold a connection whose breaking the launcher takes for a rank's failure.
void leave_launcher_at_exit() {
  Global& state = global();
  state.credentials_owner = getpid();
  std::call_once(state.exit_handler, [] {
    std::atexit([] {
      // A forked child has the connection's memory, but not its threads.
      if (global().credentials_owner == getpid()) global().credentials.reset();
    });
  });
}

Result<Membership> join_job_of(const farsum_init_options& options, const Settings& settings) {
  const Environment environment = [](const char* name) { return std::getenv(name); };
  if (options.allgather == nullptr) {
    Result<Membership> membership = join_job(environment, settings, global().credentials);
    if (global().credentials != nullptr && global().credentials->allgather) leave_launcher_at_exit();
    return membership;
  }
  if (Status status = check_ranks("", options.rank, options.size); !status.is_ok()) return status;
  const auto rank = static_cast<std::uint32_t>(options.rank);
  const auto size = static_cast<std::uint32_t>(options.size);
  const Allgather allgather = [call = options.allgather, user = options.allgather_user](const void* mine, void* all,
                                                                                        std::size_t bytes) -> Status {
    if (call(mine, all, bytes, user) == 0) return {};
    return {Code::system, "farsum_init: the caller's allgather failed"};
  };
  if (options.job_size == 0) return join_by_allgather(rank, size, allgather, settings);
  if (Status status = check_ranks("job_", options.job_rank, options.job_size); !status.is_ok()) return status;
  RestOfJob job{static_cast<std::uint32_t>(options.job_rank), static_cast<std::uint32_t>(options.job_size), {}};
  std::memcpy(job.secret.data(), options.job_secret, job.secret.size());
  return join_by_node_allgather(rank, size, allgather, job, settings);
}

Status start(const farsum_init_options& options) {
  Result<Settings> settings = read_settings([](const char* name) { return std::getenv(name); });
  if (!settings.is_ok()) return settings.take_status();
  Global& state = global();
  std::call_once(state.fork_handler, [] { pthread_atfork(nullptr, nullptr, forget_windows_in_child); });
  // The slot is taken before the others are met, who must not wait for a rank that has no memory for the rest.
  HandleTable<GroupSlot>::Reservation world(state.groups);
  Context::Options context_options;
  context_options.settings = settings.value();
  if (options.idle != nullptr) {
    context_options.idle = [idle = options.idle, user = options.idle_user] { idle(user); };
    if (options.idle_gap_ns != 0) context_options.idle_gap_ns = options.idle_gap_ns;
  }
  context_options.many_threads = options.many_threads != 0;
  context_options.lacks_memory = world.lacks_memory();
  Result<Membership> membership = join_job_of(options, settings.value());
  if (!membership.is_ok()) return membership.take_status();
  Result<std::unique_ptr<Context>> context = Context::create(std::move(membership.value()), std::move(context_options));
  if (!context.is_ok()) return context.take_status();
  state.context = std::move(context.value());
  state.world = {world.give_to({&state.context->world()})};
  // Release: everything above is there for whoever finds the context; pairs with the acquire load in live_context.
  state.live.store(state.context.get(), std::memory_order_release);
  return {};
}

farsum_status make_group(const char* call, farsum_group parent, const int* ranks, int count,
                         std::optional<std::uint64_t> number, farsum_group* handle) {
  const HearsAtEnd hears;
  Group* group = nullptr;
  if (const farsum_status status = find_group(call, parent, group); status != FARSUM_OK) return status;
  if (count < 1 || ranks == nullptr || handle == nullptr) {
    return fail(Code::argument,
                fmt::format("{}: at least one rank must be listed, and a place for the handle given", call));
  }
  HandleTable<GroupSlot>::Reservation reservation(global().groups);
  Result<Group*> made = live_context()->groups().create(*group, ranks_of(ranks, count),
                                                        {.lacks_memory = reservation.lacks_memory(), .number = number});
  if (!made.is_ok()) return fail(made.take_status());
  *handle = {reservation.give_to({made.value()})};
  return FARSUM_OK;
}

farsum_status end_group(const char* call, farsum_group* handle, Status (Groups::*end)(Group*)) {
  if (handle == nullptr) return fail(Code::argument, fmt::format("{}: null handle", call));
  Group* group = nullptr;
  if (const farsum_status status = find_group(call, *handle, group); status != FARSUM_OK) return status;
  if (const Status status = (live_context()->groups().*end)(group); !status.is_ok()) return fail(status);
  global().groups.remove(handle->bits);
  handle->bits = 0;
  return FARSUM_OK;
}

}  // namespace
}  // namespace farsum::capi

using namespace farsum;
using namespace farsum::capi;

extern "C" {

const char* farsum_status_name(farsum_status status) {
  switch (status) {
    case FARSUM_OK:
      return "FARSUM_OK";
    case FARSUM_ERR_NOT_INITIALIZED:
      return "FARSUM_ERR_NOT_INITIALIZED";
    case FARSUM_ERR_ARGUMENT:
      return "FARSUM_ERR_ARGUMENT";
    case FARSUM_ERR_HANDLE:
      return "FARSUM_ERR_HANDLE";
    case FARSUM_ERR_RANK:
      return "FARSUM_ERR_RANK";
    case FARSUM_ERR_RANGE:
      return "FARSUM_ERR_RANGE";
    case FARSUM_ERR_ALIGNMENT:
      return "FARSUM_ERR_ALIGNMENT";
    case FARSUM_ERR_TYPE:
      return "FARSUM_ERR_TYPE";
    case FARSUM_ERR_LAYOUT:
      return "FARSUM_ERR_LAYOUT";
    case FARSUM_ERR_SYNC:
      return "FARSUM_ERR_SYNC";
    case FARSUM_ERR_PENDING:
      return "FARSUM_ERR_PENDING";
    case FARSUM_ERR_NO_MEMORY:
      return "FARSUM_ERR_NO_MEMORY";
    case FARSUM_ERR_UNREACHABLE:
      return "FARSUM_ERR_UNREACHABLE";
    case FARSUM_ERR_PEER_FAILED:
      return "FARSUM_ERR_PEER_FAILED";
    case FARSUM_ERR_UNSUPPORTED:
      return "FARSUM_ERR_UNSUPPORTED";
    case FARSUM_ERR_SYSTEM:
      return "FARSUM_ERR_SYSTEM";
  }
  return "unknown status";
}

const char* farsum_last_error(void) {
  if (told_without_memory[0] != '\0') return told_without_memory.data();
  return own_texts == nullptr ? "" : own_texts->last_error.c_str();
}

farsum_group farsum_world(void) { return global().world; }

farsum_status farsum_init(const farsum_init_options* options) {
  return guarded("farsum_init", [&]() -> farsum_status {
    Global& state = global();
    const std::lock_guard lock(state.life);
    if (state.live.load(std::memory_order_acquire) != nullptr ||
        state.is_forked_child.load(std::memory_order_relaxed)) {
      return fail(Code::pending, "farsum_init: a context lives already; call farsum_finalize first");
    }
    if (options != nullptr && !has_known_size(*options)) {
      return fail(Code::argument, "farsum_init: struct_bytes must be sizeof(farsum_init_options)");
    }
    return report(start(options != nullptr ? completed(*options) : farsum_init_options{}));
  });
}

static farsum_status finalize_with(const char* call, Context::Insistence insistence) {
  Global& state = global();
  const std::lock_guard lock(state.life);
  if (live_context() == nullptr) return no_context(call);
  const Status status = state.context->finalize(insistence);
  // Something is still open: the context lives on.
  if (status.code() == Code::pending) return fail(status);
  state.live.store(nullptr, std::memory_order_release);
  close_memory();
  const std::size_t used = state.window_slots_used.load(std::memory_order_relaxed);
  for (std::size_t index = 0; index < used; ++index) {
    if (window_slots[index].bits.load(std::memory_order_relaxed) != 0) remove_window(window_slots[index]);
  }
  state.counters.clear();
  state.mutexes.clear();
  state.requests.clear();
  state.groups.clear();
  state.world = {0};
  state.context.reset();
  reads_have_copies.store(false, std::memory_order_relaxed);  // with the windows
  return report(status);
}

farsum_status farsum_finalize(void) {
  return guarded("farsum_finalize", [] { return finalize_with("farsum_finalize", Context::Insistence::none); });
}

farsum_status farsum_finalize_forced(void) {
  return guarded("farsum_finalize_forced",
                 [] { return finalize_with("farsum_finalize_forced", Context::Insistence::forced); });
}

farsum_status farsum_network_card(void* card) {
  return guarded("farsum_network_card", [&]() -> farsum_status {
    Context* context = live_context();
    if (context == nullptr) return no_context("farsum_network_card");
    if (card == nullptr) return fail(Code::argument, "farsum_network_card: there is no place for the card");
    Result<NetworkCard> made = context->network().card();
    if (!made.is_ok()) return fail(made.take_status());
    std::memset(card, 0, FARSUM_NETWORK_CARD_BYTES);
    std::memcpy(card, &made.value(), sizeof(NetworkCard));
    return FARSUM_OK;
  });
}

farsum_status farsum_network_introduce(const void* cards, int count) {
  return guarded("farsum_network_introduce", [&]() -> farsum_status {
    Context* context = live_context();
    if (context == nullptr) return no_context("farsum_network_introduce");
    if (count < 0 || (cards == nullptr && count != 0))
      return fail(Code::argument, fmt::format("farsum_network_introduce: {} cards at a null address", count));
    std::vector<NetworkCard> read(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < read.size(); ++i) {
      std::memcpy(&read[i], static_cast<const std::byte*>(cards) + i * FARSUM_NETWORK_CARD_BYTES, sizeof(NetworkCard));
    }
    return report(context->network().introduce(read));
  });
}

farsum_status farsum_attend_begin(void) {
  return guarded("farsum_attend_begin", [&]() -> farsum_status {
    Context* context = live_context();
    if (context == nullptr) return no_context("farsum_attend_begin");
    return report(context->attending().begin());
  });
}

farsum_status farsum_before_mlockall(int flags) {
  return guarded("farsum_before_mlockall", [&]() -> farsum_status {
    // A context that ends meanwhile would take its memory with it.
    const std::unique_lock lock(global().life, std::try_to_lock);
    if (!lock.owns_lock())
      return fail(Code::pending, "farsum_before_mlockall: another thread is in farsum_init or farsum_finalize");
    Context* context = live_context();
    if (context == nullptr) return no_context("farsum_before_mlockall");
    context->leave_free_memory((flags & MCL_FUTURE) != 0);
    return FARSUM_OK;
  });
}

int farsum_attend(void) {
  Context* context = live_context();
  return context != nullptr && context->attending().attend() ? 1 : 0;
}

farsum_status farsum_attend_end(void) {
  return guarded("farsum_attend_end", [&]() -> farsum_status {
    Context* context = live_context();
    if (context == nullptr) return no_context("farsum_attend_end");
    context->attending().end();
    return FARSUM_OK;
  });
}

void farsum_heard(void) { heard(); }

int farsum_is_crowded(void) {
  Context* const context = live_context();
  return context != nullptr && context->processors().is_crowded() ? 1 : 0;
}

const char* farsum_copies_refused(void) {
  Context* const context = live_context();
  if (context == nullptr || context->copies_refused().empty()) return nullptr;
  return context->copies_refused().c_str();
}

int farsum_is_initialized(void) { return live_context() != nullptr ? 1 : 0; }

farsum_status farsum_rank(farsum_group handle, int* rank) {
  return guarded("farsum_rank", [&]() -> farsum_status {
    Group* group = nullptr;
    if (const farsum_status status = find_group("farsum_rank", handle, group); status != FARSUM_OK) return status;
    *rank = static_cast<int>(group->my_rank());
    return FARSUM_OK;
  });
}

farsum_status farsum_size(farsum_group handle, int* size) {
  return guarded("farsum_size", [&]() -> farsum_status {
    Group* group = nullptr;
    if (const farsum_status status = find_group("farsum_size", handle, group); status != FARSUM_OK) return status;
    *size = static_cast<int>(group->size());
    return FARSUM_OK;
  });
}

farsum_status farsum_node(farsum_group handle, int rank, int* node) {
  return guarded("farsum_node", [&]() -> farsum_status {
    Group* group = nullptr;
    if (const farsum_status status = find_group("farsum_node", handle, group); status != FARSUM_OK) return status;
    if (rank < 0 || rank >= static_cast<int>(group->size())) {
      return fail(Code::rank, fmt::format("farsum_node: rank {} is not in the group, whose ranks are 0 to {}", rank,
                                          group->size() - 1));
    }
    const Context& context = *live_context();
    const Rank of_job = group->ranks()[static_cast<std::size_t>(rank)];
    const Membership& membership = context.membership();
    if (!context.reaches(of_job)) {
      return fail(
          Code::unsupported,
          fmt::format("farsum_node: rank {} of the job has not been introduced (farsum_network_introduce)", of_job));
    }
    *node = membership.map.ranks() != 0       ? static_cast<int>(membership.map.node_of(of_job))
            : membership.here.is_here(of_job) ? 0
                                              : 1;
    return FARSUM_OK;
  });
}

farsum_status farsum_group_create(farsum_group parent, const int* ranks, int count, farsum_group* handle) {
  return guarded("farsum_group_create",
                 [&] { return make_group("farsum_group_create", parent, ranks, count, std::nullopt, handle); });
}

farsum_status farsum_group_create_numbered(farsum_group parent, const int* ranks, int count, uint64_t number,
                                           farsum_group* handle) {
  return guarded("farsum_group_create_numbered",
                 [&] { return make_group("farsum_group_create_numbered", parent, ranks, count, number, handle); });
}

farsum_status farsum_group_leave(farsum_group* handle) {
  return guarded("farsum_group_leave", [&] { return end_group("farsum_group_leave", handle, &Groups::leave); });
}

farsum_status farsum_group_free(farsum_group* handle) {
  return guarded("farsum_group_free", [&] {
    const HearsAtEnd hears;
    return end_group("farsum_group_free", handle, &Groups::free);
  });
}

farsum_status farsum_barrier(farsum_group handle) {
  return guarded("farsum_barrier", [&]() -> farsum_status {
    const HearsAtEnd hears;
    Group* group = nullptr;
    if (const farsum_status status = find_meeting_group("farsum_barrier", handle, group); status != FARSUM_OK)
      return status;
    group->count_blocking_call();
    return report(group->team().barrier("farsum_barrier"));
  });
}

farsum_status farsum_broadcast(farsum_group handle, void* buffer, size_t bytes, int root) {
  return guarded("farsum_broadcast", [&]() -> farsum_status {
    const HearsAtEnd hears;
    Group* group = nullptr;
    if (const farsum_status status = find_meeting_group("farsum_broadcast", handle, group); status != FARSUM_OK)
      return status;
    if (root < 0 || root >= static_cast<int>(group->size())) {
      return fail(Code::rank, fmt::format("farsum_broadcast: root {} is not in the group, whose ranks are 0 to {}",
                                          root, group->size() - 1));
    }
    if (buffer == nullptr && bytes != 0) return fail(Code::argument, "farsum_broadcast: the buffer is null");
    group->count_blocking_call();
    return report(group->reductions().broadcast({static_cast<std::byte*>(buffer), bytes},
                                                static_cast<std::uint32_t>(root), "farsum_broadcast"));
  });
}

farsum_status farsum_allgather(farsum_group handle, const void* mine, void* all, size_t bytes) {
  return guarded("farsum_allgather", [&]() -> farsum_status {
    const HearsAtEnd hears;
    Group* group = nullptr;
    if (const farsum_status status = find_meeting_group("farsum_allgather", handle, group); status != FARSUM_OK)
      return status;
    if ((mine == nullptr || all == nullptr) && bytes != 0)
      return fail(Code::argument, "farsum_allgather: a buffer is null");
    std::size_t all_bytes = 0;
    if (__builtin_mul_overflow(bytes, std::size_t{group->size()}, &all_bytes)) {
      return fail(Code::range, fmt::format("farsum_allgather: {} bytes of each of {} ranks are more than memory can "
                                           "hold",
                                           bytes, group->size()));
    }
    group->count_blocking_call();
    return report(group->team().allgather({static_cast<const std::byte*>(mine), bytes},
                                          {static_cast<std::byte*>(all), all_bytes}, "farsum_allgather"));
  });
}

farsum_status farsum_statistics_read(farsum_statistics* statistics) {
  return guarded("farsum_statistics_read", [&]() -> farsum_status {
    Context* context = live_context();
    if (context == nullptr) return no_context("farsum_statistics_read");
    if (statistics == nullptr || !has_known_size(*statistics)) {
      return fail(Code::argument, "farsum_statistics_read: struct_bytes must be sizeof(farsum_statistics)");
    }
    const RankStatistics now = context->statistics();
    farsum_statistics all{};
    static_assert(std::size(farsum_statistics{}.operations) == path_count);
    for (std::size_t path = 0; path < path_count; ++path) {
      all.operations[path] = now.operations[path];
      all.bytes[path] = now.bytes[path];
    }
    all.messages_sent = now.messages_sent;
    all.messages_served = now.messages_served;
    all.agent_wakeups = now.agent_wakeups;
    all.doorbells_rung = now.doorbells_rung;
    all.waits_slept = now.waits_slept;
    all.stripe_contention = now.stripe_contention;
    all.reads_answered = now.reads_answered;
    all.blocks_fetched = now.blocks_fetched;
    all.network_peers = now.network.peers;
    all.network_endpoints = now.network.endpoints;
    all.network_connections = now.network.connections;
    all.network_peer_bytes = now.network.peer_bytes;
    all.network_strangers = now.network.strangers;
    all.network_refused = now.network.refused;
    hand_over(all, *statistics);
    return FARSUM_OK;
  });
}

const char* farsum_settings_text(void) {
  Texts* const texts = texts_of_thread();
  if (texts == nullptr) return "";
  std::string& text = texts->settings;
  Result<Settings> settings = read_settings([](const char* name) { return std::getenv(name); });
  const Settings values = settings.is_ok() ? settings.value() : Settings{};
  text.clear();
  for (const SettingRow& row : describe_settings(values)) {
    text += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\n", row.name, row.type, row.unit, row.default_value, row.value,
                        row.meaning);
  }
  return text.c_str();
}

}  // extern "C"
