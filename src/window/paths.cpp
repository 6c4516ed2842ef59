#include "window/paths.hpp"

#include <optional>

#include <fmt/format.h>

#include "memory/atomicity.hpp"

namespace farsum {

const char* name_of(Path path) {
  switch (path) {
    case Path::direct:
      return "direct";
    case Path::attach:
      return "attach";
    case Path::caller:
      return "caller";
    case Path::owner:
      return "owner";
    case Path::aggregated:
      return "aggregated";
    case Path::offload:
      return "offload";
  }
  return "unknown";
}

namespace {

static_assert(cost::stripe_bytes == stripe_bytes);

Path attach_or_owner(cost::Way way) { return way == cost::Way::owner ? Path::owner : Path::attach; }

// What is chosen and why: a sentence that stands by itself, or one that begins with why the memory is not mapped.
struct Chosen {
  PathChoiceResult paths;
  std::string_view why;
  bool begins_with_mapping = false;
};

// User memory that is not mapped here. Copies by the kernel are no CPU atomics, which an atomics-only window is about.
Chosen by_copies(const Reach& reach, const cost::Thresholds& model) {
  PathChoiceResult paths;
  paths.bulk = attach_or_owner(model.user_bulk);
  paths.atomic = reach.atomics_only ? Path::owner : attach_or_owner(model.user_single);
  const char* why = paths.bulk == Path::owner     ? "the owner's agent is faster than copies by the kernel"
                    : paths.atomic == Path::owner ? "the kernel copies, the owner's agent does atomics"
                                                  : "the kernel copies, under the owner's stripe locks";
  return {paths, why, true};
}

Chosen automatic(const Reach& reach, const cost::Thresholds& model) {
  if (reach.mapped) return {{Path::direct, Path::direct}, "mapped here"};
  if (reach.attach_allowed) return by_copies(reach, model);
  return {{}, reach.attach_refusal, true};
}

// Why what is forced cannot be; nothing where it can.
std::optional<std::string_view> why_not(PathChoice forced, const Reach& reach) {
  switch (forced) {
    case PathChoice::direct:
      if (!reach.mapped) return reach.not_mapped_because;
      return {};
    case PathChoice::attach:
      if (!reach.attach_allowed) return reach.attach_refusal;
      return {};
    case PathChoice::caller:
      if (!reach.leases && !reach.mapped && !reach.attach_allowed) return reach.attach_refusal;
      return {};
    case PathChoice::offload:
      return "the window is not one that all ranks declare network-only and reach by cards";
    case PathChoice::automatic:
    case PathChoice::owner:
    case PathChoice::aggregated:
      return {};
  }
  return {};
}

// What can be forced and is.
Chosen as_forced(PathChoice forced, const Reach& reach, const cost::Thresholds& model) {
  switch (forced) {
    case PathChoice::direct:
      return {{Path::direct, Path::direct}, "FARSUM_PATH=direct"};
    case PathChoice::attach:
      if (reach.atomics_only) {
        return {{Path::attach, Path::owner},
                "FARSUM_PATH=attach; copies by the kernel are no CPU atomics, so the owner's agent does those of this "
                "window"};
      }
      return {{Path::attach, Path::attach}, "FARSUM_PATH=attach"};
    case PathChoice::caller:
      if (reach.leases) {
        return {{Path::caller, Path::caller},
                "FARSUM_PATH=caller: fetched under a lease, computed here, put back where nobody changed it"};
      }
      if (reach.atomics_only) {
        return {{Path::caller, Path::owner},
                "FARSUM_PATH=caller; get, compute and put are no CPU atomic, so the owner's agent does those of this "
                "window"};
      }
      return {{Path::caller, Path::caller}, "FARSUM_PATH=caller"};
    case PathChoice::owner:
      return {{Path::owner, Path::owner}, "FARSUM_PATH=owner"};
    case PathChoice::aggregated:
      return {{Path::owner, Path::aggregated},
              "FARSUM_PATH=aggregated: single-element accumulates are gathered, all else goes to the owner"};
    case PathChoice::automatic:
    case PathChoice::offload:
      return automatic(reach, model);
  }
  return automatic(reach, model);
}

std::string in_words(const Chosen& chosen, const Reach& reach) {
  const std::string_view atomics =
      reach.mixed_locks
          ? "; it covers more stretches of other windows than can be told of, so the owner's agent does atomics"
          : "";
  return chosen.begins_with_mapping ? fmt::format("{}; {}{}", reach.not_mapped_because, chosen.why, atomics)
                                    : fmt::format("{}{}", chosen.why, atomics);
}

}  // namespace

PathChoiceResult choose_paths(PathChoice forced, const Reach& reach, const cost::Thresholds& model) {
  PathChoiceResult paths = (why_not(forced, reach) ? automatic(reach, model) : as_forced(forced, reach, model)).paths;
  if (reach.mixed_locks) paths.atomic = Path::owner;
  return paths;
}

std::string explain_choice(PathChoice forced, const Reach& reach, const cost::Thresholds& model) {
  const std::optional<std::string_view> refusal = why_not(forced, reach);
  if (!refusal) return in_words(as_forced(forced, reach, model), reach);
  return fmt::format("FARSUM_PATH={} is not possible: {}; {}", name_of(forced), *refusal,
                     in_words(automatic(reach, model), reach));
}

}  // namespace farsum
