#include "sim/mosaic/read/mosaic_call.h"

#include "sim/base/json.h"
#include "sim/mosaic/read/mosaic_reader.h"

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
    return mp_status_make(MP_INVALID_ARGUMENT, "the body is not base64: it has %zu characters",
                          text.size);
  uint32_t group = 0;
  for (size_t i = 0; i < size; ++i) {
    const int digit = mosaic_call_digit(text.data[i]);
    if (digit < 0)
      return mp_status_make(MP_INVALID_ARGUMENT, "the body is not base64: character %zu", i);
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

static mp_status_t mosaic_call_read_body(mp_arena_t *arena, const mp_json_t *custom,
                                         mp_mosaic_call_t *call) {
  const mp_json_t *body = mp_json_item(custom, "body");
  if (body == NULL || body->kind != MP_JSON_STRING)
    return mp_status_make(MP_INVALID_ARGUMENT, "custom_call_config has no body");
  size_t size = 0;
  unsigned char *bytes = mp_arena_alloc(arena, body->str.size);
  MP_RETURN_IF_NULL(bytes);
  MP_RETURN_IF_ERROR(mosaic_call_decode(body->str, bytes, &size));
  return mp_mosaic_read(bytes, size, &call->module);
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
  return mosaic_call_read_body(arena, custom, call);
}

mp_status_t mp_mosaic_read_call(mp_str_t config, mp_mosaic_call_t *out_call) {
  mp_mosaic_call_t call = {.collective_id = -1, .num_cores = 1};
  mp_arena_t *arena = NULL;
  MP_RETURN_IF_ERROR(mp_arena_create(&arena));
  mp_arena_set_limit(arena, config.size * 256 + ((size_t)1 << 20));
  mp_status_t status = mosaic_call_read(arena, config, &call);
  mp_arena_release(arena);
  if (status != NULL) return mp_status_annotate(status, "backend_config of tpu_custom_call");
  *out_call = call;
  return NULL;
}
