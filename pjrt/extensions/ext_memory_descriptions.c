// The MemoryDescriptions extension (type 6): the memory spaces of a device that is only described.

#include "pjrt/extensions/extensions.h"

#define DESCRIBE(name, text) {MP_MEMORY_##name},
static const PJRT_MemoryDescription descriptions[] = {MP_MEMORY_SPACES(DESCRIBE)};
#undef DESCRIBE
#define LIST(name, text) &descriptions[MP_MEMORY_##name],
static const PJRT_MemoryDescription *const description_list[] = {MP_MEMORY_SPACES(LIST)};
#undef LIST

static PJRT_Error *ext_memory_descriptions_memory_descriptions(
    PJRT_DeviceDescription_MemoryDescriptions_Args *args) {
  args->memory_descriptions = description_list;
  args->num_memory_descriptions = MP_MEMORY_SPACE_COUNT;
  args->default_memory_index = MP_MEMORY_DEVICE;
  return NULL;
}

static PJRT_Error *ext_memory_descriptions_memory_kind(PJRT_MemoryDescription_Kind_Args *args) {
  MP_EXTENSION_REQUIRE(args, memory_description);
  args->kind = mp_memory_space_name(args->memory_description->space);
  args->kind_size = strlen(args->kind);
  args->kind_id = (int)args->memory_description->space;
  return NULL;
}

MP_PJRT_EXTENSION(MemoryDescriptions, memory_descriptions) = {
    MP_PJRT_EXTENSION_BASE(MemoryDescriptions),
    .PJRT_DeviceDescription_MemoryDescriptions = ext_memory_descriptions_memory_descriptions,
    .PJRT_MemoryDescription_Kind = ext_memory_descriptions_memory_kind,
};
