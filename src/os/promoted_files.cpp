#include "os/promoted_files.hpp"

#include <sys/stat.h>

#include <algorithm>

namespace farsum::os {

int PromotedFile::descriptor() const {
  struct stat now {};
  return fstat(fd, &now) == 0 && now.st_dev == device && now.st_ino == inode ? fd : -1;
}

PromotedFiles::Place* PromotedFiles::find(std::uint64_t device, std::uint64_t inode) {
  // Relaxed, here and below: whoever calls has written the words, or waited for who has.
  const auto is_it = [&](const Place& place) {
    return place.inode.load(std::memory_order_relaxed) == inode &&
           (inode == 0 || place.device.load(std::memory_order_relaxed) == device);
  };
  const auto found = std::find_if(places_.begin(), places_.end(), is_it);
  return found == places_.end() ? nullptr : &*found;
}

bool PromotedFiles::add(const PromotedFile& file) {
  if (Place* const known = find(file.device, file.inode)) {
    ++known->users;
    return true;
  }
  Place* const place = find(0, 0);
  if (place == nullptr) return false;
  place->device.store(file.device, std::memory_order_relaxed);
  place->fd.store(file.fd, std::memory_order_relaxed);
  place->own_begin.store(file.own_map.begin, std::memory_order_relaxed);
  place->own_end.store(file.own_map.end, std::memory_order_relaxed);
  place->users = 1;
  // Pairs with the acquire load in file_of().
  place->inode.store(file.inode, std::memory_order_release);
  return true;
}

void PromotedFiles::remove(std::uint64_t device, std::uint64_t inode) {
  Place* const place = find(device, inode);
  // Relaxed: no map of it is left that anybody could ask about.
  if (place != nullptr && --place->users == 0) place->inode.store(0, std::memory_order_relaxed);
}

std::optional<PromotedFile> PromotedFiles::file_of(const BareMap& map) const {
  if (!map.shared || map.inode == 0) return std::nullopt;
  for (const Place& place : places_) {
    if (place.inode.load(std::memory_order_acquire) != map.inode) continue;
    // Relaxed: ordered by the inode.
    const PromotedFile file{
        .device = place.device.load(std::memory_order_relaxed),
        .inode = map.inode,
        .fd = place.fd.load(std::memory_order_relaxed),
        .own_map = {place.own_begin.load(std::memory_order_relaxed), place.own_end.load(std::memory_order_relaxed)}};
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
