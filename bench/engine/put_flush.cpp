// An 8-byte put with its flush, beside a store with a full fence on the same mapped memory.
#include <atomic>

#include "cases.hpp"
#include "context.hpp"
#include "limits.hpp"

namespace bench {
namespace {

constexpr std::uint64_t window_words = 512;
constexpr std::uint64_t word_bytes = sizeof(std::uint64_t);

void put_and_flush(const Window& window, std::uint64_t index, std::uint64_t value) {
  require(farsum_put(window.handle(), 1, (index % window_words) * word_bytes, &value, word_bytes));
  require(farsum_flush(window.handle(), 1));
}

// The owner looks at its own memory.
void check(Session& session, const Window& window) {
  if (session.is_root()) {
    for (std::uint64_t i = 0; i < window_words; ++i) put_and_flush(window, i, 3 * i + 1);
  }
  session.arena().gate();
  if (!session.is_root()) {
    for (std::uint64_t i = 0; i < window_words; ++i) {
      require_answer(window.elements<std::uint64_t>(1)[i] == 3 * i + 1,
                     "a put value is not at its owner after the flush");
    }
  }
}

}  // namespace

void run_put_flush(Session& session) {
  const Context context;
  const Window window(window_words * word_bytes, 0);
  check(session, window);

  auto* mapped = window.elements<std::uint64_t>(1);
  const std::uint64_t count = session.scaled(400'000);
  Row row{.bench = "put-flush",
          .name = "8-byte put + flush, mapped / store + full fence",
          .unit = "ns",
          .aim = {Better::lower, 1.5}};
  session.compare(
      row, session.alone([&] {
        return time_per_operation(count, [&](std::uint64_t i) { store_and_fence(mapped[i % window_words], i); });
      }),
      session.alone([&] { return time_per_operation(count, [&](std::uint64_t i) { put_and_flush(window, i, i); }); }));
}

}  // namespace bench
