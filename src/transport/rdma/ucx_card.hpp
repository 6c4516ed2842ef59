// The card by which a rank reaches the memory of others: which of the machine's it is, and what it was found to do.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.hpp"
#include "transport/ucx/ucx_context.hpp"

namespace farsum {

class UcxLibrary;

struct UcxCard {
  std::unique_ptr<UcxContext> context;
  std::string description;
  bool updates_short_words = true;
  bool fetches_bits = true;  // by itself
  bool tells_lanes = false;  // what UCX prints of an endpoint is understood
  bool confirms = false;     // its word that it wrote is not enough: the owner's loads might come before
};

enum class UcxOwners : std::uint8_t {
  idle,          // what they expose is reached while they do nothing, or there is no card
  looked_after,  // tests: over what has UCX do it in the owner's look_after()
};

struct UcxCardWish {
  UcxOptions ucx;
  // More transports: where UCX finds but TCP among them, the others are not asked for, of whose lack it would
  // complain.
  std::string first_look;
  UcxOwners owners = UcxOwners::idle;
};

// One card, for cards of one host are not atomic to each other: the first that does it all. unsupported, with what each
// was refused for, where none does. The library must outlive it.
Result<std::unique_ptr<const UcxCard>> choose_card(const UcxLibrary& library, const UcxCardWish& wish);

}  // namespace farsum
