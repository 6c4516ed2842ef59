// The search for libraries, in the order of ld.so(8).
#include "cli/mpi/mpi_linkage.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "cli/mpi/mpi_preload.hpp"

namespace farsum::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* cache_file = "/etc/ld.so.cache";
constexpr std::string_view cache_magic = "glibc-ld.so.cache1.1";

// The file's layout since glibc 2.2; offsets of strings count from the header.
struct CacheHeader {
  char magic[20];
  std::uint32_t entries;
  std::uint32_t string_bytes;
  std::uint32_t unused[5];
};
struct CacheEntry {
  std::int32_t flags;
  std::uint32_t name;
  std::uint32_t file;
  std::uint32_t os_version;
  std::uint64_t hardware;
};
static_assert(sizeof(CacheHeader) == 48 && sizeof(CacheEntry) == 24);

std::map<std::string, std::vector<std::string>> read_cache(const std::string& bytes) {
  const std::size_t start = bytes.find(cache_magic);
  if (start == std::string::npos || bytes.size() - start < sizeof(CacheHeader)) return {};
  const std::string_view cache = std::string_view(bytes).substr(start);
  CacheHeader header{};
  std::memcpy(&header, cache.data(), sizeof header);
  if (bytes.back() != '\0' && cache.find('\0', sizeof header) == std::string_view::npos) return {};
  const auto text = [&](std::uint32_t offset) {
    const std::string_view rest = offset < cache.size() ? cache.substr(offset) : std::string_view{};
    return std::string(rest.substr(0, rest.find('\0')));
  };
  std::map<std::string, std::vector<std::string>> found;
  for (std::uint32_t i = 0; i < header.entries; ++i) {
    const std::size_t offset = sizeof header + i * sizeof(CacheEntry);
    if (cache.size() < offset + sizeof(CacheEntry)) break;
    CacheEntry entry{};
    std::memcpy(&entry, cache.data() + offset, sizeof entry);
    found[text(entry.name)].push_back(text(entry.file));
  }
  return found;
}

std::string read_whole(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void replace_all(std::string& text, std::string_view what, const std::string& with) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
}

// Folders as written in a file that lies at `owner`.
std::vector<std::string> folders_of(const std::string& written, const std::string& owner) {
  if (written.empty()) return {};
  std::error_code failed;
  const std::string origin = fs::absolute(owner, failed).parent_path();
  std::vector<std::string> folders = split_folders(written);
  for (std::string& folder : folders) {
    replace_all(folder, "$ORIGIN", origin);
    replace_all(folder, "${ORIGIN}", origin);
    replace_all(folder, "$LIB", "lib");
    replace_all(folder, "${LIB}", "lib");
  }
  return folders;
}

struct Object {
  std::string path;
  ElfFile elf;
  std::vector<std::string> inherited_rpath;  // of the objects that brought it in
};

struct Found {
  std::string path;
  ElfFile elf;
};

std::optional<Found> try_file(const std::string& path) {
  if (access(path.c_str(), R_OK) != 0) return std::nullopt;
  auto elf = read_elf(path);
  if (!elf) return std::nullopt;
  return Found{path, std::move(*elf)};
}

std::optional<Found> try_folders(const std::vector<std::string>& folders, const std::string& name) {
  for (const std::string& folder : folders) {
    if (auto found = try_file((folder.empty() ? "." : folder) + "/" + name)) return found;
  }
  return std::nullopt;
}

std::optional<Found> find_library(const std::string& name, const Object& needer, const LibrarySearch& search) {
  if (name.find('/') != std::string::npos) return try_file(name);
  if (needer.elf.runpath.empty()) {
    if (auto found = try_folders(needer.inherited_rpath, name)) return found;
  }
  if (auto found = try_folders(search.library_path, name)) return found;
  if (auto found = try_folders(folders_of(needer.elf.runpath, needer.path), name)) return found;
  if (const auto cached = search.cache.find(name); cached != search.cache.end()) {
    for (const std::string& file : cached->second) {
      if (auto found = try_file(file)) return found;
    }
  }
  return try_folders(search.default_folders, name);
}

// LD_PRELOAD has no way to quote what separates its parts.
std::string preload_name(const std::string& file, const std::string& name) {
  return file.find_first_of(": ") == std::string::npos ? file : name;
}

Object make_object(Found found, const std::vector<std::string>& inherited) {
  Object object{std::move(found.path), std::move(found.elf), inherited};
  const auto own = folders_of(object.elf.rpath, object.path);
  object.inherited_rpath.insert(object.inherited_rpath.begin(), own.begin(), own.end());
  return object;
}

}  // namespace

std::vector<std::string> split_folders(const std::string& text) {
  std::vector<std::string> folders;
  if (text.empty()) return folders;
  std::size_t start = 0;
  for (std::size_t end = 0; end != std::string::npos; start = end + 1) {
    end = text.find_first_of(":;", start);
    folders.push_back(text.substr(start, end == std::string::npos ? end : end - start));
  }
  return folders;
}

LibrarySearch library_search(const std::string& library_path) {
  LibrarySearch search;
  search.library_path = split_folders(library_path);
  search.cache = read_cache(read_whole(cache_file));
  search.default_folders = {"/lib", "/usr/lib", "/lib64", "/usr/lib64"};
#if defined(__x86_64__)
  search.default_folders.insert(search.default_folders.begin(), {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu"});
#elif defined(__aarch64__)
  search.default_folders.insert(search.default_folders.begin(),
                                {"/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu"});
#endif
  return search;
}

Linkage follow_linkage(const std::string& path, const ElfFile& program, const LibrarySearch& search) {
  Linkage linkage;
  linkage.program = program;
  std::set<std::string> seen;
  std::deque<Object> queue;
  queue.push_back(make_object({path, program}, {}));
  for (; !queue.empty(); queue.pop_front()) {
    const Object object = queue.front();
    for (const std::string& name : object.elf.needed) {
      if (!seen.insert(name).second) continue;
      auto found = find_library(name, object, search);
      const std::string base = fs::path(name).filename();
      if (is_mpi_library(base)) {
        const bool old_openmpi = base == "libmpi.so.12" && found && found->elf.has_openmpi_handles;
        linkage.mpi.push_back({base, object.path, found ? found->path : "", old_openmpi});
        continue;
      }
      if (!found) {
        linkage.missing.push_back(name);
        continue;
      }
      if (!sanitizer_of(base).empty()) linkage.runtimes.push_back(preload_name(found->path, name));
      if (base.starts_with("libmpi")) linkage.mpi_parts.push_back(found->path);
      queue.push_back(make_object(std::move(*found), object.inherited_rpath));
    }
  }
  return linkage;
}

}  // namespace farsum::cli
