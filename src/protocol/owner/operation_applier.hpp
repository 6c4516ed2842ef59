// Applies operations that arrive to the memory that they name, inside its atomicity domain: pulls operands, pushes
// results, and goes on where it stopped when something was busy. What a message must satisfy is checked before anything
// is applied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "memory/apply.hpp"
#include "protocol/exposure.hpp"
#include "protocol/messages.hpp"
#include "protocol/owner/request_work.hpp"
#include "transport/transport.hpp"

namespace farsum {

// Told when a notification or a counter of posts or completes has been bumped, so that sleepers can be woken.
class NotificationListener {
 public:
  virtual ~NotificationListener() = default;
  virtual void on_notified() = 0;
};

// One thread drives an object at a time.
class OperationApplier final : public TransferHandler {
 public:
  struct Needs {
    Rank rank = 0;
    std::uint64_t pull_bytes = 65536;  // piece in which long operands are pulled
    std::size_t pull_slots = 4;        // operands being pulled at once: bounds the memory used
    const ops::KernelSet* kernels = nullptr;
    const Liveness* liveness = nullptr;
    const LockFreePermits* permits = nullptr;  // see LockAgent
    NotificationListener* listener = nullptr;  // may be null
  };
  explicit OperationApplier(const Needs& needs);
  // Set once before serving.
  void attach(Transport& transport) { transport_ = &transport; }

  // An operation or a scatter. `work` is its sender's, in its initial state where the message is new.
  Served serve(Rank from, const wire::Message& message, const Exposure& exposure, std::span<std::byte> reply_room,
               RequestWork& work);
  void on_transfer(std::uint64_t cookie, Transfer how) override;
  // The request is done, or will not be.
  static void release(RequestWork& work);

  // ---- for what else works on exposed memory ----

  // Whether the memory that the message names is exposed for what it wants.
  Code check_extent(const wire::Message& message, const Exposure& exposure) const;
  Outcome operate(Rank from, const wire::Message& message, const Exposure& exposure, std::span<std::byte> reply_room,
                  RequestWork& work);
  // Bytes of whole elements that lie one behind the other in one region.
  struct Run {
    const ExposedRegion* region = nullptr;  // null: nothing is exposed there
    std::uint64_t at = 0;                   // in the region
    std::uint64_t bytes = 0;
    bool through_kernel = false;
  };
  static Run first_run(const Exposure& exposure, std::uint64_t offset, std::uint64_t bytes,
                       std::uint64_t element_bytes);
  LockAgent lock_agent() const { return {needs_.rank + 1, false, needs_.liveness, nullptr, needs_.permits}; }
  Rank rank() const { return needs_.rank; }
  Transport& transport() const { return *transport_; }

 private:
  using Phase = RequestWork::Phase;
  using Step = Outcome::Step;

  Outcome scatter(const wire::Message& message, const Exposure& exposure, RequestWork& work);
  static std::size_t count_inside(const ExposedRegion& region, std::span<const std::int64_t> offsets,
                                  std::uint64_t element_bytes);
  Outcome compare_and_swap(const wire::Message& message, const Exposure& exposure, std::span<std::byte> reply_room);
  Outcome prepare_chunk(Rank from, const wire::Message& message, RequestWork& work);
  Outcome apply_chunk(const wire::Message& message, const Exposure& exposure, ops::PieceCursor& unapplied,
                      std::span<std::byte> reply_room, RequestWork& work);
  Outcome push_chunk(Rank from, const wire::Message& message, RequestWork& work);
  Outcome apply_run(const wire::MessageHeader& header, const ExposedRegion& region, std::uint64_t offset,
                    const std::byte* operand, std::byte* result, std::uint64_t bytes, std::uint64_t& done);
  Outcome apply_guarded(const wire::MessageHeader& header, const ExposedRegion& region, std::uint64_t offset,
                        const std::byte* operand, std::byte* result, std::uint64_t bytes, std::uint64_t& done);
  // Names a transfer to the transport.
  std::uint64_t begin_transfer(RequestWork& work);
  static Outcome wait_for_transfer(Transfer how, RequestWork& work);
  Code check_presence(const wire::Message& message, const Exposure& exposure) const;
  bool is_there(const Exposure& exposure, std::uint64_t offset, std::uint64_t bytes) const;
  static Code check_places(const wire::Message& message, const Exposure& exposure);
  static const ExposedRegion* region_of_all(const wire::Message& message, const Exposure& exposure);

  Needs needs_;
  Transport* transport_ = nullptr;
  std::vector<std::unique_ptr<PullSlot>> slots_;
  std::unordered_map<std::uint64_t, RequestWork*> transfers_;  // under way, by cookie
  std::uint64_t last_cookie_ = 0;
  std::vector<std::byte> scratch_;
  std::vector<std::int64_t> offsets_;  // of the scatter being served
};

}  // namespace farsum
