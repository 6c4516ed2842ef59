// The automaton itself: a field whose cells become a weighted mean of their nine-point neighbourhood. Both directions
// are closed to rings, so that every rank has two neighbours.
#pragma once

#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

namespace lab {

using Cell = double;

// The next state of one row from the rows above and below; the same code for all programs, so that results agree bit
// for bit.
inline void next_row(const Cell* above, const Cell* here, const Cell* below, Cell* result, std::size_t width) {
  const auto cell = [&](std::size_t left, std::size_t middle, std::size_t right) {
    const Cell corners = (above[left] + above[right]) + (below[left] + below[right]);
    const Cell sides = (above[middle] + below[middle]) + (here[left] + here[right]);
    const Cell mean = 0.05 * corners + 0.125 * sides + 0.3 * here[middle];
    return mean + 0.01 * mean * (1.0 - mean);
  };
  result[0] = cell(width - 1, 0, 1);
  for (std::size_t i = 1; i + 1 < width; ++i) {
    result[i] = cell(i - 1, i, i + 1);
  }
  result[width - 1] = cell(width - 2, width - 1, 0);
}

inline Cell first_state(std::size_t row, std::size_t column) {
  const std::size_t hash = (row * 2654435761U + column * 40503U) % 1009U;
  return static_cast<Cell>(hash) / 1009.0;
}

// The rows of one rank, now and next.
class Field {
 public:
  Field(std::size_t first_row, std::size_t rows, std::size_t width)
      : first_row_(first_row), rows_(rows), width_(width), now_(rows * width), next_(rows * width) {
    reset();
  }

  void reset() {
    for (std::size_t row = 0; row < rows_; ++row) {
      for (std::size_t column = 0; column < width_; ++column) {
        now_[row * width_ + column] = first_state(first_row_ + row, column);
      }
    }
  }

  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] std::size_t width() const { return width_; }
  [[nodiscard]] const Cell* row(std::size_t index) const { return now_.data() + index * width_; }
  [[nodiscard]] const Cell* first() const { return row(0); }
  [[nodiscard]] const Cell* last() const { return row(rows_ - 1); }
  [[nodiscard]] const std::vector<Cell>& cells() const { return now_; }

  // Rows that need nobody else's.
  void compute_inner() {
    for (std::size_t index = 1; index + 1 < rows_; ++index) {
      compute_row(index, row(index - 1), row(index + 1));
    }
  }
  // The first and the last row, from the neighbours' rows; ends the step.
  void compute_outer(const Cell* above, const Cell* below) {
    compute_row(0, above, rows_ == 1 ? below : row(1));
    if (rows_ > 1) {
      compute_row(rows_ - 1, row(rows_ - 2), below);
    }
    std::swap(now_, next_);
  }

 private:
  void compute_row(std::size_t index, const Cell* above, const Cell* below) {
    next_row(above, row(index), below, next_.data() + index * width_, width_);
  }

  std::size_t first_row_;
  std::size_t rows_;
  std::size_t width_;
  std::vector<Cell> now_;
  std::vector<Cell> next_;
};

}  // namespace lab
