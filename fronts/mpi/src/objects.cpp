// Group, info and the predefined attributes of a window. Name, error handler and other attributes are the backing
// window's own, which the library keeps.
#include <cstring>
#include <optional>

#include "calls.hpp"
#include "errors.hpp"
#include "front.hpp"
#include "guard.hpp"
#include "info.hpp"
#include "library_traits.hpp"

namespace farsum::mpi {
namespace {

int get_group(MPI_Win win, MPI_Group* group) {
  Window* window = Front::get().windows.find(win);
  if (window == nullptr) return library().Win_get_group(for_library(win), group);
  // A group of its own, for the caller frees it.
  return library().Group_excl(window->group, 0, nullptr, group);
}

// Contiguous parts follow one another, wherever that is.
bool has_aligned_part(const Window& window) {
  return window.flavor == MPI_WIN_FLAVOR_ALLOCATE ||
         (window.flavor == MPI_WIN_FLAVOR_SHARED && !window.has_contiguous_parts);
}

// The kinds of memory that the library supports for all that is derived from the World Model, or from the window's
// session; nothing where it follows an MPI that has none.
const std::optional<std::string>& kinds_of(const Window& window) {
  return Front::get().sessions.are_alone() ? window.memory_kinds : memory_kinds_of_world();
}

// Whether the window behaves as the value says.
bool is_kept(const Window& window, const std::string& key, const std::string& value) {
  if (key == kinds_key) return false;  // told, and not set
  if (key == asserted_kinds_key) {
    const std::optional<std::string>& supported = kinds_of(window);
    return supported && supports_kinds(*supported, value);
  }
  if (key != alignment_key) return true;
  const std::size_t alignment = alignment_of(value);
  return alignment != 0 && reinterpret_cast<std::uintptr_t>(window.base) % alignment == 0;
}

// What a window without any info behaves like.
std::map<std::string, std::string> default_info(const Window& window) {
  std::map<std::string, std::string> info = {{"no_locks", "false"},
                                             {"accumulate_ordering", "rar,raw,war,waw"},
                                             {"accumulate_ops", "same_op_no_op"},
                                             {"mpi_accumulate_granularity", "0"},
                                             {"same_size", "false"},
                                             {"same_disp_unit", "false"}};
  if (window.flavor == MPI_WIN_FLAVOR_SHARED) info["alloc_shared_noncontig"] = "false";
  if (has_aligned_part(window)) info[alignment_key] = "64";
  if (const std::optional<std::string>& kinds = kinds_of(window)) info[kinds_key] = *kinds;
  return info;
}

int set_info(MPI_Win win, MPI_Info info) {
  Window* window = Front::get().windows.find(win);
  if (window == nullptr) return library().Win_set_info(for_library(win), info);
  if (info == MPI_INFO_NULL)
    return raise(*window, "MPI_Win_set_info", MPI_ERR_INFO, "the info object is MPI_INFO_NULL");
  const std::map<std::string, std::string> pairs = read_info(info);
  const std::lock_guard lock(window->info_mutex);
  for (const auto& [key, value] : pairs) {
    // Memory stays where it is, and what is not supported changes nothing.
    if (key != alignment_key && is_kept(*window, key, value)) window->info[key] = value;
  }
  return MPI_SUCCESS;
}

int get_info(MPI_Win win, MPI_Info* info) {
  Window* window = Front::get().windows.find(win);
  if (window == nullptr) return library().Win_get_info(for_library(win), info);
  std::map<std::string, std::string> pairs = default_info(*window);
  {
    const std::lock_guard lock(window->info_mutex);
    // Keys that mean nothing here are not given back: their absence is how a program learns it.
    for (const auto& [key, value] : window->info) {
      const bool is_known = pairs.count(key) != 0 || key == asserted_kinds_key || key.starts_with("farsum_");
      if (is_known && is_kept(*window, key, value)) pairs[key] = value;
    }
  }
  if (const int result = library().Info_create(info); result != MPI_SUCCESS) return result;
  for (const auto& [key, value] : pairs) library().Info_set(*info, key.c_str(), value.c_str());
  return MPI_SUCCESS;
}

int get_attr(MPI_Win win, int keyval, void* value, int* flag) {
  Window* window = Front::get().windows.find(win);
  if (window == nullptr) return library().Win_get_attr(for_library(win), keyval, value, flag);
  void* answer = nullptr;
  if (keyval == MPI_WIN_BASE) {
    answer = window->base;
  } else if (keyval == MPI_WIN_SIZE) {
    answer = &window->bytes;
  } else if (keyval == MPI_WIN_DISP_UNIT) {
    answer = &window->disp_unit;
  } else if (keyval == MPI_WIN_CREATE_FLAVOR) {
    answer = &window->flavor;
  } else if (keyval == MPI_WIN_MODEL) {
    answer = &window->model;
  } else {
    return library().Win_get_attr(win, keyval, value, flag);
  }
  std::memcpy(value, &answer, sizeof answer);
  *flag = 1;
  return MPI_SUCCESS;
}

// What is set on the handle the library keeps.
void note_that_it_carries(MPI_Win win) {
  if (Window* window = Front::get().windows.find(win)) window->carries_something.store(true, std::memory_order_relaxed);
}

int set_attr(MPI_Win win, int keyval, void* value) {
  note_that_it_carries(win);
  return library().Win_set_attr(for_library(win), keyval, value);
}

int set_name(MPI_Win win, const char* name) {
  note_that_it_carries(win);
  return library().Win_set_name(for_library(win), name);
}

int set_errhandler(MPI_Win win, MPI_Errhandler handler) {
  note_that_it_carries(win);
  return library().Win_set_errhandler(for_library(win), handler);
}

}  // namespace

void put_object_calls(farsum_mpi_calls& active) {
  active.Win_get_group = guard::Win_get_group<get_group>::call;
  active.Win_set_info = guard::Win_set_info<set_info>::call;
  active.Win_get_info = guard::Win_get_info<get_info>::call;
  active.Win_get_attr = guard::Win_get_attr<get_attr>::call;
  active.Win_set_attr = guard::Win_set_attr<set_attr>::call;
  active.Win_set_name = guard::Win_set_name<set_name>::call;
  active.Win_set_errhandler = guard::Win_set_errhandler<set_errhandler>::call;
}

}  // namespace farsum::mpi
