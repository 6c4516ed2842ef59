// By which ranges of addresses the hosts of a job are let in.
#include "transport/ucx/ucx_sockets.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace farsum {
namespace {

using Ranges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

Ranges ranges_of(const std::vector<std::uint32_t>& hosts, std::size_t most) {
  std::vector<std::uint32_t> of_network;
  for (const std::uint32_t host : hosts) of_network.push_back(htonl(host));
  Ranges found;
  for (const HostRange& range : host_ranges(of_network, most)) found.push_back({range.first, range.last});
  return found;
}

TEST(HostRanges, hold_each_host_once_whatever_their_order_and_nothing_between_them) {
  EXPECT_EQ(ranges_of({}, 4), Ranges());
  EXPECT_EQ(ranges_of({7, 3, 5, 3, 4}, 4), (Ranges{{3, 5}, {7, 7}}));
  EXPECT_EQ(ranges_of({0xffff'ffff, 0, 0xffff'fffe}, 4), (Ranges{{0, 0}, {0xffff'fffe, 0xffff'ffff}}));
}

TEST(HostRanges, of_too_many_hosts_hold_the_smallest_gaps_too) {
  const std::vector<std::uint32_t> hosts = {10, 20, 22, 40, 43, 90};
  EXPECT_EQ(ranges_of(hosts, 6), (Ranges{{10, 10}, {20, 20}, {22, 22}, {40, 40}, {43, 43}, {90, 90}}));
  EXPECT_EQ(ranges_of(hosts, 4), (Ranges{{10, 10}, {20, 22}, {40, 43}, {90, 90}}));
  EXPECT_EQ(ranges_of(hosts, 2), (Ranges{{10, 43}, {90, 90}}));
  EXPECT_EQ(ranges_of(hosts, 1), (Ranges{{10, 90}}));
}

TEST(HostRanges, of_gaps_that_are_alike_are_as_many_as_may_be) {
  std::vector<std::uint32_t> hosts;
  for (std::uint32_t i = 0; i < 1000; ++i) hosts.push_back(2 * i);
  const Ranges found = ranges_of(hosts, 10);
  EXPECT_EQ(found.size(), 10u);
  EXPECT_EQ(found.front().first, 0u);
  EXPECT_EQ(found.back().second, 1998u);
}

}  // namespace
}  // namespace farsum
