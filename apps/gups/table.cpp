#include "table.hpp"

#include <fmt/format.h>

#include "random_stream.hpp"

namespace gups {

Table::Table(const apps::Job& job, const Options& options, const farsum_window_options& window_options)
    : job_(job), words_(options.words(), job.size()), mask_(options.words() - 1) {
  const std::uint64_t count = words_.count(job.rank());
  const std::size_t bytes = count * sizeof(std::uint64_t);
  void* memory = nullptr;
  if (options.memory == Memory::adopted) {
    adopted_ = std::make_unique<std::uint64_t[]>(count);
    memory = adopted_.get();
    apps::require(farsum_window_adopt(farsum_world(), memory, bytes, &window_options, &window_));
  } else {
    apps::require(farsum_window_allocate(farsum_world(), bytes, &window_options, &memory, &window_));
  }
  part_ = {static_cast<std::uint64_t*>(memory), count};
}

Table::~Table() {
  if (!apps::is_unwinding()) static_cast<void>(farsum_window_free(&window_));
}

void Table::fill() {
  const std::uint64_t first = words_.first(job_.rank());
  for (std::uint64_t w = 0; w < part_.size(); ++w) part_[w] = first + w;
  job_.barrier();
}

std::uint64_t Table::undo_and_count_wrong(farsum_op op, std::uint64_t updates) {
  job_.barrier();
  const std::uint64_t first = words_.first(job_.rank());
  std::uint64_t random = random_at(0);
  for (std::uint64_t n = 0; n < updates; ++n) {
    random = next_random(random);
    const std::uint64_t w = (random & mask_) - first;  // wraps to a large number below this rank's part
    if (w >= part_.size()) continue;
    part_[w] = op == FARSUM_BXOR ? part_[w] ^ random : part_[w] - random;
  }
  std::uint64_t wrong = 0;
  for (std::uint64_t w = 0; w < part_.size(); ++w) wrong += part_[w] != first + w ? 1 : 0;
  job_.barrier();
  return wrong;
}

void Table::require_cards() const {
  farsum_region_info part{};
  apps::require(farsum_window_region(window_, job_.rank(), 0, &part));
  if (part.atomic_path == FARSUM_PATH_OFFLOAD) return;
  throw apps::CommunicationError(fmt::format("the table is no card's: {}", static_cast<const char*>(part.reason)));
}

std::vector<std::uint64_t*> Table::mapped_parts() const {
  std::vector<std::uint64_t*> parts;
  for (int rank = 0; rank < job_.size(); ++rank) {
    void* address = nullptr;
    std::size_t bytes = 0;
    apps::require(farsum_window_shared_query(window_, rank, &address, &bytes));
    if (address == nullptr) return {};
    parts.push_back(static_cast<std::uint64_t*>(address));
  }
  return parts;
}

}  // namespace gups
