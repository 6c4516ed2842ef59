#include "window/window_texts.hpp"

#include <fmt/format.h>

namespace farsum {

const char* call_name(OperationKind kind) {
  switch (kind) {
    case OperationKind::put:
      return "farsum_put";
    case OperationKind::get:
      return "farsum_get";
    case OperationKind::accumulate:
      return "farsum_accumulate";
    case OperationKind::get_accumulate:
      return "farsum_get_accumulate";
    case OperationKind::compare_and_swap:
      return "farsum_compare_and_swap";
  }
  return "farsum_operate";
}

const char* explain_code(Code code) {
  switch (code) {
    case Code::ok:
      return "fine";
    case Code::range:
      return "the bytes are not exposed there";
    case Code::alignment:
      return "an element is not aligned to its type";
    case Code::type:
      return "type and operator do not go together in that window";
    case Code::handle:
      return "the window does not exist there";
    case Code::unreachable:
      return "the memory is exposed but no longer mapped there (was it freed while the window lives?), or read-only, "
             "or the kernel "
             "refuses to copy";
    case Code::peer_failed:
      return "a rank has died";
    case Code::argument:
      return "the message was malformed";
    case Code::rank:
      return "this rank does not belong to the window there";
    case Code::sync:
      return "no lock can be taken or given back so there";
    case Code::unsupported:
      return "that kind of message is not served there";
    case Code::not_initialized:
    case Code::layout:
    case Code::pending:
    case Code::system:
      return "it could not be carried out";
    case Code::no_memory:
      return "there was no memory left to send it or the rest of it, or to map what it is sent through";
  }
  return "it could not be carried out";
}

std::string fate_of(const Liveness* liveness, Rank rank) {
  return liveness != nullptr ? liveness->fate_of(rank) : fmt::format("rank {} of the job died", rank);
}

std::string cause_of_death(const Liveness* liveness, Rank dead) {
  if (liveness == nullptr) return {};
  const Rank first = liveness->declare_dead(dead);
  return first == dead ? std::string() : " after " + liveness->fate_of(first);
}

std::string name_the_dead(const Liveness* liveness, const std::vector<Rank>& ranks) {
  for (const Rank rank : ranks) {
    if (liveness != nullptr && liveness->is_dead(rank)) {
      return ": " + liveness->fate_of(liveness->declare_dead(rank));
    }
  }
  return {};
}

std::string WindowTexts::where(const char* call, std::uint32_t target) const {
  // A negative rank comes here wrapped around; it is told as it was given.
  return fmt::format("{}, rank {}", of_window(call), static_cast<std::int32_t>(target));
}

std::string WindowTexts::of_window(const char* call) const {
  if (name_.empty()) return fmt::format("{}: window {}", call, id_);
  return fmt::format("{}: window {} '{}'", call, id_, name_);
}

Status WindowTexts::refuse(const char* call, const char* why) const {
  return {Code::sync, fmt::format("{}: window {}: {}", call, id_, why)};
}

Status WindowTexts::applied(Applied applied, const AtomicDomain& domain, std::uint64_t offset, const char* call,
                            std::uint32_t target) const {
  if (applied == Applied::done) return {};
  const std::uint32_t first_holder = domain.lock_of(offset).holder();
  // An element may straddle two stripes, and the other be the one.
  const std::uint32_t holder = first_holder != 0 ? first_holder : domain.next_lock_of(offset).holder();
  return {Code::peer_failed,
          fmt::format("{}: {} while it held the lock of the stripe at offset {}{}", where(call, target),
                      fate_of(liveness_, holder - 1), offset, cause_of_death(liveness_, holder - 1))};
}

Status WindowTexts::transferred(Transfer how, const char* call, std::uint32_t target, const Moved& moved) const {
  switch (how) {
    case Transfer::done:
    case Transfer::started:
      return {};
    case Transfer::bad_address:
      return {Code::unreachable,
              fmt::format(
                  "{}: bytes [{}, {}) are exposed, but the rank no longer has that memory mapped (was it freed while "
                  "the window lives?) or only for reading{}",
                  where(call, target), moved.offset, moved.offset + moved.bytes, moved.missing)};
    case Transfer::refused:
      return {Code::unreachable,
              fmt::format("{}: the kernel refuses to copy between the processes", where(call, target))};
    case Transfer::peer_dead:
      return {Code::peer_failed, fmt::format("{}: {}{}", where(call, target), fate_of(liveness_, ranks_[target]),
                                             cause_of_death(liveness_, ranks_[target]))};
  }
  return {Code::system, "unknown transfer result"};
}

Status WindowTexts::answered(std::uint32_t target, const char* call, Code code, const char* whose) const {
  if (code == Code::ok) return {};
  // An owner that is gone has answered nothing.
  if (code == Code::peer_failed) {
    if (const std::string dead = name_the_dead(liveness_, ranks_); !dead.empty())
      return {code, where(call, target) + dead};
  }
  return {code, fmt::format("{}: {}: {}", where(call, target), whose, explain_code(code))};
}

}  // namespace farsum
