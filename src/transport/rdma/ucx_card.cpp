#include "transport/rdma/ucx_card.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "transport/rdma/ucx_memory.hpp"
#include "transport/rdma/ucx_trial.hpp"
#include "transport/ucx/ucx_library.hpp"

namespace farsum {
namespace {

constexpr std::size_t trial_bytes = 262'144;

Status look_first(const UcxLibrary& library, const UcxCardWish& wish) {
  if (wish.first_look.empty()) return {};
  UcxOptions options = wish.ucx;
  options.transports = wish.first_look;
  auto context = UcxContext::create(library, options);
  if (!context.is_ok()) return {Code::unsupported, context.take_status().text()};
  const auto& found = context.value()->resources();
  if (std::any_of(found.begin(), found.end(), [](const UcxResource& one) { return one.transport != "tcp"; })) return {};
  return {Code::unsupported,
          fmt::format("UCX {} finds no card that reaches memory by itself: there is only {}, and over TCP the owner's "
                      "program does what a card would",
                      library.version_text(), context.value()->description())};
}

Status try_out(const UcxLibrary& library, const UcxOptions& options, UcxCard& card) {
  auto context = UcxContext::create(library, options);
  if (!context.is_ok()) return {Code::unsupported, context.take_status().text()};
  auto memory = UcxMemory::map(*context.value(), nullptr, trial_bytes);
  if (!memory.is_ok()) return memory.take_status();
  auto tried =
      try_everything(*context.value(), memory.value(), options.short_words ? UcxWords::of_4_and_8 : UcxWords::of_8);
  if (!tried.is_ok()) return tried.take_status();
  memory.value() = {};
  card.context = std::move(context.value());
  card.updates_short_words = options.short_words;
  card.fetches_bits = tried.value().fetches_bits;
  card.confirms = !card.context->stays_within_a_machine();
  const UcxResource& used = tried.value().card;
  card.tells_lanes = !used.transport.empty();
  card.description = card.tells_lanes ? fmt::format("{}/{}", used.transport, used.device) : card.context->description();
  return {};
}

// The first of the devices that does it all, with words of 4 and 8 bytes if it can.
Status try_all(const UcxLibrary& library, const std::vector<std::string>& devices, UcxOptions options, UcxCard& card) {
  std::string refusals;
  for (const std::string& device : devices) {
    options.devices = device;
    for (const bool short_words : {true, false}) {
      options.short_words = short_words;
      const Status refused = try_out(library, options, card);
      if (refused.is_ok()) return {};
      if (refused.code() != Code::unsupported) return {refused.code(), refused.text()};
      if (short_words) refusals += (refusals.empty() ? "" : "; ") + refused.text();
    }
  }
  return {Code::unsupported,
          fmt::format("UCX {} finds no card that reaches memory by itself: {}", library.version_text(), refusals)};
}

}  // namespace

Result<std::unique_ptr<const UcxCard>> choose_card(const UcxLibrary& library, const UcxCardWish& wish) {
  if (Status refused = look_first(library, wish); !refused.is_ok()) return refused;
  auto context = UcxContext::create(library, wish.ucx);
  if (!context.is_ok()) return Status(Code::unsupported, context.take_status().text());
  auto card = std::make_unique<UcxCard>();
  if (wish.owners == UcxOwners::looked_after) {
    card->context = std::move(context.value());
    card->description = card->context->description();
    return std::unique_ptr<const UcxCard>(std::move(card));
  }
  UcxOptions options = wish.ucx;
  options.is_infiniband = context.value()->has_infiniband();
  std::vector<std::string> devices = context.value()->devices();
  if (devices.empty()) devices.push_back(options.devices);
  context.value().reset();
  if (Status refused = try_all(library, devices, options, *card); !refused.is_ok()) return refused;
  return std::unique_ptr<const UcxCard>(std::move(card));
}

}  // namespace farsum
