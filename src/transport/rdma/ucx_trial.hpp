// Finds out whether memory is reached while the program that exposed it does nothing, by trying: UCX does what a card
// cannot in the owner's progress, and no version of it says so in every case.
#pragma once

#include <cstdint>

#include "base/status.hpp"
#include "transport/rdma/ucx_memory.hpp"
#include "transport/ucx/ucx_context.hpp"

namespace farsum {

struct UcxTrial {
  UcxResource card;  // that does the atomics; empty where UCX does not say
  // Whether and, or, exclusive or bring what was there: UCX 1.13 compares it to the operand on a processor.
  bool fetches_bits = true;
};

enum class UcxWords : std::uint8_t { of_8, of_4_and_8 };

// Puts to it, gets from it and updates its first word in all ways; it is zero before and after. The owner's program has
// to help only with connecting. Fails with Code::unsupported, naming the first operation that waits for the owner. Some
// milliseconds; some 200 where it fails.
Result<UcxTrial> try_everything(UcxContext& context, const UcxMemory& memory, UcxWords words);
// Gets from it, and does nothing else.
Result<UcxTrial> try_reading(UcxContext& context, const UcxMemory& memory);

}  // namespace farsum
