// The ELF reader. Every offset comes from the file, so each is checked before it is followed.
#include "cli/mpi/mpi_elf.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>

#include "cli/unique_fd.hpp"

namespace farsum::cli {

namespace {

#if defined(__x86_64__)
constexpr unsigned this_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr unsigned this_machine = EM_AARCH64;
#elif defined(__powerpc64__)
constexpr unsigned this_machine = EM_PPC64;
#else
constexpr unsigned this_machine = EM_RISCV;
#endif

constexpr std::array<std::string_view, 6> entry_points = {"MPI_Init",         "MPI_Init_thread", "PMPI_Init",
                                                          "MPI_Session_init", "mpi_init_",       "mpi_init_thread_"};
constexpr std::string_view openmpi_handle = "ompi_mpi_comm_world";

class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat about {};
    if (!file.valid() || fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode) || about.st_size == 0) return;
    void* start = mmap(nullptr, static_cast<std::size_t>(about.st_size), PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (start == MAP_FAILED) return;
    bytes_ = {static_cast<const char*>(start), static_cast<std::size_t>(about.st_size)};
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  }

  [[nodiscard]] std::span<const char> part(std::uint64_t offset, std::uint64_t length) const {
    if (offset > bytes_.size() || length > bytes_.size() - offset) return {};
    return bytes_.subspan(offset, length);
  }
  // The structures of one kind that fill a part; a copy, for nothing says that the file keeps them aligned.
  template <class Record>
  [[nodiscard]] std::vector<Record> records(std::uint64_t offset, std::uint64_t count) const {
    if (count > bytes_.size() / sizeof(Record)) return {};
    const auto source = part(offset, count * sizeof(Record));
    std::vector<Record> found(source.size() / sizeof(Record));
    if (!source.empty()) std::memcpy(found.data(), source.data(), source.size());
    return found;
  }

 private:
  std::span<const char> bytes_;
};

// A string of a table; empty when it does not end inside.
std::string_view string_at(std::span<const char> table, std::uint64_t offset) {
  if (offset >= table.size()) return {};
  const auto rest = table.subspan(offset);
  const auto end = std::find(rest.begin(), rest.end(), '\0');
  return end == rest.end() ? std::string_view{}
                           : std::string_view(rest.data(), static_cast<std::size_t>(end - rest.begin()));
}

std::string text_of(const MappedFile& file, const Elf64_Phdr& segment) {
  const auto bytes = file.part(segment.p_offset, segment.p_filesz);
  return std::string(string_at(bytes, 0));
}

std::uint64_t offset_of_address(const std::vector<Elf64_Phdr>& segments, std::uint64_t address) {
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz) {
      return segment.p_offset + (address - segment.p_vaddr);
    }
  }
  return UINT64_MAX;
}

std::uint64_t value_of(const std::vector<Elf64_Dyn>& entries, Elf64_Sxword tag) {
  const auto entry = std::find_if(entries.begin(), entries.end(), [tag](const auto& e) { return e.d_tag == tag; });
  return entry == entries.end() ? 0 : entry->d_un.d_val;
}

void read_dynamic(const MappedFile& file, const std::vector<Elf64_Phdr>& segments, const Elf64_Phdr& dynamic,
                  ElfFile& elf) {
  auto entries = file.records<Elf64_Dyn>(dynamic.p_offset, dynamic.p_filesz / sizeof(Elf64_Dyn));
  const auto end =
      std::find_if(entries.begin(), entries.end(), [](const auto& entry) { return entry.d_tag == DT_NULL; });
  entries.erase(end, entries.end());
  const auto strings =
      file.part(offset_of_address(segments, value_of(entries, DT_STRTAB)), value_of(entries, DT_STRSZ));
  for (const Elf64_Dyn& entry : entries) {
    const std::string_view text = string_at(strings, entry.d_un.d_val);
    if (entry.d_tag == DT_NEEDED) elf.needed.emplace_back(text);
    if (entry.d_tag == DT_SONAME) elf.soname = text;
    if (entry.d_tag == DT_RPATH) elf.rpath = text;
    if (entry.d_tag == DT_RUNPATH) elf.runpath = text;
  }
}

void note_symbol(std::string_view name, ElfFile& elf) {
  if (name == openmpi_handle) elf.has_openmpi_handles = true;
  if (std::find(entry_points.begin(), entry_points.end(), name) == entry_points.end()) return;
  if (std::find(elf.defined_mpi.begin(), elf.defined_mpi.end(), name) == elf.defined_mpi.end()) {
    elf.defined_mpi.emplace_back(name);
  }
}

void read_symbols(const MappedFile& file, const Elf64_Ehdr& header, ElfFile& elf) {
  const auto sections = file.records<Elf64_Shdr>(header.e_shoff, header.e_shnum);
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM) continue;
    if (section.sh_link >= sections.size()) continue;
    const Elf64_Shdr& names = sections[section.sh_link];
    const auto strings = file.part(names.sh_offset, names.sh_size);
    for (const Elf64_Sym& symbol : file.records<Elf64_Sym>(section.sh_offset, section.sh_size / sizeof(Elf64_Sym))) {
      if (symbol.st_shndx != SHN_UNDEF) note_symbol(string_at(strings, symbol.st_name), elf);
    }
  }
}

bool is_for_this_machine(const Elf64_Ehdr& header) {
  constexpr unsigned char order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
         header.e_ident[EI_DATA] == order && header.e_machine == this_machine &&
         (header.e_type == ET_EXEC || header.e_type == ET_DYN);
}

}  // namespace

std::optional<ElfFile> read_elf(const std::string& path) {
  const MappedFile file(path);
  const auto headers = file.records<Elf64_Ehdr>(0, 1);
  if (headers.empty() || !is_for_this_machine(headers.front())) return std::nullopt;
  ElfFile elf;
  const auto segments = file.records<Elf64_Phdr>(headers.front().e_phoff, headers.front().e_phnum);
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_INTERP) elf.needs_linker = !text_of(file, segment).empty();
    if (segment.p_type == PT_DYNAMIC) read_dynamic(file, segments, segment, elf);
  }
  read_symbols(file, headers.front(), elf);
  return elf;
}

}  // namespace farsum::cli
