#include "transport/rdma/ucx_trial.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "transport/ucx/ucx_bare_worker.hpp"
#include "transport/ucx/ucx_operations.hpp"
#include "transport/ucx/ucx_printed.hpp"

namespace farsum {
namespace {

// What has not come to its end after both waits for the owner: a card on this machine takes microseconds, and a
// processor that is busy elsewhere takes no rounds.
constexpr std::uint64_t patience_ns = 100'000'000;
constexpr int patience_rounds = 1000;
// With the owner's help everything ends, unless the network does not work at all.
constexpr std::uint64_t longest_ns = 5'000'000'000;

struct Step {
  CardUpdate update;
  const char* name;
  std::uint32_t before, operand, after;
  std::uint32_t instead = 0;  // compare_and_swap
};
constexpr std::array<Step, 7> steps = {{
    {CardUpdate::add, "add", 0xfffffff0, 7, 0xfffffff7},
    {CardUpdate::bit_or, "or", 7, 12, 15},
    {CardUpdate::bit_xor, "exclusive or", 15, 9, 6},
    {CardUpdate::bit_and, "and", 6, 3, 2},
    {CardUpdate::swap, "swap", 2, 5, 5},
    {CardUpdate::compare_and_swap, "compare-and-swap", 5, 5, 8, 8},
    {CardUpdate::compare_and_swap, "compare-and-swap", 8, 5, 8, 9},
}};
constexpr std::size_t steps_without_result = 4;

struct Ended {
  const UcxCalls& calls;
  bool is_over = false;
  ucs_status_t status = UCS_OK;
};

void note_end(void* request, ucs_status_t status, void* argument) {
  auto* ended = static_cast<Ended*>(argument);
  ended->calls.request_free(request);
  ended->status = status;
  ended->is_over = true;
}

void pass_over(void*, ucp_ep_h, ucs_status_t) {}

class Trial {
 public:
  Trial(UcxContext& context, const UcxMemory& memory)
      : context_(context), calls_(context.calls()), memory_(memory), address_(address_of(0)) {}
  ~Trial();
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  Status open();
  Status read();
  Status copy();
  Status update_all(std::uint8_t bytes);
  UcxTrial found() const { return found_; }

 private:
  template <class Start>
  Status finish(const std::string& what, Start start);
  template <class Start>
  Status finish_alone(const std::string& what, Start start);
  Status connect();
  Status store(std::uint64_t value);
  Status fetch(const Step& step, std::uint8_t bytes);
  Status update(const Step& step, std::uint8_t bytes);
  template <class Condition>
  bool progress(std::uint64_t for_ns, bool owner_too, Condition condition);
  std::uint64_t address_of(std::size_t offset) const {
    return reinterpret_cast<std::uintptr_t>(memory_.bytes().data() + offset);
  }
  Status check(const std::string& what, std::uint8_t bytes, std::uint64_t expected);
  Status refuse(const std::string& what, const std::string& why) const {
    return {Code::unsupported, fmt::format("over {}, {} {}", context_.description(), what, why)};
  }

  UcxContext& context_;
  const UcxCalls& calls_;
  const UcxMemory& memory_;
  const std::uint64_t address_;
  UcxBareWorker origin_, owner_;
  UcxReached reached_;
  std::deque<Ended> ends_;
  // What UCX writes to and reads from lives until its workers are gone.
  std::array<std::byte, 8> buffer_{};
  std::vector<std::byte> copied_;
  std::uint64_t operand_ = 0, reply_ = 0;
  bool needed_owner_ = false;
  UcxTrial found_;
};

Trial::~Trial() {
  if (reached_.key != nullptr) calls_.rkey_destroy(reached_.key);
  if (reached_.endpoint != nullptr) {
    Ended& ended = ends_.emplace_back(Ended{calls_});
    if (!UCS_PTR_IS_PTR(ucx_close(context_, reached_.endpoint, {note_end, &ended}))) ended.is_over = true;
    for (int i = 0; i < most_closing_rounds && !ended.is_over; ++i) {
      calls_.worker_progress(origin_.handle);
      calls_.worker_progress(owner_.handle);
    }
  }
  if (owner_.handle != nullptr) end_worker(context_, owner_);
  if (origin_.handle != nullptr) end_worker(context_, origin_);
}

template <class Condition>
bool Trial::progress(std::uint64_t for_ns, bool owner_too, Condition condition) {
  const std::uint64_t begin = monotonic_ns();
  for (int i = 0; i < patience_rounds || monotonic_ns() - begin < for_ns; ++i) {
    if (condition()) return true;
    calls_.worker_progress(origin_.handle);
    if (owner_too) calls_.worker_progress(owner_.handle);
  }
  return condition();
}

// Starts an operation and sees to its end, with the owner's help where it needs that; needed_owner_ tells.
template <class Start>
Status Trial::finish(const std::string& what, Start start) {
  Ended& ended = ends_.emplace_back(Ended{calls_});
  const ucs_status_ptr_t request = start(UcxEnd{note_end, &ended});
  needed_owner_ = false;
  if (request == nullptr) return {};
  if (UCS_PTR_IS_ERR(request)) {
    return refuse(what, fmt::format("fails: {}", calls_.status_string(UCS_PTR_STATUS(request))));
  }
  const auto is_over = [&ended] { return ended.is_over; };
  if (!progress(patience_ns, false, is_over)) {
    needed_owner_ = true;
    if (!progress(longest_ns, true, is_over)) return refuse(what, "never ends");
  }
  if (ended.status != UCS_OK) return refuse(what, fmt::format("fails: {}", calls_.status_string(ended.status)));
  return {};
}

template <class Start>
Status Trial::finish_alone(const std::string& what, Start start) {
  Status status = finish(what, start);
  if (status.is_ok() && needed_owner_) return refuse(what, "waits for the owner's program");
  return status;
}

Status Trial::open() {
  auto origin = make_worker(context_);
  if (!origin.is_ok()) return origin.take_status();
  origin_ = std::move(origin.value());
  auto owner = make_worker(context_);
  if (!owner.is_ok()) return owner.take_status();
  owner_ = std::move(owner.value());
  auto endpoint = ucx_connect(context_, origin_.handle, owner_.address, {pass_over, nullptr});
  if (!endpoint.is_ok()) return endpoint.take_status();
  reached_.endpoint = endpoint.value();
  auto key = memory_.key();
  if (!key.is_ok()) return key.take_status();
  const ucs_status_t status = calls_.ep_rkey_unpack(reached_.endpoint, key.value().data(), &reached_.key);
  if (status != UCS_OK) return refuse("a key to memory", fmt::format("is refused: {}", calls_.status_string(status)));
  return connect();
}

Status Trial::connect() {
  const std::size_t bytes = std::min<std::size_t>(memory_.bytes().size(), buffer_.size());
  Status status = finish(
      "a get", [&](UcxEnd end) { return ucx_get(calls_, reached_, address_, std::span(buffer_).first(bytes), end); });
  if (status.is_ok() && needed_owner_) {
    status = finish("a flush", [&](UcxEnd end) { return ucx_flush(calls_, reached_.endpoint, end); });
  }
  found_.card = update_lane_in(printed_by([&](std::FILE* stream) { calls_.ep_print_info(reached_.endpoint, stream); }));
  return status;
}

Status Trial::read() {
  const std::size_t bytes = std::min<std::size_t>(memory_.bytes().size(), buffer_.size());
  return finish_alone(
      "a get", [&](UcxEnd end) { return ucx_get(calls_, reached_, address_, std::span(buffer_).first(bytes), end); });
}

Status Trial::check(const std::string& what, std::uint8_t bytes, std::uint64_t expected) {
  Status status =
      finish_alone("a flush after " + what, [&](UcxEnd end) { return ucx_flush(calls_, reached_.endpoint, end); });
  if (!status.is_ok()) return status;
  // Acquire: a card wrote it, or another mapping of the same memory. The compiler sees none of it.
  auto& word = *reinterpret_cast<std::uint64_t*>(memory_.bytes().data());
  const std::uint64_t whole = std::atomic_ref(word).load(std::memory_order_acquire);
  std::uint64_t there = 0;
  std::memcpy(&there, &whole, bytes);
  if (there != expected) return refuse(what, fmt::format("leaves {:#x} for {:#x}", there, expected));
  return {};
}

// Copies all sizes that go different ways.
Status Trial::copy() {
  copied_.resize(memory_.bytes().size());
  for (std::size_t size = 1; size <= copied_.size(); size *= 8) {
    const std::span<std::byte> some = std::span(copied_).first(size);
    Status status = finish_alone(fmt::format("a get of {} bytes", size),
                                 [&](UcxEnd end) { return ucx_get(calls_, reached_, address_, some, end); });
    if (status.is_ok()) {
      status = finish_alone(fmt::format("a put of {} bytes", size),
                            [&](UcxEnd end) { return ucx_put(calls_, reached_, address_, some, end); });
    }
    if (status.is_ok()) status = check(fmt::format("a put of {} bytes", size), 8, 0);
    if (!status.is_ok()) return status;
  }
  return {};
}

Status Trial::store(std::uint64_t value) {
  operand_ = value;
  Status status = finish_alone("a put", [&](UcxEnd end) {
    return ucx_put(calls_, reached_, address_, std::as_bytes(std::span(&operand_, 1)), end);
  });
  return status.is_ok() ? check("a put", 8, operand_) : std::move(status);
}

Status Trial::fetch(const Step& step, std::uint8_t bytes) {
  const std::string what = fmt::format("an atomic {} on {} bytes", step.name, bytes);
  Status status = store(step.before);
  operand_ = step.operand;
  reply_ = step.instead;
  if (status.is_ok()) {
    status = finish_alone(what, [&](UcxEnd end) {
      return ucx_fetch(calls_, reached_, {address_, bytes, step.update}, operand_, reply_, end);
    });
  }
  if (!status.is_ok()) return status;
  status = check(what, bytes, step.after);
  if (!status.is_ok() && is_of_bits(step.update)) {
    found_.fetches_bits = false;
    return {};
  }
  std::uint64_t fetched = 0;
  std::memcpy(&fetched, &reply_, bytes);
  if (status.is_ok() && fetched != step.before) {
    return refuse(what, fmt::format("answers {} for {}", fetched, step.before));
  }
  return status;
}

Status Trial::update(const Step& step, std::uint8_t bytes) {
  const std::string what = fmt::format("an atomic {} on {} bytes without a result", step.name, bytes);
  Status status = store(step.before);
  operand_ = step.operand;
  if (status.is_ok()) {
    status = finish_alone(what, [&](UcxEnd end) {
      return ucx_update(calls_, reached_, {address_, bytes, step.update}, operand_, end);
    });
  }
  return status.is_ok() ? check(what, bytes, step.after) : std::move(status);
}

Status Trial::update_all(std::uint8_t bytes) {
  Status status;
  for (const Step& step : steps) {
    if (status.is_ok()) status = fetch(step, bytes);
  }
  for (const Step& step : std::span(steps).first(steps_without_result)) {
    if (status.is_ok()) status = update(step, bytes);
  }
  return status.is_ok() ? store(0) : std::move(status);
}

}  // namespace

Result<UcxTrial> try_everything(UcxContext& context, const UcxMemory& memory, UcxWords words) {
  Trial trial(context, memory);
  Status status = trial.open();
  if (status.is_ok()) status = trial.copy();
  if (status.is_ok()) status = trial.update_all(8);
  if (status.is_ok() && words == UcxWords::of_4_and_8) status = trial.update_all(4);
  if (!status.is_ok()) return status;
  return trial.found();
}

Result<UcxTrial> try_reading(UcxContext& context, const UcxMemory& memory) {
  Trial trial(context, memory);
  Status status = trial.open();
  if (status.is_ok()) status = trial.read();
  if (!status.is_ok()) return status;
  return trial.found();
}

}  // namespace farsum
