// Which way one operation goes: a pure function of it, of the region where its bytes begin, and of who waits for it.
#pragma once

#include "protocol/operation.hpp"
#include "window/paths.hpp"
#include "window/region_tables.hpp"

namespace farsum {

struct Route {
  RegionRef at;
  Path path = Path::owner;
};

struct RouteFacts {
  bool is_here = false;     // the target is a rank of this node
  bool is_awaited = false;  // somebody waits for this operation by itself
};

// Whether all single elements of a part that lies in this one region go that way.
bool is_plain_at(const Region& region, Path path);

Route choose_route(const Operation& operation, RegionRef at, const RouteFacts& facts);
// Whether the operation is carried out by messages alone, in the order of their sending.
bool goes_as_messages(const Operation& operation, Path path, bool is_here);

}  // namespace farsum
