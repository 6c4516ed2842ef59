/* RANKS: 6
 * Takes seconds: hundreds of lists
 * As no_memory_of_one.c, once there are so many lists of ranks that further ones are not kept: where one communicator
 * cannot remember its group, no rank's may. */
#define LISTS 250
#include "no_memory_of_one.c"
