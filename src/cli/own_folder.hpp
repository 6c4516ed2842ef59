// Where this program lies, and with it what was built or installed beside it.
#pragma once

#include <filesystem>

namespace farsum::cli {

[[nodiscard]] std::filesystem::path own_folder();
// With the MPI fronts: by a way from this program that was fixed when it was built.
[[nodiscard]] std::filesystem::path own_front_folder();

}  // namespace farsum::cli
