#include "block_matrix.hpp"

namespace fock {

BlockMatrix::BlockMatrix(Job& job, const BlockLayout& layout, const char* name, int planes)
    : job_(job), layout_(layout) {
  bytes_ = layout.doubles_of(job.rank()) * sizeof(double) * static_cast<std::uint64_t>(planes);
  farsum_window_options options{};
  options.struct_bytes = sizeof options;
  options.promises = FARSUM_NO_ORDERING;  // sums commute
  options.name = name;
  void* memory = nullptr;
  require(farsum_window_allocate(farsum_world(), bytes_, &options, &memory, &window_));
  memory_ = static_cast<double*>(memory);
  require(farsum_lock_all(window_));
}

BlockMatrix::~BlockMatrix() {
  if (is_unwinding()) return;
  static_cast<void>(farsum_unlock_all(window_));
  static_cast<void>(farsum_window_free(&window_));
}

std::uint64_t BlockMatrix::byte_offset(std::uint64_t pair, int plane) const {
  const BlockLayout::Place& place = layout_.place(pair);
  return (layout_.doubles_of(place.owner) * static_cast<std::uint64_t>(plane) + place.offset) * sizeof(double);
}

void BlockMatrix::start_get(std::uint64_t pair, double* into) {
  const BlockLayout::Place& place = layout_.place(pair);
  Activity& activity = job_.activity();
  const Timed timed(activity.get_s);
  const std::size_t bytes = place.elements() * sizeof(double);
  require(farsum_get(window_, place.owner, byte_offset(pair, 0), into, bytes));
  ++activity.gets;
  activity.bytes_got += bytes;
}

void BlockMatrix::finish_gets() {
  const Timed timed(job_.activity().get_s);
  require(farsum_flush_local(window_, FARSUM_ALL_RANKS));
}

void BlockMatrix::start_accumulate(std::uint64_t pair, const double* block) {
  const BlockLayout::Place& place = layout_.place(pair);
  Activity& activity = job_.activity();
  const Timed timed(activity.accumulate_s);
  require(farsum_accumulate(window_, place.owner, byte_offset(pair, 0), block, place.elements(), FARSUM_DOUBLE,
                            FARSUM_SUM));
  ++activity.accumulates;
  activity.bytes_accumulated += place.elements() * sizeof(double);
}

void BlockMatrix::release_accumulates() {
  const Timed timed(job_.activity().accumulate_s);
  require(farsum_flush_local(window_, FARSUM_ALL_RANKS));
}

void BlockMatrix::finish_accumulates() {
  const Timed timed(job_.activity().accumulate_s);
  require(farsum_flush(window_, FARSUM_ALL_RANKS));
}

std::span<double> BlockMatrix::local(int plane) {
  const std::uint64_t doubles = layout_.doubles_of(job_.rank());
  return {memory_ + doubles * static_cast<std::uint64_t>(plane), doubles};
}

std::span<double> BlockMatrix::local_block(std::uint64_t pair, int plane) {
  const BlockLayout::Place& place = layout_.place(pair);
  return local(plane).subspan(place.offset, place.elements());
}

void BlockMatrix::publish() { require(farsum_sync(window_)); }

Matrix BlockMatrix::gather(Symmetry symmetry, int plane) {
  const Blocking& blocking = layout_.blocking();
  Matrix whole(blocking.functions, blocking.functions);
  Matrix stage(blocking.functions,
               blocking.functions);  // blocks one after another, at most as many doubles as the whole
  double* next = stage.data();
  for (std::uint64_t pair = 0; pair < layout_.pair_count(); ++pair) {
    const BlockLayout::Place& place = layout_.place(pair);
    require(farsum_get(window_, place.owner, byte_offset(pair, plane), next, place.elements() * sizeof(double)));
    next += place.elements();
  }
  require(farsum_flush_local(window_, FARSUM_ALL_RANKS));
  next = stage.data();
  const double sign = symmetry == Symmetry::symmetric ? 1.0 : -1.0;
  for (std::uint64_t pair = 0; pair < layout_.pair_count(); ++pair) {
    const BlockLayout::Place& place = layout_.place(pair);
    const auto [i, j] = pair_of_number(pair);
    const int row = blocking.blocks[static_cast<std::size_t>(i)].first_function;
    const int column = blocking.blocks[static_cast<std::size_t>(j)].first_function;
    const Eigen::Map<const Matrix> block(next, place.rows, place.columns);
    if (i != j) whole.block(column, row, place.columns, place.rows) = sign * block.transpose();
    whole.block(row, column, place.rows, place.columns) = block;
    next += place.elements();
  }
  job_.activity().gathered += layout_.pair_count();
  return whole;
}

void BlockMatrix::scatter(const Matrix& whole, int plane) {
  const Blocking& blocking = layout_.blocking();
  Matrix stage(blocking.functions, blocking.functions);
  double* next = stage.data();
  for (std::uint64_t pair = 0; pair < layout_.pair_count(); ++pair) {
    const BlockLayout::Place& place = layout_.place(pair);
    const auto [i, j] = pair_of_number(pair);
    const int row = blocking.blocks[static_cast<std::size_t>(i)].first_function;
    const int column = blocking.blocks[static_cast<std::size_t>(j)].first_function;
    Eigen::Map<Matrix>(next, place.rows, place.columns) = whole.block(row, column, place.rows, place.columns);
    require(farsum_put(window_, place.owner, byte_offset(pair, plane), next, place.elements() * sizeof(double)));
    next += place.elements();
  }
  require(farsum_flush(window_, FARSUM_ALL_RANKS));
  job_.activity().scattered += layout_.pair_count();
}

double BlockMatrix::local_dot(int plane, BlockMatrix& other, int other_plane) {
  double sum = 0;
  for (std::uint64_t pair : layout_.pairs_of(job_.rank())) {
    const std::span<double> a = local_block(pair, plane);
    const std::span<double> b = other.local_block(pair, other_plane);
    double block_sum = 0;
    for (std::size_t n = 0; n < a.size(); ++n) block_sum += a[n] * b[n];
    const auto [i, j] = pair_of_number(pair);
    sum += i == j ? block_sum : 2 * block_sum;
  }
  return sum;
}

}  // namespace fock
