// Reads of other nodes' memory that are answered from copies (variants/read_copies), in windows that allow it: what is
// asked of them before an operation is sent, and after, and what is fetched behind others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/status.hpp"
#include "protocol/operation.hpp"
#include "variants/read_copies/read_ahead.hpp"
#include "window/completion.hpp"
#include "window/owner_messages.hpp"
#include "window/remote_locks.hpp"

namespace farsum {

// Any thread may call.
class AnsweredReads {
 public:
  // Both references outlive it, and so does what the options point to. `part_bytes` by target; `remote_targets` are
  // those whose reads it answers.
  AnsweredReads(const ReadAhead::Options& options, const std::vector<std::uint64_t>& part_bytes,
                std::vector<std::uint32_t> remote_targets, OwnerMessages& messages, RemoteLocks& locks)
      : ahead_(options, part_bytes), targets_(std::move(remote_targets)), messages_(messages), locks_(locks) {}

  // Whether copies may answer it; a lock that was only asked for may be granted after what others do under it.
  bool may_answer(const Operation& operation, std::uint32_t target, Completion completion) const {
    return ahead_.is_read(operation) && !is_awaited(operation, completion) && !locks_.is_unsure(target);
  }
  // Answers it, where there are copies of all that it reads.
  bool answer(const Operation& operation, std::uint32_t target) { return ahead_.answer(target, operation); }
  // One that may be answered was sent instead.
  void note_sent(const Operation& operation, std::uint32_t target, Completion completion) {
    ahead_.sent(target, operation);
    if (completion != Completion::implicit) end_round(target);
  }
  // One that may not be was sent, or failed half-way.
  void note_other(const Operation& operation, std::uint32_t target);
  // This process has sent what changes bytes from `low` to `high` of the target.
  void note_change(std::uint32_t target, std::uint64_t low, std::uint64_t high) { ahead_.changed(target, low, high); }

  // Somebody is about to wait for what was sent to the target. How many blocks are fetched behind it.
  std::size_t end_round(std::uint32_t target);
  Status await_fetches(std::uint32_t target, const char* call);
  // After it nothing points into the copies any more.
  Status await_all_fetches(const char* call);

  // One that somebody waits for and that changes something, too: nothing older answers after it.
  static bool is_awaited(const Operation& operation, Completion completion) {
    return completion == Completion::blocking && operation.kind != OperationKind::get;
  }

 private:
  ReadAhead ahead_;
  std::vector<std::uint32_t> targets_;
  OwnerMessages& messages_;
  RemoteLocks& locks_;
};

}  // namespace farsum
