// The walk alone, with a carrier that says yes to a number of steps.
#include "trees/walk.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace farsum::trees {
namespace {

class CountingCarrier final : public Carrier {
 public:
  bool take(const Step& step) override { return note("take", step); }
  bool send(const Step& step) override { return note("send", step); }

  int allowed = 0;  // steps, before one is refused
  std::string done;

 private:
  bool note(const char* what, const Step& step) {
    if (allowed == 0) return false;
    --allowed;
    done += std::string(what) + " " + std::to_string(step.peer) + "; ";
    return true;
  }
};

const std::vector<Step> three_steps = {
    {Action::receive_combine, true, 7, 0, 1}, {Action::send, false, 8, 0, 1}, {Action::receive_copy, false, 9, 0, 1}};

TEST(Walk, stops_at_the_step_that_is_refused_and_goes_on_with_it) {
  CountingCarrier carrier;
  std::size_t at = 0;
  EXPECT_FALSE(advance(three_steps, at, carrier));
  EXPECT_EQ(at, 0U);
  carrier.allowed = 1;
  EXPECT_FALSE(advance(three_steps, at, carrier));
  EXPECT_EQ(at, 1U);
  EXPECT_EQ(carrier.done, "take 7; ");
  carrier.allowed = 2;
  EXPECT_TRUE(advance(three_steps, at, carrier));
  EXPECT_EQ(at, 3U);
  EXPECT_EQ(carrier.done, "take 7; send 8; take 9; ");
}

TEST(Walk, past_the_end_does_nothing) {
  CountingCarrier carrier;
  std::size_t at = 3;
  EXPECT_TRUE(advance(three_steps, at, carrier));
  at = 0;
  EXPECT_TRUE(advance({}, at, carrier));
  EXPECT_EQ(carrier.done, "");
}

}  // namespace
}  // namespace farsum::trees
