#include "core/paths.hpp"

#include <fmt/format.h>

#include "core/atomicity.hpp"

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

// User memory that is not mapped here. Copies by the kernel are no CPU atomics, which a bare window is about.
PathChoiceResult by_copies(const Reach& reach, const cost::Thresholds& model) {
  PathChoiceResult result;
  result.bulk = attach_or_owner(model.user_bulk);
  result.atomic = reach.bare ? Path::owner : attach_or_owner(model.user_single);
  const char* who = result.bulk == Path::owner     ? "the owner's agent is faster than copies by the kernel"
                    : result.atomic == Path::owner ? "the kernel copies, the owner's agent does atomics"
                                                   : "the kernel copies, under the owner's stripe locks";
  result.reason = fmt::format("{}; {}", reach.not_mapped_because, who);
  return result;
}

PathChoiceResult automatic(const Reach& reach, const cost::Thresholds& model) {
  if (reach.mapped) return {Path::direct, Path::direct, "mapped here"};
  if (reach.attach_allowed) return by_copies(reach, model);
  PathChoiceResult result;
  result.reason = fmt::format("{}; {}", reach.not_mapped_because, reach.attach_refusal);
  if (reach.leases && model.caller_from_bytes != cost::never) {
    result.caller_from_bytes = model.caller_from_bytes;
    result.reason += fmt::format("; sums from {} bytes on by their caller", model.caller_from_bytes);
  }
  return result;
}

PathChoiceResult cannot(const char* wanted, const std::string& why, const Reach& reach, const cost::Thresholds& model) {
  PathChoiceResult result = automatic(reach, model);
  result.reason = fmt::format("FARSUM_PATH={} is not possible: {}; {}", wanted, why, result.reason);
  return result;
}

}  // namespace

PathChoiceResult choose_paths(PathChoice forced, const Reach& reach, const cost::Thresholds& model) {
  switch (forced) {
    case PathChoice::automatic:
      return automatic(reach, model);
    case PathChoice::direct:
      return reach.mapped ? PathChoiceResult{Path::direct, Path::direct, "FARSUM_PATH=direct"}
                          : cannot("direct", reach.not_mapped_because, reach, model);
    case PathChoice::attach:
      if (!reach.attach_allowed) return cannot("attach", reach.attach_refusal, reach, model);
      if (reach.bare) {
        return {Path::attach, Path::owner,
                "FARSUM_PATH=attach; copies by the kernel are no CPU atomics, so the owner's agent does those of this "
                "window"};
      }
      return {Path::attach, Path::attach, "FARSUM_PATH=attach"};
    case PathChoice::caller:
      if (reach.leases) {
        return {Path::caller, Path::caller,
                "FARSUM_PATH=caller: fetched under a lease, computed here, put back where nobody changed it"};
      }
      if (!reach.mapped && !reach.attach_allowed) return cannot("caller", reach.attach_refusal, reach, model);
      if (reach.bare) {
        return {Path::caller, Path::owner,
                "FARSUM_PATH=caller; get, compute and put are no CPU atomic, so the owner's agent does those of this "
                "window"};
      }
      return {Path::caller, Path::caller, "FARSUM_PATH=caller"};
    case PathChoice::owner:
      return {Path::owner, Path::owner, "FARSUM_PATH=owner"};
    case PathChoice::aggregated:
      return {Path::owner, Path::aggregated,
              "FARSUM_PATH=aggregated: single-element accumulates are gathered, all else goes to the owner"};
    case PathChoice::offload:
      return cannot("offload", "the window is not one that all ranks declare network-only and reach by cards", reach,
                    model);
  }
  return automatic(reach, model);
}

}  // namespace farsum
