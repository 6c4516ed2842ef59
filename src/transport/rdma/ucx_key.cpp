#include "transport/rdma/ucx_key.hpp"

#include <cstring>

#include "transport/ucx/ucx_sealed.hpp"

namespace farsum {
namespace {

// What precedes UCX's own key.
struct KeyHead {
  std::uint64_t address;
  std::uint64_t bytes;
};

}  // namespace

std::vector<std::byte> sealed_key(const UcxKey& key) {
  const KeyHead head{key.begin, key.bytes};
  const auto* begin = reinterpret_cast<const std::byte*>(&head);
  std::vector<std::byte> content(begin, begin + sizeof head);
  content.insert(content.end(), key.packed.begin(), key.packed.end());
  return sealed(UcxSeal::key, content);
}

std::optional<UcxKey> unsealed_key(std::span<const std::byte> whole) {
  const auto content = unsealed(UcxSeal::key, whole);
  KeyHead head{};
  if (!content || content->size() < sizeof head) return std::nullopt;
  std::memcpy(&head, content->data(), sizeof head);
  return UcxKey{head.address, head.bytes, {content->begin() + sizeof head, content->end()}};
}

}  // namespace farsum
