// How the model checks state what they expect.
#pragma once

#include <gtest/gtest.h>

#include "explorer.hpp"

namespace farsum::model {

static_assert(fibers_work, "fibers confuse sanitizers: model checks are built without them");

// Every interleaving was seen and none failed. Prints how many there were.
inline void expect_holds(const Outcome& outcome) {
  EXPECT_EQ(outcome.failure, "") << outcome.schedule;
  std::printf("             %zu executions, %zu states\n", outcome.executions, outcome.states);
}

// Some interleaving fails, in the way named.
inline void expect_caught(const Outcome& outcome, const std::string& failure) {
  EXPECT_NE(outcome.failure.find(failure), std::string::npos)
      << "found '" << outcome.failure << "', not '" << failure << "'";
}

}  // namespace farsum::model
