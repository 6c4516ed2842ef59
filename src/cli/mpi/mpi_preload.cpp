// The names of runtimes, GCC's and Clang's, and the order of LD_PRELOAD.
#include "cli/mpi/mpi_preload.hpp"

#include <algorithm>
#include <array>

#include "cli/base_name.hpp"

namespace farsum::cli {

namespace {

// Those that must come first before the others, which need not.
constexpr std::array<std::string_view, 5> sanitizers = {"asan", "hwasan", "tsan", "lsan", "ubsan"};
constexpr std::size_t exclusive = 3;

constexpr const char* separators = ": ";

// "libclang_rt.asan-x86_64.so", "libclang_rt.asan.so", "libclang_rt.ubsan_standalone-x86_64.so"; "libasan.so.8".
bool is_runtime_of(std::string_view sanitizer, std::string_view name) {
  for (const std::string_view prefix : {std::string_view("libclang_rt."), std::string_view("lib")}) {
    if (!name.starts_with(prefix)) continue;
    const std::string_view rest = name.substr(prefix.size());
    if (!rest.starts_with(sanitizer)) continue;
    const std::string_view behind = rest.substr(sanitizer.size());
    if (behind.starts_with(".so")) return true;
    const bool is_clangs = prefix.size() > 3 && (behind.starts_with('-') || behind.starts_with('_'));
    if (is_clangs && behind.find(".so") != std::string_view::npos) return true;
  }
  return false;
}

std::size_t place_of(std::string_view sanitizer) {
  return static_cast<std::size_t>(std::find(sanitizers.begin(), sanitizers.end(), sanitizer) - sanitizers.begin());
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start < list.size();) {
    const std::size_t end = std::min(list.find_first_of(separators, start), list.size());
    if (end > start) parts.push_back(list.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

bool is_runtime(const std::string& path) { return !sanitizer_of(path).empty(); }

}  // namespace

std::string_view sanitizer_of(std::string_view path) {
  const std::string_view name = base_name(path);
  const auto found = std::find_if(sanitizers.begin(), sanitizers.end(),
                                  [name](std::string_view sanitizer) { return is_runtime_of(sanitizer, name); });
  return found == sanitizers.end() ? std::string_view{} : *found;
}

bool exclude_each_other(std::string_view sanitizer, std::string_view other) {
  return sanitizer != other && place_of(sanitizer) < exclusive && place_of(other) < exclusive;
}

std::vector<std::string> runtimes_to_add(const std::vector<std::string>& needed, const std::string& users_preload) {
  const std::vector<std::string> parts = split(users_preload);
  std::vector<std::string> added;
  for (const std::string& runtime : needed) {
    const auto is_same = [&](const std::string& part) { return sanitizer_of(part) == sanitizer_of(runtime); };
    if (std::none_of(parts.begin(), parts.end(), is_same)) added.push_back(runtime);
  }
  return added;
}

std::string merge_preload(const std::string& library, const std::vector<std::string>& needed,
                          const std::string& users_preload) {
  std::vector<std::string> parts = split(users_preload);
  std::erase(parts, library);
  const auto rest = std::stable_partition(parts.begin(), parts.end(), is_runtime);
  std::vector<std::string> first(parts.begin(), rest);
  const std::vector<std::string> added = runtimes_to_add(needed, users_preload);
  first.insert(first.begin(), added.begin(), added.end());
  std::stable_sort(first.begin(), first.end(), [](const std::string& one, const std::string& other) {
    return place_of(sanitizer_of(one)) < place_of(sanitizer_of(other));
  });
  first.push_back(library);
  first.insert(first.end(), rest, parts.end());
  std::string merged;
  for (const std::string& part : first) merged += (merged.empty() ? "" : ":") + part;
  return merged;
}

}  // namespace farsum::cli
