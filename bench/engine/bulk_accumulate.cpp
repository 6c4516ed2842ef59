// Sums of many doubles into mapped memory, beside a plain vectorised daxpy on private memory of the same size and
// warmth: one rank, and both ranks at once on two targets of one window.
#include <cstdlib>
#include <memory>

#include <fmt/format.h>

#include "cases.hpp"
#include "context.hpp"
#include "limits.hpp"
#include "sizes.hpp"

namespace bench {
namespace {

constexpr std::size_t most_bytes = 8 << 20;

struct Freed {
  void operator()(double* memory) const { std::free(memory); }
};
using Doubles = std::unique_ptr<double[], Freed>;

// Aligned like window memory, and touched.
Doubles make_doubles(std::size_t count, double first, double step) {
  constexpr std::size_t alignment = 4096;
  Doubles doubles(static_cast<double*>(
      std::aligned_alloc(alignment, (count * sizeof(double) + alignment - 1) / alignment * alignment)));
  for (std::size_t i = 0; i < count; ++i) doubles[i] = first + step * static_cast<double>(i % 1000);
  return doubles;
}

void sum_and_flush(const Window& window, int target, const double* operand, std::size_t bytes) {
  require(farsum_accumulate(window.handle(), target, 0, operand, bytes / sizeof(double), FARSUM_DOUBLE, FARSUM_SUM));
  require(farsum_flush(window.handle(), target));
}

// Both ranks sum into both parts at once; whole numbers, so that the order does not matter. Leaves the parts zeroed.
void check(Session& session, const Window& window, const double* operand) {
  constexpr int rounds = 3;
  session.arena().start_together();
  for (int round = 0; round < rounds; ++round) {
    sum_and_flush(window, session.peer(), operand, window.bytes());
    sum_and_flush(window, session.rank(), operand, window.bytes());
  }
  session.arena().gate();
  auto* mine = window.elements<double>(session.rank());
  for (std::size_t i = 0; i < window.bytes() / sizeof(double); ++i) {
    require_answer(mine[i] == rank_count * rounds * operand[i], "a sum of two ranks is wrong");
    mine[i] = 0;
  }
  session.arena().gate();
}

struct Buffers {
  Doubles operand = make_doubles(most_bytes / sizeof(double), 1, 1);
  Doubles target = make_doubles(most_bytes / sizeof(double), 0, 0);  // private: the limit's
};

// Enough repetitions for 20 ms at 10 GB/s.
std::uint64_t repetitions(const Session& session, std::size_t bytes) { return session.scaled(200'000'000 / bytes) + 1; }

// A few unmeasured rounds bring the lines back that the other side pushed out; more than two change nothing.
template <class Work>
Sample bandwidth(std::uint64_t count, std::size_t bytes, Work&& work) {
  work();
  work();
  Sample sample = time_per_operation(count, [&](std::uint64_t) { work(); });
  sample.figure = static_cast<double>(bytes) / sample.figure;
  sample.operations += 2;
  return sample;
}

}  // namespace

void run_bulk_accumulate(Session& session) {
  const Context context;
  const Window window(most_bytes, 0);
  const Buffers buffers;
  check(session, window, buffers.operand.get());
  const DaxpyChoice daxpy = best_daxpy();

  struct Point {
    std::size_t bytes;
    double aim;
  };
  for (const Point point :
       {Point{4 << 10, 0.5}, {16 << 10, 0.8}, {64 << 10, 0.9}, {256 << 10, 0.9}, {1 << 20, 0.9}, {8 << 20, 0.9}}) {
    const std::size_t bytes = point.bytes;
    const std::uint64_t count = repetitions(session, bytes);
    Row row{.bench = "bulk-accumulate",
            .name = fmt::format("{} of doubles, mapped / daxpy", size_text(bytes)),
            .unit = "GB/s",
            .aim = {Better::higher, point.aim}};
    row.more["daxpy"] = daxpy.name;
    session.compare(row, session.alone([&] {
      return bandwidth(count, bytes,
                       [&] { daxpy.run(buffers.target.get(), buffers.operand.get(), bytes / sizeof(double), 1.0); });
    }),
                    session.alone([&] {
                      return bandwidth(count, bytes, [&] { sum_and_flush(window, 1, buffers.operand.get(), bytes); });
                    }));
  }
}

void run_two_targets(Session& session) {
  const Context context;
  const Window window(most_bytes, 0);
  const Buffers buffers;
  check(session, window, buffers.operand.get());
  const DaxpyChoice daxpy = best_daxpy();

  for (const std::size_t bytes : {std::size_t{64} << 10, std::size_t{256} << 10, std::size_t{1} << 20}) {
    Row row{.bench = "two-targets",
            .name = fmt::format("two ranks, {} each to the other / two daxpys", size_text(bytes)),
            .unit = "op/s",
            .aim = {Better::higher, 0.9}};
    row.more["daxpy"] = daxpy.name;
    session.compare(
        row,
        session.together(1,
                         [&] { daxpy.run(buffers.target.get(), buffers.operand.get(), bytes / sizeof(double), 1.0); }),
        session.together(1, [&] { sum_and_flush(window, session.peer(), buffers.operand.get(), bytes); }));
  }
}

}  // namespace bench
