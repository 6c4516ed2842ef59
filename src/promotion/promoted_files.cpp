#include "promotion/promoted_files.hpp"

#include <sys/stat.h>

#include <algorithm>

namespace farsum::os {

int PromotedFile::descriptor() const {
  struct stat now {};
  return fstat(fd, &now) == 0 && now.st_dev == device && now.st_ino == inode ? fd : -1;
}

PromotedFiles::Slot* PromotedFiles::find(std::uint64_t device, std::uint64_t inode) {
  // Relaxed, here and below: whoever calls has written the words, or waited for who has.
  const auto is_it = [&](const Slot& slot) {
    return slot.inode.load(std::memory_order_relaxed) == inode &&
           (inode == 0 || slot.device.load(std::memory_order_relaxed) == device);
  };
  const auto found = std::find_if(slots_.begin(), slots_.end(), is_it);
  return found == slots_.end() ? nullptr : &*found;
}

bool PromotedFiles::add(const PromotedFile& file) {
  if (Slot* const known = find(file.device, file.inode)) {
    ++known->users;
    return true;
  }
  Slot* const slot = find(0, 0);
  if (slot == nullptr) return false;
  slot->device.store(file.device, std::memory_order_relaxed);
  slot->fd.store(file.fd, std::memory_order_relaxed);
  slot->own_begin.store(file.own_map.begin, std::memory_order_relaxed);
  slot->own_end.store(file.own_map.end, std::memory_order_relaxed);
  slot->users = 1;
  // Pairs with the acquire load in file_of().
  slot->inode.store(file.inode, std::memory_order_release);
  return true;
}

void PromotedFiles::remove(std::uint64_t device, std::uint64_t inode) {
  Slot* const slot = find(device, inode);
  // Relaxed: no map of it is left that anybody could ask about.
  if (slot != nullptr && --slot->users == 0) slot->inode.store(0, std::memory_order_relaxed);
}

std::optional<PromotedFile> PromotedFiles::file_of(const BareMap& map) const {
  if (!map.shared || map.inode == 0) return std::nullopt;
  for (const Slot& slot : slots_) {
    if (slot.inode.load(std::memory_order_acquire) != map.inode) continue;
    // Relaxed: ordered by the inode.
    const PromotedFile file{
        .device = slot.device.load(std::memory_order_relaxed),
        .inode = map.inode,
        .fd = slot.fd.load(std::memory_order_relaxed),
        .own_map = {slot.own_begin.load(std::memory_order_relaxed), slot.own_end.load(std::memory_order_relaxed)}};
    if (file.device != map.device) continue;
    const bool is_own = file.own_map.holds({map.begin, map.end}) && map.file_offset == map.begin - file.own_map.begin;
    return is_own ? std::nullopt : std::optional(file);
  }
  return std::nullopt;
}

PromotedFiles& promoted_files() {
  static constinit PromotedFiles files;
  return files;
}

}  // namespace farsum::os
