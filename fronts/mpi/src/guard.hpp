// No exception passes a call of the front: what is thrown inside becomes an error of MPI's, told to the handler of the
// window or communicator that the call names. guard::X<body>::call is the call X of the table around `body`; the
// compiler puts the body into it, so that nothing is paid unless something is thrown.
//
// What threw may have been done in part, and the other ranks of a collective call are not told.
#pragma once

#include <exception>
#include <type_traits>

#include "absent.hpp"
#include "library.hpp"

// What is caught where a thread that unwinds passes, which libc++'s runtime could not pass on if it were caught.
#if defined(_LIBCPP_VERSION)
#define FARSUM_MPI_CAUGHT const std::exception&
#else
#define FARSUM_MPI_CAUGHT ...
#endif

namespace farsum::mpi {

// Called while an exception is handled; the error's code. A thread may end inside the handler that is told.
[[gnu::cold]] int thrown_on_window(const char* call, MPI_Win win);
[[gnu::cold]] int thrown_on_communicator(const char* call, MPI_Comm comm);
// Of calls that name neither.
[[gnu::cold]] int thrown_on_nothing(const char* call);
// A thread that is cancelled, or ends inside an error handler of the program, unwinds as if by an exception, of which
// the C++ runtime has nothing to show: it goes on.
[[gnu::cold]] void let_thread_unwind();
// Where there is nobody to tell any more: says it. MPI_ERR_NO_MEM or MPI_ERR_OTHER.
[[gnu::cold]] int thrown_at_end(const char* call) noexcept;

template <class Win, class Comm>
[[gnu::cold, gnu::noinline]] int thrown(const char* call, Win win, Comm comm) {
  if constexpr (!std::is_same_v<Comm, Absent>) {
    return thrown_on_communicator(call, comm);
  } else if constexpr (std::is_same_v<Win, Absent>) {
    return thrown_on_nothing(call);
  } else if constexpr (std::is_same_v<Win, MPI_Win*>) {
    return thrown_on_window(call, *win);  // MPI_Win_free
  } else {
    return thrown_on_window(call, win);
  }
}

namespace guard {

// In a call that has no parameter of these names, the names mean these.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
inline constexpr Absent win;
inline constexpr Absent comm;

#define FARSUM_MPI_GUARD(name, parameters, arguments) \
  template <auto body>                                \
  struct name {                                       \
    static int call parameters {                      \
      try {                                           \
        return body arguments;                        \
      } catch (FARSUM_MPI_CAUGHT) {                   \
        let_thread_unwind();                          \
        return thrown("MPI_" #name, win, comm);       \
      }                                               \
    }                                                 \
  };
FARSUM_MPI_CALLS(FARSUM_MPI_GUARD)
#undef FARSUM_MPI_GUARD
#pragma GCC diagnostic pop

}  // namespace guard
}  // namespace farsum::mpi
