/* farsum.h: the C interface of Farsum, one-sided communication with atomic reduction.
 *
 * Put, get and sum into memory that another process owns; operations finish while the owner computes.
 * This and farsum_embed.h, for runtimes that embed Farsum, are the exported surface. They compile as C11 and as C++.
 *
 * Conventions that hold for every call unless its text says otherwise:
 *   Units        sizes and offsets are bytes; counts are elements of the named type; times are nanoseconds.
 *   Offsets      are relative to the start of the target's part of the window; in a dynamic window they are
 *                addresses in the target process.
 *   Ranks        are ranks of the window's (or call's) group.
 *   Status       every call returns a farsum_status. Anything but FARSUM_OK leaves memory, windows and epochs as
 *                they were, and farsum_last_error() gives the full sentence in the calling thread.
 *   Structures   that begin with struct_bytes say how the caller knows them: programs built with an earlier farsum.h of
 *                this major and minor version pass shorter ones, of which what is missing counts as zero.
 *   Threads      any thread may call. Calls that are collective over a group are made by one thread of each
 *                rank at a time, in the same order on every rank.
 *   Failure      a wait never outlives a dead peer: FARSUM_ERR_PEER_FAILED names the rank, within seconds, or within
 *                FARSUM_NET_TIMEOUT where its host went silent. The job is then over: operations under way end with
 *                that status, and buffers given to them may still change until farsum_finalize.
 *
 *   Atomicity    accumulate, get_accumulate, fetch_op and compare_and_swap are atomic per element to one another
 *                whichever path carries them out and whoever calls. put and get are not.
 *
 *   Ordering     accumulates of one rank on one location take effect in program order.
 */
#ifndef FARSUM_H
#define FARSUM_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define FARSUM_API __attribute__((visibility("default")))
#else
#define FARSUM_API
#endif

/* An int behind every enumeration, in C++ as in C, so that a value out of range is an error that is reported. */
#ifdef __cplusplus
#define FARSUM_ENUM(name) enum name : int
extern "C" {
#else
#define FARSUM_ENUM(name) enum name
#endif

#define FARSUM_VERSION_MAJOR 0
#define FARSUM_VERSION_MINOR 2

/* ---- status ------------------------------------------------------------------------------------------------ */

typedef FARSUM_ENUM(farsum_status){
    FARSUM_OK = 0,
    FARSUM_ERR_NOT_INITIALIZED = 1, /* no context, or already finalized */
    FARSUM_ERR_ARGUMENT = 2,        /* an argument that no other code names */
    FARSUM_ERR_HANDLE = 3,          /* a window, group, request, counter or mutex that does not live (any more) */
    FARSUM_ERR_RANK = 4,            /* rank outside the group */
    FARSUM_ERR_RANGE = 5,           /* bytes outside the exposed memory */
    FARSUM_ERR_ALIGNMENT = 6,       /* an element at an address that atomics cannot take: none on x86-64 */
    FARSUM_ERR_TYPE = 7,            /* unknown type, or type and operator do not go together */
    FARSUM_ERR_LAYOUT = 8,          /* a layout that is malformed or whose sides differ in size */
    FARSUM_ERR_SYNC = 9,            /* an operation outside an epoch, or epochs that do not nest */
    FARSUM_ERR_PENDING = 10,        /* the object still has operations, locks or epochs open */
    FARSUM_ERR_NO_MEMORY = 11,      /* memory asked for does not fit; the sentence gives asked and available bytes */
    FARSUM_ERR_UNREACHABLE = 12, /* memory that no permitted path reaches (freed, read-only, refused by the kernel) */
    FARSUM_ERR_PEER_FAILED = 13, /* a rank died; the sentence names it */
    FARSUM_ERR_UNSUPPORTED = 14, /* legal, but not by this build, path or window */
    FARSUM_ERR_SYSTEM = 15       /* the operating system refused; the sentence says what */
} farsum_status;

/* A short constant name of a status, such as "FARSUM_ERR_RANGE". Never NULL. */
FARSUM_API const char* farsum_status_name(farsum_status status);

/* The full sentence of the last call of this thread that did not return FARSUM_OK: operation, window, rank, range,
 * and what would be right. Valid until the thread's next failing call; "" before the first. */
FARSUM_API const char* farsum_last_error(void);

/* ---- handles ----------------------------------------------------------------------------------------------- */

/* Handles are plain values. A zero handle is never valid; a freed handle is recognised and refused. */
typedef struct farsum_group {
  uint64_t bits;
} farsum_group;
typedef struct farsum_window {
  uint64_t bits;
} farsum_window;
typedef struct farsum_request {
  uint64_t bits;
} farsum_request;
typedef struct farsum_counter {
  uint64_t bits;
} farsum_counter;
typedef struct farsum_mutex {
  uint64_t bits;
} farsum_mutex;

/* The group of all ranks of the job. Lives from init to finalize and is not freed. */
FARSUM_API farsum_group farsum_world(void);

/* ---- life -------------------------------------------------------------------------------------------------- */

/* Gathers `bytes` bytes of every rank into `all` (size * bytes, in rank order). Returns 0 on success. */
typedef int (*farsum_allgather_fn)(const void* mine, void* all, size_t bytes, void* user);

/* Called while a Farsum call waits, at most `idle_gap_ns` apart, so that another runtime can make progress. */
typedef void (*farsum_idle_fn)(void* user);

typedef struct farsum_init_options {
  size_t struct_bytes;           /* sizeof(farsum_init_options), for later versions */
  int rank;                      /* with allgather: this process's rank */
  int size;                      /* with allgather: number of ranks */
  farsum_allgather_fn allgather; /* NULL: take everything from the launcher's environment */
  void* allgather_user;
  farsum_idle_fn idle; /* NULL: none */
  void* idle_user;
  uint64_t idle_gap_ns; /* 0: 1 ms */
  /* Other than 0: threads of this process that make and free no windows may do what another rank waits for while it
   * frees one. With 0, ranks that free windows in different orders see that they wait for each other, and go on; with
   * 1 each free waits until all ranks have come, as it also does once several threads have made or freed windows. */
  int many_threads;
  /* With allgather, where it reaches the ranks of this node only and the job has others: this process's rank in the
   * job, the number of the job's ranks (0: rank and size above are the job's), and 16 random bytes, the same on all of
   * its ranks. Then farsum_world() has the job's ranks, and those of other nodes take part in groups once they have
   * been introduced (farsum_embed.h). */
  int job_rank;
  int job_size;
  unsigned char job_secret[16];
} farsum_init_options;

/* Joins the job: collective over all ranks that find each other here. `options` may be NULL: then the launcher's
 * environment is used (`farsum run`, or PMIx as under `mpirun`, `prterun` and `srun`), and a process started without a
 * launcher becomes a job of one rank. Several contexts may follow one another in a process, one at a time.
 * Errors: SYSTEM, NO_MEMORY, ARGUMENT; PEER_FAILED when a rank ended or did not come in time; UNSUPPORTED when there
 * are more than 65536 ranks or more than 1024 on a node; PENDING when a context lives already. */
FARSUM_API farsum_status farsum_init(const farsum_init_options* options);

/* Leaves the job: collective. Windows, counters, mutexes and groups still alive are freed.
 * Errors: NOT_INITIALIZED; PENDING on every rank while some rank has a lock or an epoch open. */
FARSUM_API farsum_status farsum_finalize(void);

/* Makes a child by a function that runs no fork handlers, such as glibc's _Fork(). Memory of the program that a window
 * was made over may be shared memory meanwhile, or still, at the same addresses: the child has private copies of it
 * when this returns in it, as after fork(), and the parent waits until it has. Returns what `make_child` has returned,
 * twice if it did; errno is its.
 *
 * A child that cannot read /proc/self/maps says so on its standard error and ends. A program under `farsum mpi` calls
 * _Fork() as ever. Any time, any thread, signal handlers too, if `make_child` may be called there. */
FARSUM_API int farsum_fork_bare(int (*make_child)(void));

/* madvise(2) for memory of the program that a window is, or was, made over: what MADV_DONTNEED, MADV_DONTNEED_LOCKED or
 * MADV_FREE discards reads as zeros afterwards, for everybody, though it may be shared memory meanwhile, whose contents
 * the kernel keeps. All else is `madvise_function`'s, which is madvise itself or what stands for it. Returns 0, or -1
 * with errno, as madvise does.
 *
 * A program under `farsum mpi` calls madvise() as ever. Any time, any thread; takes no lock and allocates nothing. */
FARSUM_API int farsum_memory_advise(void* address, size_t bytes, int advice,
                                    int (*madvise_function)(void*, size_t, int));

/* Whether a context lives: 1 or 0. */
FARSUM_API int farsum_is_initialized(void);

/* Whether some of the job's ranks on this node have fewer processors than they are, by what is online, what they are
 * bound to and what their cgroups leave them, as read by farsum_init: 1 or 0, the same on all ranks of the node.
 * Waiting ranks let others run then, and sleep soon. 0 while no context lives. */
FARSUM_API int farsum_is_crowded(void);

/* This process's rank and the number of ranks of `group` (rank is -1 for a process outside it). */
FARSUM_API farsum_status farsum_rank(farsum_group group, int* rank);
FARSUM_API farsum_status farsum_size(farsum_group group, int* size);

/* The number of the node (0-based, in order of first rank) that `rank` of `group` runs on. Where farsum_init reached
 * the ranks of one node only: 0 for these, 1 for all others.
 * Errors: HANDLE, RANK; UNSUPPORTED for a rank of another node that has not been introduced yet. */
FARSUM_API farsum_status farsum_node(farsum_group group, int rank, int* node);

/* ---- groups and collectives -------------------------------------------------------------------------------- */

/* Makes a group from `count` distinct ranks of `parent`, in the order given. Collective over the ranks listed only;
 * groups of equal lists are made in the same order on every rank of the list, also by several threads.
 * Free with farsum_group_free (collective over the group; windows made over it must be gone). */
FARSUM_API farsum_status farsum_group_create(farsum_group parent, const int* ranks, int count, farsum_group* group);
FARSUM_API farsum_status farsum_group_free(farsum_group* group);

/* Returns once every rank of the group has called. Collective. */
FARSUM_API farsum_status farsum_barrier(farsum_group group);

/* Copies `bytes` bytes from `buffer` of rank `root` into `buffer` of all others. Collective; `bytes` and `root` are the
 * same on all ranks.
 *
 * Completion: on return `buffer` may be reused, and has what the root's has. A call may return before others have
 * entered theirs, or wait for them: a program relies on neither. In a group on one node the root of up to 1 KiB (4 KiB
 * for up to 4 ranks, less for more than 16) waits only where another rank is two such calls behind.
 *
 * Errors: HANDLE; RANK for the root; ARGUMENT for a null buffer with bytes. ARGUMENT also, with the rank, on a rank
 * that expects another length than the root has, over nodes on all ranks of a node other than the root's whose first
 * rank does: their buffers are as they were, and the group's next call is as any other. Over nodes the ranks of one
 * node are not compared: where they differ, or those of the root's node from the root, buffers of them, and of nodes
 * behind them, hold other bytes than the root's, or ranks wait for ever. PEER_FAILED.
 *
 * Long ones on one node go by copies of the kernel's where it lets the ranks: then PEER_FAILED leaves others that may
 * still write to `buffer` or read from it; ARGUMENT also, on all, for memory that is not mapped or not for that, where
 * buffers are torn; and UNREACHABLE where the kernel has begun to refuse, in this call alone.
 *
 * In a group on one node a rank that names another root, or calls farsum_reduce instead, has ARGUMENT where it waits
 * for a rank that has called otherwise; nothing is written, and the group's next call is as any other. The root of so
 * short a broadcast as above hears of nobody and has OK. The root of a longer one has ARGUMENT as well, and the group
 * is then of no further use; so it is where a rank has made the group's calls in another order, as far as that is seen.
 * Where a rank calls a barrier, an allgather or another reduction instead, and over nodes also where it names another
 * root, this is either seen, and the group is of no further use, or ranks wait for each other, or, beside a short
 * broadcast or over nodes, calls end well that were not the same.
 *
 * One thread of each rank at a time for a group; for several groups any number of threads. Source: MPI 4.1,
 * section 6.4. */
FARSUM_API farsum_status farsum_broadcast(farsum_group group, void* buffer, size_t bytes, int root);

/* Gathers `bytes` bytes of every rank into `all` (size * bytes) on every rank. Collective. RANGE where all together are
 * more than memory can hold. This and the two above: UNSUPPORTED in a group of ranks that have not been introduced. */
FARSUM_API farsum_status farsum_allgather(farsum_group group, const void* mine, void* all, size_t bytes);

/* ---- memory ------------------------------------------------------------------------------------------------ */

/* Memory that every rank of the node can address: a window adopted over it, or a region attached in it, is reached by
 * the direct path. Local calls, by any thread and before any window exists. `*memory` is 64-byte aligned (page-aligned
 * from 64 KiB on); its contents are undefined. 0 bytes give memory too. Small and recently freed memory is handed out
 * again from a bounded cache; what is not freed is freed by farsum_finalize.
 * Errors: NOT_INITIALIZED, ARGUMENT, NO_MEMORY with the bytes asked and available. */
FARSUM_API farsum_status farsum_memory_allocate(size_t bytes, void** memory);

/* The most that memory can be aligned to on request. */
#define FARSUM_MOST_ALIGNMENT 2097152u

/* The same, with `*memory` at a multiple of `alignment`, a power of two up to FARSUM_MOST_ALIGNMENT (else ARGUMENT). */
FARSUM_API farsum_status farsum_memory_allocate_aligned(size_t bytes, size_t alignment, void** memory);
/* Gives it back; NULL is allowed. The memory must not be used afterwards: a window that still exposes it may be freed
 * as usual, but operations on it reach whoever gets the memory next. Errors: ARGUMENT for what does not come from
 * farsum_memory_allocate, or was given back already, where that can be seen. */
FARSUM_API farsum_status farsum_memory_free(void* memory);

/* The process is about to call mlockall with these flags: the node's memory that this process has mapped and that is
 * nobody's at the moment is unmapped, so that it is not locked, and so made. With MCL_FUTURE no more is mapped from
 * then on than is used. Where mlockall was called before farsum_init this is not needed.
 *
 * Errors: NOT_INITIALIZED; PENDING while another thread begins or ends Farsum.
 *
 * Any thread may call; waits for no other rank. */
FARSUM_API farsum_status farsum_before_mlockall(int flags);

/* ---- windows ----------------------------------------------------------------------------------------------- */

/* Promises of the program, which let Farsum choose cheaper means; breaking one is an error where it can be seen. */
enum {
  FARSUM_SINGLE_ELEMENT = 1u << 0,   /* atomic operations are on single elements of lockable types only (booleans,
                                        integers of 8 to 64 bits, float, double): bare CPU atomics are used in allocated
                                        windows; without effect in others */
  FARSUM_NO_ORDERING = 1u << 1,      /* accumulates need not keep program order */
  FARSUM_NO_LOCKS = 1u << 2,         /* the window is never locked */
  FARSUM_NO_PROMOTION = 1u << 3,     /* adopted memory is left where it is */
  FARSUM_CONTIGUOUS_PARTS = 1u << 4, /* farsum_window_allocate: the parts follow one another in rank order without a
                                       gap, rank r's starts where rank r-1's ends (MPI's contiguous shared windows);
                                       only the first is then aligned */
  FARSUM_STRICT_EPOCHS = 1u << 5,    /* flush and flush_local are SYNC but under a lock or lock_all, as MPI has it */
  FARSUM_NETWORK_ONLY = 1u << 6      /* network cards alone carry out every operation, also of ranks of the owner's node
                                        and of its own: atomics on elements of 4 and 8 bytes, at multiples of that, and
                                        REPLACE without a result and NO_OP on shorter ones; else UNSUPPORTED. Where a
                                        rank has no such card the window is as any other, and says why in its regions.
                                        No other window exposes the memory, and its ranks' parts are mapped nowhere
                                        else (farsum_window_allocate takes them from the card) */
};
/* Ranks may differ in what they promise of single elements, ordering, locks and cards: what not all promise does not
 * hold. FARSUM_NO_PROMOTION is each rank's own; FARSUM_STRICT_EPOCHS holds where one rank asks for it. */

typedef struct farsum_window_options {
  size_t struct_bytes;         /* sizeof(farsum_window_options) */
  uint32_t promises;           /* FARSUM_SINGLE_ELEMENT ... */
  uint32_t notification_slots; /* for farsum_put_notify; 0: 16 */
  uint32_t aggregate_limit;    /* updates gathered per target on the aggregated path; 0: FARSUM_AGGREGATE (1024) */
  const char* name;            /* shown in errors and farsum info; NULL: none */
  uint32_t read_age_ms;        /* see below; 0: FARSUM_READ_AGE; FARSUM_READ_ANEW: every read asks its target */
  /* farsum_window_allocate: this rank's part starts at a multiple of it, a power of two up to FARSUM_MOST_ALIGNMENT; 0:
   * 64. Each rank's own wish. Not with FARSUM_CONTIGUOUS_PARTS, nor where a network card gives the memory. */
  size_t alignment;
  struct farsum_window_layer* layer; /* of farsum_embed.h; NULL: there is none. This or `alignment` ends the struct for
                                      * callers that do not know what follows. */
} farsum_window_options;

/* How old what this rank reads of other nodes' memory may be. With an age, a get, or a get_accumulate with NO_OP of
 * elements of up to 8 bytes at multiples of their size, may answer with what the memory held at any time since this
 * rank last synchronised with others, and no longer ago than that: what is read again and again is fetched in blocks of
 * 16 KiB, and read from these. Two reads are not ordered: having read something new says nothing of other memory.
 *
 * A rank synchronises by every call of Farsum but put, get, accumulate, get_accumulate with NO_OP, waits for requests,
 * flush_local, attach, detach and queries: collective calls, locks, fences, posts and their kin, notifications,
 * mutexes, counters, farsum_sync, farsum_order, a flush of what it has changed, fetch_op, compare_and_swap, and
 * whatever else reads and changes in one, once the result is there. Its own changes it reads at once. What it hears of
 * others in any other way (messages of another library, files, loads of memory into which others write) Farsum does not
 * see: farsum_heard tells it. So it is not for programs that wait for a word to change by get, or by loads without
 * farsum_sync; the former see a change when the age is over.
 *
 * Each rank's own choice, which counts for what it reads. It holds for allocated and adopted windows, towards ranks of
 * other nodes; not where cards serve the window, nor with FARSUM_PATH=aggregated. Copies take 64 MiB of a process at
 * most. What is read of a rank that has died may be answered until the age is over. */
#define FARSUM_READ_ANEW 0xffffffffu

/* Makes a window whose memory Farsum allocates: `bytes` on this rank (may differ by rank, may be 0), zeroed and
 * 64-byte aligned (or as `options` say); `*memory` gets its address. Collective over the group. Where the node cannot
 * hold what its ranks ask for together, every rank gets NO_MEMORY with the bytes asked and available. `options` may be
 * NULL. */
FARSUM_API farsum_status farsum_window_allocate(farsum_group group, size_t bytes, const farsum_window_options* options,
                                                void** memory, farsum_window* window);

/* Makes a window over memory that the caller owns and keeps alive until the window is freed. Collective.
 * The address stays valid and its contents are kept, also at free. Errors: UNREACHABLE when no byte of the memory
 * can be read; read-only memory may be exposed and refuses whatever would write. Where some pages are not mapped, or
 * may not be read and written, each operation finds out whether its bytes are there: UNREACHABLE if not, and then what
 * comes before them may have been done. */
FARSUM_API farsum_status farsum_window_adopt(farsum_group group, void* memory, size_t bytes,
                                             const farsum_window_options* options, farsum_window* window);

/* Makes a window without memory; ranks attach and detach their own later. Collective. Offsets are target addresses. */
FARSUM_API farsum_status farsum_window_create_dynamic(farsum_group group, const farsum_window_options* options,
                                                      farsum_window* window);

/* Exposes [memory, memory + bytes) in a dynamic window, or withdraws the region that starts at `memory`. Local calls.
 * Regions must not overlap. Memory with pages that are not there is taken as by farsum_window_adopt, and memory of
 * which no byte can be read is refused with UNREACHABLE. An operation under way on a region being detached completes or
 * fails with RANGE. */
FARSUM_API farsum_status farsum_window_attach(farsum_window window, void* memory, size_t bytes);
FARSUM_API farsum_status farsum_window_detach(farsum_window window, const void* memory);

/* Where this process can address the part of `rank`: `*address` is NULL where it is not mapped here; `*bytes` is the
 * size of the part. This rank's own part is where its program has it. That of a neighbour is allocated memory, memory
 * of farsum_memory_allocate, or adopted memory that was promoted, where all of it is: promotion moves whole pages, and
 * a part with an edge on a page that it shares with other data gives NULL. A dynamic window has no parts: NULL and 0
 * bytes. */
FARSUM_API farsum_status farsum_window_shared_query(farsum_window window, int rank, void** address, size_t* bytes);

/* Frees the window and zeroes the handle. Collective. An open fence epoch ends with it, and operations under way are
 * completed first; where one of them failed, this rank is told and nothing is freed anywhere: call it again. PENDING on
 * every rank while some rank has a lock or an epoch of start or post open, and then nothing is freed anywhere.
 * Several threads may free several windows of a group at once. Ranks that free windows in different orders do not hang:
 * where they wait for each other in a circle for 100 ms they go on without the others, and the memory goes with the
 * last of them. (Not where several threads of a process make or free windows, nor with many_threads: there all wait.)
 */
FARSUM_API farsum_status farsum_window_free(farsum_window* window);

/* How operations on a stretch of a target's memory are carried out. */
typedef FARSUM_ENUM(farsum_path){
    FARSUM_PATH_DIRECT = 0,     /* loads, stores and CPU atomics of the caller on mapped memory */
    FARSUM_PATH_ATTACH = 1,     /* the kernel copies between the processes */
    FARSUM_PATH_CALLER = 2,     /* caller-computes: lock, get, compute, put, unlock; between nodes without a lock */
    FARSUM_PATH_OWNER = 3,      /* owner-computes: the owner's agent applies the operand */
    FARSUM_PATH_AGGREGATED = 4, /* small updates gathered into one owner message */
    FARSUM_PATH_OFFLOAD = 5     /* the network card */
} farsum_path;

typedef struct farsum_region_info {
  uint64_t offset; /* start within the target's part (an address in a dynamic window) */
  uint64_t bytes;
  farsum_path bulk_path;   /* puts, gets and accumulates of many elements */
  farsum_path atomic_path; /* fetch_op, compare_and_swap and single-element accumulates */
  int promoted;            /* 1: user memory that was made shareable in place */
  char reason[160];        /* why these paths */
} farsum_region_info;

/* Describes region `index` (0-based, by offset) of `rank`'s part as this process reaches it; RANGE past the last. */
FARSUM_API farsum_status farsum_window_region(farsum_window window, int rank, int index, farsum_region_info* info);

/* ---- operations -------------------------------------------------------------------------------------------- */

typedef FARSUM_ENUM(farsum_type){
    FARSUM_BYTE = 0, /* uninterpreted: replace, no_op and the bitwise operators */
    FARSUM_BOOL = 1, /* one byte, 0 or 1 */
    FARSUM_INT8 = 2,
    FARSUM_UINT8 = 3,
    FARSUM_INT16 = 4,
    FARSUM_UINT16 = 5,
    FARSUM_INT32 = 6,
    FARSUM_UINT32 = 7,
    FARSUM_INT64 = 8,
    FARSUM_UINT64 = 9,
    FARSUM_FLOAT = 10,
    FARSUM_DOUBLE = 11,
    FARSUM_LONG_DOUBLE = 12,
    FARSUM_COMPLEX_FLOAT = 13,
    FARSUM_COMPLEX_DOUBLE = 14,
    FARSUM_COMPLEX_LONG_DOUBLE = 15,
    FARSUM_FLOAT_INT = 16, /* pair types: struct { value; int index; } with C's layout */
    FARSUM_DOUBLE_INT = 17,
    FARSUM_LONG_INT = 18,
    FARSUM_INT_INT = 19,
    FARSUM_SHORT_INT = 20,
    FARSUM_LONG_DOUBLE_INT = 21,
    FARSUM_FLOAT_FLOAT = 22, /* pairs whose index is of the value's type, as Fortran has */
    FARSUM_DOUBLE_DOUBLE = 23,
    FARSUM_FLOAT128 = 24,         /* IEEE 754 binary128: __float128 of x86-64 */
    FARSUM_COMPLEX_FLOAT128 = 25, /* two of them */
    FARSUM_INT128 = 26,           /* signed */
    FARSUM_FLOAT16 = 27           /* IEEE 754 binary16: _Float16 */
} farsum_type;

typedef FARSUM_ENUM(farsum_op){FARSUM_SUM = 0,    FARSUM_SCALED_SUM = 1, /* target += alpha * x */
                               FARSUM_PROD = 2,   FARSUM_MIN = 3,        FARSUM_MAX = 4,   FARSUM_MINLOC = 5,
                               FARSUM_MAXLOC = 6, FARSUM_BAND = 7,       FARSUM_BOR = 8,   FARSUM_BXOR = 9,
                               FARSUM_LAND = 10,  FARSUM_LOR = 11,       FARSUM_LXOR = 12, FARSUM_REPLACE = 13,
                               FARSUM_NO_OP = 14} farsum_op;

/* Size of one element in bytes; 0 for an unknown type. */
FARSUM_API size_t farsum_type_size(farsum_type type);
/* Whether `op` is defined for `type`: 1 or 0. All types take REPLACE and NO_OP. Numbers take SUM, SCALED_SUM and PROD,
 * all but complex ones MIN and MAX; integers and bytes BAND, BOR and BXOR, integers and booleans LAND, LOR and LXOR,
 * pairs MINLOC and MAXLOC. */
FARSUM_API int farsum_op_legal(farsum_type type, farsum_op op);

/* ---- reductions -------------------------------------------------------------------------------------------- */

/* Combine what all ranks of the group bring, element by element. Collective; call, `count`, `type`, `op` and `root` are
 * the same on all ranks.
 *   farsum_allreduce             every rank gets all of it
 *   farsum_reduce                rank `root` gets all of it
 *   farsum_reduce_scatter_block  rank r gets block r of it, the blocks having `count` elements each
 *
 * `mine` has `count` elements of `type`, with blocks `count` times the size of the group. `result` has `count`
 * elements, at any alignment; it begins where `mine` does, or is apart from it. farsum_reduce ignores it on all ranks
 * but the root, where it may be NULL. With `count` 0 nothing is reduced and all buffers may be NULL. FARSUM_SCALED_SUM,
 * FARSUM_REPLACE and FARSUM_NO_OP do not reduce.
 *
 * Order: the ranks of a node are combined from the lowest to the highest, then the nodes, which are numbered by their
 * lowest ranks: up to 12 from the first to the last, more by a binomial tree, or by the tree that the model of rank 0's
 * machine chooses, if it was measured, or that FARSUM_REDUCE_DEGREE asks for (docs/REDUCTIONS.md); always with what is
 * lower on the left. Floating-point arithmetic is as a process begins with it, whatever a thread has set. So the same
 * ranks, placed on nodes alike, by the same model, get the same bits; but of two NaNs a sum or a product may give
 * either (docs/reference/operators.md), and bytes of an element that hold no part of its value are undefined. With
 * FARSUM_REDUCE_ORDER=ranks on all ranks, the brackets depend on the number of ranks alone: each two neighbours become
 * one, then each two of these, and so on; so the bits are the same however the ranks are placed. Over several nodes
 * that costs more the fewer neighbours share a node, and is UNSUPPORTED where a message has no room for one element of
 * each block of neighbours that is combined in it, which beyond 12 nodes, and in a tree that was asked for, is one of
 * several nodes; nothing is written then, and other calls go on.
 *
 * Completion: on return `mine` may be reused and `result` is there. A call may return before others have entered
 * theirs, or wait for them: a program relies on neither. In a group on one node a farsum_reduce of up to 1 KiB (4 KiB
 * for up to 4 ranks, less for more than 16) waits at the root alone, and elsewhere where the root is two such calls
 * behind; over several nodes also on the first rank of a node for that node's, and eight calls are the most.
 *
 * Errors: HANDLE; RANK for the root; TYPE; RANGE where all blocks together are more than memory can hold; ARGUMENT for
 * buffers that are null or overlap; UNSUPPORTED in a group of ranks that have not been introduced. These are refused
 * before the other ranks learn of the call, which wait for this rank's next. ARGUMENT with the rank also where ranks
 * have called one of these three otherwise than others: results are as they were, and the group's next call is as any
 * other. It is told to all that wait for each other; the rank whose part a root of farsum_reduce has taken already has
 * OK. Where ranks have called different ones of the three, it is the same if no two of one node have of which one is
 * farsum_reduce; else who sees it has ARGUMENT, nobody's result is wrong, and the group is of no further
 * use. Where a rank calls a barrier, broadcast or allgather of the group instead, or in another order than others, this
 * is either seen, nobody's result is wrong, and the group is of no further use, or each waits for the other; but
 * farsum_reduce beside a farsum_broadcast of a group on one node is as said there. PEER_FAILED: other ranks may still
 * write to `result`. Long ones on one node go by copies of the kernel's where it lets the ranks: then ARGUMENT also, on
 * all, for memory that is not mapped or not for that, where `result` is torn; and UNREACHABLE where the kernel has
 * begun to refuse, in this call alone.
 *
 * One thread of each rank at a time for a group; for several groups any number of threads. Source: MPI 4.1,
 * sections 6.9.1, 6.9.6 and 6.10.1. */
FARSUM_API farsum_status farsum_allreduce(farsum_group group, const void* mine, void* result, size_t count,
                                          farsum_type type, farsum_op op);
FARSUM_API farsum_status farsum_reduce(farsum_group group, const void* mine, void* result, size_t count,
                                       farsum_type type, farsum_op op, int root);
FARSUM_API farsum_status farsum_reduce_scatter_block(farsum_group group, const void* mine, void* result, size_t count,
                                                     farsum_type type, farsum_op op);

/* ---- collectives that nobody waits for ---------------------------------------------------------------------- */

typedef enum farsum_collective_kind {
  FARSUM_COLLECT_BARRIER = 0,
  FARSUM_COLLECT_BROADCAST = 1,
  FARSUM_COLLECT_ALLGATHER = 2,
  FARSUM_COLLECT_ALLREDUCE = 3,
  FARSUM_COLLECT_REDUCE = 4,
  FARSUM_COLLECT_REDUCE_SCATTER_BLOCK = 5
} farsum_collective_kind;

typedef struct farsum_collective {
  size_t struct_bytes; /* sizeof(farsum_collective) */
  int kind;            /* a farsum_collective_kind; further fields are ignored where a kind does not use them */
  int root;            /* broadcast, reduce */
  const void* mine;    /* all but barrier; of a broadcast the root's */
  void* result;        /* all but barrier; of a broadcast all others', of a reduce the root's */
  size_t count;        /* of elements of `type`: that a rank brings to a broadcast or an allgather, that is reduced, or
                          that a rank gets of a reduce-scatter of blocks */
  farsum_type type;
  farsum_op op; /* the three that reduce */
} farsum_collective;

/* Begins a collective of the group and returns without waiting; farsum_test and farsum_wait on the request say when it
 * is over. Collective: all ranks begin the same ones in the same order, and all fields are the same but for the
 * buffers. They are those of farsum_barrier, farsum_broadcast, farsum_allgather (with `count` elements for bytes),
 * farsum_allreduce, farsum_reduce and farsum_reduce_scatter_block, with the same bits as these (but those of vectors
 * that a measured model, or FARSUM_REDUCE_SPLITS, has go over nodes in other trees); a call of one form on one rank
 * does not meet one of the other form on another.
 *
 * Buffers are as of those calls: `result` begins where `mine` does, or is apart from it; in an allgather it has `count`
 * elements of each rank, by rank, and may begin where `mine` does or have `mine` in this rank's place.
 *
 * Completion: `mine` may be reused on return. `result` is written by farsum_test or farsum_wait of this rank and by
 * nothing else, and is there when the one says so or the other returns. A broadcast, too, is over on a rank only when
 * all have begun it, as is a barrier. Nothing needs this rank's program meanwhile. Any number may be under way, on one
 * group and on several, and they are waited for in any order; each is to be passed to farsum_wait, or to farsum_test
 * until it is over. From the fifth of a group on a call may begin only when an earlier one is over on all ranks, which
 * needs the program of none. Blocking calls of the group may lie between, at the same points on all ranks; each rank
 * waits for a request before or behind them, as it likes. farsum_group_free is PENDING while one of this rank's
 * requests is open, and so is farsum_finalize.
 *
 * Errors of this call, of which the other ranks do not learn, and wait for this rank's next: HANDLE; ARGUMENT for a
 * null pointer, an unknown struct_bytes, buffers that are null or overlap; RANK for the root; TYPE; RANGE where all
 * blocks together are more than memory can hold; UNSUPPORTED for an unknown kind and in a group of ranks that have not
 * been introduced; NO_MEMORY; SYSTEM where the process can start no thread, and in a group that is of no further use.
 * Errors of farsum_test and farsum_wait: ARGUMENT with the rank where ranks have begun different ones, or have made
 * different numbers of blocking calls of the group before: all are told, results are as they were, and the group can be
 * used further. Where a rank makes a blocking call of the group in place of this one, each waits for the other.
 * UNSUPPORTED as of farsum_allreduce, with FARSUM_REDUCE_ORDER=ranks. NO_MEMORY where a rank has no room to map what
 * others bring. SYSTEM where a host has refused what it was told, or has told what makes no sense: then the group is of
 * no further use. All ranks of the node are told so, whatever they have begun and of whatever call it was; ranks of
 * other nodes may wait for ever. PEER_FAILED: then the request stays open.
 *
 * One thread of each rank at a time begins one of a group; any thread may test or wait. */
FARSUM_API farsum_status farsum_collect(farsum_group group, const farsum_collective* collective,
                                        farsum_request* request);

/* ---- operations, one by one -------------------------------------------------------------------------------- */

/* Put, get and combine: contiguous on both sides, `offset` in bytes at the target.
 *
 * Nothing: an operation of 0 bytes or 0 elements moves nothing and is right at any offset, for a rank of the group and
 * inside an epoch; its buffers may be NULL. farsum_operate does the same.
 *
 * Completion: put, get, accumulate and get_accumulate are implicit. The origin's buffers may be reused (and results
 * read) after farsum_flush_local or farsum_flush of the target; the target's memory has the effect after farsum_flush,
 * or when the epoch closes. fetch_op and compare_and_swap are blocking: complete at origin and target on return.
 * Errors: HANDLE, RANK, RANGE, ALIGNMENT, TYPE, SYNC, UNREACHABLE, PEER_FAILED. */
FARSUM_API farsum_status farsum_put(farsum_window window, int target, uint64_t offset, const void* origin,
                                    size_t bytes);
FARSUM_API farsum_status farsum_get(farsum_window window, int target, uint64_t offset, void* result, size_t bytes);
FARSUM_API farsum_status farsum_accumulate(farsum_window window, int target, uint64_t offset, const void* origin,
                                           size_t count, farsum_type type, farsum_op op);
FARSUM_API farsum_status farsum_get_accumulate(farsum_window window, int target, uint64_t offset, const void* origin,
                                               void* result, size_t count, farsum_type type, farsum_op op);
FARSUM_API farsum_status farsum_fetch_op(farsum_window window, int target, uint64_t offset, const void* operand,
                                         void* result, farsum_type type, farsum_op op);
FARSUM_API farsum_status farsum_compare_and_swap(farsum_window window, int target, uint64_t offset,
                                                 const void* expected, const void* desired, void* result,
                                                 farsum_type type);

/* How the bytes of one side of an operation lie in memory, relative to a base (a pointer at the origin, an offset at
 * the target). The arrays are read during the call only. */
typedef FARSUM_ENUM(farsum_layout_kind){FARSUM_CONTIGUOUS = 0, FARSUM_STRIDED = 1,
                                        FARSUM_INDEXED = 2} farsum_layout_kind;

#define FARSUM_MAX_LEVELS 8

typedef struct farsum_layout {
  farsum_layout_kind kind;
  size_t bytes;         /* contiguous: total; strided: bytes of the innermost block; indexed: bytes of every piece when
                           `lengths` is NULL */
  int levels;           /* strided: number of stride levels, 0 to FARSUM_MAX_LEVELS */
  const size_t* counts; /* strided: repetitions per level, innermost first */
  const int64_t* strides; /* strided: bytes from one repetition to the next, per level; may be negative */
  size_t pieces;          /* indexed: number of pieces */
  const int64_t* offsets; /* indexed: byte offset of each piece */
  const size_t* lengths;  /* indexed: bytes of each piece, or NULL */
} farsum_layout;

typedef FARSUM_ENUM(farsum_kind){FARSUM_PUT = 0, FARSUM_GET = 1, FARSUM_ACCUMULATE = 2, FARSUM_GET_ACCUMULATE = 3,
                                 FARSUM_COMPARE_AND_SWAP = 4} farsum_kind;

typedef FARSUM_ENUM(farsum_completion){
    FARSUM_IMPLICIT = 0, /* by flush, or the end of the epoch */
    FARSUM_BLOCKING = 1, /* complete at origin and target on return */
    FARSUM_EXPLICIT =
        2 /* by farsum_test or farsum_wait on the request: then complete at the origin; at the target after flush */
} farsum_completion;

/* The general operation. Unused members are zero. Layouts that are NULL mean contiguous with the other side's size
 * (one of them must say the size, or `count` does). Elements of one layout that overlap at the target are applied once
 * each. With get_accumulate the result has the origin's layout unless result_layout is given. */
typedef struct farsum_operation {
  size_t struct_bytes; /* sizeof(farsum_operation) */
  farsum_kind kind;
  farsum_completion completion;
  int target;
  uint64_t offset;
  farsum_type type; /* put and get: FARSUM_BYTE */
  farsum_op op;
  size_t count;        /* elements, where no layout says more */
  const void* origin;  /* put, accumulate, get_accumulate: operand; compare_and_swap: desired */
  const void* compare; /* compare_and_swap: expected */
  void* result;        /* get, get_accumulate, compare_and_swap */
  const void* alpha;   /* scaled_sum: one element of `type` */
  const farsum_layout* origin_layout;
  const farsum_layout* target_layout;
  const farsum_layout* result_layout;
} farsum_operation;

/* Carries out one operation. `request` is set with FARSUM_EXPLICIT and may be NULL otherwise.
 * Every explicit request must be passed to farsum_wait, or to farsum_test until it is complete. */
FARSUM_API farsum_status farsum_operate(farsum_window window, const farsum_operation* operation,
                                        farsum_request* request);
FARSUM_API farsum_status farsum_test(farsum_request* request, int* done);
FARSUM_API farsum_status farsum_wait(farsum_request* request);

/* ---- completion -------------------------------------------------------------------------------------------- */

#define FARSUM_ALL_RANKS (-1)

/* Completes this process's operations on `target` (or FARSUM_ALL_RANKS) at origin and target. SYNC outside an access
 * epoch; with FARSUM_STRICT_EPOCHS, outside one of lock or lock_all. */
FARSUM_API farsum_status farsum_flush(farsum_window window, int target);
/* Completes them at the origin: its buffers may be reused and results read. */
FARSUM_API farsum_status farsum_flush_local(farsum_window window, int target);
/* Orders: operations issued after it on a target take effect there after those issued before it. Does not wait. */
FARSUM_API farsum_status farsum_order(farsum_window window);

/* ---- epochs ------------------------------------------------------------------------------------------------ */

/* Operations are legal inside an access epoch only: between two fences, after start until complete, under a lock of the
 * target, or under lock_all. Closing an epoch completes its operations at the target. These exclude one another at a
 * rank: a fence while a lock is held or start or post is open, start under a lock and lock after start are SYNC. An
 * epoch of a fence in which this rank has issued nothing ends by itself where lock, lock_all or start follows; after
 * operations those are SYNC until another fence has completed them. */

/* What a fence may be told. */
enum {
  FARSUM_FENCE_NO_PRECEDE = 1u << 0, /* no operations of this rank precede it */
  FARSUM_FENCE_NO_SUCCEED = 1u << 1  /* none follow: the epoch ends */
};
/* Ends one epoch and begins the next. If earlier operations failed it has met the others all the same, and says so. */
FARSUM_API farsum_status farsum_fence(farsum_window window, uint32_t assertions);

/* post exposes this rank's part to `count` origin ranks; start begins access to `count` targets, complete ends it;
 * wait returns once all origins of the post have completed, test says whether they have. With no rank named they return
 * at once. start does not wait for the posts: what is issued to a target before its post is kept until then, until
 * complete at the latest, or waits for it. */
FARSUM_API farsum_status farsum_post(farsum_window window, const int* origins, int count);
FARSUM_API farsum_status farsum_start(farsum_window window, const int* targets, int count);
/* As farsum_start, for a program that knows that all targets have posted: nothing is kept or waits for the posts, which
 * are used up as by farsum_start. Where one has not posted its part may not be ready for what comes. (MPI-4.1, 12.5.2,
 * MPI_MODE_NOCHECK.) Errors: those of farsum_start. Any thread may call; waits for nobody. */
FARSUM_API farsum_status farsum_start_unchecked(farsum_window window, const int* targets, int count);
FARSUM_API farsum_status farsum_complete(farsum_window window);
FARSUM_API farsum_status farsum_wait_exposure(farsum_window window);
FARSUM_API farsum_status farsum_test_exposure(farsum_window window, int* done);

typedef FARSUM_ENUM(farsum_lock_mode){
    FARSUM_LOCK_SHARED = 0, FARSUM_LOCK_EXCLUSIVE = 1,
    FARSUM_LOCK_UNCHECKED = 2 /* takes no lock: the program knows that none is in the way */
} farsum_lock_mode;

/* Open and close an epoch. Locks queue in the order of arrival, and so do mutexes; waiters look for a while, then
 * sleep. A waiter for an exclusive lock that sleeps when its turn comes, or was woken and has no processor yet, may see
 * others that wait for an exclusive lock behind it get the lock first, where these look: 63 of them at most, and none
 * once 1 ms has passed since one did while it was the next in the queue, as measured when the lock is given back.
 * Nobody comes before an earlier waiter for a shared lock, nor before a rank of another node whose turn it is, nor does
 * such a rank before an earlier waiter. Where nobody looks, as on a crowded node (farsum_is_crowded), arrival decides.
 *
 * lock_all takes a shared lock of every target. farsum_lock does not wait for the lock of a rank of another node: it
 * is asked for with the operations under it, which take effect there once it is granted; who waits for these (flush,
 * unlock, an operation with a result) waits for that, too, and so does a thread that takes another lock, of any
 * window, or a mutex: who takes several at once, on one thread and in an order that all keep to, gets them. With none
 * of these, lock orders nothing at other ranks. */
FARSUM_API farsum_status farsum_lock(farsum_window window, int target, farsum_lock_mode mode);
FARSUM_API farsum_status farsum_unlock(farsum_window window, int target);
FARSUM_API farsum_status farsum_lock_all(farsum_window window);
/* As farsum_lock_all, but as with FARSUM_LOCK_UNCHECKED: an epoch at every target, without a lock of any. It and
 * farsum_lock with that mode wait for no rank and no rank waits for them, whoever holds the locks; operations under
 * them are the program's to keep apart from those under locks. For the rest they are as other locks are: this rank has
 * one epoch at a target at a time (else SYNC), unlock completes the operations, and a window is not freed meanwhile.
 * (MPI-4.1, 12.5.3, MPI_MODE_NOCHECK.) Errors: those of farsum_lock_all. Any thread may call. */
FARSUM_API farsum_status farsum_lock_all_unchecked(farsum_window window);
FARSUM_API farsum_status farsum_unlock_all(farsum_window window);

/* Makes stores to window memory by this process and operations of others visible to each other (MPI's win_sync). */
FARSUM_API farsum_status farsum_sync(farsum_window window);

/* ---- notification ------------------------------------------------------------------------------------------ */

/* A put whose arrival the target can wait for: once the data is in place, notification `slot` of the target grows by 1.
 */
FARSUM_API farsum_status farsum_put_notify(farsum_window window, int target, uint64_t offset, const void* origin,
                                           size_t bytes, uint32_t slot);
/* Sleeps until this rank's notification `slot` has reached `at_least` (counted since the window was made). */
FARSUM_API farsum_status farsum_notify_wait(farsum_window window, uint32_t slot, uint64_t at_least);
/* The present value of this rank's notification `slot`. */
FARSUM_API farsum_status farsum_notify_value(farsum_window window, uint32_t slot, uint64_t* value);

/* ---- mutexes ----------------------------------------------------------------------------------------------- */

/* `count` mutexes kept by each rank of the group (counts may differ). Collective. Not recursive: locking twice is SYNC.
 * free is refused on every rank with PENDING while some rank holds, or waits for, one of them. */
FARSUM_API farsum_status farsum_mutex_create(farsum_group group, int count, farsum_mutex* mutexes);
FARSUM_API farsum_status farsum_mutex_free(farsum_mutex* mutexes);
FARSUM_API farsum_status farsum_mutex_lock(farsum_mutex mutexes, int rank, int index);
FARSUM_API farsum_status farsum_mutex_unlock(farsum_mutex mutexes, int rank, int index);

/* ---- shared counter ---------------------------------------------------------------------------------------- */

typedef FARSUM_ENUM(farsum_counter_kind){
    FARSUM_COUNTER_STRICT = 0, /* linearizable: tickets 0, 1, 2, ... in the order of the calls */
    FARSUM_COUNTER_LEASED =
        1 /* a rank takes chunks of guided size; every ticket below the limit exactly once, not linearizable */
} farsum_counter_kind;

typedef struct farsum_counter_options {
  size_t struct_bytes;
  farsum_counter_kind kind;
  int home;       /* rank that keeps the counter */
  uint64_t limit; /* leased: tickets to hand out in all; afterwards next gives values >= limit. Others: 0 */
} farsum_counter_options;

/* A counter shared by a group. create, reset and free are collective. */
FARSUM_API farsum_status farsum_counter_create(farsum_group group, const farsum_counter_options* options,
                                               farsum_counter* counter);
FARSUM_API farsum_status farsum_counter_next(farsum_counter counter, uint64_t* ticket);
FARSUM_API farsum_status farsum_counter_reset(farsum_counter counter);
FARSUM_API farsum_status farsum_counter_free(farsum_counter* counter);

/* ---- what happened ----------------------------------------------------------------------------------------- */

/* What this process has done since init. Read at any time, from any thread. */
typedef struct farsum_statistics {
  size_t struct_bytes;
  uint64_t operations[6];     /* carried out per path, indexed by farsum_path */
  uint64_t bytes[6];          /* payload moved per path; caller moves it twice */
  uint64_t messages_sent;     /* to agents */
  uint64_t messages_served;   /* by this process's agent */
  uint64_t agent_wakeups;     /* of this process's agent */
  uint64_t doorbells_rung;    /* system calls made to wake an agent */
  uint64_t waits_slept;       /* times that a thread slept in a Farsum wait */
  uint64_t stripe_contention; /* stripe locks that were not free at once */
  uint64_t reads_answered;    /* from copies of other nodes' memory; not among `operations` (read_age_ms) */
  uint64_t blocks_fetched;    /* into such copies, 16 KiB each, as often as each was fetched */
  /* Between nodes, of this process. A rank is connected when it is first asked for something. */
  uint64_t network_peers;       /* ranks of other nodes that this one could ask */
  uint64_t network_endpoints;   /* connections that are open, those of ranks that ask this one among them */
  uint64_t network_connections; /* ever opened: more where links broke */
  uint64_t network_peer_bytes;  /* kept for peers, but buffers for messages and what UCX keeps */
  uint64_t network_strangers;   /* frames that were not of this job, and were dropped */
  uint64_t network_refused;     /* frames of this job that made no sense, and were dropped */
} farsum_statistics;
FARSUM_API farsum_status farsum_statistics_read(farsum_statistics* statistics);

/* The settings table as text, one setting a line: name, type, unit, default, value, meaning, separated by tabs. */
FARSUM_API const char* farsum_settings_text(void);

#ifdef __cplusplus
}
#endif
#endif /* FARSUM_H */
