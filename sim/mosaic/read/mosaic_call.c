#include "sim/mosaic/read/mosaic_call.h"

#include "sim/base/json.h"
#include "sim/mosaic/read/mosaic_bytecode.h"
#include "sim/mosaic/read/mosaic_reader.h"
#include "sim/readers/bytecode/bytecode.h"

// ---- base64 (RFC 4648) ----

static int mosaic_call_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

// Decodes into `bytes`, which holds three bytes for each four characters.
static mp_status_t mosaic_call_decode(mp_str_t text, unsigned char *bytes, size_t *out_size) {
  size_t size = text.size, count = 0;
  while (size > 0 && text.data[size - 1] == '=' && text.size - size < 2) --size;
  if (text.size % 4 != 0 || size % 4 == 1)
    return mp_status_make(MP_INVALID_ARGUMENT, "it is not base64: it has %zu characters",
                          text.size);
  uint32_t group = 0;
  for (size_t i = 0; i < size; ++i) {
    const int digit = mosaic_call_digit(text.data[i]);
    if (digit < 0) return mp_status_make(MP_INVALID_ARGUMENT, "it is not base64: character %zu", i);
    group = group << 6 | (uint32_t)digit;
    if (i % 4 != 0) bytes[count++] = (unsigned char)(group >> (6 - 2 * (i % 4)));
  }
  *out_size = count;
  return NULL;
}

// ---- fields ----

static mp_status_t mosaic_call_int(const mp_json_t *object, const char *name, int64_t *value) {
  const mp_json_t *item = mp_json_item(object, name);
  if (item == NULL || item->kind == MP_JSON_NULL) return NULL;
  if (item->kind != MP_JSON_INT || item->i64 < 0)
    return mp_status_make(MP_INVALID_ARGUMENT, "%s is not a number from 0 on", name);
  *value = item->i64;
  return NULL;
}

static mp_status_t mosaic_call_bool(const mp_json_t *object, const char *name, bool *value) {
  const mp_json_t *item = mp_json_item(object, name);
  if (item == NULL || item->kind == MP_JSON_NULL) return NULL;
  if (item->kind != MP_JSON_BOOL)
    return mp_status_make(MP_INVALID_ARGUMENT, "%s is not a boolean", name);
  *value = item->i64 != 0;
  return NULL;
}

static mp_status_t mosaic_call_read_cost(const mp_json_t *cost, mp_mosaic_call_t *call) {
  if (cost == NULL || cost->kind != MP_JSON_OBJECT) return NULL;
  call->has_cost = true;
  MP_RETURN_IF_ERROR(mosaic_call_int(cost, "flops", &call->flops));
  MP_RETURN_IF_ERROR(mosaic_call_int(cost, "transcendentals", &call->transcendentals));
  MP_RETURN_IF_ERROR(mosaic_call_int(cost, "bytes_accessed", &call->bytes_accessed));
  return mosaic_call_int(cost, "remote_bytes_transferred", &call->remote_bytes);
}

// The limit of VMEM is the size of the memory space 1.
static mp_status_t mosaic_call_read_memories(const mp_json_t *list, mp_mosaic_call_t *call) {
  if (list == NULL || list->kind != MP_JSON_LIST) return NULL;
  for (const mp_json_t *item = list->first; item != NULL; item = item->next) {
    int64_t space = 0;
    MP_RETURN_IF_ERROR(mosaic_call_int(item, "memory_space", &space));
    if (space == 1) MP_RETURN_IF_ERROR(mosaic_call_int(item, "size", &call->vmem_limit_bytes));
  }
  return NULL;
}

static mp_status_t mosaic_call_read_device(const mp_json_t *config) {
  const mp_json_t *type = mp_json_item(config, "device_type");
  if (type == NULL || type->kind != MP_JSON_STRING) return NULL;
  if (mp_str_is(type->str, "DEVICE_TYPE_TENSORCORE") || mp_str_is(type->str, "DEVICE_TYPE_INVALID"))
    return NULL;
  return mp_status_make(MP_UNIMPLEMENTED, "a kernel for %.*s is not supported",
                        MP_STR_SHOWN(type->str, 60));
}

// The bytes of a field in base64. NULL: there is none.
static mp_status_t mosaic_call_bytes(mp_arena_t *arena, const mp_json_t *custom, const char *name,
                                     unsigned char **out_bytes, size_t *out_size) {
  const mp_json_t *item = mp_json_item(custom, name);
  *out_bytes = NULL;
  if (item == NULL || item->kind != MP_JSON_STRING) return NULL;
  unsigned char *bytes = mp_arena_alloc(arena, item->str.size + 1);
  MP_RETURN_IF_NULL(bytes);
  *out_bytes = bytes;
  return mp_status_annotate(mosaic_call_decode(item->str, bytes, out_size), "%s", name);
}

static mp_status_t mosaic_call_read_body(mp_arena_t *arena, const mp_json_t *custom,
                                         mp_mosaic_call_t *call) {
  size_t size = 0;
  unsigned char *body = NULL, *locations = NULL;
  MP_RETURN_IF_ERROR(mosaic_call_bytes(arena, custom, "body", &body, &size));
  if (body == NULL) return mp_status_make(MP_INVALID_ARGUMENT, "custom_call_config has no body");
  MP_RETURN_IF_ERROR(mp_mosaic_read(body, size, &call->module));
  MP_RETURN_IF_ERROR(mosaic_call_bytes(arena, custom, "debug_locations", &locations, &size));
  if (locations == NULL || !mp_is_bytecode(locations, size)) return NULL;
  // Only messages need them: a kernel runs without them, too.
  mp_status_release(mp_mosaic_read_locations(locations, size, call->module));
  return NULL;
}

static mp_status_t mosaic_call_read(mp_arena_t *arena, mp_str_t text, mp_mosaic_call_t *call) {
  const mp_json_t *config = NULL;
  MP_RETURN_IF_ERROR(mp_json_read(arena, text, &config));
  const mp_json_t *custom = mp_json_item(config, "custom_call_config");
  if (custom == NULL) return mp_status_make(MP_INVALID_ARGUMENT, "it has no custom_call_config");
  MP_RETURN_IF_ERROR(mosaic_call_read_device(config));
  MP_RETURN_IF_ERROR(
      mosaic_call_read_memories(mp_json_item(config, "scoped_memory_configs"), call));
  MP_RETURN_IF_ERROR(mosaic_call_read_cost(mp_json_item(custom, "cost_estimate"), call));
  MP_RETURN_IF_ERROR(mosaic_call_bool(custom, "has_communication", &call->has_communication));
  MP_RETURN_IF_ERROR(mosaic_call_bool(custom, "has_side_effects", &call->has_side_effects));
  MP_RETURN_IF_ERROR(mosaic_call_int(custom, "collective_id", &call->collective_id));
  MP_RETURN_IF_ERROR(mosaic_call_int(custom, "internal_scratch_in_bytes", &call->scratch_bytes));
  return mosaic_call_read_body(arena, custom, call);
}

mp_status_t mp_mosaic_read_call(mp_str_t config, mp_mosaic_call_t *out_call) {
  mp_mosaic_call_t call = {.collective_id = -1, .num_cores = 1, .scratch_bytes = -1};
  mp_arena_t *arena = NULL;
  MP_RETURN_IF_ERROR(mp_arena_create(&arena));
  mp_arena_set_limit(arena, config.size * 256 + ((size_t)1 << 20));
  mp_status_t status = mosaic_call_read(arena, config, &call);
  mp_arena_release(arena);
  if (status != NULL) {
    mp_mosaic_module_release(call.module);
    return mp_status_annotate(status, "backend_config of tpu_custom_call");
  }
  *out_call = call;
  return NULL;
}
