// What the ranks' LD_PRELOAD holds, and in which order: runtimes of sanitizers, Farsum's library, the user's own. Every
// launcher's way to pass it on gets it from here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace farsum::cli {

// Which sanitizer's runtime a shared library is, by its file name: "asan" for libasan.so.8 and
// libclang_rt.asan-x86_64.so. Empty for any other library.
[[nodiscard]] std::string_view sanitizer_of(std::string_view path);

// True where a program cannot have the runtimes of both: each keeps the same address room for itself.
[[nodiscard]] bool exclude_each_other(std::string_view sanitizer, std::string_view other);

// Those of `needed` whose sanitizer the user's LD_PRELOAD does not name.
[[nodiscard]] std::vector<std::string> runtimes_to_add(const std::vector<std::string>& needed,
                                                       const std::string& users_preload);

// Puts `library` in front of what LD_PRELOAD already holds, and in front of it the runtimes of sanitizers: those that
// the user names, as he wrote them, and of `needed`, what the program needs, the others. A runtime that does not come
// first ends its program as it begins.
[[nodiscard]] std::string merge_preload(const std::string& library, const std::vector<std::string>& needed,
                                        const std::string& users_preload);

}  // namespace farsum::cli
