// The table of 64-bit words, spread over the ranks, in a window. Verification here touches only memory of its own rank
// and trusts no call of Farsum but the barrier.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "../common/job.hpp"
#include "farsum.h"
#include "options.hpp"
#include "split.hpp"

namespace gups {

class Table {
 public:
  // Collective.
  Table(const apps::Job& job, const Options& options, const farsum_window_options& window_options);
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  [[nodiscard]] farsum_window window() const { return window_; }
  [[nodiscard]] Location locate(std::uint64_t random) const { return words_.locate(random & mask_); }

  // Sets every word to its index. Collective.
  void fill();

  // Takes all updates of all ranks back from this rank's part and returns how many of its words are not their index
  // then. Collective: nobody updates meanwhile.
  [[nodiscard]] std::uint64_t undo_and_count_wrong(farsum_op op, std::uint64_t updates);

  // Fails with the reason where the window is not the cards': all ranks' parts are or none is.
  void require_cards() const;

  // Where this process can address each rank's part; empty where one is not mapped here.
  [[nodiscard]] std::vector<std::uint64_t*> mapped_parts() const;

 private:
  const apps::Job& job_;
  Split words_;
  std::uint64_t mask_;
  std::unique_ptr<std::uint64_t[]> adopted_;
  std::span<std::uint64_t> part_;
  farsum_window window_{};
};

}  // namespace gups
