// The entry point of a fuzzing engine; FARSUM_FUZZ_TARGET names the function of targets.hpp that it feeds.
#include "targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  farsum::fuzz::FARSUM_FUZZ_TARGET({data, size});
  return 0;
}
