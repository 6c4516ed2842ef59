#include "window/local_locks.hpp"

#include <string>

#include <fmt/format.h>

namespace farsum {
namespace {

const char* mode_name(LockMode mode) { return mode == LockMode::exclusive ? "exclusive" : "shared"; }

}  // namespace

Status LocalLocks::await(std::uint32_t target, const Requested& requested, const char* call,
                         std::uint32_t index) const {
  if (requested.kind == Requested::Kind::granted) return {};
  if (requested.kind == Requested::Kind::full)
    return {Code::system, needs_.texts.where(call, target) + ": the lock's queue is full"};
  const Liveness* liveness = needs_.agent.liveness;
  Status failure;
  std::string holders;
  const auto wait = [&](LockGrant& grant) {
    failure = needs_.waiter.wait_for_grant(grant, call);
    return failure.is_ok();
  };
  const auto take = [&](auto& lock) {
    const LockResult how = lock.wait(needs_.agent.id, requested.slot, wait);
    if (how != LockResult::gave_up) return how;
    lock.for_each_holder([&](std::uint32_t id, LockMode held) {
      if (HolderDead{liveness}(id))
        holders += fmt::format("; {} while it held it {}", liveness->fate_of(id - 1), mode_name(held));
    });
    return how;
  };
  if (visit(target, take, index) == LockResult::acquired) return {};
  return {failure.code(), fmt::format("{}: {}{}", needs_.texts.where(call, target), failure.text(), holders)};
}

Status LocalLocks::give_back(std::uint32_t target, LockMode mode, const char* call, std::uint32_t index) const {
  if (visit(
          target, [&](auto& lock) { return lock.unlock(contender(), mode); }, index))
    return {};
  return not_held(call, target);
}

Status LocalLocks::not_held(const char* call, std::uint32_t target) const {
  return {Code::system, needs_.texts.where(call, target) + ": the lock is not held in shared memory"};
}

}  // namespace farsum
