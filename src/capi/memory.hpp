// What farsum_memory_allocate and farsum_memory_free share with the life of the context.
#pragma once

namespace farsum::capi {

// The context ends: memory that was handed out is gone, and what threads keep in their caches with it.
void close_memory();
// Called in a forked child, which shares the segment's pages but is no rank.
void forget_memory_in_child();

}  // namespace farsum::capi
