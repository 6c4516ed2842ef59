#include "transport/rdma/ucx_memory.hpp"

#include <sys/mman.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/units.hpp"
#include "os/huge_page_advice.hpp"
#include "os/memory_room.hpp"
#include "transport/ucx/ucx_calls.hpp"
#include "transport/ucx/ucx_context.hpp"

namespace farsum {
namespace {

constexpr const char* shared_folder = "/dev/shm";  // where UCX's posix keeps its memory

Status no_room(std::uint64_t bytes, const std::string& where) {
  return {Code::no_memory, fmt::format("{} bytes of memory that cards reach: {} has no room for them", bytes, where)};
}

bool lies_in_shared_folder(const UcxContext& context) {
  const auto& resources = context.resources();
  return std::any_of(resources.begin(), resources.end(),
                     [](const UcxResource& resource) { return resource.transport == "posix"; });
}

// It looks beforehand, for without room UCX would go on to make memory that nobody reaches, or the first touch be a
// SIGBUS.
Status look_for_room(const UcxContext& context, std::uint64_t bytes) {
  const os::MemoryRoom room = os::available();
  if (room.bytes < bytes) return no_room(bytes, room.where);
  struct statvfs folder {};
  if (lies_in_shared_folder(context) && statvfs(shared_folder, &folder) == 0 &&
      std::uint64_t{folder.f_bavail} * folder.f_frsize < bytes) {
    return no_room(bytes, shared_folder);
  }
  return {};
}

// Kernels before 5.14 do not know the advice: there the look beforehand is all.
Status fill_with_zeros(std::span<std::byte> memory) {
  if (madvise(memory.data(), memory.size(), MADV_POPULATE_WRITE) != 0 && errno != EINVAL) {
    return no_room(memory.size(), fmt::format("the machine ({})", std::strerror(errno)));
  }
  std::memset(memory.data(), 0, memory.size());
  return {};
}

}  // namespace

Result<UcxMemory> UcxMemory::map(UcxContext& context, std::byte* memory, std::uint64_t bytes) {
  const UcxCalls& calls = context.calls();
  const bool is_ours = memory == nullptr;
  ucp_mem_map_params_t parameters{};
  parameters.field_mask =
      UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
  parameters.address = memory;
  parameters.length = is_ours ? round_up(bytes, page_bytes) : bytes;
  parameters.flags = is_ours ? UCP_MEM_MAP_ALLOCATE : 0;
  if (Status full = is_ours ? look_for_room(context, parameters.length) : Status(); !full.is_ok()) return full;

  UcxMemory made;
  ucs_status_t status = calls.mem_map(context.handle(), &parameters, &made.handle_);
  if (status != UCS_OK) {
    return Status(status == UCS_ERR_NO_MEMORY ? Code::no_memory : Code::unsupported,
                  fmt::format("UCX: {} {} bytes over {} failed: {}", is_ours ? "making" : "registering", bytes,
                              context.description(), calls.status_string(status)));
  }
  made.context_ = &context;
  ucp_mem_attr_t attributes{};
  attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_LENGTH;
  status = calls.mem_query(made.handle_, &attributes);
  if (status != UCS_OK || attributes.length < bytes) {
    return Status(Code::system, fmt::format("UCX: asking for its memory failed: {}", calls.status_string(status)));
  }
  if (!is_ours) {
    made.bytes_ = {memory, bytes};
    return made;
  }
  made.bytes_ = {static_cast<std::byte*>(attributes.address), bytes};
  if (reinterpret_cast<std::uintptr_t>(attributes.address) % page_bytes != 0) {
    return Status(Code::system, "UCX made memory that begins within a page");
  }
  if (Status full = fill_with_zeros({made.bytes_.data(), parameters.length}); !full.is_ok()) return full;
  return made;
}

UcxMemory::UcxMemory(UcxMemory&& other) noexcept { *this = std::move(other); }

UcxMemory& UcxMemory::operator=(UcxMemory&& other) noexcept {
  std::swap(context_, other.context_);
  std::swap(handle_, other.handle_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

UcxMemory::~UcxMemory() {
  if (context_ != nullptr) context_->calls().mem_unmap(context_->handle(), handle_);
}

Result<std::vector<std::byte>> UcxMemory::key() const {
  const UcxCalls& calls = context_->calls();
  void* packed = nullptr;
  std::size_t bytes = 0;
  const ucs_status_t status = calls.rkey_pack(context_->handle(), handle_, &packed, &bytes);
  if (status != UCS_OK) {
    return Status(Code::unsupported, fmt::format("UCX: no key to memory over {}: {}", context_->description(),
                                                 calls.status_string(status)));
  }
  const auto* begin = static_cast<const std::byte*>(packed);
  std::vector<std::byte> key(begin, begin + bytes);
  calls.rkey_buffer_release(packed);
  return key;
}

}  // namespace farsum
