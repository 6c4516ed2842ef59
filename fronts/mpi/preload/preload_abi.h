/* How this build's MPI libraries are called: FARSUM_MPI_ABI_mpich, _openmpi or _abi is defined by the build. */
#ifndef FARSUM_MPI_PRELOAD_ABI_H
#define FARSUM_MPI_PRELOAD_ABI_H

#if defined(FARSUM_MPI_ABI_mpich)
#define FARSUM_MPI_ABI_NAME "mpich"
#define FARSUM_MPI_SONAMES "libmpi.so.12", "libmpich.so.12"
#elif defined(FARSUM_MPI_ABI_openmpi)
#define FARSUM_MPI_ABI_NAME "openmpi"
#define FARSUM_MPI_SONAMES "libmpi.so.40"
#define FARSUM_MPI_FORTRAN_SONAME "libmpi_mpifh.so.40"
/* Open MPI 4 and 5 have no large-count calls; a program that asks whether they are there must be told no. */
#define FARSUM_MPI_NO_LARGE_COUNTS 1
#elif defined(FARSUM_MPI_ABI_abi)
#define FARSUM_MPI_ABI_NAME "abi"
#define FARSUM_MPI_SONAMES "libmpi_abi.so.1", "libmpi_abi.so.0"
#define FARSUM_MPI_ALL_HAVE_TWINS 1
#else
#error "the build names the ABI"
#endif

#endif
