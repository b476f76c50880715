// The distinct sharding strings of a module, and their Shardy forms.
#include "sim/base/hash.h"
#include "sim/spmd/gspmd/gspmd_parts.h"

// The strings come from the program, so the hash starts from an address: then a program cannot
// choose strings with equal hashes.
static uint64_t gspmd_entry_hash_of(const mp_gspmd_importer_t *im, mp_str_t text) {
  return mp_hash_bytes((uint64_t)(uintptr_t)im->scratch, text.data, text.size);
}

const mp_gspmd_entry_t *mp_gspmd_find_entry(const mp_gspmd_importer_t *im, mp_str_t text) {
  const mp_gspmd_by_text_t *known;
  MP_HASH_MAP_EACH(&im->by_text, gspmd_entry_hash_of(im, text), known) {
    if (mp_str_equal(known->entry->text, text)) return known->entry;
  }
  return NULL;
}

static mp_status_t gspmd_entry_parse_entry(mp_gspmd_importer_t *im, mp_str_t text) {
  if (mp_gspmd_find_entry(im, text) != NULL) return NULL;
  mp_gspmd_entry_t *entry = MP_ARENA_NEW(im->scratch, mp_gspmd_entry_t);
  MP_RETURN_IF_NULL(entry);
  entry->text = text;
  MP_RETURN_IF_ERROR(mp_gspmd_parse(im->scratch, text, im->num_partitions, &entry->sharding));
  mp_gspmd_sharding_t *sharding = &entry->sharding;
  if (sharding->kind == MP_GSPMD_TILED && sharding->num_devices == 1) {
    sharding->kind = MP_GSPMD_REPLICATED;
  }
  if (sharding->kind == MP_GSPMD_TILED) {
    MP_RETURN_IF_ERROR(mp_gspmd_check_devices(im->scratch, sharding, im->num_partitions));
  }
  entry->next = im->entries;
  im->entries = entry;
  const mp_gspmd_by_text_t known = {gspmd_entry_hash_of(im, text), entry};
  return MP_HASH_MAP_ADD(im->scratch, &im->by_text, &known);
}

// The next sharding of a tuple "{{...}, {...}}", or the whole string when it is no tuple. `*at` is
// 0 in the first call.
bool mp_gspmd_next_element(mp_str_t text, size_t *at, mp_str_t *out_element) {
  if (text.size < 2 || text.data[0] != '{' || text.data[1] != '{') {
    if (*at != 0) return false;
    *at = text.size;
    *out_element = text;
    return true;
  }
  size_t begin = *at == 0 ? 1 : *at;
  while (begin < text.size && (text.data[begin] == ',' || text.data[begin] == ' ')) ++begin;
  uint32_t depth = 0;
  for (size_t i = begin; i < text.size; ++i) {
    if (text.data[i] == '{') ++depth;
    if (text.data[i] != '}') continue;
    if (depth == 0) return false;
    if (--depth != 0) continue;
    *at = i + 1;
    *out_element = (mp_str_t){text.data + begin, i + 1 - begin};
    return true;
  }
  return false;
}

mp_status_t mp_gspmd_add_entries(mp_gspmd_importer_t *im, mp_str_t text) {
  mp_str_t element;
  if (text.size == 0) return NULL;
  for (size_t at = 0; mp_gspmd_next_element(text, &at, &element);) {
    MP_RETURN_IF_ERROR(gspmd_entry_parse_entry(im, element));
  }
  return NULL;
}

bool mp_gspmd_is_call(const mp_op_t *op, const char *target) {
  return op != NULL && op->code == MP_OP_CUSTOM_CALL && op->num_operands == 1 &&
         op->num_results == 1 && mp_str_is(mp_op_str(op, MP_ATTR_CALL_TARGET_NAME), target);
}

const mp_gspmd_entry_t *mp_gspmd_entry_of(const mp_gspmd_importer_t *im, const mp_op_t *op) {
  return mp_gspmd_find_entry(im, mp_op_str(op, MP_ATTR_MHLO_SHARDING));
}

uint32_t mp_gspmd_manual_axes(const mp_gspmd_importer_t *im, const mp_gspmd_entry_t *entry) {
  const mp_gspmd_sharding_t *sharding = &entry->sharding;
  uint32_t set = 0;
  if (sharding->kind == MP_GSPMD_MANUAL) return (1u << im->mesh->num_axes) - 1;
  if (sharding->kind != MP_GSPMD_TILED) return 0;
  for (uint32_t i = 0; i < sharding->num_subgroups; ++i) {
    if (sharding->subgroups[i] != MP_GSPMD_MANUAL) continue;
    const mp_gspmd_axes_t *dim = &entry->dims[sharding->num_dims - sharding->num_subgroups + i];
    for (uint32_t k = 0; k < dim->count; ++k) set |= 1u << dim->axes[k];
  }
  return set;
}

// Whether a @Sharding call's configuration, "unspecified_dims=[0,1]", leaves a dimension to
// propagation.
static bool gspmd_entry_is_unspecified(const mp_op_t *op, uint32_t dim) {
  static const char prefix[] = "unspecified_dims=[";
  const mp_str_t text = op == NULL ? (mp_str_t){0} : mp_op_str(op, MP_ATTR_BACKEND_CONFIG);
  if (!mp_str_starts_with(text, prefix)) return false;
  uint32_t number = 0;
  bool has_digits = false;
  for (size_t i = sizeof(prefix) - 1; i < text.size; ++i) {
    const char c = text.data[i];
    if (c >= '0' && c <= '9') {
      if (number < 1000) number = number * 10 + (uint32_t)(c - '0');
      has_digits = true;
      continue;
    }
    if (has_digits && number == dim) return true;
    if (c == ']') return false;
    number = 0;
    has_digits = false;
  }
  return false;
}

static mp_status_t gspmd_entry_name_axes(mp_gspmd_importer_t *im, const mp_gspmd_axes_t *axes,
                                         uint32_t only, mp_axis_list_t *list) {
  mp_axis_ref_t *refs = MP_ARENA_ARRAY(im->module->arena, mp_axis_ref_t, axes->count + list->count);
  MP_RETURN_IF_NULL(refs);
  if (list->count != 0) memcpy(refs, list->axes, list->count * sizeof(*refs));
  uint32_t count = list->count;
  for (uint32_t i = 0; i < axes->count; ++i) {
    if (only >> axes->axes[i] & 1) refs[count++] = im->names[axes->axes[i]];
  }
  *list = (mp_axis_list_t){count, refs};
  return NULL;
}

mp_status_t mp_gspmd_maximal_mesh(mp_gspmd_importer_t *im, int64_t device,
                                  const mp_mesh_t **out_mesh) {
  mp_mesh_t *mesh = MP_ARENA_NEW(im->module->arena, mp_mesh_t);
  int64_t *id = MP_ARENA_NEW(im->module->arena, int64_t);
  if (mesh == NULL || id == NULL) return mp_status_out_of_memory();
  *id = device;
  *mesh = (mp_mesh_t){.num_device_ids = 1, .device_ids = id};
  *out_mesh = mesh;
  return NULL;
}

static mp_status_t gspmd_entry_tiles_to_sdy(mp_gspmd_importer_t *im, const mp_gspmd_entry_t *entry,
                                            const mp_type_t *type, uint32_t only,
                                            mp_dim_sharding_t *dims, mp_axis_list_t *unreduced) {
  const mp_gspmd_sharding_t *sharding = &entry->sharding;
  const uint32_t rank = sharding->num_dims - sharding->num_subgroups;
  if (rank != type->rank) {
    return mp_status_make(MP_INVALID_ARGUMENT, "sharding \"%.*s\" on a tensor of rank %u",
                          MP_STR_ARG(entry->text), type->rank);
  }
  for (uint32_t d = 0; d < rank; ++d) {
    MP_RETURN_IF_ERROR(gspmd_entry_name_axes(im, &entry->dims[d], only, &dims[d].axes));
  }
  for (uint32_t i = 0; i < sharding->num_subgroups; ++i) {
    if (sharding->subgroups[i] != MP_GSPMD_UNREDUCED) continue;
    MP_RETURN_IF_ERROR(gspmd_entry_name_axes(im, &entry->dims[rank + i], only, unreduced));
  }
  return NULL;
}

mp_status_t mp_gspmd_to_sdy(mp_gspmd_importer_t *im, const mp_gspmd_entry_t *entry,
                            const mp_type_t *type, const mp_op_t *op, uint32_t only,
                            mp_sdy_sharding_t *out_sharding) {
  const uint32_t rank = mp_type_is_tensor(type) ? type->rank : 0;
  mp_sdy_sharding_t result = {.mesh = im->mesh, .rank = rank};
  const mp_gspmd_kind_t kind = entry->sharding.kind;
  if (kind == MP_GSPMD_MAXIMAL) {
    result.rank = 0;
    MP_RETURN_IF_ERROR(mp_gspmd_maximal_mesh(im, entry->sharding.device, &result.mesh));
    *out_sharding = result;
    return NULL;
  }
  mp_dim_sharding_t *dims = MP_ARENA_ARRAY(im->module->arena, mp_dim_sharding_t, rank);
  MP_RETURN_IF_NULL(dims);
  for (uint32_t d = 0; d < rank; ++d) {
    dims[d].priority = -1;
    dims[d].is_open = kind == MP_GSPMD_UNKNOWN || gspmd_entry_is_unspecified(op, d);
  }
  if (kind == MP_GSPMD_TILED) {
    MP_RETURN_IF_ERROR(gspmd_entry_tiles_to_sdy(im, entry, type, only, dims, &result.unreduced));
  } else if (kind == MP_GSPMD_UNREDUCED) {
    result.unreduced = (mp_axis_list_t){im->mesh->num_axes, im->names};
  }
  result.dims = dims;
  *out_sharding = result;
  return NULL;
}
