/* What the library has that the program of the stand-ins is linked to. */
#ifndef FARSUM_MPI_TESTS_DEEP_OPENER_H
#define FARSUM_MPI_TESTS_DEEP_OPENER_H

#define EXPORTED __attribute__((visibility("default")))

/* What MPI_Win_fence answers. */
EXPORTED int call_mpi(void);

/* Called once, when the next plugin is about to be opened with RTLD_DEEPBIND. */
extern EXPORTED void (*opener_before_deep)(void);

/* Closes what was opened before the preload began. */
EXPORTED void close_passing(void);

#endif
