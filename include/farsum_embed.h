/* farsum_embed.h: what runtimes call that embed Farsum, such as a layer under MPI programs.
 *
 * A program of its own needs none of it, but farsum_heard where it reads copies (read_age_ms in farsum.h). The
 * conventions of farsum.h hold. It compiles as C11 and as C++.
 */
#ifndef FARSUM_EMBED_H
#define FARSUM_EMBED_H

#include "farsum.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- life -------------------------------------------------------------------------------------------------- */

/* farsum_finalize whatever is open, for runtimes that must end: this rank's operations are completed, or dropped where
 * they fail, its locks and mutexes released and its epochs closed; then the ranks meet and leave. Where one rank calls
 * it and others call farsum_finalize it is this for all. No other thread of the process may be inside a call. */
FARSUM_API farsum_status farsum_finalize_forced(void);

/* Why copies of the kernel between this rank and others of its node are refused, as a sentence without its end that
 * lives until this rank's farsum_finalize; NULL where there are none to be refused, or before farsum_init. Windows over
 * memory of the program's own are then served by the agents of their owners.
 * Any thread may call; waits for nobody. */
FARSUM_API const char* farsum_copies_refused(void);

/* ---- ranks of other nodes ---------------------------------------------------------------------------------- */

/* For embedders whose allgather at farsum_init reached one node only (job_size), how ranks of several nodes come to
 * know each other: each writes its card, all cards are exchanged by the embedder's own means, and each introduces those
 * that it may meet. From then on groups over these ranks can be made. */
#define FARSUM_NETWORK_CARD_BYTES 512

/* Writes how this rank is reached over the network; the first call opens the network. Where there is none, the card
 * says why, and is exchanged like any other.
 * `card`: FARSUM_NETWORK_CARD_BYTES bytes, meaningful to the same build of Farsum on ranks of the same job.
 * Errors: NOT_INITIALIZED, ARGUMENT, NO_MEMORY, SYSTEM.
 * Any thread may call; waits for nobody. */
FARSUM_API farsum_status farsum_network_card(void* card);

/* Takes note of ranks by their cards, in any order; those of this node, this rank itself and those that were introduced
 * before may be among them. Where one is refused, none of this call is taken note of.
 * `cards`: `count` cards, one behind the other.
 * Errors: NOT_INITIALIZED, ARGUMENT, NO_MEMORY, SYSTEM; UNSUPPORTED when a card's rank or this one has no network, or
 * it runs another build of Farsum: the sentence names rank, host and cause.
 * Any thread may call; waits for nobody. */
FARSUM_API farsum_status farsum_network_introduce(const void* cards, int count);

/* ---- groups of a moment ------------------------------------------------------------------------------------ */

/* farsum_group_create for ranks that have agreed on a number: it tells this group from the others of the same list, so
 * that several threads may make groups of one list at once, in any order.
 * `number`: the same on all ranks listed, and never the same twice for one list.
 * Errors: those of farsum_group_create.
 * Collective over the ranks listed. Any thread may call. */
FARSUM_API farsum_status farsum_group_create_numbered(farsum_group parent, const int* ranks, int count, uint64_t number,
                                                      farsum_group* group);

/* Takes this rank out of a group, and zeroes the handle. The other ranks are not asked; each leaves when it likes, and
 * the memory that they shared is given back with the last. Where one rank leaves, all leave: farsum_group_free, and
 * every other collective call over the group, would wait for it for ever.
 * This rank must have freed what it made over the group, and ended each call of it that others are to end.
 * Errors: NOT_INITIALIZED, HANDLE, ARGUMENT for the group of all ranks; PENDING while windows, counters or mutexes of
 * this rank live over it; UNSUPPORTED where farsum_collect was called over it.
 * Any thread may call; does not wait for other ranks. */
FARSUM_API farsum_status farsum_group_leave(farsum_group* group);

/* ---- progress of others ------------------------------------------------------------------------------------ */

/* A thread that polls something else anyway, such as another runtime's progress, may serve meanwhile what ranks of
 * other nodes ask of this rank's memory. That spares waking this rank's agent, which would have to take the processor
 * from the polling thread: a remote operation then takes what the network takes. Not from signal handlers; a thread
 * that is stopped inside farsum_attend, or leaves it by a jump, holds up all who ask. */

/* From here on the calling thread will call farsum_attend again and again, some microseconds apart, and then
 * farsum_attend_end. The agent sleeps through such requests until then; where the thread does not call for a
 * millisecond it serves itself.
 *
 * Errors: NOT_INITIALIZED; UNSUPPORTED where no rank of another node is reached over a network, or the agent never
 * sleeps; PENDING while a thread attends, or the agent serves.
 *
 * Any thread may call; waits for nobody. */
FARSUM_API farsum_status farsum_attend_begin(void);

/* Serves what has come, if anything. 1; 0 where the calling thread does not attend, or not any more: the agent has
 * found that it did not call for a millisecond, and serves until the next farsum_attend_begin.
 *
 * Any thread may call; waits for nobody. It costs about what one look at the network costs. */
FARSUM_API int farsum_attend(void);

/* From here on the agent serves. Where the calling thread does not attend it does nothing.
 *
 * Errors: NOT_INITIALIZED.
 *
 * Any thread may call; waits for what the agent serves at the moment, at most. */
FARSUM_API farsum_status farsum_attend_end(void);

/* This rank has heard of others in a way that Farsum does not see: what windows with a read_age_ms answer from here on
 * is no older than this call. Does nothing before farsum_init.
 *
 * Any thread may call; waits for nobody. */
FARSUM_API void farsum_heard(void);

/* ---- windows ----------------------------------------------------------------------------------------------- */

/* What a layer above tells its other ranks while a window is made, so that it needs no meeting of its own. Where one
 * rank's layer refuses, no rank gets the window, and all get ARGUMENT. */
typedef struct farsum_window_layer {
  size_t struct_bytes; /* sizeof(farsum_window_layer) */
  uint64_t word;       /* of this rank, for all */
  int refusal;         /* not 0: this rank's layer refuses, and tells all why by it */
  uint64_t* words;  /* gets every rank's word, in the order of the group, where the window is made; NULL: nobody asks */
  int refused_by;   /* gets the first rank of the group whose layer refuses; -1: none does */
  int refused_with; /* gets what it told */
} farsum_window_layer;

/* The first half of farsum_window_free, for runtimes that have more to do in between: collective, with its errors.
 * After it the window takes only local queries (farsum_window_shared_query, farsum_window_region, loads and stores
 * through addresses) and farsum_window_free, which is then a local call that cannot fail. */
FARSUM_API farsum_status farsum_window_prepare_free(farsum_window window);

#ifdef __cplusplus
}
#endif
#endif /* FARSUM_EMBED_H */
