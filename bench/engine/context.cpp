#include "context.hpp"

#include <cstdlib>

namespace bench {
namespace {

farsum_window_options options_with(std::uint32_t promises) {
  farsum_window_options options{};
  options.struct_bytes = sizeof options;
  options.promises = promises;
  return options;
}

// Leaving is collective; while a failure unwinds, the other rank is somewhere else.
bool is_unwinding() { return std::uncaught_exceptions() > 0; }

}  // namespace

Context::Context(Settings settings) : settings_(std::move(settings)) {
  for (const auto& [name, value] : settings_) setenv(name.c_str(), value.c_str(), 1);
  require(farsum_init(nullptr));
}

Context::~Context() {
  if (is_unwinding()) return;
  static_cast<void>(farsum_finalize());
  for (const auto& [name, value] : settings_) unsetenv(name.c_str());
}

Window::Window(std::size_t bytes, std::uint32_t promises) : bytes_(bytes) {
  const farsum_window_options options = options_with(promises);
  void* memory = nullptr;
  require(farsum_window_allocate(farsum_world(), bytes, &options, &memory, &window_));
  require(farsum_lock_all(window_));
}

Window::Window(void* memory, std::size_t bytes, std::uint32_t promises) : bytes_(bytes) {
  const farsum_window_options options = options_with(promises);
  require(farsum_window_adopt(farsum_world(), memory, bytes, &options, &window_));
  require(farsum_lock_all(window_));
}

Window::~Window() {
  if (is_unwinding()) return;
  static_cast<void>(farsum_unlock_all(window_));
  static_cast<void>(farsum_window_free(&window_));
}

std::byte* Window::part(int rank) const {
  void* address = nullptr;
  std::size_t bytes = 0;
  require(farsum_window_shared_query(window_, rank, &address, &bytes));
  return static_cast<std::byte*>(address);
}

farsum_region_info Window::region(int rank) const {
  farsum_region_info info{};
  require(farsum_window_region(window_, rank, 0, &info));
  return info;
}

}  // namespace bench
