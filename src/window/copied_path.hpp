// The paths on which the origin computes on a copy: attach, where the kernel moves the bytes, and paper 1's
// caller-computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/settings.hpp"
#include "memory/apply.hpp"
#include "memory/atomicity.hpp"
#include "ops/atomics.hpp"
#include "ops/kernels.hpp"
#include "protocol/operation.hpp"
#include "transport/transport.hpp"
#include "window/mapped_path.hpp"
#include "window/region_tables.hpp"
#include "window/window_texts.hpp"

namespace farsum {

class CopiedPath {
 public:
  // All outlive it.
  struct Needs {
    const std::vector<Rank>& ranks;  // of the job, by rank of the group
    Transport& transport;
    const ops::KernelSet& kernels;
    const LockAgent& agent;  // of this process's threads
    const MappedPath& mapped;
    const WindowTexts& texts;
    CallerLock caller_lock = CallerLock::stripe;
  };
  explicit CopiedPath(const Needs& needs) : needs_(needs) {}

  // An update that is computed on a copy.
  struct Update {
    Reduction reduction;
    const std::byte* compare = nullptr;  // of a compare-and-swap alone
    bool fetches = false;

    // REPLACE without a result needs no get (paper 1, footnote 2); NO_OP needs no put.
    bool gets() const { return compare != nullptr || fetches || reduction.op != ops::Operator::replace; }
    bool puts() const { return compare != nullptr || reduction.op != ops::Operator::no_op; }
    // `result`, where not null, receives the old values; nobody else touches the copy.
    void apply(std::byte* copy, std::uint64_t elements, const std::byte* operand, std::byte* result) const {
      if (compare != nullptr) {
        ops::plain_compare_and_swap(copy, compare, operand, result, reduction.type);
      } else if (result != nullptr) {
        reduction.fetch(copy, operand, result, elements, reduction.alpha);
      } else {
        reduction.bulk(copy, operand, elements, reduction.alpha);
      }
    }
  };

  struct Element {
    const char* call;
    std::uint32_t target;
    const Region& region;
    std::uint64_t offset;
    const std::byte* operand;
    std::byte* result;
  };

  // The operation has been checked and lies in the region as a whole. It is complete on return.
  Status attach(const Operation& operation, std::uint32_t target, const Region& region) const;
  Status caller(const Operation& operation, std::uint32_t target, const Region& region) const;
  // One element, on memory that the kernel copies.
  Status update_element(const Update& update, const Element& element) const;

 private:
  Update update_of(const Operation& operation) const;
  Status update_element_by_copy(const Operation& operation, std::uint32_t target, const Region& region) const;
  Status reduce_by_copy(const Operation& operation, std::uint32_t target, const Region& region, CallerLock granularity,
                        bool through_kernel) const;
  // Copies pieces of an owner's memory here, or back.
  Transfer fetch_pieces(const Region& region, Rank owner, std::span<const TransferPiece> pieces,
                        bool through_kernel) const;
  Transfer store_pieces(const Region& region, Rank owner, std::span<const TransferPiece> pieces,
                        bool through_kernel) const;
  std::string name_missing(Rank owner, std::span<const TransferPiece> pieces) const;

  Needs needs_;
};

}  // namespace farsum
