// Which pages of a stretch of this process's private memory hold anything: those in memory or swapped out, and not only
// a shared page of zeros where the kernel tells (PAGEMAP_SCAN, Linux 6.7). It only looks. For promotion, also while
// threads are held: it allocates nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "promotion/page_move.hpp"

namespace farsum::os {

class TouchedPages {
 public:
  // The best that may be asked; tests have older kernels.
  enum class Source : std::uint8_t { scan, entries, none };

  explicit TouchedPages(Source best = Source::scan);
  ~TouchedPages();
  TouchedPages(const TouchedPages&) = delete;
  TouchedPages& operator=(const TouchedPages&) = delete;

  // Looks at a stretch of whole pages from its beginning on, as far as there is room for what is found, and returns
  // that part of it. Where the kernel tells nothing, all of it counts as touched.
  Stretch look(const Stretch& stretch, Carrier carrier = Carrier::library);
  // What the last look found: in ascending order, apart from each other, inside the part returned.
  [[nodiscard]] std::span<const Stretch> runs() const { return {runs_.data(), count_}; }

  // Of a whole stretch.
  [[nodiscard]] std::size_t bytes_in(const Stretch& stretch);

 private:
  static constexpr std::size_t most_runs = 256;
  static constexpr std::size_t most_entries = 512;

  template <class Calls>
  Stretch look_with(const Stretch& stretch);
  template <class Calls>
  bool scan(const Stretch& stretch, Stretch& seen);
  template <class Calls>
  bool read_entries(const Stretch& stretch, Stretch& seen);
  void add(const Stretch& run);

  Source source_;
  const std::size_t page_;
  int fd_ = -1;
  std::size_t count_ = 0;
  std::array<Stretch, most_runs> runs_;
  // As the kernel writes them: a page_region each, or the entry of a page.
  std::array<std::uint64_t, 3 * most_runs> answer_;
};

}  // namespace farsum::os
