/* RANKS: 6
 * Takes seconds: hundreds of lists
 * In make test-all (*.nodes): hundreds of lists over two nodes
 * Windows over many lists of ranks as in many_lists.c, by two threads at once, which meet the same lists. */
#include <pthread.h>

#include "many_lists.inl"

typedef struct thread {
  pthread_t it;
  MPI_Comm comm;
} thread;

static void* run(void* argument) {
  draws drawn = {1};
  use_lists(((thread*)argument)->comm, &drawn, 140);
  return NULL;
}

int main(int argc, char** argv) {
  int provided = MPI_THREAD_SINGLE;
  thread threads[2];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided != MPI_THREAD_MULTIPLE) {
    MPI_Finalize();
    return 77;
  }
  for (int i = 0; i < 2; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &threads[i].comm);
    pthread_create(&threads[i].it, NULL, run, &threads[i]);
  }
  for (int i = 0; i < 2; ++i) {
    pthread_join(threads[i].it, NULL);
    MPI_Comm_free(&threads[i].comm);
  }
  return finish();
}
