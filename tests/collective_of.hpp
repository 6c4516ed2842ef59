// A collective of words, sums where it reduces, as tests pass it to farsum_collect.
#pragma once

#include <farsum.h>

#include <cstddef>
#include <cstdint>

namespace farsum::test {

inline farsum_collective collective_of(farsum_collective_kind kind, std::size_t count, int root = 0) {
  farsum_collective collective{};
  collective.struct_bytes = sizeof collective;
  collective.kind = kind;
  collective.root = root;
  collective.count = count;
  collective.type = FARSUM_UINT64;
  collective.op = FARSUM_SUM;
  return collective;
}

inline farsum_collective allreduce_of(const void* mine, void* result, std::size_t count) {
  farsum_collective collective = collective_of(FARSUM_COLLECT_ALLREDUCE, count);
  collective.mine = mine;
  collective.result = result;
  return collective;
}

}  // namespace farsum::test
