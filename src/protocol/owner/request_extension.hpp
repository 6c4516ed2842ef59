// Kinds of requests that are served elsewhere: the owner's half of a variant (variants/leases). Whoever makes the
// service brings it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "protocol/exposure.hpp"
#include "protocol/messages.hpp"
#include "protocol/owner/operation_applier.hpp"
#include "protocol/owner/request_work.hpp"
#include "transport/transport.hpp"

namespace farsum {

// Driven by the thread that serves.
class RequestExtension {
 public:
  virtual ~RequestExtension() = default;
  // `work` is the sender's, in its initial state where the message is new.
  virtual Served serve(Rank from, const wire::Message& message, const Exposure& exposure,
                       std::span<std::byte> reply_room, RequestWork& work) = 0;
  // Lets go of what a dead rank holds here.
  virtual void forget(Rank dead) = 0;
};

// The applier outlives what is made. Empty: such requests are refused.
using MakeRequestExtension = std::function<std::unique_ptr<RequestExtension>(OperationApplier&)>;

}  // namespace farsum
