// Matches the rows and columns of a sparse matrix with CombBLAS, which augments the last paths through windows, then has each column
// get its partner's partner through a window (GGet). The matrix has a hidden permutation, so each row has a partner. It prints
// "matching right" where all have one along an entry of the matrix, and each column gets itself.
//
//   matching SIDE ROUNDS

// CombBLAS.h includes neither of its matchings.
#include <CombBLAS/CombBLAS.h>

#include <CombBLAS/BipartiteMatchings/BPMaximalMatching.h>
#include <CombBLAS/BipartiteMatchings/BPMaximumMatching.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <vector>

namespace {

using Local = combblas::SpDCCols<std::int64_t, bool>;
using Matrix = combblas::SpParMat<std::int64_t, bool, Local>;
using NumberMatrix = combblas::SpParMat<std::int64_t, std::int64_t, combblas::SpDCCols<std::int64_t, std::int64_t>>;
using Vector = combblas::FullyDistVec<std::int64_t, std::int64_t>;
using SparseVector = combblas::FullyDistSpVec<std::int64_t, std::int64_t>;
using Numbers = std::vector<std::int64_t>;

struct Entries {
  Numbers rows, columns;
};

// A permutation and about as many entries at random; each rank makes all of them.
Entries entries_of(std::int64_t side, unsigned seed) {
  std::mt19937_64 random(seed);
  Entries entries;
  entries.rows.resize(static_cast<std::size_t>(side));
  std::iota(entries.rows.begin(), entries.rows.end(), 0);
  entries.columns = entries.rows;
  for (std::int64_t left = side - 1; left > 0; --left)
    std::swap(entries.columns[static_cast<std::size_t>(left)],
              entries.columns[random() % static_cast<std::uint64_t>(left + 1)]);
  for (std::int64_t more = 0; more < side; ++more) {
    entries.rows.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(side)));
    entries.columns.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(side)));
  }
  return entries;
}

Vector distributed(const Numbers& numbers) {
  Vector vector;
  vector.iota(static_cast<std::int64_t>(numbers.size()), 0);
  vector.Apply([&numbers](std::int64_t at) { return numbers[static_cast<std::size_t>(at)]; });
  return vector;
}

Numbers gathered(Vector& vector) {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int mine = static_cast<int>(vector.LocArrSize());
  std::vector<int> counts(static_cast<std::size_t>(ranks)), places(counts.size(), 0);
  MPI_Allgather(&mine, 1, MPI_INT, counts.data(), 1, MPI_INT, MPI_COMM_WORLD);
  std::partial_sum(counts.begin(), counts.end() - 1, places.begin() + 1);
  Numbers all(static_cast<std::size_t>(vector.TotalLength()));
  MPI_Allgatherv(const_cast<std::int64_t*>(vector.GetLocArr()), mine, MPI_INT64_T, all.data(), counts.data(), places.data(),
                 MPI_INT64_T, MPI_COMM_WORLD);
  return all;
}

// Each row has a partner of its own, along an entry of the matrix, and both sides tell of it.
bool is_perfect(const Numbers& partner_of_row, const Numbers& partner_of_column, const Entries& entries) {
  std::vector<bool> along_entry(partner_of_row.size(), false);
  for (std::size_t entry = 0; entry < entries.rows.size(); ++entry) {
    const auto row = static_cast<std::size_t>(entries.rows[entry]);
    if (partner_of_row[row] == entries.columns[entry]) along_entry[row] = true;
  }
  for (std::size_t row = 0; row < partner_of_row.size(); ++row)
    if (!along_entry[row] || partner_of_column[static_cast<std::size_t>(partner_of_row[row])] != static_cast<std::int64_t>(row)) return false;
  return true;
}

bool matches(std::int64_t side, unsigned seed) {
  const Entries entries = entries_of(side, seed);
  const NumberMatrix numbers(side, side, distributed(entries.rows), distributed(entries.columns), std::int64_t{1}, false);
  Matrix matrix(numbers);
  Matrix transposed = matrix;
  transposed.Transpose();
  Vector degrees(matrix.getcommgrid());
  matrix.Reduce(degrees, combblas::Column, std::plus<std::int64_t>(), static_cast<std::int64_t>(0));
  Vector partner_of_row(matrix.getcommgrid(), side, -1), partner_of_column(matrix.getcommgrid(), side, -1);
  combblas::MaximalMatching(matrix, transposed, partner_of_row, partner_of_column, degrees, GREEDY, false);
  combblas::SpParMat<std::int64_t, bool, combblas::SpCCols<std::int64_t, bool>> by_columns(matrix);
  combblas::maximumMatching(by_columns, partner_of_row, partner_of_column);
  if (!is_perfect(gathered(partner_of_row), gathered(partner_of_column), entries)) return false;

  SparseVector rows(partner_of_row, [](std::int64_t) { return true; });
  SparseVector columns = rows.Invert(side);
  SparseVector got = partner_of_row.GGet(columns, [](std::int64_t value, std::int64_t) { return value; }, static_cast<std::int64_t>(-1));
  Vector gotten(matrix.getcommgrid(), side, -1);
  gotten.Set(got);
  Numbers self(static_cast<std::size_t>(side));
  std::iota(self.begin(), self.end(), 0);
  return gathered(gotten) == self;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const std::int64_t side = argc > 1 ? std::atoll(argv[1]) : 2000;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 10;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int wrong = 0;
  for (int round = 0; round < rounds; ++round) wrong += matches(side, static_cast<unsigned>(round)) ? 0 : 1;
  if (rank == 0) {
    if (wrong == 0) std::printf("matching right\n");
    else std::printf("WRONG: %d of %d matchings\n", wrong, rounds);
  }
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
