// The message of a module, and the limit of memory for reading it.
#include "sim/readers/hlo/hlo.h"
#include "sim/readers/hlo/hlo_entry.h"
#include "sim/readers/hlo/hlo_ops.h"
#include "sim/readers/hlo/hlo_sharding.h"
#include "sim/readers/hlo/message/hlo_locs.h"

enum { MAX_DEVICES = 1 << 24 };

#define FIELD(number, kind, member) MP_HLO_FIELD(number, kind, mp_hlo_module_t, member)
MP_HLO_MESSAGE(g_module, "HloModuleProto", FIELD(1, TEXT, name), FIELD(3, TEXTS, comp_bytes),
               FIELD(6, INT, entry_id), FIELD(8, TEXT, alias_bytes),
               FIELD(12, TEXT, output_sharding_bytes), FIELD(14, TEXTS, parameter_shardings),
               FIELD(17, TEXT, frames_bytes), FIELD(18, TEXT, donor_bytes),
               FIELD(19, TEXT, frontend_bytes));
#undef FIELD

typedef struct {
  mp_str_t module, config;
} with_config_t;

MP_HLO_MESSAGE(g_with_config, "HloModuleProtoWithConfig",
               MP_HLO_FIELD(1, TEXT, with_config_t, module),
               MP_HLO_FIELD(2, TEXT, with_config_t, config));

typedef struct {
  mp_str_t layout;
  int64_t replicas, partitions;
} config_t;

MP_HLO_MESSAGE(g_config, "HloModuleConfigProto", MP_HLO_FIELD(1, TEXT, config_t, layout),
               MP_HLO_FIELD(4, INT, config_t, replicas),
               MP_HLO_FIELD(5, INT, config_t, partitions));

static mp_status_t hlo_reader_count(int64_t stated, const char *what, uint32_t *out_count) {
  if (stated < 0 || stated > MAX_DEVICES) {
    return mp_status_make(MP_INVALID_ARGUMENT, "config.%s is %lld", what, (long long)stated);
  }
  *out_count = stated == 0 ? 1 : (uint32_t)stated;
  return NULL;
}

// Splits the outer message; `*module` is the outer message before and the module afterwards.
static mp_status_t hlo_reader_read_config(mp_hlo_t *h, mp_str_t *module) {
  with_config_t outer = {.module = MP_STR(""), .config = MP_STR("")};
  config_t config = {0};
  MP_RETURN_IF_ERROR(mp_hlo_decode(&h->source, &g_with_config, *module, &outer));
  MP_RETURN_IF_ERROR(
      mp_status_annotate(mp_hlo_decode(&h->source, &g_config, outer.config, &config), "config"));
  MP_RETURN_IF_ERROR(hlo_reader_count(config.replicas, "replica_count", &h->module->num_replicas));
  MP_RETURN_IF_ERROR(
      hlo_reader_count(config.partitions, "num_partitions", &h->module->num_partitions));
  h->entry_layout_bytes = config.layout;
  *module = outer.module;
  return NULL;
}

static mp_status_t hlo_reader_read_attrs(mp_hlo_t *h) {
  mp_arena_t *arena = h->module->arena;
  const mp_attr_t *frontend = NULL;
  const char *name = mp_arena_strndup(arena, h->proto.name.data, h->proto.name.size);
  MP_RETURN_IF_NULL(name);
  h->module->name = (mp_str_t){name, h->proto.name.size};
  MP_RETURN_IF_ERROR(mp_hlo_read_frontend(h, h->proto.frontend_bytes, &frontend));
  if (frontend == NULL) return NULL;
  mp_attr_t *dict = MP_ARENA_NEW(arena, mp_attr_t);
  mp_named_attr_t *item = MP_ARENA_NEW(arena, mp_named_attr_t);
  if (dict == NULL || item == NULL) return mp_status_out_of_memory();
  *item = (mp_named_attr_t){MP_ATTR_MHLO_FRONTEND_ATTRIBUTES,
                            mp_str(mp_attr_name_text(MP_ATTR_MHLO_FRONTEND_ATTRIBUTES)), frontend};
  dict->kind = MP_KIND_DICT;
  dict->u.dict.items = item;
  dict->u.dict.count = 1;
  h->module->attrs = dict;
  return NULL;
}

static mp_status_t hlo_reader_read(mp_hlo_t *h, mp_str_t bytes, bool has_config) {
  if (has_config) MP_RETURN_IF_ERROR(hlo_reader_read_config(h, &bytes));
  MP_RETURN_IF_ERROR(mp_hlo_decode(&h->source, &g_module, bytes, &h->proto));
  if (h->proto.comp_bytes.count == 0) {
    return mp_status_make(MP_INVALID_ARGUMENT, "the program has no computations");
  }
  MP_RETURN_IF_ERROR(hlo_reader_read_attrs(h));
  MP_RETURN_IF_ERROR(mp_hlo_read_frames(h));
  MP_RETURN_IF_ERROR(mp_hlo_read_graph(h));
  return mp_hlo_build_entry(h);
}

// The memory that a program of `size` bytes may claim. The factor allows for an instruction of a
// few dozen bytes becoming an operation with attributes and the struct that it is read into; the
// constant lets small programs have computations that become many regions.
static size_t hlo_reader_memory_limit(size_t size) {
  const size_t factor = 512, constant = (size_t)16 << 20;
  return size > (SIZE_MAX - constant) / factor ? SIZE_MAX : size * factor + constant;
}

mp_status_t mp_read_hlo(const void *data, size_t size, bool has_config, mp_module_t **out_module) {
  mp_hlo_t h = {.find_row = mp_hlo_find_row, .source = {.start = data}};
  mp_status_t status = mp_arena_create(&h.source.arena);
  if (status != NULL) return status;
  mp_arena_set_limit(h.source.arena, hlo_reader_memory_limit(size));
  MP_GOTO_IF_ERROR(status, mp_module_create(&h.module), exit);
  mp_arena_set_limit(h.module->arena, hlo_reader_memory_limit(size));
  h.secret = (uint64_t)(uintptr_t)h.module;  // an address, which is unknown outside
  MP_GOTO_IF_ERROR(status, hlo_reader_read(&h, (mp_str_t){data, size}, has_config), exit);
  mp_arena_set_limit(h.module->arena, 0);
  *out_module = h.module;
  h.module = NULL;
exit:
  mp_module_release(h.module);
  mp_arena_release(h.source.arena);
  return mp_status_annotate(status, "hlo");
}
