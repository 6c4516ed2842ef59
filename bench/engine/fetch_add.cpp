// A 64-bit fetch-and-add on one mapped word, alone and by both ranks at once, beside `lock xadd`.
#include <type_traits>

#include <fmt/format.h>

#include "cases.hpp"
#include "context.hpp"
#include "limits.hpp"

namespace bench {
namespace {

constexpr std::uint64_t our_word = 0;  // offsets in the part of rank 1
constexpr std::uint64_t limit_word = 4096;
constexpr std::uint64_t part_bytes = 8192;
constexpr std::uint64_t batch = 256;

template <class Element>
constexpr farsum_type type_of = std::is_same_v<Element, double> ? FARSUM_DOUBLE : FARSUM_UINT64;

template <class Element>
Element add_one(const Window& window) {
  const Element one = 1;
  Element before = 0;
  require(farsum_fetch_op(window.handle(), 1, our_word, &one, &before, type_of<Element>, FARSUM_SUM));
  return before;
}

struct Variant {
  const char* name;
  std::uint32_t promises;
  double alone_aim;
  double contended_aim;
};
constexpr Variant declared = {"declared single elements", FARSUM_SINGLE_ELEMENT, 1.5, 1.3};
constexpr Variant any_window = {"any window", 0, 2.0, 2.5};
constexpr double doubles_aim = 3.0;

// Both ranks at once: the values fetched by both together must be 0, 1, 2, ... each once, which their sum tells.
template <class Element>
void check(Session& session, const Window& window) {
  constexpr std::uint64_t each = 20'000;
  double sum = 0;
  session.arena().start_together();
  for (std::uint64_t i = 0; i < each; ++i) sum += static_cast<double>(add_one<Element>(window));
  session.arena().mine().figures[0] = sum;
  session.arena().gate();
  const double both = session.arena().of(0).figures[0] + session.arena().of(1).figures[0];
  const auto all = static_cast<double>(each * rank_count);
  require_answer(both == all * (all - 1) / 2, "two ranks fetched a value twice, or missed one");
  require_answer(*window.elements<Element>(1) == static_cast<Element>(all), "fetch-and-adds of two ranks were lost");
  session.arena().gate();
}

template <class Element>
void compare_alone(Session& session, const Variant& variant, double aim) {
  const Window window(part_bytes, variant.promises);
  check<Element>(session, window);
  std::uint64_t& word = window.elements<std::uint64_t>(1)[limit_word / sizeof(std::uint64_t)];
  const std::uint64_t count = session.scaled(400'000);
  const char* type = std::is_same_v<Element, double> ? "double" : "uint64";
  Row row{.bench = "fetch-add",
          .name = fmt::format("{}, {} / lock xadd", type, variant.name),
          .unit = "ns",
          .aim = {Better::lower, aim}};
  session.compare(
      row, session.alone([&] { return time_per_operation(count, [&](std::uint64_t) { fetch_add(word, 1); }); }),
      session.alone([&] { return time_per_operation(count, [&](std::uint64_t) { add_one<Element>(window); }); }));
}

// Turns the rate of both ranks into the time that each spends on one.
Side as_time(const Side& rate, std::uint64_t& operations) {
  return [rate, &operations] {
    Sample sample = rate();
    operations += sample.operations;
    sample.figure = rank_count * 1e9 / sample.figure;
    return sample;
  };
}

void compare_contended(Session& session, const Variant& variant) {
  const Window window(part_bytes, variant.promises);
  check<std::uint64_t>(session, window);
  std::uint64_t& ours = window.elements<std::uint64_t>(1)[our_word / sizeof(std::uint64_t)];
  std::uint64_t& word = window.elements<std::uint64_t>(1)[limit_word / sizeof(std::uint64_t)];
  session.arena().gate();
  const std::uint64_t ours_before = ours;
  session.arena().gate();

  std::uint64_t our_operations = 0;
  std::uint64_t limit_operations = 0;
  Row row{.bench = "fetch-add-contended",
          .name = fmt::format("two ranks, uint64, {} / lock xadd", variant.name),
          .unit = "ns",
          .aim = {Better::lower, variant.contended_aim}};
  session.compare(row,
                  as_time(session.together(batch,
                                           [&] {
                                             for (std::uint64_t i = 0; i < batch; ++i) fetch_add(word, 1);
                                           }),
                          limit_operations),
                  as_time(session.together(batch,
                                           [&] {
                                             for (std::uint64_t i = 0; i < batch; ++i) add_one<std::uint64_t>(window);
                                           }),
                          our_operations));

  session.arena().mine().figures[0] = static_cast<double>(our_operations);
  session.arena().mine().figures[1] = static_cast<double>(limit_operations);
  session.arena().gate();
  const auto total = [&](std::size_t index) {
    return static_cast<std::uint64_t>(session.arena().of(0).figures[index] + session.arena().of(1).figures[index]);
  };
  require_answer(ours - ours_before == total(0), "contended fetch-and-adds were lost");
  require_answer(word == total(1), "contended lock xadds were lost");
  session.arena().gate();
}

}  // namespace

void run_fetch_add(Session& session) {
  const Context context;
  compare_alone<std::uint64_t>(session, declared, declared.alone_aim);
  compare_alone<std::uint64_t>(session, any_window, any_window.alone_aim);
  compare_alone<double>(session, declared, doubles_aim);
  compare_alone<double>(session, any_window, doubles_aim);
}

void run_fetch_add_contended(Session& session) {
  const Context context;
  compare_contended(session, declared);
  compare_contended(session, any_window);
}

}  // namespace bench
