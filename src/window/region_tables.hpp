// What an origin knows of the memory of a window's parts: for each rank a table of regions, each with one way to reach
// it. Those of a dynamic window are read anew when their owner has changed them; all others stay as they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "memory/atomicity.hpp"
#include "protocol/operation.hpp"
#include "protocol/window_shared.hpp"
#include "window/paths.hpp"

namespace farsum {

// A stretch of a target's memory with one way to reach it.
struct Region {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::byte* mapped = nullptr;
  std::uint64_t owner_address = 0;
  AtomicDomain domain;
  Path bulk = Path::owner;
  Path atomic = Path::owner;
  bool promoted = false;
  bool read_only = false;
  bool mixed_locks = false;  // not all of it is under those of the domain: atomics are the owner's
  bool is_sparse = false;    // `mapped` is where it would be: what an operation touches is reached first
  char note[sizeof(SharedRegion::note)] = {};  // its owner's
  // Why it is as it is, in what regions_of answers. Else only why it could not be mapped, which nobody finds out later.
  std::string reason;
};

using RegionTable = std::shared_ptr<const std::vector<Region>>;  // sorted by offset, disjoint

// A region, and what keeps it alive while it is used.
struct RegionRef {
  const Region* region = nullptr;
  bool whole = false;         // it holds the whole range asked for; else the range goes on in regions that touch
  bool same_locks = true;     // the regions of the range are under the same locks, one behind the other
  bool read_only = false;     // some of the range is
  bool atomics_only = false;  // some of the range is
  bool is_reached = true;  // what of the range lies in the region; false in sparse ones only, of which the owner knows
  RegionTable keep;        // in a dynamic window
};

class RegionTables {
 public:
  // All of it outlives the tables and stays as it is.
  struct Sources {
    const std::vector<Rank>& ranks;         // of the job, by rank of the group
    const std::vector<RankWindow>& shared;  // what ranks of this node have published
    const std::vector<RegionTable>& told;   // of ranks of other nodes; in a window for network cards of all
    const LockAgent& agent;                 // of this process's threads
    bool dynamic = false;
    bool for_cards = false;
    // Turns what a rank has published into what this process can do with it.
    const std::function<Region(Rank owner, const SharedRegion&)>& make;
    // Says why a region of that rank of the group is as it is. Null: nobody asks.
    const std::function<std::string(std::uint32_t target, const Region&)>& explain;
    // Maps what this process has not used yet; false where it cannot, or nobody has that memory. Null: all is mapped.
    const std::function<bool(const void* begin, std::uint64_t bytes)>& reach;
  };
  explicit RegionTables(const Sources& sources);

  // That of a rank as it is now. Throws bad_alloc. Any thread may call.
  RegionTable read(std::uint32_t target);
  // Each look-up reads the table first, as in a dynamic window: for those that could not be read when all had met.
  void read_always() { reads_always_ = true; }
  // The region with the byte at `offset`, if all of [offset, offset + bytes) is exposed; else null.
  RegionRef at(std::uint32_t target, std::uint64_t offset, std::uint64_t bytes);
  // Regions that hold every piece of the operation, though not all that lies between them; read-only if one of them is.
  RegionRef of_pieces(const Operation& operation, std::uint32_t target);
  // All of a rank, with the reasons in words.
  std::vector<Region> explained(std::uint32_t rank);

 private:
  struct Known {
    std::mutex mutex;  // of a dynamic window; elsewhere the table never changes once all have met
    RegionTable table;
    std::uint64_t version = ~std::uint64_t{0};
  };
  RegionTable make_table(std::uint32_t target, std::span<const SharedRegion> published) const;
  std::optional<std::vector<SharedRegion>> copy_of_published(const RankWindow& shared, std::uint64_t& version) const;

  Sources from_;
  std::unique_ptr<Known[]> known_;
  bool reads_always_;
};

}  // namespace farsum
