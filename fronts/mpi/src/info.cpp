#include "info.hpp"

#include <bit>
#include <charconv>
#include <system_error>

#include "farsum.h"

namespace farsum::mpi {

std::size_t alignment_of(const std::string& value) {
  std::size_t alignment = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), alignment);
  const bool is_number = error == std::errc{} && end == value.data() + value.size();
  return is_number && std::has_single_bit(alignment) && alignment <= FARSUM_MOST_ALIGNMENT ? alignment : 0;
}

std::map<std::string, std::string> read_info(MPI_Info info) {
  std::map<std::string, std::string> pairs;
  if (info == MPI_INFO_NULL) return pairs;
  int count = 0;
  library().Info_get_nkeys(info, &count);
  for (int i = 0; i < count; ++i) {
    char key[MPI_MAX_INFO_KEY + 1] = "";
    char value[MPI_MAX_INFO_VAL + 1] = "";
    int flag = 0;
    if (library().Info_get_nthkey(info, i, key) != MPI_SUCCESS) continue;
    library().Info_get(info, key, MPI_MAX_INFO_VAL, value, &flag);
    if (flag != 0) pairs[key] = value;
  }
  return pairs;
}

}  // namespace farsum::mpi
