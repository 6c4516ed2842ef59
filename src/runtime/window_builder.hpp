// Making a window: what the ranks agree on, where the memory comes from, and how each rank's part is made known to the
// others.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/function_ref.hpp"
#include "base/status.hpp"
#include "runtime/group.hpp"
#include "runtime/window_object.hpp"
#include "runtime/window_offer.hpp"
#include "runtime/window_registry.hpp"
#include "runtime/window_services.hpp"
#include "runtime/window_wish.hpp"

namespace farsum {

// A window on its way, on one rank. The ranks of one node meet twice: the last to come to the first meeting cuts the
// extent, and in the second all learn whether each could go on. They meet once more where memory may be promoted, or
// where the window is declared network-only; ranks of several nodes meet for the extent by itself. Whoever calls comes
// to all of them: what a rank throws (it finds no memory), before the first meeting or later, is kept, told in the
// next, and the window is made nowhere.
class WindowBuilder {
 public:
  WindowBuilder(const WindowServices& services, WindowRegistry& registry, Group& group, const WindowWish& wish,
                const WindowOptions& options);
  ~WindowBuilder() {
    if (has_place_) registry_.give_place_back();
  }
  WindowBuilder(const WindowBuilder&) = delete;
  WindowBuilder& operator=(const WindowBuilder&) = delete;

  // Runs what this rank has to do before the ranks meet.
  template <class Step>
  void prepare(Step&& step) noexcept;
  Status exchange_offers();
  Status agree_on_cards();
  Status agree_on_extent();
  Result<WindowObject*> make_parts();

 private:
  using Moves = WindowPromotions::Moves;
  // What one rank of a node, which cuts the extent, answers all there.
  struct Answer {
    HeapExtent extent;
    WindowId id = 0;
    Code code = Code::ok;
    bool atomics_only = false;
    char text[240] = {};
  };

  // What the first ranks of nodes tell each other of these.
  struct NodeAnswer {
    WindowId id = 0;
    Code code = Code::ok;
    bool atomics_only = false;
  };

  // Runs a step unless one before it has thrown.
  template <class Step>
  void attempt(Step&& step) noexcept;
  Status tell(std::span<const std::byte> mine, std::span<std::byte> all, FunctionRef<void()> decide);
  NodeSegment& segment() const { return services_.node.segment(); }
  const GroupPlaces& places() const { return group_.places(); }
  bool are_for_cards() const { return (promises_ & promise_network_only) != 0; }
  std::byte* control() const { return segment().at(answer_.extent.offset); }
  WindowSharedShape shape_of(std::uint32_t rank) const { return layout_.shape_of(offers_[rank]); }
  void look_at_own();
  WindowOffer own_offer() const;
  void tell_layer(const Disagreement& why) const;
  void answer_offers() noexcept;
  void answer_cards() noexcept;
  void do_without_cards();
  void lay_out();
  void cut_extent() noexcept;
  Status agree_over_nodes();
  void give_extent_back();
  Status meet_again();
  std::uint32_t own_promises() const;
  CardOffer expose_to_cards();
  RegionTable region_for_cards(std::uint32_t rank) const;
  RegionTable remote_region(std::uint32_t rank) const;
  std::function<std::string(std::uint32_t, const Region&)> explain_regions() const;
  std::uint64_t read_age_ms() const {
    return options_.internal ? 0 : options_.read_age_ms.value_or(services_.settings.read_age_ms);
  }
  void reach_own();
  bool has_failed() const { return thrown_ != nullptr || !refused_.is_ok(); }
  void begin_object();
  void describe_part();
  void describe_adopted();
  void expose_part();
  void begin_window();
  Status give_up();

  const WindowServices& services_;
  WindowRegistry& registry_;
  Group& group_;
  const WindowWish& wish_;
  const WindowOptions& options_;
  const char* call_;
  std::uint32_t me_;
  std::exception_ptr thrown_;
  bool has_place_ = false;
  Status refusal_of_window_;  // why this rank cannot take part
  // Why this rank's memory cannot be promoted, empty where it can; and whether it would move for that. Asked once: what
  // was offered holds.
  std::string refusal_;
  Moves moves_ = Moves::too_dear;
  // By rank; they lie in the group's room, so that a rank that has no memory left takes part in the first meeting.
  std::span<WindowOffer> offers_;
  std::vector<CardOffer> card_offers_;  // room for them where this rank declares the window network-only
  // The same where the ranks are of several nodes: what each says of its node's extent, and its rank + 1 if it failed.
  std::vector<NodeAnswer> node_answers_;
  std::vector<std::uint32_t> failures_;
  std::uint32_t promises_ = 0;
  std::unique_ptr<CardParts> cards_;  // null: not for cards
  std::string no_cards_;              // why not, where this rank has declared it
  WindowLayout layout_;
  Answer answer_;
  Status refused_;  // why this rank cannot map what it needs; then no step is done, as where one has thrown
  std::unique_ptr<WindowObject> object_;
  std::vector<RankWindow> shared_;  // by rank of the group; empty where a rank is remote
  std::uint32_t failed_ = 0;        // rank of the group plus one that could not go on; 0: none
  DescribedMemory own_;
};

template <class Step>
void WindowBuilder::attempt(Step&& step) noexcept {
  if (has_failed()) return;
  try {
    step();
  } catch (...) {
    thrown_ = std::current_exception();
  }
}

template <class Step>
void WindowBuilder::prepare(Step&& step) noexcept {
  attempt([&] {
    step(refusal_of_window_);
    registry_.keep_place();
    has_place_ = true;
    look_at_own();
  });
}

}  // namespace farsum
