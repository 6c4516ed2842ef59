#include "cases.hpp"

#include <algorithm>

namespace bench {
namespace {

constexpr double put_value = 7;
constexpr double added = 1;
constexpr double held = 3;

bool adds(Kind kind) { return kind != Kind::put && kind != Kind::get; }
bool returns(Kind kind) { return kind != Kind::put && kind != Kind::accumulate; }

void require_answer(bool right, const Case& one, const char* what) {
  if (right) return;
  throw std::runtime_error(std::string("wrong answer: ") + name_of(one.kind) + " of " + std::to_string(one.bytes) +
                           " bytes: " + what);
}

// The bytes of the owner's part that a case touches.
std::size_t touched(const Case& one) { return one.bytes + static_cast<std::size_t>(one.burst - 1) * sizeof(double); }

}  // namespace

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::put:
      return "put";
    case Kind::get:
      return "get";
    case Kind::accumulate:
      return "accumulate";
    case Kind::get_accumulate:
      return "get_accumulate";
    case Kind::fetch_and_op:
      return "fetch_and_op";
  }
  return "unknown";
}

// Streams are of what need not be waited for one by one, and of sizes at which that matters.
std::vector<Case> cases_for(const std::vector<std::size_t>& sizes) {
  std::vector<Case> cases;
  for (const Kind kind : kinds) {
    if (kind == Kind::fetch_and_op) {
      cases.push_back({kind, sizeof(double), 1});
      continue;
    }
    for (const std::size_t bytes : sizes) {
      cases.push_back({kind, bytes, 1});
      if (bytes <= 4096 && (kind == Kind::put || kind == Kind::accumulate))
        cases.push_back({kind, bytes, stream_burst});
    }
  }
  return cases;
}

Worker::Worker(const Window& window, int owner)
    : window_(window.handle()), owner_(owner), operand_(most_bytes / sizeof(double)), result_(operand_.size()) {}

void Worker::issue(const Case& one, std::uint64_t offset) {
  const std::size_t count = one.bytes / sizeof(double);
  switch (one.kind) {
    case Kind::put:
      return require(farsum_put(window_, owner_, offset, operand_.data(), one.bytes));
    case Kind::get:
      return require(farsum_get(window_, owner_, offset, result_.data(), one.bytes));
    case Kind::accumulate:
      return require(farsum_accumulate(window_, owner_, offset, operand_.data(), count, FARSUM_DOUBLE, FARSUM_SUM));
    case Kind::get_accumulate:
      return require(farsum_get_accumulate(window_, owner_, offset, operand_.data(), result_.data(), count,
                                           FARSUM_DOUBLE, FARSUM_SUM));
    case Kind::fetch_and_op:
      return require(
          farsum_fetch_op(window_, owner_, offset, operand_.data(), result_.data(), FARSUM_DOUBLE, FARSUM_SUM));
  }
}

void Worker::run(const Case& one) {
  for (int i = 0; i < one.burst; ++i) issue(one, static_cast<std::uint64_t>(i) * sizeof(double));
  require(farsum_flush(window_, owner_));
}

void fill_held(double* owned) { std::fill(owned, owned + window_bytes / sizeof(double), held); }

void Worker::run_checked(const Case& one, int rank) {
  std::fill(operand_.begin(), operand_.end(), adds(one.kind) ? added : put_value);
  std::fill(result_.begin(), result_.end(), -1.0);
  if (rank != owner_) run(one);
}

// Sums of ones over a burst of overlapping places: how often a place was touched.
void Worker::check(const Case& one, int rank, int origins, const double* owned) const {
  const std::size_t count = one.bytes / sizeof(double);
  if (rank != owner_) {
    if (!returns(one.kind)) return;
    for (std::size_t i = 0; i < count; ++i) {
      const bool right = one.kind == Kind::get
                             ? result_[i] == held
                             : result_[i] >= held && result_[i] < held + static_cast<double>(origins) * added;
      require_answer(right, one, "what the origin got");
    }
    return;
  }
  const std::size_t all = touched(one) / sizeof(double);
  for (std::size_t i = 0; i < all; ++i) {
    const std::size_t first = i >= count ? i - count + 1 : 0;
    const std::size_t last = std::min<std::size_t>(i, static_cast<std::size_t>(one.burst) - 1);
    const double times = static_cast<double>(last - first + 1) * origins;
    const double wanted = adds(one.kind) ? held + times * added : one.kind == Kind::put ? put_value : held;
    require_answer(owned[i] == wanted, one, "what the owner has");
  }
}

}  // namespace bench
