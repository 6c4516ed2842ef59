// This rank's network card, for windows that are declared for cards alone, opened with the first of them; and what one
// window has of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_mutex.hpp"
#include "transport/rdma.hpp"
#include "variants/cards/card_path.hpp"

namespace farsum {

// What a rank tells the others of its part before such a window is made.
struct CardOffer {
  Code code = Code::ok;
  std::uint32_t address_bytes = 0;
  std::uint32_t key_bytes = 0;
  std::uint64_t memory = 0;
  std::array<char, 256> why{};  // where it has none
  std::array<std::byte, Rdma::most_address_bytes> address{};
  std::array<std::byte, Rdma::most_key_bytes> key{};

  // It allocates nothing: want of memory is told so, too.
  void refuse(Code with, std::string_view because) noexcept;
  std::string refusal() const;
};

// A window's parts as cards have them: the own one exposed, the others reached. Ends that when it goes, which must not
// be before the last rank has left the window.
class CardParts {
 public:
  explicit CardParts(Rdma& rdma) : rdma_(rdma) {}
  ~CardParts();
  CardParts(const CardParts&) = delete;
  CardParts& operator=(const CardParts&) = delete;

  // Null: memory of the card's making.
  Status expose(std::byte* memory, std::uint64_t bytes);
  std::byte* memory() const { return own_.memory; }
  CardOffer offer() const;
  // The offers of all, by rank of the group; none refuses.
  void reach(const std::vector<Rank>& ranks, const std::vector<CardOffer>& offers);
  CardReach found() const { return {&rdma_, reached_}; }
  std::uint64_t address_of(std::uint32_t rank) const { return addresses_[rank]; }
  std::string description() const { return rdma_.description(); }

 private:
  Rdma& rdma_;
  CardMemory own_;
  bool is_exposed_ = false;
  std::vector<Rdma::Reached> reached_;
  std::vector<std::uint64_t> addresses_;
};

class CardSide {
 public:
  struct Parts {
    Rank rank = 0;
    const Settings* settings = nullptr;
    std::function<void(Rank, const std::string&)> on_lost;
    std::function<Status(Rdma&)> started;  // it is there from now on, to be looked after
  };

  explicit CardSide(Parts parts) : parts_(std::move(parts)) {}

  // Opens it; what was refused once is refused for good.
  Result<Rdma*> open();
  // Nothing is under way, and nothing is begun any more.
  void abandon();

 private:
  Parts parts_;
  ThreadMutex opening_;
  std::unique_ptr<Rdma> rdma_ FARSUM_GUARDED_BY(opening_);
  Status refusal_ FARSUM_GUARDED_BY(opening_);
};

}  // namespace farsum
