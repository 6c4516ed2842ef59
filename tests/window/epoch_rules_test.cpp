// Which words the epochs of a window change, which fence makes way for what, and what is in the way of a window's end.
#include "window/epoch_rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace farsum {
namespace {

using testing::HasSubstr;

struct RulesOf3 {
  explicit RulesOf3(std::uint32_t promises = 0) : rules(words, views, promises) {}

  std::array<std::int32_t, 3> now() const { return {words.of(0), words.of(1), words.of(2)}; }
  std::string says(EpochCall call, std::uint32_t target = 0) const { return told(rules.why_not(call, target)); }
  std::string make_way(EpochCall call, std::uint32_t target = 0) { return told(rules.make_way(call, target)); }
  std::string not_closed() const {
    const Status status = rules.check_closed("farsum_window_free", texts);
    EXPECT_TRUE(status.is_ok() || status.code() == Code::pending);
    return status.text();
  }
  bool are_locks_allowed() const { return views[0].locks_allowed.load(); }
  static std::string told(const char* why) { return why == nullptr ? "" : why; }

  std::string name = "name";
  std::vector<Rank> ranks = {0, 1, 2};
  WindowTexts texts{3, name, ranks, nullptr};
  std::array<TargetView, 3> views;
  EpochWords words{views.data(), 3};
  EpochRules rules;
};
using Now = std::array<std::int32_t, 3>;

TEST(EpochRules, let_a_fence_include_every_target_or_none) {
  RulesOf3 of;
  of.words.set(2, locked_shared);
  EXPECT_FALSE(of.rules.set_fence(true));
  EXPECT_FALSE(of.rules.is(epoch_fence));
  EXPECT_EQ(of.now(), (Now{no_epoch, no_epoch, locked_shared}));
  of.words.close(2);
  EXPECT_TRUE(of.rules.set_fence(true));
  EXPECT_TRUE(of.rules.set_fence(true)) << "it is so already";
  EXPECT_TRUE(of.rules.is(epoch_fence));
  EXPECT_EQ(of.now(), (Now{active_epoch, active_epoch, active_epoch}));
  EXPECT_TRUE(of.rules.set_fence(false));
  EXPECT_FALSE(of.rules.is(epoch_fence));
  EXPECT_EQ(of.now(), Now{});
}

TEST(EpochRules, end_an_unused_fence_for_access_epochs_only) {
  for (const EpochCall call : {EpochCall::start, EpochCall::lock, EpochCall::lock_all, EpochCall::post}) {
    RulesOf3 of;
    ASSERT_TRUE(of.rules.set_fence(true));
    EXPECT_EQ(of.says(call), "");
    EXPECT_TRUE(of.rules.is(epoch_fence)) << "asking changes nothing";
    EXPECT_EQ(of.make_way(call), "");
    EXPECT_EQ(of.rules.is(epoch_fence), call == EpochCall::post);
    EXPECT_EQ(of.words.of(1), call == EpochCall::post ? active_epoch : no_epoch);
  }
}

TEST(EpochRules, keep_a_fence_in_which_something_was_issued_until_the_next) {
  RulesOf3 of;
  const auto issues = {+[](RulesOf3& rules) { rules.rules.note_issued(); },
                       +[](RulesOf3& rules) { count_word(rules.views[2]); },
                       +[](RulesOf3& rules) { count_direct(rules.views[1], 24); }};
  ASSERT_TRUE(of.rules.set_fence(true));
  for (const auto issue : issues) {
    issue(of);
    for (const EpochCall call : {EpochCall::start, EpochCall::lock, EpochCall::lock_all})
      EXPECT_EQ(of.make_way(call), epoch_says::fence_used);
    EXPECT_EQ(of.now(), (Now{active_epoch, active_epoch, active_epoch}));
    of.rules.note_fence();
    EXPECT_EQ(of.says(EpochCall::lock), "");
  }
}

TEST(EpochRules, end_no_fence_for_a_call_that_is_refused) {
  RulesOf3 of(promise_no_locks);
  ASSERT_TRUE(of.rules.set_fence(true));
  EXPECT_EQ(of.make_way(EpochCall::lock), epoch_says::never_locked);
  EXPECT_TRUE(of.rules.is(epoch_fence));
  EXPECT_EQ(of.make_way(EpochCall::start), "");
  EXPECT_FALSE(of.rules.is(epoch_fence));
}

TEST(EpochRules, ask_the_word_of_the_target_that_is_to_be_locked_and_those_of_all_for_more) {
  RulesOf3 of;
  of.words.set(1, locked_shared);
  EXPECT_EQ(of.says(EpochCall::lock, 0), "");
  EXPECT_EQ(of.says(EpochCall::lock, 1), epoch_says::held_already);
  EXPECT_EQ(of.says(EpochCall::lock_all), epoch_says::others_held);
  EXPECT_EQ(of.says(EpochCall::fence), epoch_says::lock_held);
  EXPECT_EQ(of.says(EpochCall::start), epoch_says::lock_held);
}

TEST(EpochRules, allow_the_short_way_to_locks_while_nothing_excludes_them) {
  EXPECT_FALSE(RulesOf3(promise_no_locks).are_locks_allowed());
  RulesOf3 of;
  EXPECT_TRUE(of.are_locks_allowed());
  of.rules.enter(EpochCall::post);
  EXPECT_TRUE(of.are_locks_allowed());
  of.rules.enter(EpochCall::start);
  EXPECT_FALSE(of.are_locks_allowed());
  of.rules.enter(EpochCall::complete);
  EXPECT_TRUE(of.are_locks_allowed());
  of.rules.close();
  EXPECT_FALSE(of.are_locks_allowed());
}

TEST(EpochRules, say_one_after_the_other_what_is_open_when_the_window_is_to_go) {
  RulesOf3 of;
  of.rules.enter(EpochCall::post);
  of.rules.enter(EpochCall::start);
  of.words.set(0, locked_shared);
  of.words.set(2, locked_exclusive);
  of.rules.enter(EpochCall::lock_all);
  EXPECT_EQ(of.not_closed(),
            "farsum_window_free: window 3 'name': farsum_lock_all is not undone; call farsum_unlock_all first");
  of.rules.enter(EpochCall::unlock_all);
  EXPECT_THAT(of.not_closed(), HasSubstr("2 locks are held; call farsum_unlock first"));
  of.words.close(0);
  of.words.close(2);
  EXPECT_THAT(of.not_closed(), HasSubstr("an access epoch is open; call farsum_complete first"));
  of.rules.enter(EpochCall::complete);
  EXPECT_THAT(of.not_closed(), HasSubstr("an exposure epoch is open; call farsum_wait_exposure first"));
  of.rules.enter(EpochCall::wait);
  EXPECT_EQ(of.not_closed(), "");
}

TEST(EpochRules, do_not_mind_a_fence_when_the_window_is_to_go) {
  RulesOf3 of;
  ASSERT_TRUE(of.rules.set_fence(true));
  EXPECT_EQ(of.not_closed(), "");
}

TEST(EpochRules, of_a_closed_window_let_nothing_begin) {
  RulesOf3 of;
  ASSERT_TRUE(of.rules.set_fence(true));
  of.rules.close();
  EXPECT_EQ(of.now(), Now{});
  for (const EpochCall call :
       {EpochCall::fence, EpochCall::start, EpochCall::post, EpochCall::lock, EpochCall::lock_all})
    EXPECT_EQ(of.make_way(call), epoch_says::being_freed);
}

TEST(EpochRules, of_an_abandoned_window_let_an_access_epoch_end_and_nothing_begin) {
  RulesOf3 of;
  of.rules.enter(EpochCall::post);
  of.rules.enter(EpochCall::start);
  of.rules.abandon();
  EXPECT_FALSE(of.rules.is(epoch_exposed));
  EXPECT_EQ(of.says(EpochCall::complete), "");
  of.rules.enter(EpochCall::complete);
  EXPECT_EQ(of.not_closed(), "");
  EXPECT_EQ(of.says(EpochCall::start), epoch_says::being_freed);
  EXPECT_FALSE(of.are_locks_allowed());
}

TEST(EpochRules, allow_flushes_of_locks_only_where_epochs_are_strict) {
  EXPECT_EQ(RulesOf3().rules.least_open_to_flush(), active_epoch);
  EXPECT_EQ(RulesOf3(promise_strict_epochs).rules.least_open_to_flush(), passive_epoch);
}

}  // namespace
}  // namespace farsum
