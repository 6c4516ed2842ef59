#include "info.hpp"

#include <algorithm>
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

std::optional<std::string> info_of(MPI_Comm comm, const char* key) {
  MPI_Info info = MPI_INFO_NULL;
  if (library().Comm_get_info(comm, &info) != MPI_SUCCESS || info == MPI_INFO_NULL) return std::nullopt;
  char value[MPI_MAX_INFO_VAL + 1] = "";
  int is_there = 0;
  library().Info_get(info, key, MPI_MAX_INFO_VAL, value, &is_there);
  library().Info_free(&info);
  return is_there != 0 ? std::optional<std::string>(value) : std::nullopt;
}

bool supports_kinds(const std::string& supported, const std::string& asserted) {
  // Names between commas; an empty list asserts that there are none.
  const std::string among = "," + supported + ",";
  for (std::size_t at = 0; at < asserted.size();) {
    const std::size_t end = std::min(asserted.find(',', at), asserted.size());
    const std::string kind = asserted.substr(at, end - at);
    const std::string unrestricted = kind.substr(0, kind.find(':'));
    if (among.find("," + kind + ",") == std::string::npos && among.find("," + unrestricted + ",") == std::string::npos)
      return false;
    at = end + 1;
  }
  return true;
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
