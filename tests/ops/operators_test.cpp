// The table of legal pairs, and the page of the manual that is made from it.
#include "ops/op_kind.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace farsum::ops {
namespace {

std::string page_from_the_table() {
  std::ostringstream page;
  page << "# Element types and operators\n\n"
       << "Made from the table in `src/ops/op_kind.hpp`; a test holds the two together. To make it anew: "
          "`FARSUM_UPDATE_DOCS=1 "
          "build/bin/tests/test_ops --gtest_filter='OperatorsPage.*'`.\n\n"
       << "A type is *lockable* if one CPU atomic instruction can update an element of it.\n\n"
       << "| type | bytes | aligned to | lockable |";
  for (const char* name : operator_names) page << " " << name << " |";
  page << "\n|---|---|---|---|";
  for (std::size_t op = 0; op < operator_count; ++op) page << "---|";
  page << "\n";
  for (std::size_t t = 0; t < element_type_count; ++t) {
    const auto type = static_cast<ElementType>(t);
    page << "| `" << name_of(type) << "` | " << size_of(type) << " | " << alignment_of(type) << " | "
         << (is_lockable(type) ? "yes" : "") << " |";
    for (std::size_t op = 0; op < operator_count; ++op)
      page << (legal(type, static_cast<Operator>(op)) ? " x |" : " |");
    page << "\n";
  }
  page << "\n"
       << "- Integer sums and products wrap.\n"
       << "- `scaled_sum` adds alpha times the operand; alpha has the element's type. The product is rounded before it "
          "is added, "
          "so that every path and every instruction set gives the same bits.\n"
       << "- `min` and `max` of a number and a NaN give the number. Of two NaNs, or two zeros of different sign, "
          "either may "
          "stay.\n"
       << "  Which of them it is does not depend on where elements stand, so that a reduction gives the same wherever "
          "it "
          "is cut.\n"
       << "- A sum or a product of two NaNs is a NaN; which of the two, even its sign, is left to the processor's "
          "registers.\n"
       << "- `minloc` and `maxloc` compare values like `min` and `max`; of equal values the lower index is kept.\n"
       << "- `_Float16` is computed in single precision and rounded after each operation.\n"
       << "- `_Float128` is x86-64's `__float128`, and `long double` where that has the same format.\n"
       << "- Logical operators take anything but zero for true, and give 0 or 1.\n"
       << "- `replace` writes each element once. The fetching form of `no_op` is an atomic get.\n"
       << "- Compare-and-swap compares bits, padding included.\n";
  return page.str();
}

TEST(OperatorsPage, says_what_the_table_says) {
  const std::string path = std::string(FARSUM_SOURCE_DIR) + "/docs/reference/operators.md";
  if (std::getenv("FARSUM_UPDATE_DOCS") != nullptr) std::ofstream(path) << page_from_the_table();
  std::ostringstream page;
  page << std::ifstream(path).rdbuf();
  EXPECT_EQ(page.str(), page_from_the_table());
}

TEST(Legal, lets_every_type_be_replaced_and_read) {
  for (std::size_t type = 0; type < element_type_count; ++type) {
    EXPECT_TRUE(legal(static_cast<ElementType>(type), Operator::replace));
    EXPECT_TRUE(legal(static_cast<ElementType>(type), Operator::no_op));
  }
}

TEST(Legal, refuses_what_has_no_meaning) {
  EXPECT_FALSE(legal(ElementType::complex128, Operator::min));
  EXPECT_FALSE(legal(ElementType::float64, Operator::band));
  EXPECT_FALSE(legal(ElementType::float64, Operator::land));
  EXPECT_FALSE(legal(ElementType::pair_int_int, Operator::sum));
  EXPECT_FALSE(legal(ElementType::byte, Operator::sum));
  EXPECT_FALSE(legal(ElementType::boolean, Operator::sum));
  EXPECT_FALSE(legal(ElementType::int32, Operator::minloc));
  EXPECT_FALSE(legal(ElementType::pair_double_double, Operator::max));
  EXPECT_FALSE(legal(ElementType::complex256, Operator::max));
  EXPECT_FALSE(legal(ElementType::float128, Operator::band));
}

TEST(ElementTraits, know_sizes_that_are_powers_of_two) {
  for (std::size_t t = 0; t < element_type_count; ++t) {
    const std::size_t bytes = size_of(static_cast<ElementType>(t));
    EXPECT_TRUE(bytes != 0 && (bytes & (bytes - 1)) == 0 && bytes <= largest_element_bytes);
    EXPECT_EQ(bytes % alignment_of(static_cast<ElementType>(t)), 0u);
  }
}

}  // namespace
}  // namespace farsum::ops
