#include "core/paths.hpp"

#include <fmt/format.h>

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

PathChoiceResult automatic(const Reach& reach) {
  if (reach.mapped) return {Path::direct, Path::direct, "mapped here"};
  if (reach.attach_allowed) {
    return {Path::attach, Path::owner,
            fmt::format("{}; the kernel copies, the owner's agent does atomics", reach.not_mapped_because)};
  }
  return {Path::owner, Path::owner, fmt::format("{}; {}", reach.not_mapped_because, reach.attach_refusal)};
}

PathChoiceResult cannot(const char* wanted, const std::string& why, const Reach& reach) {
  PathChoiceResult result = automatic(reach);
  result.reason = fmt::format("FARSUM_PATH={} is not possible: {}; {}", wanted, why, result.reason);
  return result;
}

}  // namespace

PathChoiceResult choose_paths(PathChoice forced, const Reach& reach) {
  switch (forced) {
    case PathChoice::automatic:
      return automatic(reach);
    case PathChoice::direct:
      return reach.mapped ? PathChoiceResult{Path::direct, Path::direct, "FARSUM_PATH=direct"}
                          : cannot("direct", reach.not_mapped_because, reach);
    case PathChoice::attach:
      if (!reach.attach_allowed) return cannot("attach", reach.attach_refusal, reach);
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
      if (!reach.mapped && !reach.attach_allowed) return cannot("caller", reach.attach_refusal, reach);
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
      return cannot("offload", "there is no network card between ranks of one node", reach);
  }
  return automatic(reach);
}

}  // namespace farsum
