#include "transport/ucx/ucx_library.hpp"

#include <dlfcn.h>
#include <link.h>
#include <signal.h>

#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "transport/ucx/ucx_calls.hpp"

namespace farsum {
namespace {

constexpr const char* soname = "libucp.so.0";
constexpr UcxVersion oldest{1, 11, 0};  // ucp_am_send_nbx and its request parameters as they are today

// UCX asks for handlers of SIGSEGV and others in its constructor unless the environment says no. The environment cannot
// be changed beside other threads that read it, so what UCX installed is taken back, and only that.
class SignalHandlersKept {
 public:
  SignalHandlersKept() {
    for (int number = 1; number < signals; ++number) known_[number] = sigaction(number, nullptr, &before_[number]) == 0;
  }
  ~SignalHandlersKept() {
    for (int number = 1; number < signals; ++number) {
      struct sigaction now {};
      if (known_[number] && sigaction(number, nullptr, &now) == 0 && is_of_ucx(now)) {
        sigaction(number, &before_[number], nullptr);
      }
    }
  }
  SignalHandlersKept(const SignalHandlersKept&) = delete;
  SignalHandlersKept& operator=(const SignalHandlersKept&) = delete;

 private:
  static constexpr int signals = 65;

  static bool is_of_ucx(const struct sigaction& action) {
    if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) return false;
    Dl_info where{};
    const void* handler = reinterpret_cast<const void*>(action.sa_sigaction);
    return dladdr(handler, &where) != 0 && where.dli_fname != nullptr &&
           std::strstr(where.dli_fname, "libucs") != nullptr;
  }

  std::array<struct sigaction, signals> before_{};
  std::array<bool, signals> known_{};
};

// The file of a libucp that is mapped under whatever name: wheels may rename it to libucp-HASH.so.
int note_libucp(dl_phdr_info* object, std::size_t, void* found) {
  const std::string_view path = object->dlpi_name;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (!name.starts_with("libucp.so") && !name.starts_with("libucp-")) return 0;
  *static_cast<std::string*>(found) = path;
  return 1;
}

void* find_loaded() {
  if (void* handle = dlopen(soname, RTLD_LAZY | RTLD_NOLOAD)) return handle;
  std::string path;
  dl_iterate_phdr(note_libucp, &path);
  return path.empty() ? nullptr : dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
}

void* open_new(const char* name) {
  const SignalHandlersKept kept;
  return dlopen(name, RTLD_LAZY | RTLD_LOCAL);
}

std::string last_linker_error() {
  const char* error = dlerror();
  return error != nullptr ? error : "no reason given";
}

template <class Call>
void find(void* handle, Call& call, const char* name, const char*& missing) {
  call = reinterpret_cast<Call>(dlsym(handle, name));
  if (call == nullptr) missing = name;
}

// Null when all were found, else the name of one that was not.
const char* find_calls(void* handle, UcxCalls& calls) {
  const char* missing = nullptr;
  find(handle, calls.get_version, "ucp_get_version", missing);
  find(handle, calls.status_string, "ucs_status_string", missing);
  find(handle, calls.config_read, "ucp_config_read", missing);
  find(handle, calls.config_modify, "ucp_config_modify", missing);
  find(handle, calls.config_release, "ucp_config_release", missing);
  find(handle, calls.init_version, "ucp_init_version", missing);
  find(handle, calls.cleanup, "ucp_cleanup", missing);
  find(handle, calls.context_print_info, "ucp_context_print_info", missing);
  find(handle, calls.worker_create, "ucp_worker_create", missing);
  find(handle, calls.worker_flush_nbx, "ucp_worker_flush_nbx", missing);
  find(handle, calls.worker_destroy, "ucp_worker_destroy", missing);
  find(handle, calls.worker_get_address, "ucp_worker_get_address", missing);
  find(handle, calls.worker_release_address, "ucp_worker_release_address", missing);
  find(handle, calls.worker_get_efd, "ucp_worker_get_efd", missing);
  find(handle, calls.worker_arm, "ucp_worker_arm", missing);
  find(handle, calls.worker_progress, "ucp_worker_progress", missing);
  find(handle, calls.worker_set_am_recv_handler, "ucp_worker_set_am_recv_handler", missing);
  find(handle, calls.ep_create, "ucp_ep_create", missing);
  find(handle, calls.ep_close_nbx, "ucp_ep_close_nbx", missing);
  find(handle, calls.ep_print_info, "ucp_ep_print_info", missing);
  find(handle, calls.am_send_nbx, "ucp_am_send_nbx", missing);
  find(handle, calls.request_free, "ucp_request_free", missing);
  find(handle, calls.mem_map, "ucp_mem_map", missing);
  find(handle, calls.mem_unmap, "ucp_mem_unmap", missing);
  find(handle, calls.mem_query, "ucp_mem_query", missing);
  find(handle, calls.rkey_pack, "ucp_rkey_pack", missing);
  find(handle, calls.rkey_buffer_release, "ucp_rkey_buffer_release", missing);
  find(handle, calls.ep_rkey_unpack, "ucp_ep_rkey_unpack", missing);
  find(handle, calls.rkey_destroy, "ucp_rkey_destroy", missing);
  find(handle, calls.put_nbx, "ucp_put_nbx", missing);
  find(handle, calls.get_nbx, "ucp_get_nbx", missing);
  find(handle, calls.atomic_op_nbx, "ucp_atomic_op_nbx", missing);
  find(handle, calls.ep_flush_nbx, "ucp_ep_flush_nbx", missing);
  find(handle, calls.worker_fence, "ucp_worker_fence", missing);
  return missing;
}

// Told apart from the soname that was asked for: the file that the functions lie in.
std::string file_of(const UcxCalls& calls) {
  Dl_info where{};
  if (dladdr(reinterpret_cast<const void*>(calls.get_version), &where) == 0 || where.dli_fname == nullptr)
    return soname;
  return where.dli_fname;
}

bool is_served(UcxVersion version) { return version.major == oldest.major && version.minor >= oldest.minor; }

// What the user can do about a library that will not do.
std::string advice(UcxLibrary::Origin origin) {
  switch (origin) {
    case UcxLibrary::Origin::loaded_before:
      return fmt::format(
          "it is the one that this program has loaded, and a second beside it is not safe; a UCX {}.{} or newer "
          "must come first",
          oldest.major, oldest.minor);
    case UcxLibrary::Origin::named:
      return fmt::format("FARSUM_UCX_LIBRARY must name the {} of UCX {}.{} or newer, or be unset for the system's",
                         soname, oldest.major, oldest.minor);
    case UcxLibrary::Origin::by_name:
      return fmt::format("install UCX {}.{} or newer (Debian: libucx0), or name its {} in FARSUM_UCX_LIBRARY",
                         oldest.major, oldest.minor, soname);
  }
  return {};
}

Status refuse(UcxLibrary::Origin origin, const std::string& file, const std::string& why) {
  return {Code::unsupported, fmt::format("UCX: {} cannot be used: {}; {}", file, why, advice(origin))};
}

}  // namespace

UcxLibrary::UcxLibrary() : calls_(std::make_unique<UcxCalls>()) {}
UcxLibrary::~UcxLibrary() = default;

Result<std::unique_ptr<UcxLibrary>> UcxLibrary::load(const std::string& named) {
  std::unique_ptr<UcxLibrary> library(new UcxLibrary);
  library->origin_ = Origin::loaded_before;
  std::string tried = soname;
  void* handle = find_loaded();
  if (handle == nullptr) {
    library->origin_ = named.empty() ? Origin::by_name : Origin::named;
    if (!named.empty()) tried = named;
    handle = open_new(tried.c_str());
  }
  if (handle == nullptr) return refuse(library->origin_, tried, last_linker_error());
  if (const char* missing = find_calls(handle, *library->calls_)) {
    return refuse(library->origin_, tried, fmt::format("it has no function {}", missing));
  }
  library->file_ = file_of(*library->calls_);
  UcxVersion& version = library->version_;
  library->calls_->get_version(&version.major, &version.minor, &version.release);
  if (!is_served(version)) {
    return refuse(library->origin_, library->file_, fmt::format("it is UCX {}", library->version_text()));
  }
  return library;
}

std::string UcxLibrary::version_text() const {
  return fmt::format("{}.{}.{}", version_.major, version_.minor, version_.release);
}

const char* describe(UcxLibrary::Origin origin) {
  switch (origin) {
    case UcxLibrary::Origin::loaded_before:
      return "loaded by this program before";
    case UcxLibrary::Origin::named:
      return "named by FARSUM_UCX_LIBRARY";
    case UcxLibrary::Origin::by_name:
      return "found by the dynamic linker";
  }
  return "";
}

}  // namespace farsum
