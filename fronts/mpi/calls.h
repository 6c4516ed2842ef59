/* The one table of MPI calls that the front knows. Everything repetitive is made from it: the exported stubs, the
 * tables of function pointers, the look-up in the library, the statistics. X(name, parameters, arguments) stands for
 * one call; calls that have a large-count twin are listed once and expanded twice (SUFFIX and COUNT, UNIT for the
 * counts).
 *
 * C11 and C++.
 */
#ifndef FARSUM_MPI_CALLS_H
#define FARSUM_MPI_CALLS_H

#include <mpi.h>
#include <stddef.h>

/* Open MPI 4 has no sessions, and version 5, for which the same file is used, has pointers. */
#ifdef MPI_SESSION_NULL
typedef MPI_Session farsum_mpi_session;
#else
typedef void* farsum_mpi_session;
#endif

/* clang-format off */

/* Windows, operations: with counts that are int, or MPI_Count in the twin named _c. */
#define FARSUM_MPI_CREATIONS(X, SUFFIX, COUNT, UNIT) \
  X(Win_create##SUFFIX, (void* base, MPI_Aint size, UNIT disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win* win), \
    (base, size, disp_unit, info, comm, win)) \
  X(Win_allocate##SUFFIX, (MPI_Aint size, UNIT disp_unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win), \
    (size, disp_unit, info, comm, base, win)) \
  X(Win_allocate_shared##SUFFIX, (MPI_Aint size, UNIT disp_unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win), \
    (size, disp_unit, info, comm, base, win))

#define FARSUM_MPI_DYNAMIC_CREATION(X) X(Win_create_dynamic, (MPI_Info info, MPI_Comm comm, MPI_Win* win), (info, comm, win))

#define FARSUM_MPI_COUNTED_CALLS(X, SUFFIX, COUNT, UNIT) \
  FARSUM_MPI_CREATIONS(X, SUFFIX, COUNT, UNIT) \
  X(Win_shared_query##SUFFIX, (MPI_Win win, int rank, MPI_Aint* size, UNIT* disp_unit, void* base), \
    (win, rank, size, disp_unit, base)) \
  X(Put##SUFFIX, (const void* origin, COUNT origin_count, MPI_Datatype origin_type, int target, MPI_Aint disp, \
    COUNT target_count, MPI_Datatype target_type, MPI_Win win), \
    (origin, origin_count, origin_type, target, disp, target_count, target_type, win)) \
  X(Get##SUFFIX, (void* origin, COUNT origin_count, MPI_Datatype origin_type, int target, MPI_Aint disp, \
    COUNT target_count, MPI_Datatype target_type, MPI_Win win), \
    (origin, origin_count, origin_type, target, disp, target_count, target_type, win)) \
  X(Accumulate##SUFFIX, (const void* origin, COUNT origin_count, MPI_Datatype origin_type, int target, MPI_Aint disp, \
    COUNT target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win), \
    (origin, origin_count, origin_type, target, disp, target_count, target_type, op, win)) \
  X(Get_accumulate##SUFFIX, (const void* origin, COUNT origin_count, MPI_Datatype origin_type, void* result, \
    COUNT result_count, MPI_Datatype result_type, int target, MPI_Aint disp, COUNT target_count, MPI_Datatype target_type, \
    MPI_Op op, MPI_Win win), \
    (origin, origin_count, origin_type, result, result_count, result_type, target, disp, target_count, target_type, op, win)) \
  X(Rput##SUFFIX, (const void* origin, COUNT origin_count, MPI_Datatype origin_type, int target, MPI_Aint disp, \
    COUNT target_count, MPI_Datatype target_type, MPI_Win win, MPI_Request* request), \
    (origin, origin_count, origin_type, target, disp, target_count, target_type, win, request)) \
  X(Rget##SUFFIX, (void* origin, COUNT origin_count, MPI_Datatype origin_type, int target, MPI_Aint disp, \
    COUNT target_count, MPI_Datatype target_type, MPI_Win win, MPI_Request* request), \
    (origin, origin_count, origin_type, target, disp, target_count, target_type, win, request)) \
  X(Raccumulate##SUFFIX, (const void* origin, COUNT origin_count, MPI_Datatype origin_type, int target, MPI_Aint disp, \
    COUNT target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win, MPI_Request* request), \
    (origin, origin_count, origin_type, target, disp, target_count, target_type, op, win, request)) \
  X(Rget_accumulate##SUFFIX, (const void* origin, COUNT origin_count, MPI_Datatype origin_type, void* result, \
    COUNT result_count, MPI_Datatype result_type, int target, MPI_Aint disp, COUNT target_count, MPI_Datatype target_type, \
    MPI_Op op, MPI_Win win, MPI_Request* request), \
    (origin, origin_count, origin_type, result, result_count, result_type, target, disp, target_count, target_type, op, win, \
    request))

/* The rest of the one-sided chapter. */
#define FARSUM_MPI_PLAIN_CALLS(X) \
  FARSUM_MPI_DYNAMIC_CREATION(X) \
  X(Win_attach, (MPI_Win win, void* base, MPI_Aint size), (win, base, size)) \
  X(Win_detach, (MPI_Win win, const void* base), (win, base)) \
  X(Win_free, (MPI_Win* win), (win)) \
  X(Fetch_and_op, (const void* origin, void* result, MPI_Datatype type, int target, MPI_Aint disp, MPI_Op op, MPI_Win win), \
    (origin, result, type, target, disp, op, win)) \
  X(Compare_and_swap, (const void* origin, const void* compare, void* result, MPI_Datatype type, int target, MPI_Aint disp, \
    MPI_Win win), (origin, compare, result, type, target, disp, win)) \
  X(Win_fence, (int assertion, MPI_Win win), (assertion, win)) \
  X(Win_start, (MPI_Group group, int assertion, MPI_Win win), (group, assertion, win)) \
  X(Win_complete, (MPI_Win win), (win)) \
  X(Win_post, (MPI_Group group, int assertion, MPI_Win win), (group, assertion, win)) \
  X(Win_wait, (MPI_Win win), (win)) \
  X(Win_test, (MPI_Win win, int* flag), (win, flag)) \
  X(Win_lock, (int lock_type, int rank, int assertion, MPI_Win win), (lock_type, rank, assertion, win)) \
  X(Win_lock_all, (int assertion, MPI_Win win), (assertion, win)) \
  X(Win_unlock, (int rank, MPI_Win win), (rank, win)) \
  X(Win_unlock_all, (MPI_Win win), (win)) \
  X(Win_flush, (int rank, MPI_Win win), (rank, win)) \
  X(Win_flush_all, (MPI_Win win), (win)) \
  X(Win_flush_local, (int rank, MPI_Win win), (rank, win)) \
  X(Win_flush_local_all, (MPI_Win win), (win)) \
  X(Win_sync, (MPI_Win win), (win)) \
  X(Win_get_group, (MPI_Win win, MPI_Group* group), (win, group)) \
  X(Win_set_info, (MPI_Win win, MPI_Info info), (win, info)) \
  X(Win_get_info, (MPI_Win win, MPI_Info* info), (win, info)) \
  X(Win_get_attr, (MPI_Win win, int keyval, void* value, int* flag), (win, keyval, value, flag)) \
  X(Alloc_mem, (MPI_Aint size, MPI_Info info, void* base), (size, info, base)) \
  X(Free_mem, (void* base), (base))

/* Completion of requests: looked at only while a request of a one-sided operation lives. */
#define FARSUM_MPI_REQUEST_CALLS(X) \
  X(Wait, (MPI_Request* request, MPI_Status* status), (request, status)) \
  X(Test, (MPI_Request* request, int* flag, MPI_Status* status), (request, flag, status)) \
  X(Waitall, (int count, MPI_Request requests[], MPI_Status statuses[]), (count, requests, statuses)) \
  X(Testall, (int count, MPI_Request requests[], int* flag, MPI_Status statuses[]), (count, requests, flag, statuses)) \
  X(Waitany, (int count, MPI_Request requests[], int* index, MPI_Status* status), (count, requests, index, status)) \
  X(Testany, (int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status), \
    (count, requests, index, flag, status)) \
  X(Waitsome, (int count, MPI_Request requests[], int* done, int indices[], MPI_Status statuses[]), \
    (count, requests, done, indices, statuses)) \
  X(Testsome, (int count, MPI_Request requests[], int* done, int indices[], MPI_Status statuses[]), \
    (count, requests, done, indices, statuses)) \
  X(Request_get_status, (MPI_Request request, int* flag, MPI_Status* status), (request, flag, status)) \
  X(Request_get_status_all, (int count, const MPI_Request requests[], int* flag, MPI_Status statuses[]), \
    (count, requests, flag, statuses)) \
  X(Request_get_status_any, (int count, const MPI_Request requests[], int* index, int* flag, MPI_Status* status), \
    (count, requests, index, flag, status)) \
  X(Request_get_status_some, (int count, const MPI_Request requests[], int* done, int indices[], MPI_Status statuses[]), \
    (count, requests, done, indices, statuses)) \
  X(Request_free, (MPI_Request* request), (request))

/* Where the front begins and ends. */
#define FARSUM_MPI_LIFE_CALLS(X) \
  X(Init, (int* argc, char*** argv), (argc, argv)) \
  X(Init_thread, (int* argc, char*** argv, int required, int* provided), (argc, argv, required, provided)) \
  X(Session_init, (MPI_Info info, MPI_Errhandler handler, farsum_mpi_session* session), (info, handler, session)) \
  X(Session_finalize, (farsum_mpi_session* session), (session)) \
  X(Finalize, (void), ()) \
  X(Abort, (MPI_Comm comm, int code), (comm, code))

/* What the front says for codes that it has made, and the handlers that it tells of them. */
#define FARSUM_MPI_ERROR_CALLS(X) \
  X(Error_string, (int code, char* text, int* length), (code, text, length)) \
  X(Win_create_errhandler, (MPI_Win_errhandler_function* function, MPI_Errhandler* handler), (function, handler)) \
  X(Comm_create_errhandler, (MPI_Comm_errhandler_function* function, MPI_Errhandler* handler), (function, handler))

/* The library's own: what a program sets on a window's handle. */
#define FARSUM_MPI_CARRYING_CALLS(X) \
  X(Win_set_attr, (MPI_Win win, int keyval, void* value), (win, keyval, value)) \
  X(Win_set_name, (MPI_Win win, const char* name), (win, name)) \
  X(Win_set_errhandler, (MPI_Win win, MPI_Errhandler handler), (win, handler))

/* Counted by --stats, otherwise the library's own. */
#define FARSUM_MPI_COLLECTIVE_CALLS(X, SUFFIX, COUNT, UNIT) \
  X(Bcast##SUFFIX, (void* buffer, COUNT count, MPI_Datatype type, int root, MPI_Comm comm), (buffer, count, type, root, comm)) \
  X(Reduce##SUFFIX, (const void* from, void* to, COUNT count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm), \
    (from, to, count, type, op, root, comm)) \
  X(Allreduce##SUFFIX, (const void* from, void* to, COUNT count, MPI_Datatype type, MPI_Op op, MPI_Comm comm), \
    (from, to, count, type, op, comm)) \
  X(Reduce_scatter##SUFFIX, (const void* from, void* to, const COUNT counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm), \
    (from, to, counts, type, op, comm)) \
  X(Reduce_scatter_block##SUFFIX, (const void* from, void* to, COUNT count, MPI_Datatype type, MPI_Op op, MPI_Comm comm), \
    (from, to, count, type, op, comm)) \
  X(Scan##SUFFIX, (const void* from, void* to, COUNT count, MPI_Datatype type, MPI_Op op, MPI_Comm comm), \
    (from, to, count, type, op, comm)) \
  X(Exscan##SUFFIX, (const void* from, void* to, COUNT count, MPI_Datatype type, MPI_Op op, MPI_Comm comm), \
    (from, to, count, type, op, comm)) \
  X(Allgather##SUFFIX, (const void* from, COUNT from_count, MPI_Datatype from_type, void* to, COUNT to_count, \
    MPI_Datatype to_type, MPI_Comm comm), (from, from_count, from_type, to, to_count, to_type, comm)) \
  X(Alltoall##SUFFIX, (const void* from, COUNT from_count, MPI_Datatype from_type, void* to, COUNT to_count, \
    MPI_Datatype to_type, MPI_Comm comm), (from, from_count, from_type, to, to_count, to_type, comm))
#define FARSUM_MPI_BARRIER(X) X(Barrier, (MPI_Comm comm), (comm))

/* The library's own: others in which a thread may wait for long, and hears of other ranks. */
#define FARSUM_MPI_WAITING_COUNTED_CALLS(X, SUFFIX, COUNT, UNIT) \
  X(Recv##SUFFIX, (void* buffer, COUNT count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status* status), \
    (buffer, count, type, from, tag, comm, status)) \
  X(Mrecv##SUFFIX, (void* buffer, COUNT count, MPI_Datatype type, MPI_Message* message, MPI_Status* status), \
    (buffer, count, type, message, status)) \
  X(Send##SUFFIX, (const void* buffer, COUNT count, MPI_Datatype type, int to, int tag, MPI_Comm comm), \
    (buffer, count, type, to, tag, comm)) \
  X(Ssend##SUFFIX, (const void* buffer, COUNT count, MPI_Datatype type, int to, int tag, MPI_Comm comm), \
    (buffer, count, type, to, tag, comm)) \
  X(Sendrecv##SUFFIX, (const void* sent, COUNT sent_count, MPI_Datatype sent_type, int to, int sent_tag, void* received, \
    COUNT received_count, MPI_Datatype received_type, int from, int received_tag, MPI_Comm comm, MPI_Status* status), \
    (sent, sent_count, sent_type, to, sent_tag, received, received_count, received_type, from, received_tag, comm, status)) \
  X(Sendrecv_replace##SUFFIX, (void* buffer, COUNT count, MPI_Datatype type, int to, int sent_tag, int from, int received_tag, \
    MPI_Comm comm, MPI_Status* status), (buffer, count, type, to, sent_tag, from, received_tag, comm, status)) \
  X(Gather##SUFFIX, (const void* from, COUNT from_count, MPI_Datatype from_type, void* to, COUNT to_count, \
    MPI_Datatype to_type, int root, MPI_Comm comm), (from, from_count, from_type, to, to_count, to_type, root, comm)) \
  X(Gatherv##SUFFIX, (const void* from, COUNT from_count, MPI_Datatype from_type, void* to, const COUNT counts[], \
    const UNIT starts[], MPI_Datatype to_type, int root, MPI_Comm comm), \
    (from, from_count, from_type, to, counts, starts, to_type, root, comm)) \
  X(Scatter##SUFFIX, (const void* from, COUNT from_count, MPI_Datatype from_type, void* to, COUNT to_count, \
    MPI_Datatype to_type, int root, MPI_Comm comm), (from, from_count, from_type, to, to_count, to_type, root, comm)) \
  X(Scatterv##SUFFIX, (const void* from, const COUNT counts[], const UNIT starts[], MPI_Datatype from_type, void* to, \
    COUNT to_count, MPI_Datatype to_type, int root, MPI_Comm comm), \
    (from, counts, starts, from_type, to, to_count, to_type, root, comm)) \
  X(Allgatherv##SUFFIX, (const void* from, COUNT from_count, MPI_Datatype from_type, void* to, const COUNT counts[], \
    const UNIT starts[], MPI_Datatype to_type, MPI_Comm comm), \
    (from, from_count, from_type, to, counts, starts, to_type, comm)) \
  X(Alltoallv##SUFFIX, (const void* from, const COUNT from_counts[], const UNIT from_starts[], MPI_Datatype from_type, void* to, \
    const COUNT to_counts[], const UNIT to_starts[], MPI_Datatype to_type, MPI_Comm comm), \
    (from, from_counts, from_starts, from_type, to, to_counts, to_starts, to_type, comm)) \
  X(Alltoallw##SUFFIX, (const void* from, const COUNT from_counts[], const UNIT from_starts[], \
    const MPI_Datatype from_types[], void* to, const COUNT to_counts[], const UNIT to_starts[], \
    const MPI_Datatype to_types[], MPI_Comm comm), \
    (from, from_counts, from_starts, from_types, to, to_counts, to_starts, to_types, comm)) \
  X(Neighbor_allgather##SUFFIX, (const void* from, COUNT from_count, MPI_Datatype from_type, void* to, COUNT to_count, \
    MPI_Datatype to_type, MPI_Comm comm), (from, from_count, from_type, to, to_count, to_type, comm)) \
  X(Neighbor_allgatherv##SUFFIX, (const void* from, COUNT from_count, MPI_Datatype from_type, void* to, \
    const COUNT counts[], const UNIT starts[], MPI_Datatype to_type, MPI_Comm comm), \
    (from, from_count, from_type, to, counts, starts, to_type, comm)) \
  X(Neighbor_alltoall##SUFFIX, (const void* from, COUNT from_count, MPI_Datatype from_type, void* to, COUNT to_count, \
    MPI_Datatype to_type, MPI_Comm comm), (from, from_count, from_type, to, to_count, to_type, comm)) \
  X(Neighbor_alltoallv##SUFFIX, (const void* from, const COUNT from_counts[], const UNIT from_starts[], \
    MPI_Datatype from_type, void* to, const COUNT to_counts[], const UNIT to_starts[], MPI_Datatype to_type, MPI_Comm comm), \
    (from, from_counts, from_starts, from_type, to, to_counts, to_starts, to_type, comm)) \
  X(Neighbor_alltoallw##SUFFIX, (const void* from, const COUNT from_counts[], const MPI_Aint from_starts[], \
    const MPI_Datatype from_types[], void* to, const COUNT to_counts[], const MPI_Aint to_starts[], \
    const MPI_Datatype to_types[], MPI_Comm comm), \
    (from, from_counts, from_starts, from_types, to, to_counts, to_starts, to_types, comm))
#define FARSUM_MPI_WAITING_CALLS(X) \
  FARSUM_MPI_BARRIER(X) \
  X(Probe, (int from, int tag, MPI_Comm comm, MPI_Status* status), (from, tag, comm, status)) \
  X(Mprobe, (int from, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status), (from, tag, comm, message, status)) \
  X(Comm_dup, (MPI_Comm comm, MPI_Comm* copy), (comm, copy)) \
  X(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm* copy), (comm, info, copy)) \
  X(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm* part), (comm, color, key, part)) \
  X(Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* part), (comm, type, key, info, part)) \
  X(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm* made), (comm, group, made)) \
  X(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* made), (comm, group, tag, made)) \
  X(Comm_disconnect, (MPI_Comm* comm), (comm)) \
  X(Intercomm_create, (MPI_Comm comm, int leader, MPI_Comm peer, int other, int tag, MPI_Comm* made), \
    (comm, leader, peer, other, tag, made)) \
  X(Intercomm_merge, (MPI_Comm comm, int high, MPI_Comm* made), (comm, high, made)) \
  X(Cart_create, (MPI_Comm comm, int dimensions, const int sizes[], const int periods[], int reorder, MPI_Comm* made), \
    (comm, dimensions, sizes, periods, reorder, made)) \
  X(Cart_sub, (MPI_Comm comm, const int remains[], MPI_Comm* made), (comm, remains, made)) \
  X(Graph_create, (MPI_Comm comm, int nodes, const int index[], const int edges[], int reorder, MPI_Comm* made), \
    (comm, nodes, index, edges, reorder, made)) \
  X(Dist_graph_create, (MPI_Comm comm, int count, const int sources[], const int degrees[], const int targets[], \
    const int weights[], MPI_Info info, int reorder, MPI_Comm* made), \
    (comm, count, sources, degrees, targets, weights, info, reorder, made)) \
  X(Dist_graph_create_adjacent, (MPI_Comm comm, int sources_count, const int sources[], const int source_weights[], \
    int targets_count, const int targets[], const int target_weights[], MPI_Info info, int reorder, MPI_Comm* made), \
    (comm, sources_count, sources, source_weights, targets_count, targets, target_weights, info, reorder, made))

/* The library's own: a thread hears of other ranks where they set `flag`. */
#define FARSUM_MPI_LOOKING_CALLS(X) \
  X(Iprobe, (int from, int tag, MPI_Comm comm, int* flag, MPI_Status* status), (from, tag, comm, flag, status)) \
  X(Improbe, (int from, int tag, MPI_Comm comm, int* flag, MPI_Message* message, MPI_Status* status), \
    (from, tag, comm, flag, message, status))

/* With their twins. */
#define FARSUM_MPI_WITH_COUNTS(CALLS, X) \
  CALLS(X, , int, int) \
  CALLS(X, _c, MPI_Count, MPI_Aint)

/* Every call that is exported as MPI_X and PMPI_X. */
#define FARSUM_MPI_CALLS(X) \
  FARSUM_MPI_ALL_COUNTED_CALLS(X, , int, int) \
  FARSUM_MPI_ALL_COUNTED_CALLS(X, _c, MPI_Count, MPI_Aint) \
  FARSUM_MPI_UNCOUNTED_CALLS(X)

#define FARSUM_MPI_ALL_COUNTED_CALLS(X, SUFFIX, COUNT, UNIT) \
  FARSUM_MPI_COUNTED_CALLS(X, SUFFIX, COUNT, UNIT) \
  FARSUM_MPI_COLLECTIVE_CALLS(X, SUFFIX, COUNT, UNIT) \
  FARSUM_MPI_WAITING_COUNTED_CALLS(X, SUFFIX, COUNT, UNIT)

#define FARSUM_MPI_UNCOUNTED_CALLS(X) \
  FARSUM_MPI_PLAIN_CALLS(X) \
  FARSUM_MPI_REQUEST_CALLS(X) \
  FARSUM_MPI_LIFE_CALLS(X) \
  FARSUM_MPI_ERROR_CALLS(X) \
  FARSUM_MPI_CARRYING_CALLS(X) \
  FARSUM_MPI_WAITING_CALLS(X) \
  FARSUM_MPI_LOOKING_CALLS(X)

/* Functions of the library that the front calls and does not wrap. A library may lack the ones named _c. */
#define FARSUM_MPI_HELPERS(X) \
  X(Query_thread, (int* provided), (provided)) \
  X(Comm_rank, (MPI_Comm comm, int* rank), (comm, rank)) \
  X(Comm_size, (MPI_Comm comm, int* size), (comm, size)) \
  X(Comm_free, (MPI_Comm* comm), (comm)) \
  X(Comm_group, (MPI_Comm comm, MPI_Group* group), (comm, group)) \
  X(Comm_test_inter, (MPI_Comm comm, int* flag), (comm, flag)) \
  X(Comm_create_keyval, (MPI_Comm_copy_attr_function* copy, MPI_Comm_delete_attr_function* drop, int* keyval, void* extra), \
    (copy, drop, keyval, extra)) \
  X(Comm_free_keyval, (int* keyval), (keyval)) \
  X(Comm_set_attr, (MPI_Comm comm, int keyval, void* value), (comm, keyval, value)) \
  X(Comm_get_attr, (MPI_Comm comm, int keyval, void* value, int* flag), (comm, keyval, value, flag)) \
  X(Comm_delete_attr, (MPI_Comm comm, int keyval), (comm, keyval)) \
  X(Comm_call_errhandler, (MPI_Comm comm, int code), (comm, code)) \
  X(Comm_set_errhandler, (MPI_Comm comm, MPI_Errhandler handler), (comm, handler)) \
  X(Comm_get_errhandler, (MPI_Comm comm, MPI_Errhandler* handler), (comm, handler)) \
  X(Win_get_errhandler, (MPI_Win win, MPI_Errhandler* handler), (win, handler)) \
  X(Win_call_errhandler, (MPI_Win win, int code), (win, code)) \
  X(Errhandler_free, (MPI_Errhandler* handler), (handler)) \
  X(Win_get_name, (MPI_Win win, char* name, int* length), (win, name, length)) \
  X(Add_error_code, (int error_class, int* code), (error_class, code)) \
  X(Add_error_string, (int code, const char* text), (code, text)) \
  X(Group_size, (MPI_Group group, int* size), (group, size)) \
  X(Group_free, (MPI_Group* group), (group)) \
  X(Group_excl, (MPI_Group group, int count, const int ranks[], MPI_Group* result), (group, count, ranks, result)) \
  X(Group_translate_ranks, (MPI_Group from, int count, const int ranks[], MPI_Group to, int result[]), \
    (from, count, ranks, to, result)) \
  X(Comm_get_info, (MPI_Comm comm, MPI_Info* info), (comm, info)) \
  X(Info_create, (MPI_Info* info), (info)) \
  X(Info_free, (MPI_Info* info), (info)) \
  X(Info_set, (MPI_Info info, const char* key, const char* value), (info, key, value)) \
  X(Info_get, (MPI_Info info, const char* key, int room, char* value, int* flag), (info, key, room, value, flag)) \
  X(Info_get_nkeys, (MPI_Info info, int* count), (info, count)) \
  X(Info_get_nthkey, (MPI_Info info, int index, char* key), (info, index, key)) \
  X(Irecv, (void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* request), \
    (buffer, count, type, from, tag, comm, request)) \
  X(Cancel, (MPI_Request* request), (request)) \
  X(Get_version, (int* version, int* subversion), (version, subversion)) \
  X(Isend, (const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request), \
    (buffer, count, type, to, tag, comm, request)) \
  X(Grequest_start, (MPI_Grequest_query_function* query, MPI_Grequest_free_function* drop, \
    MPI_Grequest_cancel_function* cancel, void* extra, MPI_Request* request), (query, drop, cancel, extra, request)) \
  X(Grequest_complete, (MPI_Request request), (request)) \
  X(Status_set_elements, (MPI_Status* status, MPI_Datatype type, int count), (status, type, count)) \
  X(Status_set_cancelled, (MPI_Status* status, int flag), (status, flag)) \
  X(Type_size, (MPI_Datatype type, int* size), (type, size)) \
  X(Type_size_x, (MPI_Datatype type, MPI_Count* size), (type, size)) \
  X(Type_get_extent, (MPI_Datatype type, MPI_Aint* lower, MPI_Aint* extent), (type, lower, extent)) \
  X(Type_get_envelope, (MPI_Datatype type, int* integers, int* addresses, int* types, int* combiner), \
    (type, integers, addresses, types, combiner)) \
  X(Type_get_contents, (MPI_Datatype type, int max_integers, int max_addresses, int max_types, int integers[], \
    MPI_Aint addresses[], MPI_Datatype types[]), \
    (type, max_integers, max_addresses, max_types, integers, addresses, types)) \
  X(Type_get_envelope_c, (MPI_Datatype type, MPI_Count* integers, MPI_Count* addresses, MPI_Count* counts, MPI_Count* types, \
    int* combiner), (type, integers, addresses, counts, types, combiner)) \
  X(Type_get_contents_c, (MPI_Datatype type, MPI_Count max_integers, MPI_Count max_addresses, MPI_Count max_counts, \
    MPI_Count max_types, int integers[], MPI_Aint addresses[], MPI_Count counts[], MPI_Datatype types[]), \
    (type, max_integers, max_addresses, max_counts, max_types, integers, addresses, counts, types)) \
  X(Type_create_keyval, (MPI_Type_copy_attr_function* copy, MPI_Type_delete_attr_function* drop, int* keyval, void* extra), \
    (copy, drop, keyval, extra)) \
  X(Type_free_keyval, (int* keyval), (keyval)) \
  X(Type_set_attr, (MPI_Datatype type, int keyval, void* value), (type, keyval, value)) \
  X(Type_free, (MPI_Datatype* type), (type)) \
  X(Type_get_name, (MPI_Datatype type, char* name, int* length), (type, name, length)) \
  X(Get_library_version, (char* version, int* length), (version, length))

/* clang-format on */

#define FARSUM_MPI_SLOT(name, parameters, arguments) int(*name) parameters;

/* The calls that programs reach through the stubs. */
struct farsum_mpi_calls {
  FARSUM_MPI_CALLS(FARSUM_MPI_SLOT)
};

/* The library's own functions. */
struct farsum_mpi_library {
  FARSUM_MPI_CALLS(FARSUM_MPI_SLOT)
  FARSUM_MPI_HELPERS(FARSUM_MPI_SLOT)
};

/* Told when a thread has polled inside the library, by that thread. */
typedef void farsum_mpi_poll_function(void);

/* What the front has for calls of the system that tell promoted memory from other: farsum_fork_bare and
 * farsum_memory_advise. */
struct farsum_mpi_memory_calls {
  int (*fork_bare)(int (*make_child)(void));
  int (*advise)(void* address, size_t bytes, int advice, int (*madvise_function)(void*, size_t, int));
};

/* What the preloaded file hands to the front that it loads. */
struct farsum_mpi_preload {
  size_t struct_bytes;
  const struct farsum_mpi_library* library;
  struct farsum_mpi_calls* active; /* a copy, on which the front puts its own; taken if its start succeeds */
  void* library_handle;            /* of dlopen, for symbols that only one library has */
  void (*tell_of_polls)(farsum_mpi_poll_function* whom); /* whom, from then on */
  void (*tell_of_memory)(const struct farsum_mpi_memory_calls* calls);
};

/* What the front exports, under FARSUM_MPI_FRONT_START. Called after the library's Init (then it is collective over
 * MPI_COMM_WORLD: with_world is 1), or at the first window of a program that has not called it: one of sessions (0).
 * The answer is MPI_SUCCESS or an error, which the call in hand returns. */
typedef int farsum_mpi_front_start_function(const struct farsum_mpi_preload* preload, int with_world);
#define FARSUM_MPI_FRONT_START "farsum_mpi_front_start"

/* Exported too: called one after the other before the last session of the process is finalized, where the front has
 * been started. A session that opens after the first, which returns at once, has nothing to do with the front that
 * ends. */
typedef void farsum_mpi_front_end_function(void);
/* The process is about to lock its memory. */
typedef void farsum_mpi_front_before_mlockall_function(int flags);
#define FARSUM_MPI_FRONT_BEFORE_MLOCKALL "farsum_mpi_front_before_mlockall"
#define FARSUM_MPI_FRONT_ENDING "farsum_mpi_front_ending"
#define FARSUM_MPI_FRONT_END "farsum_mpi_front_end"

#endif
