// In the place of src/ops/layout_steps.hpp: counts the pieces that are looked at, in this process, by any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace farsum::ops {

inline std::atomic<std::uint64_t> pieces_looked_at{0};

inline void note_piece() { pieces_looked_at.fetch_add(1, std::memory_order_relaxed); }

}  // namespace farsum::ops
