// How the basis is cut into blocks, how block pairs and quartets are numbered, and which rank owns which block.
// Pure index arithmetic: no communication, no integrals.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "basis.hpp"

namespace fock {

struct Block {
  int first_shell = 0;
  int end_shell = 0;
  int first_function = 0;
  int functions = 0;
};

struct Blocking {
  std::vector<Block> blocks;
  int functions = 0;

  [[nodiscard]] int count() const { return static_cast<int>(blocks.size()); }
  [[nodiscard]] std::uint64_t pair_count() const { return pairs_below(blocks.size()); }
  [[nodiscard]] std::uint64_t quartet_count() const { return pairs_below(pair_count()); }

 private:
  static std::uint64_t pairs_below(std::uint64_t n) { return n * (n + 1) / 2; }
};

// One block per atom when `most_functions` is 0; otherwise consecutive shells are packed into blocks of at most that
// many functions (a shell that alone is larger gets a block of its own).
Blocking make_blocking(const Basis& basis, int most_functions);

// A block pair i >= j, in the order of its number: (0,0) (1,0) (1,1) (2,0) ...
struct BlockPair {
  int i = 0;
  int j = 0;
};
std::uint64_t pair_number(int i, int j);  // needs i >= j
BlockPair pair_of_number(std::uint64_t number);

struct BlockQuartet {
  BlockPair bra;  // its number is not below the ket's
  BlockPair ket;
};

// The six pairings of a quartet (ij|kl) whose density blocks it reads and whose Fock blocks it adds to.
enum Role : std::uint8_t { role_ij, role_kl, role_ik, role_il, role_jk, role_jl };
inline constexpr int role_count = 6;

// The blocks behind the six roles. Roles whose indices coincide share a block, so 1 to 6 are distinct.
struct QuartetBlocks {
  struct Use {
    int rows = 0;             // block index of the role's first member
    int columns = 0;          // and of its second
    int slot = 0;             // index into `pairs`
    bool transposed = false;  // the stored block is (columns, rows)
  };
  std::array<Use, role_count> roles;
  std::array<std::uint64_t, role_count> pairs{};  // numbers of the distinct stored blocks
  int distinct = 0;
};
QuartetBlocks blocks_of(const BlockQuartet& quartet);

// Where the stored blocks (i >= j) of a symmetric matrix lie: dealt out to the ranks in turn, contiguous within a rank.
class BlockLayout {
 public:
  BlockLayout(const Blocking& blocking, int ranks);

  struct Place {
    int owner = 0;
    std::uint64_t offset = 0;  // in doubles, within the owner's part
    int rows = 0;
    int columns = 0;
    [[nodiscard]] std::size_t elements() const {
      return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
    }
  };

  [[nodiscard]] const Place& place(std::uint64_t pair) const { return places_[pair]; }
  [[nodiscard]] std::uint64_t pair_count() const { return places_.size(); }
  [[nodiscard]] std::uint64_t doubles_of(int rank) const { return doubles_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const std::vector<std::uint64_t>& pairs_of(int rank) const {
    return owned_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] const Blocking& blocking() const { return blocking_; }

 private:
  Blocking blocking_;
  std::vector<Place> places_;
  std::vector<std::uint64_t> doubles_;
  std::vector<std::vector<std::uint64_t>> owned_;
};

}  // namespace fock
