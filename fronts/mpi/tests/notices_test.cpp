// What is said once, without a front and without MPI.
#include "notices.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace farsum::mpi {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::internal::CaptureStderr;
using testing::internal::GetCapturedStderr;

TEST(Notices, say_a_sentence_of_each_kind_once) {
  Notices notices;
  CaptureStderr();
  notices.say_once("network", "no way");
  notices.say_once("network", "no other way either");
  notices.say_once("engine", "none");
  EXPECT_EQ(GetCapturedStderr(), "farsum: no way\nfarsum: none\n");
}

TEST(Notices, keep_what_another_rank_says_for_the_report_only) {
  Notices notices;
  CaptureStderr();
  notices.say_once("strangers", "spawned", Notices::Voice::silent);
  notices.say_once("strangers", "spawned", Notices::Voice::aloud);
  EXPECT_EQ(GetCapturedStderr(), "");
  EXPECT_THAT(notices.said(), ElementsAre("spawned"));
}

TEST(Notices, are_reported_in_the_order_of_their_kinds) {
  Notices notices;
  EXPECT_THAT(notices.said(), IsEmpty());
  notices.say_once("network", "second", Notices::Voice::silent);
  notices.say_once("engine", "first", Notices::Voice::silent);
  EXPECT_THAT(notices.said(), ElementsAre("first", "second"));
}

}  // namespace
}  // namespace farsum::mpi
