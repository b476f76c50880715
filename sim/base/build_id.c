#include "sim/base/build_id.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { MP_BUILD_ID_SHOWN = 8 };

typedef struct {
  uintptr_t address;  // of something in the object that is looked for
  const unsigned char *id;
  size_t id_size;
} search_t;

// Notes are records of (name size, data size, type), name and data, each padded to four bytes.
static void read_notes(const char *notes, size_t size, search_t *search) {
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    memcpy(&header, notes, sizeof(header));
    size_t name_size = ((size_t)header.n_namesz + 3) / 4 * 4;
    size_t data_size = ((size_t)header.n_descsz + 3) / 4 * 4;
    if (name_size + data_size > size - sizeof(header)) return;
    const char *name = notes + sizeof(header);
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 && memcmp(name, "GNU", 4) == 0) {
      search->id = (const unsigned char *)name + name_size;
      search->id_size = header.n_descsz;
      return;
    }
    notes += sizeof(header) + name_size + data_size;
    size -= sizeof(header) + name_size + data_size;
  }
}

static int visit_object(struct dl_phdr_info *info, size_t size, void *context) {
  (void)size;
  search_t *search = context;
  bool is_ours = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    uintptr_t begin = info->dlpi_addr + segment->p_vaddr;
    is_ours |= segment->p_type == PT_LOAD && search->address >= begin &&
               search->address - begin < segment->p_memsz;
  }
  if (!is_ours) return 0;
  for (int i = 0; i < info->dlpi_phnum && search->id == NULL; ++i) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    if (segment->p_type != PT_NOTE) continue;
    read_notes((const char *)(info->dlpi_addr + segment->p_vaddr), segment->p_memsz, search);
  }
  return 1;
}

void mp_build_id(char out_text[MP_BUILD_ID_SIZE]) {
  static const char anchor;
  search_t search = {.address = (uintptr_t)&anchor};
  (void)dl_iterate_phdr(visit_object, &search);
  int at = snprintf(out_text, MP_BUILD_ID_SIZE, "%.32s", MINIPOD_VERSION);
  if (search.id_size > MP_BUILD_ID_SHOWN) search.id_size = MP_BUILD_ID_SHOWN;
  for (size_t i = 0; i < search.id_size; ++i) {
    at += snprintf(out_text + at, (size_t)(MP_BUILD_ID_SIZE - at), "%s%02x", i == 0 ? "+" : "",
                   search.id[i]);
  }
}
