// Where the parts of structures lie that ranks of a node share: processes of one job may have been built apart.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "collectives/node_rounds.hpp"
#include "collectives/teardown.hpp"
#include "golden.hpp"
#include "lockfree/lock_bias.hpp"
#include "lockfree/ring.hpp"
#include "lockfree/shared_lock.hpp"
#include "protocol/window_shared.hpp"
#include "runtime/window_offer.hpp"
#include "transport/shm/node_header.hpp"
#include "transport/shm/node_segment.hpp"

// Of classes with private parts it is what every compiler here takes, though the standard leaves it open.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

namespace farsum {
namespace {

class Listing {
 public:
  template <class Struct>
  void begin(const char* name) {
    text_ += fmt::format("{}: {} bytes, at a multiple of {}\n", name, sizeof(Struct), alignof(Struct));
  }
  void part(const char* name, std::size_t offset) { text_ += fmt::format("  {:6} {}\n", offset, name); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// A macro, for offsetof is one.
#define PART(Struct, member) listing.part(#member, offsetof(Struct, member))

void list_node(Listing& listing) {
  listing.begin<NodeHeader>("NodeHeader");
  PART(NodeHeader, magic);
  PART(NodeHeader, segment_bytes);
  PART(NodeHeader, ranks);
  PART(NodeHeader, rank_blocks);
  PART(NodeHeader, channels);
  PART(NodeHeader, heap_begin);
  PART(NodeHeader, wake_tag);
  PART(NodeHeader, failed_rank);
  PART(NodeHeader, next_window_id);
  PART(NodeHeader, world_team);
  PART(NodeHeader, left);
  PART(NodeHeader, keeps_memory);
  PART(NodeHeader, heap_broken_by);
  PART(NodeHeader, heap_lock);
  PART(NodeHeader, allocated_bytes);
  PART(NodeHeader, free_count);
  PART(NodeHeader, free_extents);
  PART(NodeHeader, kept);
  listing.part("bare_count", offsetof(NodeHeader, atomics_only_count));
  listing.part("bare_extents", offsetof(NodeHeader, atomics_only_extents));
  PART(NodeHeader, pending_extents);
  PART(NodeHeader, stripes);
  listing.begin<PendingExtent>("PendingExtent");
  PART(PendingExtent, key);
  PART(PendingExtent, expected);
  PART(PendingExtent, arrived);
  PART(PendingExtent, extent);
  listing.begin<RankBlock>("RankBlock");
  PART(RankBlock, left);
  PART(RankBlock, pid);
  PART(RankBlock, nonce_address);
  PART(RankBlock, nonce);
  PART(RankBlock, processors);
  PART(RankBlock, awaited);
  PART(RankBlock, doorbell);
  PART(RankBlock, waiters);
  listing.part("pass", offsetof(RankBlock, permit));
  PART(RankBlock, stripes);
  listing.begin<NodeRoundsBlock::Line>("NodeRoundsBlock::Line");
  PART(NodeRoundsBlock::Line, step);
  PART(NodeRoundsBlock::Line, said);
  PART(NodeRoundsBlock::Line, data);
  listing.begin<NodeRoundsBlock::RankPart>("NodeRoundsBlock::RankPart");
  PART(NodeRoundsBlock::RankPart, lines);
  PART(NodeRoundsBlock::RankPart, events);
  listing.begin<HandoverPart::Line>("HandoverPart::Line");
  PART(HandoverPart::Line, number);
  PART(HandoverPart::Line, what);
  PART(HandoverPart::Line, count);
  PART(HandoverPart::Line, data);
  listing.begin<HandoverPart>("HandoverPart");
  PART(HandoverPart, lines);
  PART(HandoverPart, done);
  listing.begin<NodeRoundsBlock::Verdict>("NodeRoundsBlock::Verdict");
  PART(NodeRoundsBlock::Verdict, said);
  PART(NodeRoundsBlock::Verdict, rank);
  PART(NodeRoundsBlock::Verdict, finding);
  listing.begin<NodeRoundsBlock::Count>("NodeRoundsBlock::Count");
  PART(NodeRoundsBlock::Count, step);
  PART(NodeRoundsBlock::Count, stranger);
  listing.begin<NodeTeamBlock>("NodeTeamBlock");
  PART(NodeTeamBlock, arrived);
  PART(NodeTeamBlock, round);
  PART(NodeTeamBlock, departed);
  PART(NodeTeamBlock, given_up);
  PART(NodeTeamBlock, events);
}

void list_windows(Listing& listing) {
  listing.begin<RankWindowHead>("RankWindowHead");
  PART(RankWindowHead, table_version);
  PART(RankWindowHead, table_lock);
  PART(RankWindowHead, region_count);
  PART(RankWindowHead, moved_table);
  PART(RankWindowHead, completes);
  PART(RankWindowHead, worth_ns);
  listing.begin<SharedRegion>("SharedRegion");
  PART(SharedRegion, offset);
  PART(SharedRegion, bytes);
  PART(SharedRegion, owner_address);
  PART(SharedRegion, segment_offset);
  PART(SharedRegion, flags);
  PART(SharedRegion, note);
  listing.begin<SharedLockState>("SharedLockState");
  PART(SharedLockState, guard);
  PART(SharedLockState, queue);
  listing.begin<LockQueueState>("LockQueueState");
  PART(LockQueueState, arrivals);
  PART(LockQueueState, exclusive_holder);
  PART(LockQueueState, exclusive_slot);
  PART(LockQueueState, shared_count);
  PART(LockQueueState, first_waiting);
  PART(LockQueueState, last_waiting);
  PART(LockQueueState, first_passed_ns);
  PART(LockQueueState, turns);
  PART(LockQueueState, may_be_biased);
  listing.begin<LockSlot>("LockSlot");
  PART(LockSlot, word);
  PART(LockSlot, state);
  PART(LockSlot, id);
  PART(LockSlot, wants_exclusive);
  PART(LockSlot, arrival);
  PART(LockSlot, next);
}

// What lies one behind the other at places that are computed.
void list_places(Listing& listing) {
  const WindowSharedShape shape{.ranks = 4, .notification_slots = 16, .most_regions = 8, .locks = 2};
  listing.part("a rank's part of a window of 4 ranks, 16 notifications, 8 regions, 2 locks: bytes", shape.rank_bytes());
  listing.part("its second lock", shape.lock_at(1));
  const std::vector<std::uint32_t> here{0, 1, 2, 3};
  for (const Flavour flavour : {Flavour::allocated, Flavour::adopted}) {
    std::vector<WindowOffer> offers(4);
    for (WindowOffer& offer : offers) {
      offer.flavour = flavour;
      offer.bytes = 1000;
      offer.notification_slots = 16;
    }
    WindowLayout layout;
    layout.lay_out(offers, here, false);
    const std::string of_it =
        flavour == Flavour::allocated ? "of an allocated window of 4 ranks: " : "of an adopted one: ";
    listing.part((of_it + "meetings").c_str(), layout.team_at);
    listing.part((of_it + "farewell").c_str(), layout.teardown_at);
    listing.part((of_it + "bias").c_str(), layout.bias_at);
    listing.part((of_it + "bytes before the parts").c_str(), layout.control_bytes);
    listing.part((of_it + "the last part").c_str(), layout.starts.back());
  }
  listing.begin<LockBiasState>("LockBiasState");
  listing.part("a bias of 4 members: bytes", LockBias::footprint(4));
  // The record's names of what is called otherwise since: a change of it would hide a change of the layout.
  listing.begin<TeardownBlock>("FarewellBlock");
  listing.part("settled", offsetof(TeardownBlock, ended_access));
  PART(TeardownBlock, departed);
  PART(TeardownBlock, events);
  listing.part("a team's block of 16 ranks: bytes", NodeTeamBlock::footprint(16));
  listing.part("a group's block of 16 ranks: carried", GroupBlock::carried_at(16));
  listing.part("a group's block of 16 ranks: rounds", GroupBlock::rounds_at(16));
  listing.part("a group's block of 16 ranks: bytes", GroupBlock::footprint(16));
  listing.part("a ring of 4096 bytes: bytes", RingShared::footprint(4096));
}

#undef PART

TEST(SharedLayout, of_what_processes_share_is_as_recorded) {
  Listing listing;
  list_node(listing);
  list_windows(listing);
  list_places(listing);
  expect_golden("shared_layouts", listing.text());
}

}  // namespace
}  // namespace farsum
