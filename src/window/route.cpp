#include "window/route.hpp"

namespace farsum {
namespace {

// An atomic operation on one element, of whatever type: what the agent or a CPU atomic does best.
bool is_single_element(const Operation& operation) {
  return is_atomic(operation.kind) && operation.bytes == ops::size_of(operation.type);
}

}  // namespace

bool is_plain_at(const Region& region, Path path) {
  return region.offset == 0 && region.atomic == path && !region.read_only && !region.domain.atomics_only;
}

Route choose_route(const Operation& operation, RegionRef at, const RouteFacts& facts) {
  Route route;
  route.at = std::move(at);
  if (route.at.region == nullptr) return route;  // a bare notification: a message
  const bool atomic = is_single_element(operation);
  route.path = atomic ? route.at.region->atomic : route.at.region->bulk;
  // Bulk atomics on memory that only CPU atomics may touch follow the atomic path.
  if (is_atomic(operation.kind) && route.at.region->domain.atomics_only) route.path = route.at.region->atomic;
  // What crosses from one region into the next is contiguous at the owner, who also finds the locks of each piece.
  if (!route.at.whole && (route.path == Path::direct || route.path == Path::caller)) route.path = Path::owner;
  if (!route.at.is_reached) [[unlikely]]
    route.path = Path::owner;
  if (!route.at.same_locks && is_atomic(operation.kind)) route.path = Path::owner;
  // At a remote target a notification is the owner's to make, with the last of the data.
  if (route.path == Path::caller && operation.notify && !facts.is_here) route.path = Path::owner;
  // What somebody waits for is not gathered; what was gathered goes before it.
  const bool gathers = atomic && operation.kind == OperationKind::accumulate && !operation.notify && !facts.is_awaited;
  if (route.path == Path::aggregated && !gathers) route.path = Path::owner;
  return route;
}

// Caller-computes at other nodes sends what is only moved as messages.
bool goes_as_messages(const Operation& operation, Path path, bool is_here) {
  switch (path) {
    case Path::owner:
    case Path::aggregated:
    case Path::offload:
      return true;
    case Path::direct:
    case Path::attach:
      return false;
    case Path::caller:
      return !is_here && !computes(operation);
  }
  return false;
}

}  // namespace farsum
