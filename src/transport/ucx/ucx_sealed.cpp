#include "transport/ucx/ucx_sealed.hpp"

#include <cstring>

#include "transport/link/wire.hpp"

namespace farsum {
namespace {

struct Head {
  UcxSeal kind;
  std::uint32_t bytes;
  std::uint64_t sum;
};
static_assert(sizeof(Head) == ucx_seal_bytes);

// It finds damage; it keeps nobody out.
std::uint64_t sum_of(UcxSeal kind, std::span<const std::byte> content) {
  link::Secret open{};
  std::memcpy(open.bytes, &kind, sizeof kind);
  return link::siphash(open, content);
}

}  // namespace

std::vector<std::byte> sealed(UcxSeal kind, std::span<const std::byte> content) {
  const Head head{kind, static_cast<std::uint32_t>(content.size()), sum_of(kind, content)};
  std::vector<std::byte> made(sizeof head + content.size());
  std::memcpy(made.data(), &head, sizeof head);
  if (!content.empty()) std::memcpy(made.data() + sizeof head, content.data(), content.size());
  return made;
}

std::optional<std::span<const std::byte>> unsealed(UcxSeal kind, std::span<const std::byte> bytes) {
  Head head{};
  if (bytes.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, bytes.data(), sizeof head);
  const std::span<const std::byte> content = bytes.subspan(sizeof head);
  if (head.kind != kind || head.bytes != content.size() || head.sum != sum_of(kind, content)) return std::nullopt;
  return content;
}

}  // namespace farsum
