// What a print function of UCX writes, as text.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace farsum {

template <class Print>
std::string printed_by(Print print) {
  char* text = nullptr;
  std::size_t bytes = 0;
  std::FILE* stream = open_memstream(&text, &bytes);
  if (stream == nullptr) return {};
  print(stream);
  std::fclose(stream);
  std::string copy(text, bytes);
  std::free(text);  // NOLINT(cppcoreguidelines-no-malloc): open_memstream's buffer
  return copy;
}

}  // namespace farsum
