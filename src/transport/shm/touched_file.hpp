// What of a stretch of a sparse file in memory has pages, made zero again without giving them back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace farsum {

// Stores zeros to all of [offset, offset + bytes) of the file behind `fd` that holds data; it is mapped at `memory`,
// and nobody else touches it meanwhile. Returns how many bytes that was. Nothing where that is more than `most_bytes`,
// lies in many pieces, or is not all in RAM: what then is zero and what not is open.
std::optional<std::uint64_t> zero_what_was_touched(int fd, std::uint64_t offset, std::uint64_t bytes, std::byte* memory,
                                                   std::uint64_t most_bytes);

}  // namespace farsum
