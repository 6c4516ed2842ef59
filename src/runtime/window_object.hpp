// What a program asks of a window that is to be made, and a window with what it holds on to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "collectives/group_team.hpp"
#include "collectives/letter_post.hpp"
#include "collectives/teardown.hpp"
#include "promotion/promotion.hpp"
#include "runtime/card_side.hpp"
#include "runtime/group.hpp"
#include "runtime/mutexes.hpp"
#include "transport/shm/node_segment.hpp"
#include "window/window.hpp"

namespace farsum {

// What a layer above tells its other ranks while a window is made, and is told.
struct WindowLayer {
  std::uint64_t word = 0;
  std::int32_t refusal = 0;        // not 0: it refuses the window
  std::uint64_t* words = nullptr;  // room for every rank's; null: nobody asks
  std::int32_t refused_by = -1;    // rank of the group
  std::int32_t refused_with = 0;
};

struct WindowOptions {
  std::uint32_t promises = 0;
  std::uint32_t notification_slots = 16;
  std::uint64_t aggregate_limit = 0;         // 0: the setting
  std::uint64_t alignment = 1;               // of this rank's part, where it is allocated and not contiguous to others
  std::optional<std::uint64_t> read_age_ms;  // none: the setting
  std::string name;
  std::optional<std::uint32_t> mutexes;  // of this rank: then they are what the window is for
  bool internal = false;                 // of a counter or of mutexes: finalize may find it in use
  Status refusal;                        // why this rank cannot take part; then no rank gets the window
  bool lacks_memory = false;             // the same where the caller has found none
  WindowLayer* layer = nullptr;          // null: there is none above
  // Where the window's views shall lie; none, or null: anywhere.
  std::function<TargetView*(std::uint32_t ranks)> place_views;
};

// A window and what it holds on to.
struct WindowObject {
  Group* group = nullptr;
  std::unique_ptr<Window> window;
  // Control block and, in an allocated window, everybody's memory; the last rank to depart gives it back.
  HeapExtent extent;
  std::uint64_t control_bytes = 0;   // how much of it is the control block, where the ranks part
  std::unique_ptr<LetterPost> post;  // null where this rank speaks for no node of several
  std::unique_ptr<GroupTeam> team;   // of its own, so that several windows of a group can be fenced at once
  std::unique_ptr<Teardown> teardown;
  std::vector<Code> teardown_answers;  // room for what all ranks say when it is to go, where they are of several nodes
  bool prepared = false;               // all ranks have agreed that it goes, or this one has left a circle
  bool left_circle = false;
  bool some_promoted = false;  // of the ranks' parts
  os::Promotion promotion;
  // These two are of adopted windows. This rank tells the others what it has done to their parts; its own part counts
  // in its balance of promotions, by what they have told.
  bool counts_traffic = false;
  bool in_balance = false;
  RankWindow own;
  std::unique_ptr<CardParts> cards;  // null: not for cards
  std::unique_ptr<Mutexes> mutexes;  // null: it has none
  std::byte* memory = nullptr;       // this rank's part
  bool dynamic = false;
  bool internal = false;
  std::mutex regions_mutex;                               // attach and detach; guards what follows
  HeapExtent table;                                       // of regions, when they have outgrown the control block
  std::multimap<std::uintptr_t, std::uint64_t> attached;  // what the program attached: start and bytes
};

}  // namespace farsum
