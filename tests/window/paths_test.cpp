// Which path memory gets by itself, and what the cost model changes about it.
#include "window/paths.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace farsum {
namespace {

using testing::HasSubstr;

const Reach mapped_memory = {.mapped = true, .attach_refusal = "", .not_mapped_because = ""};
const Reach user_memory = {.attach_allowed = true, .attach_refusal = "", .not_mapped_because = "user memory"};
const Reach remote = {.leases = true, .attach_refusal = "by messages", .not_mapped_because = "on host b"};

TEST(ChosenPaths, of_mapped_memory_are_direct_whatever_the_model_says) {
  const cost::Thresholds model = {.user_bulk = cost::Way::owner, .user_single = cost::Way::owner};
  const PathChoiceResult paths = choose_paths(PathChoice::automatic, mapped_memory, model);
  EXPECT_EQ(paths.bulk, Path::direct);
  EXPECT_EQ(paths.atomic, Path::direct);
}

TEST(ChosenPaths, of_user_memory_are_what_the_model_finds_cheaper) {
  for (const auto& [way, path] : {std::pair{cost::Way::attach, Path::attach}, {cost::Way::owner, Path::owner}}) {
    EXPECT_EQ(choose_paths(PathChoice::automatic, user_memory, {.user_bulk = way}).bulk, path);
    EXPECT_EQ(choose_paths(PathChoice::automatic, user_memory, {.user_single = way}).atomic, path);
  }
}

TEST(ChosenPaths, of_user_memory_for_cpu_atomics_only_leave_single_elements_to_the_owner) {
  Reach atomics_only = user_memory;
  atomics_only.atomics_only = true;
  const PathChoiceResult paths = choose_paths(PathChoice::automatic, atomics_only, {.user_single = cost::Way::attach});
  EXPECT_EQ(paths.bulk, Path::attach);
  EXPECT_EQ(paths.atomic, Path::owner);
}

TEST(ChosenPaths, without_copies_by_the_kernel_are_the_owners) {
  const PathChoiceResult paths =
      choose_paths(PathChoice::automatic, {.attach_refusal = "refused", .not_mapped_because = "user memory"});
  EXPECT_EQ(paths.bulk, Path::owner);
  EXPECT_EQ(paths.atomic, Path::owner);
}

TEST(ChosenPaths, leave_atomics_of_mixed_locks_to_the_owner_and_say_so) {
  for (const PathChoice forced : {PathChoice::automatic, PathChoice::direct, PathChoice::caller}) {
    const Reach mixed{
        .mapped = true, .attach_allowed = true, .mixed_locks = true, .attach_refusal = "", .not_mapped_because = ""};
    EXPECT_NE(choose_paths(forced, mixed).bulk, Path::owner);
    EXPECT_EQ(choose_paths(forced, mixed).atomic, Path::owner);
    EXPECT_THAT(explain_choice(forced, mixed), HasSubstr("the owner's agent does atomics"));
  }
}

TEST(ChosenPaths, between_hosts_are_the_owners_whatever_the_model_says) {
  for (const cost::Thresholds& model : {cost::Thresholds(), cost::Thresholds{.caller_from_bytes = 8}}) {
    const PathChoiceResult paths = choose_paths(PathChoice::automatic, remote, model);
    EXPECT_EQ(paths.bulk, Path::owner);
    EXPECT_EQ(paths.atomic, Path::owner);
    EXPECT_THAT(explain_choice(PathChoice::automatic, remote, model), HasSubstr("by messages"));
  }
  EXPECT_EQ(choose_paths(PathChoice::caller, remote).bulk, Path::caller);
}

// `farsum info --model` says what windows do.
TEST(ChosenPaths, are_those_that_the_model_says_it_chooses) {
  const auto path_of = [](cost::Way way) {
    return way == cost::Way::direct ? Path::direct : way == cost::Way::attach ? Path::attach : Path::owner;
  };
  for (const cost::Way way : {cost::Way::attach, cost::Way::owner}) {
    const cost::Thresholds model = {.user_bulk = way, .user_single = way};
    for (const auto& [reach, guarded] : {std::pair{mapped_memory, false}, {user_memory, true}}) {
      const PathChoiceResult paths = choose_paths(PathChoice::automatic, reach, model);
      const auto chosen = [&](std::uint64_t bytes) {
        return path_of(cost::chosen(model, cost::LinkClass::node,
                                    {.kind = cost::Kind::accumulate, .bytes = bytes, .guarded = guarded}, bytes == 8));
      };
      EXPECT_EQ(paths.bulk, chosen(4096));
      EXPECT_EQ(paths.atomic, chosen(8));
    }
  }
}

TEST(ChosenPaths, that_are_forced_do_not_ask_the_model) {
  const cost::Thresholds model = {.user_bulk = cost::Way::owner, .user_single = cost::Way::owner};
  const PathChoiceResult attach = choose_paths(PathChoice::attach, user_memory, model);
  EXPECT_EQ(attach.bulk, Path::attach);
  EXPECT_EQ(attach.atomic, Path::attach);
  // What cannot be forced is chosen as if nothing had been.
  EXPECT_EQ(choose_paths(PathChoice::offload, user_memory, model).bulk, Path::owner);
}

}  // namespace
}  // namespace farsum
