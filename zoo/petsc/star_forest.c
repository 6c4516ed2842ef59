/* Moves values along an irregular star forest of PETSc's, over windows of one flavor and each of three ways to synchronise, and
 * compares all of them with what PETSc's own messages (PETSCSFBASIC) give. It prints "star forest right" where they agree.
 *
 *   star_forest -sf_window_flavor create|shared -rounds N
 */

#include <petscsf.h>
#include <stdint.h>

enum { FIRST_ROOTS = 1500, MORE_ROOTS_PER_RANK = 250 };

typedef struct {
  PetscInt roots, leaves;
  PetscInt *root_values, *root_reference, *leaf_values, *leaf_reference, *ones, *squares;
} Values;

static PetscInt roots_of(PetscMPIInt rank) { return FIRST_ROOTS + MORE_ROOTS_PER_RANK * rank; }

/* splitmix64: the same graph on every machine. */
static uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/* A rank holds a leaf of some 1 to 8 of 16 roots: roots differ in how many ranks have a leaf of theirs. */
static PetscBool has_leaf(PetscMPIInt rank, PetscMPIInt owner, PetscInt root) {
  const uint64_t at = ((uint64_t)owner << 32) | (uint64_t)root;
  return mixed(mixed(at) ^ (uint64_t)rank) % 16 <= mixed(at) % 8 ? PETSC_TRUE : PETSC_FALSE;
}

/* Leaves lie in the reverse order of their roots, with a gap behind each third one. */
static PetscErrorCode build_graph(PetscSF sf, PetscMPIInt rank, PetscMPIInt ranks, Values *values) {
  PetscInt count = 0, *places, next = 0;
  PetscSFNode *nodes;

  PetscFunctionBeginUser;
  for (PetscMPIInt owner = 0; owner < ranks; ++owner)
    for (PetscInt root = 0; root < roots_of(owner); ++root) count += has_leaf(rank, owner, root);
  PetscCall(PetscMalloc1(count, &places));
  PetscCall(PetscMalloc1(count, &nodes));
  values->roots = roots_of(rank);
  values->leaves = count + count / 3 + 1;
  for (PetscMPIInt owner = 0; owner < ranks; ++owner)
    for (PetscInt root = 0; root < roots_of(owner); ++root)
      if (has_leaf(rank, owner, root)) {
        const PetscInt from_end = count - 1 - next;
        places[next] = from_end + from_end / 3;
        nodes[next].rank = owner;
        nodes[next++].index = root;
      }
  PetscCall(PetscSFSetGraph(sf, values->roots, count, places, PETSC_OWN_POINTER, nodes, PETSC_OWN_POINTER));
  PetscFunctionReturn(0);
}

static PetscErrorCode take_memory(Values *values) {
  PetscFunctionBeginUser;
  PetscCall(PetscCalloc1(values->roots, &values->root_values));
  PetscCall(PetscCalloc1(values->roots, &values->root_reference));
  PetscCall(PetscCalloc1(values->leaves, &values->leaf_values));
  PetscCall(PetscCalloc1(values->leaves, &values->leaf_reference));
  PetscCall(PetscMalloc1(values->leaves, &values->ones));
  PetscCall(PetscCalloc1(values->leaves, &values->squares));
  for (PetscInt leaf = 0; leaf < values->leaves; ++leaf) values->ones[leaf] = 1;
  PetscFunctionReturn(0);
}

static PetscErrorCode give_memory_back(Values *values) {
  PetscFunctionBeginUser;
  PetscCall(PetscFree(values->root_values));
  PetscCall(PetscFree(values->root_reference));
  PetscCall(PetscFree(values->leaf_values));
  PetscCall(PetscFree(values->leaf_reference));
  PetscCall(PetscFree(values->ones));
  PetscCall(PetscFree(values->squares));
  PetscFunctionReturn(0);
}

static void number_roots(Values *values, PetscMPIInt rank, PetscInt round) {
  for (PetscInt root = 0; root < values->roots; ++root)
    values->root_values[root] = values->root_reference[root] = (PetscInt)(mixed((uint64_t)(rank * 7919 + root + round)) % 1000);
}

static void require_same(const char *what, const PetscInt *ours, const PetscInt *theirs, PetscInt count, PetscInt *wrong) {
  for (PetscInt i = 0; i < count; ++i)
    if (ours[i] != theirs[i] && (*wrong)++ == 0)
      PetscPrintf(PETSC_COMM_SELF, "WRONG: %s at %d is %d, not %d\n", what, (int)i, (int)ours[i], (int)theirs[i]);
}

static PetscErrorCode check_broadcast(PetscSF window, PetscSF basic, Values *values, PetscInt *wrong) {
  PetscFunctionBeginUser;
  PetscCall(PetscArrayzero(values->leaf_values, values->leaves));
  PetscCall(PetscArrayzero(values->leaf_reference, values->leaves));
  PetscCall(PetscSFBcastBegin(window, MPIU_INT, values->root_values, values->leaf_values, MPI_REPLACE));
  PetscCall(PetscSFBcastEnd(window, MPIU_INT, values->root_values, values->leaf_values, MPI_REPLACE));
  PetscCall(PetscSFBcastBegin(basic, MPIU_INT, values->root_reference, values->leaf_reference, MPI_REPLACE));
  PetscCall(PetscSFBcastEnd(basic, MPIU_INT, values->root_reference, values->leaf_reference, MPI_REPLACE));
  require_same("a leaf of a broadcast", values->leaf_values, values->leaf_reference, values->leaves, wrong);
  PetscFunctionReturn(0);
}

static PetscErrorCode check_sum(PetscSF window, PetscSF basic, Values *values, PetscInt *wrong) {
  PetscFunctionBeginUser;
  PetscCall(PetscSFReduceBegin(window, MPIU_INT, values->leaf_reference, values->root_values, MPI_SUM));
  PetscCall(PetscSFReduceEnd(window, MPIU_INT, values->leaf_reference, values->root_values, MPI_SUM));
  PetscCall(PetscSFReduceBegin(basic, MPIU_INT, values->leaf_reference, values->root_reference, MPI_SUM));
  PetscCall(PetscSFReduceEnd(basic, MPIU_INT, values->leaf_reference, values->root_reference, MPI_SUM));
  require_same("a sum", values->root_values, values->root_reference, values->roots, wrong);
  PetscFunctionReturn(0);
}

static PetscErrorCode sum_of_squares(PetscSF basic, Values *values, const PetscInt *leaves, PetscInt *roots) {
  PetscFunctionBeginUser;
  PetscCall(PetscArrayzero(roots, values->roots));
  for (PetscInt leaf = 0; leaf < values->leaves; ++leaf) values->squares[leaf] = leaves[leaf] % 1000 * (leaves[leaf] % 1000);
  PetscCall(PetscSFReduceBegin(basic, MPIU_INT, values->squares, roots, MPI_SUM));
  PetscCall(PetscSFReduceEnd(basic, MPIU_INT, values->squares, roots, MPI_SUM));
  PetscFunctionReturn(0);
}

/* Each leaf draws a number of its root: who got which is open, the set of numbers is not. */
static PetscErrorCode check_draws(PetscSF window, PetscSF basic, Values *values, PetscInt *wrong) {
  PetscFunctionBeginUser;
  PetscCall(PetscSFFetchAndOpBegin(window, MPIU_INT, values->root_values, values->ones, values->leaf_values, MPI_SUM));
  PetscCall(PetscSFFetchAndOpEnd(window, MPIU_INT, values->root_values, values->ones, values->leaf_values, MPI_SUM));
  PetscCall(PetscSFFetchAndOpBegin(basic, MPIU_INT, values->root_reference, values->ones, values->leaf_reference, MPI_SUM));
  PetscCall(PetscSFFetchAndOpEnd(basic, MPIU_INT, values->root_reference, values->ones, values->leaf_reference, MPI_SUM));
  require_same("a root after the draws", values->root_values, values->root_reference, values->roots, wrong);
  PetscCall(sum_of_squares(basic, values, values->leaf_values, values->root_values));
  PetscCall(sum_of_squares(basic, values, values->leaf_reference, values->root_reference));
  require_same("a root's sum over the squares of the drawn numbers", values->root_values, values->root_reference, values->roots, wrong);
  PetscFunctionReturn(0);
}

static PetscErrorCode check_way(PetscSF window, PetscSF basic, Values *values, PetscInt rounds, PetscInt *wrong) {
  PetscMPIInt rank;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  for (PetscInt round = 0; round < rounds; ++round) {
    number_roots(values, rank, round);
    PetscCall(check_broadcast(window, basic, values, wrong));
    PetscCall(check_sum(window, basic, values, wrong));
    PetscCall(check_draws(window, basic, values, wrong));
  }
  PetscFunctionReturn(0);
}

static PetscErrorCode check_all_ways(PetscSF basic, Values *values, PetscInt rounds, PetscInt *wrong) {
  static const PetscSFWindowSyncType ways[] = {PETSCSF_WINDOW_SYNC_FENCE, PETSCSF_WINDOW_SYNC_LOCK, PETSCSF_WINDOW_SYNC_ACTIVE};
  static const char *const names[] = {"fence", "lock", "active"};

  PetscFunctionBeginUser;
  for (int way = 0; way < 3; ++way) {
    PetscSF window;
    const double start = MPI_Wtime();
    PetscCall(PetscSFDuplicate(basic, PETSCSF_DUPLICATE_GRAPH, &window));
    PetscCall(PetscSFSetType(window, PETSCSFWINDOW));
    PetscCall(PetscSFSetFromOptions(window));
    PetscCall(PetscSFWindowSetSyncType(window, ways[way]));
    PetscCall(check_way(window, basic, values, rounds, wrong));
    PetscCall(PetscSFDestroy(&window));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s: %d rounds in %.2f s\n", names[way], (int)rounds, MPI_Wtime() - start));
  }
  PetscFunctionReturn(0);
}

int main(int argc, char **argv) {
  PetscMPIInt rank, ranks;
  PetscInt rounds = 10, wrong = 0;
  PetscSF basic;
  Values values;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &ranks));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-rounds", &rounds, NULL));
  PetscCall(PetscSFCreate(PETSC_COMM_WORLD, &basic));
  PetscCall(PetscSFSetType(basic, PETSCSFBASIC));
  PetscCall(build_graph(basic, rank, ranks, &values));
  PetscCall(PetscSFSetUp(basic));
  PetscCall(take_memory(&values));
  PetscCall(check_all_ways(basic, &values, rounds, &wrong));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPIU_INT, MPI_SUM, PETSC_COMM_WORLD));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, wrong ? "%d values wrong\n" : "star forest right\n", (int)wrong));
  PetscCall(give_memory_back(&values));
  PetscCall(PetscSFDestroy(&basic));
  PetscCall(PetscFinalize());
  return wrong ? 1 : 0;
}
