#include "symbols.h"

#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tables {
  const ElfW(Sym) * symbols;
  const char* names;
  const ElfW(Versym) * versions; /* NULL: they have none */
  const uint32_t* gnu_hash;      /* NULL: only the older table is there */
  const uint32_t* hash;
};

/* The loader has added the object's base already where it may write there. */
static const void* place_of(const struct link_map* object, const ElfW(Dyn) * entry) {
  const ElfW(Addr) place = entry->d_un.d_ptr;
  return (const void*)(place < object->l_addr ? place + object->l_addr : place);
}

static struct tables tables_of(const struct link_map* object) {
  struct tables found = {NULL, NULL, NULL, NULL, NULL};
  for (const ElfW(Dyn)* entry = object->l_ld; entry != NULL && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_SYMTAB) found.symbols = place_of(object, entry);
    if (entry->d_tag == DT_STRTAB) found.names = place_of(object, entry);
    if (entry->d_tag == DT_VERSYM) found.versions = place_of(object, entry);
    if (entry->d_tag == DT_GNU_HASH) found.gnu_hash = place_of(object, entry);
    if (entry->d_tag == DT_HASH) found.hash = place_of(object, entry);
  }
  return found;
}

/* Not strcmp, which sanitizers stand in for. */
static int are_equal(const char* one, const char* other) {
  while (*one != '\0' && *one == *other) {
    ++one;
    ++other;
  }
  return *one == *other;
}

/* Whether it is a function under this name, of the version that a program would be linked to today. */
static int is_wanted(const struct tables* tables, size_t index, const char* name) {
  enum { is_older_version = 0x8000 };
  const ElfW(Sym)* symbol = &tables->symbols[index];
  return symbol->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
         (tables->versions == NULL || (tables->versions[index] & is_older_version) == 0) &&
         are_equal(tables->names + symbol->st_name, name);
}

static uint32_t hash_of(const char* name) {
  uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + (unsigned char)*name;
  return hash;
}

/* 0, which is no symbol, where there is none. */
static size_t index_by_gnu_hash(const struct tables* tables, const char* name) {
  const uint32_t* table = tables->gnu_hash;
  const uint32_t buckets = table[0], first = table[1], filter_words = table[2];
  const uint32_t* bucket = table + 4 + filter_words * (sizeof(ElfW(Addr)) / sizeof *table);
  const uint32_t* chain = bucket + buckets;
  const uint32_t hash = hash_of(name);
  uint32_t index = buckets == 0 ? 0 : bucket[hash % buckets];
  if (index < first) return 0;
  for (;; ++index) {
    const uint32_t its = chain[index - first];
    if ((its | 1) == (hash | 1) && is_wanted(tables, index, name)) return index;
    if (its & 1) return 0;
  }
}

static size_t index_by_hash(const struct tables* tables, const char* name) {
  for (size_t index = 1; index < tables->hash[1]; ++index) {
    if (is_wanted(tables, index, name)) return index;
  }
  return 0;
}

void* farsum_mpi_function_in(const struct link_map* object, const char* name) {
  const struct tables tables = tables_of(object);
  size_t index = 0;
  if (tables.symbols == NULL || tables.names == NULL) return NULL;
  if (tables.gnu_hash != NULL) {
    index = index_by_gnu_hash(&tables, name);
  } else if (tables.hash != NULL) {
    index = index_by_hash(&tables, name);
  }
  return index == 0 ? NULL : (void*)(object->l_addr + tables.symbols[index].st_value);
}

/* By _DYNAMIC, which the linker defines in each library for itself. NULL: it was not loaded with the program. */
static const struct link_map* own_object(void) {
  const struct link_map* object = _r_debug.r_map;
  while (object != NULL && object->l_ld != _DYNAMIC) object = object->l_next;
  return object;
}

/* Behind this library in the order in which the program's own look-ups go, so that others who stand in for these come
 * to be asked, too. */
static void* next_function(const char* name) {
  const struct link_map* own = own_object();
  for (const struct link_map* object = own == NULL ? _r_debug.r_map : own->l_next; object != NULL;
       object = object->l_next) {
    void* function = farsum_mpi_function_in(object, name);
    if (function != NULL) return function;
  }
  fprintf(stderr, "farsum: %s was called, which is in no library of this process\n", name);
  abort();
}

/* Relaxed: the same for all threads that look. */
static void* kept(void* _Atomic* slot, const char* name) {
  void* function = atomic_load_explicit(slot, memory_order_relaxed);
  if (function == NULL) {
    function = next_function(name);
    atomic_store_explicit(slot, function, memory_order_relaxed);
  }
  return function;
}

/* ISO C keeps object and function pointers apart; POSIX lets dlsym cross over. */
farsum_mpi_dlsym_function* farsum_mpi_dlsym(void) {
  static void* _Atomic slot;
  void* const symbol = kept(&slot, "dlsym");
  farsum_mpi_dlsym_function* function;
  memcpy(&function, &symbol, sizeof function);
  return function;
}

farsum_mpi_dlvsym_function* farsum_mpi_dlvsym(void) {
  static void* _Atomic slot;
  void* const symbol = kept(&slot, "dlvsym");
  farsum_mpi_dlvsym_function* function;
  memcpy(&function, &symbol, sizeof function);
  return function;
}

farsum_mpi_dlopen_function* farsum_mpi_dlopen(void) {
  static void* _Atomic slot;
  void* const symbol = kept(&slot, "dlopen");
  farsum_mpi_dlopen_function* function;
  memcpy(&function, &symbol, sizeof function);
  return function;
}

const char* farsum_mpi_soname(const struct link_map* object) {
  const char* names = tables_of(object).names;
  for (const ElfW(Dyn)* entry = object->l_ld; names != NULL && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_SONAME) return names + entry->d_un.d_val;
  }
  return NULL;
}

const char* farsum_mpi_needed(const struct link_map* object, size_t index) {
  const char* names = tables_of(object).names;
  for (const ElfW(Dyn)* entry = object->l_ld; names != NULL && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_NEEDED && index-- == 0) return names + entry->d_un.d_val;
  }
  return NULL;
}

#if defined(__x86_64__)
enum { for_calls = R_X86_64_JUMP_SLOT, for_addresses = R_X86_64_GLOB_DAT, in_data = R_X86_64_64 };
#elif defined(__aarch64__)
enum { for_calls = R_AARCH64_JUMP_SLOT, for_addresses = R_AARCH64_GLOB_DAT, in_data = R_AARCH64_ABS64 };
#else
enum { for_calls = -1, for_addresses = -1, in_data = -1 };
#endif

struct relocations {
  const ElfW(Rela) * first;
  size_t bytes;
};

static void visit_slots_of(const struct link_map* object, const struct relocations* relocations,
                           farsum_mpi_slot_visitor* visit, void* data) {
  const struct tables tables = tables_of(object);
  if (tables.symbols == NULL || tables.names == NULL || relocations->first == NULL) return;
  const ElfW(Rela)* end = relocations->first + relocations->bytes / sizeof *end;
  for (const ElfW(Rela)* entry = relocations->first; entry != end; ++entry) {
    const ElfW(Sym)* symbol = &tables.symbols[ELF64_R_SYM(entry->r_info)];
    const int type = (int)ELF64_R_TYPE(entry->r_info);
    if (symbol == tables.symbols || symbol->st_shndx != SHN_UNDEF || entry->r_addend != 0) continue;
    if (type != for_calls && type != for_addresses && type != in_data) continue;
    const struct farsum_mpi_slot slot = {(void**)(object->l_addr + entry->r_offset), tables.names + symbol->st_name,
                                         type == for_calls};
    visit(&slot, data);
  }
}

void farsum_mpi_visit_slots(const struct link_map* object, farsum_mpi_slot_visitor* visit, void* data) {
  struct relocations of_calls = {NULL, 0}, of_data = {NULL, 0};
  int have_addends = 1;
  for (const ElfW(Dyn)* entry = object->l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_JMPREL) of_calls.first = place_of(object, entry);
    if (entry->d_tag == DT_PLTRELSZ) of_calls.bytes = entry->d_un.d_val;
    if (entry->d_tag == DT_PLTREL) have_addends = entry->d_un.d_val == DT_RELA;
    if (entry->d_tag == DT_RELA) of_data.first = place_of(object, entry);
    if (entry->d_tag == DT_RELASZ) of_data.bytes = entry->d_un.d_val;
  }
  if (have_addends) visit_slots_of(object, &of_calls, visit, data);
  visit_slots_of(object, &of_data, visit, data);
}

void* farsum_mpi_own_function(const char* name) {
  const struct link_map* own = own_object();
  return own == NULL ? NULL : farsum_mpi_function_in(own, name);
}
