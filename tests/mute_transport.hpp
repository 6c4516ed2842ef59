// What tests stand on that need a transport and no messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "transport/transport.hpp"

namespace farsum {

// Sends nothing, and nothing comes.
class MuteTransport : public Transport {
 public:
  Capabilities capabilities(Rank) const override { return {}; }
  std::optional<std::uint64_t> try_post(Rank, std::span<const std::byte>, std::span<const std::byte>,
                                        const PostOptions&) override {
    return std::nullopt;
  }
  std::size_t poll_replies(Rank, ReplyHandler&) override { return 0; }
  std::size_t poll_requests(RequestHandler&, std::size_t) override { return 0; }
  void complete(ReplyToken, Code, std::span<const std::byte>) override {}
  Transfer read(Rank, std::uint64_t, std::span<std::byte>, std::uint64_t) override { return Transfer::refused; }
  Transfer write(Rank, std::uint64_t, std::span<const std::byte>, std::uint64_t) override { return Transfer::refused; }
};

}  // namespace farsum
