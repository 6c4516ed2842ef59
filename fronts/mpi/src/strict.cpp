#include "strict.hpp"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>

#include "absent.hpp"
#include "front.hpp"
#include "quick_table.hpp"
#include "setting.h"

namespace farsum::mpi {
namespace {

farsum_mpi_library& real() {
  static farsum_mpi_library functions;
  return functions;
}

// The backing windows that live.
class Backings {
 public:
  static Backings& get() {
    static auto* const backings = new Backings;
    return *backings;
  }
  void add(MPI_Win window) {
    const std::lock_guard lock(mutex_);
    handles_.insert(handle_key(window));
  }
  void remove(MPI_Win window) {
    const std::lock_guard lock(mutex_);
    handles_.erase(handle_key(window));
  }
  bool has(MPI_Win window) {
    const std::lock_guard lock(mutex_);
    return handles_.count(handle_key(window)) != 0;
  }

 private:
  std::mutex mutex_;
  std::set<std::uint64_t> handles_;
};

[[noreturn]] void refuse(const char* call) {
  std::fprintf(stderr,
               "farsum: FARSUM_MPI_STRICT: MPI_%s of the MPI library was called for a window that is not Farsum's\n",
               call);
  std::abort();
}

// What the library refuses in its own words is left to it.
bool refused_anyway(MPI_Comm communicator) {
  int inter = 0;
  return communicator == MPI_COMM_NULL || real().Comm_test_inter(communicator, &inter) != MPI_SUCCESS || inter != 0;
}

// A window is made.
template <class Call>
int checked(const char* name, MPI_Win* window, MPI_Comm communicator, Call call) {
  const bool backing = communicator == Front::get().self();
  if (!backing && !refused_anyway(communicator)) refuse(name);
  const int result = call();
  if (backing && result == MPI_SUCCESS) Backings::get().add(*window);
  return result;
}

// A window is freed.
template <class Call>
int checked(const char* name, MPI_Win* window, Absent, Call call) {
  if (*window == MPI_WIN_NULL) return call();
  if (!Backings::get().has(*window)) refuse(name);
  const MPI_Win handle = *window;
  Backings::get().remove(handle);
  const int result = call();
  if (result != MPI_SUCCESS) Backings::get().add(handle);  // a delete callback refused
  return result;
}

template <class Call>
int checked(const char* name, MPI_Win window, Absent, Call call) {
  if (window != MPI_WIN_NULL && !Backings::get().has(window)) refuse(name);
  return call();
}

// Memory: the front leaves to the library what it would refuse, and frees what the library gave out before.
template <class Call>
int checked(const char*, Absent, Absent, Call call) {
  return call();
}

namespace strict {

// In a call that has no parameter of these names, the names mean these.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
constexpr Absent win;
constexpr Absent comm;

#define FARSUM_MPI_STRICT(name, parameters, arguments)                       \
  int name parameters {                                                      \
    return checked(#name, win, comm, [&] { return real().name arguments; }); \
  }
FARSUM_MPI_COUNTED_CALLS(FARSUM_MPI_STRICT, , int, int)
FARSUM_MPI_COUNTED_CALLS(FARSUM_MPI_STRICT, _c, MPI_Count, MPI_Aint)
FARSUM_MPI_PLAIN_CALLS(FARSUM_MPI_STRICT)
#pragma GCC diagnostic pop

}  // namespace strict
}  // namespace

bool strict_wanted() { return farsum_mpi_setting_is_on("FARSUM_MPI_STRICT") != 0; }

void make_strict(farsum_mpi_library& library, farsum_mpi_calls& active) {
  real() = library;
#define FARSUM_MPI_PUT_STRICT(name, parameters, arguments)  \
  if (library.name != nullptr) library.name = strict::name; \
  active.name = strict::name;
  FARSUM_MPI_COUNTED_CALLS(FARSUM_MPI_PUT_STRICT, , int, int)
  FARSUM_MPI_COUNTED_CALLS(FARSUM_MPI_PUT_STRICT, _c, MPI_Count, MPI_Aint)
  FARSUM_MPI_PLAIN_CALLS(FARSUM_MPI_PUT_STRICT)
}

}  // namespace farsum::mpi
