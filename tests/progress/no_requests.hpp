// An owner of whom nothing is asked.
#pragma once

#include <cstddef>
#include <span>

#include "transport/transport.hpp"

namespace farsum::test {

struct NoRequests final : RequestHandler {
  Served on_request(Rank, std::span<const std::byte>, std::span<std::byte>, ReplyToken) override { return {}; }
};

}  // namespace farsum::test
