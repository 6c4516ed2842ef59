// A shared counter of any kind: Farsum's two, and those that they are compared with.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include "farsum.h"
#include "locked_counters.hpp"

namespace apps {

enum class CounterKind : std::uint8_t { strict, leased, per_rank, tree };

// As programs' options and reports name them.
inline const std::map<std::string, CounterKind>& counter_kinds() {
  static const std::map<std::string, CounterKind> kinds = {{"strict", CounterKind::strict},
                                                           {"leased", CounterKind::leased},
                                                           {"per-rank", CounterKind::per_rank},
                                                           {"tree", CounterKind::tree}};
  return kinds;
}

// farsum_counter with the shape of the others.
class FarsumCounter {
 public:
  farsum_status create(farsum_counter_kind kind, int home, std::uint64_t limit) {
    farsum_counter_options options{};
    options.struct_bytes = sizeof options;
    options.kind = kind;
    options.home = home;
    options.limit = limit;
    return farsum_counter_create(farsum_world(), &options, &counter_);
  }
  farsum_status next(std::uint64_t* ticket) { return farsum_counter_next(counter_, ticket); }
  farsum_status reset() { return farsum_counter_reset(counter_); }
  farsum_status free() { return farsum_counter_free(&counter_); }

 private:
  farsum_counter counter_{};
};

// All but next() are collective over the world.
class AnyCounter {
 public:
  // `home` keeps it. `limit` tickets are dealt out; it means something to a leased counter only.
  farsum_status create(CounterKind kind, int home, std::uint64_t limit) {
    switch (kind) {
      case CounterKind::strict:
        return counter_.emplace<FarsumCounter>().create(FARSUM_COUNTER_STRICT, home, 0);
      case CounterKind::leased:
        return counter_.emplace<FarsumCounter>().create(FARSUM_COUNTER_LEASED, home, limit);
      case CounterKind::per_rank:
        return counter_.emplace<PerRankCounter>().create(home);
      case CounterKind::tree:
        break;
    }
    return counter_.emplace<TreeCounter>().create(home);
  }
  farsum_status next(std::uint64_t* ticket) {
    return std::visit([=](auto& counter) { return counter.next(ticket); }, counter_);
  }
  farsum_status reset() {
    return std::visit([](auto& counter) { return counter.reset(); }, counter_);
  }
  farsum_status free() {
    return std::visit([](auto& counter) { return counter.free(); }, counter_);
  }

 private:
  std::variant<FarsumCounter, PerRankCounter, TreeCounter> counter_;
};

}  // namespace apps
