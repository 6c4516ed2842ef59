// A transport that takes down what is posted; the test answers. As between hosts: nobody reaches into the other's
// memory.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "transport/transport.hpp"

namespace farsum {

using Bytes = std::vector<std::byte>;

inline constexpr Rank peer = 3;
inline constexpr WindowId window = 9;

// As messages of one frame between hosts are.
inline constexpr Capabilities between_hosts{
    .late_replies = true, .separate_replies = true, .max_message_bytes = 57'264, .max_reply_bytes = 57'256};

class Scripted final : public Transport {
 public:
  struct Posted {
    Rank to;
    Bytes bytes;
    PostOptions options;
  };

  Capabilities capabilities(Rank) const override { return can; }
  std::optional<std::uint64_t> try_post(Rank to, std::span<const std::byte> head, std::span<const std::byte> body,
                                        const PostOptions& options) override {
    if (on_post) on_post();
    if (room == 0) return std::nullopt;
    --room;
    EXPECT_LE(head.size() + body.size() + (can.separate_replies ? 0 : options.reply_capacity), can.max_message_bytes);
    EXPECT_LE(options.reply_capacity, can.max_reply_bytes);
    std::uint64_t& next_ticket = next_ticket_[to];  // before it is posted: where there is no memory it is not
    Bytes all(head.begin(), head.end());
    all.insert(all.end(), body.begin(), body.end());
    posted.push_back({to, std::move(all), options});
    return next_ticket++;
  }
  std::size_t poll_replies(Rank from, ReplyHandler& handler) override {
    ++polls[from];
    if (on_poll) on_poll();
    std::deque<Reply> all = std::exchange(replies[from], {});
    for (const Reply& reply : all) handler.on_reply(from, reply.ticket, reply.code, reply.bytes);
    return all.size();
  }
  void hand_over() override { ++handed_over; }
  std::size_t poll_requests(RequestHandler&, std::size_t) override { return 0; }
  void complete(ReplyToken, Code, std::span<const std::byte>) override {}
  Transfer read(Rank, std::uint64_t, std::span<std::byte>, std::uint64_t) override { return Transfer::refused; }
  Transfer write(Rank, std::uint64_t, std::span<const std::byte>, std::uint64_t) override { return Transfer::refused; }

  void reply(std::uint64_t ticket, Code code = Code::ok, Bytes bytes = {}) {
    replies[peer].push_back({ticket, code, std::move(bytes)});
  }

  struct Reply {
    std::uint64_t ticket;
    Code code;
    Bytes bytes;
  };
  Capabilities can = between_hosts;
  std::size_t room = 1'000'000;  // posts that are taken
  std::vector<Posted> posted;
  std::map<Rank, std::deque<Reply>> replies;
  std::map<Rank, std::uint64_t> polls;
  std::uint64_t handed_over = 0;
  std::function<void()> on_post;
  std::function<void()> on_poll;

 private:
  std::map<Rank, std::uint64_t> next_ticket_;
};

}  // namespace farsum
