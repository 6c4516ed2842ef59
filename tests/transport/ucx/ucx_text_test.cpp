#include "transport/ucx/ucx_text.hpp"

#include <gtest/gtest.h>

namespace farsum {
namespace {

TEST(UcxText, names_each_transport_and_device_of_a_context) {
  const auto found = resources_in(
      "#\n# UCP context\n#\n#     component 1  :  tcp\n#            md 0  :  component 1  tcp \n#\n"
      "#      resource 0  :  md 0  dev 0  flags -- tcp/lo\n#      resource 1  :  md 0  dev 1  flags -- "
      "rc_mlx5/mlx5_0:1\n#\n");
  EXPECT_EQ(found, (std::vector<UcxResource>{{"tcp", "lo"}, {"rc_mlx5", "mlx5_0:1"}}));
}

TEST(UcxText, finds_the_lane_of_active_messages_as_1_13_prints_it) {
  const UcxResource lane = message_lane_in(
      "#                 lane[0]:  0:tcp/lo.0 md[0]                -> md[0]/tcp/sysdev[255] rma_bw#0 wireup\n"
      "#                 lane[1]:  1:tcp/eth0.0 md[0]              -> md[0]/tcp/sysdev[255] rma_bw#1 am am_bw#0\n"
      "#                 am_send: 0..<egr/short>..8185..<egr/zcopy>..(inf)\n");
  EXPECT_EQ(lane, (UcxResource{"tcp", "eth0"}));
}

TEST(UcxText, finds_the_lane_of_active_messages_as_1_20_prints_it) {
  const UcxResource lane = message_lane_in(
      "#                 lane[0]:  0:tcp/eth0.0 md[0] -> md[0]/tcp/sysdev[255] seg 4294967295 rma_bw#0 am wireup\n"
      "# | ucp_context_0 self cfg#0 | active message by ucp_am_send* from host memory    |\n");
  EXPECT_EQ(lane, (UcxResource{"tcp", "eth0"}));
}

TEST(UcxText, finds_the_lane_of_atomics_as_both_print_it) {
  const UcxResource of_1_13 = update_lane_in(
      "#                 lane[0]:  0:tcp/eth0.0 md[0]             -> md[0]/tcp/sysdev[255] am\n"
      "#                 lane[1]:  4:rc_mlx5/mlx5_0:1.0 md[2]     -> md[2]/ib/sysdev[0] rma_bw#0 amo#0 wireup\n"
      "#                  put[1]: 0..<short>..4294967296..<bcopy>..(inf)\n");
  EXPECT_EQ(of_1_13, (UcxResource{"rc_mlx5", "mlx5_0:1"}));
  const UcxResource of_1_20 = update_lane_in(
      "#                 lane[0]:  0:posix/memory.0 md[0]   -> md[0]/posix/sysdev[255] seg 4294967295 amo#0 am\n");
  EXPECT_EQ(of_1_20, (UcxResource{"posix", "memory"}));
  EXPECT_EQ(update_lane_in("# lane[0]:  0:tcp/eth0.0 md[0] -> md[0]/tcp/sysdev[255] rma_bw#0 am wireup\n"),
            UcxResource());
}

TEST(UcxText, names_the_lanes_of_an_endpoint) {
  const auto found = lanes_in(
      "# lane[0]:  0:posix/memory.0 md[0] -> md[0]/posix/sysdev[255] rma_bw#0 amo#0 am\n"
      "# put[0]: 0..<short>\n# lane[1]:  1:self/memory.0 md[1] -> md[1]/self/sysdev[255] amo#1\n");
  EXPECT_EQ(found, (std::vector<UcxResource>{{"posix", "memory"}, {"self", "memory"}}));
}

TEST(UcxText, finds_nothing_in_text_of_another_form) {
  EXPECT_TRUE(resources_in("").empty());
  EXPECT_TRUE(resources_in("resource\nresource 1 --\n--\n").empty());
  EXPECT_EQ(message_lane_in("lane[0]: -> am\nlane[1]:tcp/lo -> am\nlane"), UcxResource());
}

TEST(UcxText, takes_the_least_piece_for_a_transport_it_does_not_know) {
  EXPECT_EQ(piece_bytes_of("tcp"), 57344u);
  EXPECT_EQ(piece_bytes_of("posix"), piece_bytes_of("never heard of"));
  EXPECT_LT(piece_bytes_of("posix"), memory_segment_bytes);
}

}  // namespace
}  // namespace farsum
