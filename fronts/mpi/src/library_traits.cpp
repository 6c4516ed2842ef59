#include "library_traits.hpp"

#include <string_view>
#include <utility>

#include "info.hpp"
#include "library.hpp"

namespace farsum::mpi {
namespace {

bool is_open_mpi() {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  library().Get_library_version(version, &length);
  return std::string_view(version).starts_with("Open MPI");
}

LibraryTraits find_traits() {
  LibraryTraits traits;
  if (!is_open_mpi()) return traits;
  traits.empty_parts_have_addresses = true;
  traits.empty_memory_has_address = false;
  traits.detaches_anything = false;
  traits.shared_windows_take_any_unit = true;
  return traits;
}

// A delete callback that refuses once: its error is the one that a library cannot be built not to look for.
int refuse_once(MPI_Comm, int, void*, void* is_to_refuse) {
  bool& refuses = *static_cast<bool*>(is_to_refuse);
  return std::exchange(refuses, false) ? MPI_ERR_OTHER : MPI_SUCCESS;
}

void leave_code(MPI_Comm*, int*, ...) {}

bool ask_what_comes_after_handlers(MPI_Comm self) {
  MPI_Comm asked = MPI_COMM_NULL;
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  int keyval = MPI_KEYVAL_INVALID;
  bool refuses = true;
  if (library().Comm_dup(self, &asked) != MPI_SUCCESS) return false;
  library().Comm_create_errhandler(leave_code, &handler);
  library().Comm_set_errhandler(asked, handler);
  library().Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuse_once, &keyval, &refuses);
  library().Comm_set_attr(asked, keyval, nullptr);
  const bool succeeds = library().Comm_delete_attr(asked, keyval) == MPI_SUCCESS;
  library().Comm_free(&asked);
  library().Comm_free_keyval(&keyval);
  library().Errhandler_free(&handler);
  return succeeds;
}

}  // namespace

const LibraryTraits& library_traits() {
  static const LibraryTraits traits = find_traits();
  return traits;
}

const std::optional<std::string>& memory_kinds_of_world() {
  // Never destroyed: exit handlers of the program may ask.
  static const auto* const kinds = new std::optional<std::string>(info_of(MPI_COMM_SELF, kinds_key));
  return *kinds;
}

bool library_follows(int version, int subversion) {
  static const std::pair<int, int> followed = [] {
    std::pair<int, int> said{3, 1};
    library().Get_version(&said.first, &said.second);
    return said;
  }();
  return followed >= std::pair(version, subversion);
}

bool library_succeeds_after_handlers(MPI_Comm self) {
  // Nobody is asked where there is nobody to ask by.
  if (self == MPI_COMM_NULL) return false;
  static const bool succeeds = ask_what_comes_after_handlers(self);
  return succeeds;
}

}  // namespace farsum::mpi
