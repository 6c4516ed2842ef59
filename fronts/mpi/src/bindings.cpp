#include "bindings.hpp"

#include <link.h>

#include <algorithm>
#include <array>

namespace farsum::mpi {
namespace {

int read_loads(dl_phdr_info* object, std::size_t, void* loads) {
  *static_cast<unsigned long long*>(loads) = object->dlpi_adds;
  return 1;
}

int look_at(dl_phdr_info* object, std::size_t, void*) {
  return object->dlpi_name != nullptr && is_of_other_bindings(object->dlpi_name) ? 1 : 0;
}

}  // namespace

// MPICH's are libmpichfort and libmpichcxx or libmpifort and libmpicxx, Open MPI's libmpi_mpifh, which its others call,
// and libmpi_cxx.
bool is_of_other_bindings(std::string_view path) {
  static constexpr std::array<std::string_view, 3> parts = {"fort", "mpifh", "cxx"};
  const std::string_view file = path.substr(path.rfind('/') + 1);
  return file.starts_with("libmpi") && std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
           return file.find(part) != std::string_view::npos;
         });
}

bool OtherBindings::are_loaded() {
  unsigned long long loads = 0;
  dl_iterate_phdr(read_loads, &loads);
  if (loads != loads_) were_loaded_ = dl_iterate_phdr(look_at, nullptr) != 0;
  loads_ = loads;
  return were_loaded_;
}

}  // namespace farsum::mpi
