// The path on which the owner computes: each operation is a message to its agent.
#pragma once

#include <cstdint>

#include "base/status.hpp"
#include "protocol/operation.hpp"
#include "window/completion.hpp"
#include "window/owner_messages.hpp"
#include "window/remote_locks.hpp"

namespace farsum {

class OwnerPath {
 public:
  // Both outlive it.
  OwnerPath(OwnerMessages& messages, RemoteLocks& locks) : messages_(messages), locks_(locks) {}

  // Complete on return only where it is waited for.
  Status run(const Operation& operation, std::uint32_t target, Completion completion, RequestState* request) {
    RequestState own;
    RequestState* told = completion == Completion::blocking ? &own : request;
    bool sent = false;
    if (locks_.is_unsure(target)) [[unlikely]] {
      if (Status status = locks_.send_behind(operation, target, told, sent); !status.is_ok()) return status;
    }
    if (!sent) {
      if (Status status = messages_.send(operation, target, told); !status.is_ok()) return status;
    }
    if (completion != Completion::blocking) return {};
    return messages_.await_answer(target, own, call_name(operation.kind));
  }

 private:
  OwnerMessages& messages_;
  RemoteLocks& locks_;
};

}  // namespace farsum
