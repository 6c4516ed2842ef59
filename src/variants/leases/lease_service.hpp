// The owner's half of caller-computes across nodes (paper 1). An origin fetches memory, computes, and puts the result
// back; it is written where the memory is still what was fetched, element by element under the same locks as every
// other update. That decides as a lock held meanwhile would, and nobody waits for the network: what somebody has
// changed is refused and goes back as it is now.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "protocol/owner/request_extension.hpp"
#include "variants/leases/lease_table.hpp"

namespace farsum {

class LeaseService final : public RequestExtension {
 public:
  // Outlives it. The clock gives the age of leases; null: they do not age.
  LeaseService(OperationApplier& applier, const LeaseTable::Options& options, std::function<std::uint64_t()> now_ns)
      : applier_(applier), leases_(options), now_ns_(std::move(now_ns)) {}

  Served serve(Rank from, const wire::Message& message, const Exposure& exposure, std::span<std::byte> reply_room,
               RequestWork& work) override {
    return message.header.kind == wire::MessageKind::lease ? grant(from, message, exposure, reply_room, work)
                                                           : put(from, message, exposure, reply_room, work);
  }
  void forget(Rank dead) override { leases_.forget(dead); }

  const LeaseTable& leases() const { return leases_; }

 private:
  using Step = Outcome::Step;

  Served grant(Rank from, const wire::Message& message, const Exposure& exposure, std::span<std::byte> reply_room,
               RequestWork& work);
  Served put(Rank from, const wire::Message& message, const Exposure& exposure, std::span<std::byte> reply_room,
             RequestWork& work);
  Outcome put_back(Lease& lease, std::span<const std::byte> values, const Exposure& exposure, RequestWork& work);
  Outcome put_back_run(Lease& lease, const OperationApplier::Run& run, std::uint64_t first, const std::byte* values);

  OperationApplier& applier_;
  LeaseTable leases_;
  std::function<std::uint64_t()> now_ns_;
  std::vector<std::byte> scratch_;
};

inline MakeRequestExtension make_lease_service(LeaseTable::Options options, std::function<std::uint64_t()> now_ns) {
  return [options, now_ns = std::move(now_ns)](OperationApplier& applier) {
    return std::make_unique<LeaseService>(applier, options, now_ns);
  };
}

}  // namespace farsum
