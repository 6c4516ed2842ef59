// What must stay byte for byte, held against a file of tests/golden.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

#include <fmt/format.h>

namespace farsum {

// Where each word of 8 bytes that is not zero lies, and what it is; a last one that is shorter is filled up with zeros.
inline std::string words_of(std::span<const std::byte> bytes) {
  std::string text = fmt::format("{} bytes", bytes.size());
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min<std::size_t>(8, bytes.size() - at));
    if (word != 0) text += fmt::format("\n  {:3}: {:016x}", at, word);
  }
  return text + "\n";
}

// FARSUM_RECORD_GOLDEN=1 writes the file instead: for a change that is meant, whose version number has been raised.
inline void expect_golden(const std::string& name, const std::string& now) {
  const std::string path = std::string(FARSUM_SOURCE_DIR) + "/tests/golden/" + name + ".txt";
  if (std::getenv("FARSUM_RECORD_GOLDEN") != nullptr) {
    std::ofstream(path) << now;
    return;
  }
  std::ifstream file(path);
  const std::string recorded{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_EQ(now, recorded)
      << "Other builds read these bytes. If the change is meant: raise the version that is sent with "
         "them, and run this test with FARSUM_RECORD_GOLDEN=1 to write "
      << path;
}

}  // namespace farsum
