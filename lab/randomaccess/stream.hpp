// HPCC RandomAccess's stream of pseudo-random words, and where in the shared table each goes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace lab {

using Word = std::uint64_t;

// x -> 2x modulo a primitive polynomial over GF(2), as in the HPC Challenge's reference code.
class RandomStream {
 public:
  // Begins at the n-th word without walking there: a word is squared by taking every second power.
  static RandomStream starting_at(std::uint64_t n) {
    std::array<Word, bits> doubled{};
    Word power = 1;
    for (Word& entry : doubled) {
      entry = power;
      power = step(step(power));
    }
    Word word = 1;
    for (int i = bits - 1; i >= 0; --i) {
      word = times_itself(word, doubled);
      if (((n >> static_cast<unsigned>(i)) & 1U) != 0) {
        word = step(word);
      }
    }
    return RandomStream(word);
  }

  Word next() {
    word_ = step(word_);
    return word_;
  }

 private:
  static constexpr int bits = 64;

  explicit RandomStream(Word word) : word_(word) {}
  static Word step(Word word) {
    constexpr Word polynomial = 7;
    return (word << 1U) ^ ((word >> 63U) != 0 ? polynomial : 0);
  }
  static Word times_itself(Word word, const std::array<Word, bits>& doubled) {
    Word result = 0;
    for (std::size_t i = 0; i < doubled.size(); ++i) {
      if (((word >> i) & 1U) != 0) {
        result ^= doubled[i];
      }
    }
    return result;
  }

  Word word_;
};

// A table of a power of two of words in equal parts, the last of which may be shorter.
class Layout {
 public:
  Layout(Word words, int ranks)
      : mask_(words - 1), words_per_rank_((words + static_cast<Word>(ranks) - 1) / static_cast<Word>(ranks)) {}

  [[nodiscard]] Word index_of(Word random) const { return random & mask_; }
  [[nodiscard]] int owner_of(Word index) const { return static_cast<int>(index / words_per_rank_); }
  [[nodiscard]] Word offset_of(Word index) const { return index % words_per_rank_; }
  [[nodiscard]] Word words_per_rank() const { return words_per_rank_; }
  [[nodiscard]] Word words() const { return mask_ + 1; }

 private:
  Word mask_;
  Word words_per_rank_;
};

}  // namespace lab
