// Variables whose names are nearly those of settings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "base/settings.hpp"
#include "cli/misspelt_settings.hpp"

namespace farsum::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(MisspeltSettings, are_told_with_the_name_that_was_meant) {
  const std::array<const char*, 6> environment = {"FARSUM_PTAH=owner", "FARSUM_NET_DEVICE=eth0", "FARSUM_MPI_STAT=1",
                                                  "FARSUM_SPINNS=0",   "FARSUM_STRICT=1",        nullptr};
  EXPECT_THAT(misspelt_settings(environment.data()),
              ElementsAre(AllOf(HasSubstr("FARSUM_PTAH is no setting"), HasSubstr("FARSUM_PATH is one")),
                          AllOf(HasSubstr("FARSUM_NET_DEVICE "), HasSubstr("FARSUM_NET_DEVICES is one")),
                          AllOf(HasSubstr("FARSUM_MPI_STAT "), HasSubstr("FARSUM_MPI_STATS is one")),
                          AllOf(HasSubstr("FARSUM_SPINNS "), HasSubstr("FARSUM_SPIN_NS is one")),
                          AllOf(HasSubstr("FARSUM_STRICT "), HasSubstr("FARSUM_MPI_STRICT is one"))));
}

TEST(MisspeltSettings, are_not_what_is_one_or_is_for_others) {
  const std::array<const char*, 11> environment = {"FARSUM_MPI=1",
                                                   "FARSUM_ID=3",
                                                   "FARSUM_INC=include",
                                                   "FARSUM_RANK=0",
                                                   "FARSUM_SIZE=2",
                                                   "FARSUM_NODE_FD=3",
                                                   "FARSUM_SEED=7",
                                                   "FARSUM_NET_UCX_LOG_LEVEL=info",
                                                   "FARSUM_HOSTS=",
                                                   "FRASUM_PATH=auto",
                                                   nullptr};
  EXPECT_THAT(misspelt_settings(environment.data()), IsEmpty());
  for (const SettingRow& row : describe_settings({})) {
    const std::string variable = row.name + "=";
    const std::array<const char*, 2> alone = {variable.c_str(), nullptr};
    EXPECT_THAT(misspelt_settings(alone.data()), IsEmpty());
  }
}

}  // namespace
}  // namespace farsum::cli
