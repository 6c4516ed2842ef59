// What the hot path reads of a target, before any window has used it.
#include "window/hot_window.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <new>

namespace farsum::test {
namespace {

// src/capi keeps room for the views of all windows, 32 MiB: as zeros they cost address space, as anything else they are
// in the library's file, and the compiler writes them out.
TEST(TargetView, is_zero_in_all_bytes_until_it_is_used) {
  alignas(TargetView) std::array<std::byte, sizeof(TargetView)> room{};
  const std::array<std::byte, sizeof(TargetView)> zeros{};
  new (room.data()) TargetView;
  EXPECT_EQ(std::memcmp(room.data(), zeros.data(), sizeof(TargetView)), 0);
}

}  // namespace
}  // namespace farsum::test
