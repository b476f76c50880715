#include "sim/spmd/sharding/op_sharding.h"

#include <inttypes.h>

#include "sim/base/proto.h"
#include "sim/numeric/dims.h"
#include "sim/spmd/sharding/named_sharding.h"

enum {
  FIELD_TYPE = 1,
  FIELD_TILE_DIMS = 3,
  FIELD_TILE_DEVICES = 4,
  FIELD_TUPLE = 5,
  FIELD_REPLICATE_ON_LAST_DIM = 6,
  FIELD_METADATA = 7,
  FIELD_LAST_TILE_DIMS = 8,
  FIELD_IOTA_RESHAPE = 9,
  FIELD_IOTA_PERMUTATION = 10,
  FIELD_IS_GROUPED = 11,
  FIELD_GROUP = 12,
  FIELD_GROUP_KIND = 13,
  FIELD_NAMED = 14,  // the content of all other fields, in another form
};

enum { METADATA_OP_TYPE = 1, METADATA_OP_NAME = 2 };

enum {
  TYPE_REPLICATED = 0,  // also the meaning of an empty message
  TYPE_MAXIMAL = 1,
  TYPE_TUPLE = 2,
  TYPE_OTHER = 3,
  TYPE_MANUAL = 4,
  TYPE_UNKNOWN = 5,
  TYPE_UNREDUCED = 6,
  TYPE_COUNT,
};

static const char *const g_types[TYPE_COUNT] = {"replicated", "maximal", NULL,       NULL,
                                                "manual",     "unknown", "unreduced"};

// ---- Writing ----

static void op_sharding_write_devices(const mp_tiles_t *tiles, int64_t count, bool spell_out,
                                      mp_strbuf_t *out) {
  bool is_iota = !spell_out;
  for (int64_t i = 0; i < count && is_iota; ++i) is_iota = tiles->partitions[i] == i;
  static const int64_t no_permutation[] = {0};
  if (is_iota) {
    mp_proto_put_packed(out, FIELD_IOTA_RESHAPE, &count, 1);
    mp_proto_put_packed(out, FIELD_IOTA_PERMUTATION, no_permutation, 1);
  } else {
    mp_proto_put_packed(out, FIELD_TILE_DEVICES, tiles->partitions, (size_t)count);
  }
}

// The message has no field for the op that combines terms; XLA writes it into the metadata, unless
// it is a sum.
static void op_sharding_write_reduction(uint32_t unreduced_kind, mp_strbuf_t *out) {
  if (unreduced_kind == MP_UNREDUCED_SUM) return;
  mp_strbuf_t metadata;
  mp_strbuf_init(&metadata);
  mp_proto_put_bytes(&metadata, METADATA_OP_TYPE, MP_STR("sdy::reduction_op"));
  mp_proto_put_bytes(&metadata, METADATA_OP_NAME,
                     unreduced_kind == MP_UNREDUCED_MAX ? MP_STR("MAX") : MP_STR("MIN"));
  mp_proto_put_message(out, FIELD_METADATA, &metadata);
  mp_strbuf_deinit(&metadata);
}

// Writes the meaning of the dimensions after the tensor's own: partial sums, then copies.
static void op_sharding_write_subgroups(const mp_tiles_t *tiles, mp_strbuf_t *out) {
  if (tiles->terms == 1) {
    if (tiles->copies > 1) mp_proto_put_varint(out, FIELD_REPLICATE_ON_LAST_DIM, 1);
    return;
  }
  const int64_t kinds[2] = {TYPE_UNREDUCED, TYPE_REPLICATED};
  mp_proto_put_packed(out, FIELD_LAST_TILE_DIMS, kinds, tiles->copies > tiles->terms ? 2 : 1);
}

static void op_sharding_write_tiles(const mp_tiles_t *tiles, uint32_t unreduced_kind,
                                    bool spell_out, mp_strbuf_t *out) {
  int64_t dims[MP_MAX_RANK + 2];
  const int64_t count = tiles->copies * mp_dims_product(tiles->tiles, 0, tiles->rank);
  for (uint32_t d = 0; d < tiles->rank; ++d) dims[d] = tiles->tiles[d];
  if (count == tiles->copies && tiles->terms == 1) return;  // one tile: replicated
  uint32_t num_dims = tiles->rank;
  mp_proto_put_varint(out, FIELD_TYPE, TYPE_OTHER);
  if (tiles->terms > 1) dims[num_dims++] = tiles->terms;
  if (tiles->copies > tiles->terms) dims[num_dims++] = tiles->copies / tiles->terms;
  mp_proto_put_packed(out, FIELD_TILE_DIMS, dims, num_dims);
  op_sharding_write_devices(tiles, count, spell_out, out);
  op_sharding_write_subgroups(tiles, out);
  if (tiles->terms > 1) op_sharding_write_reduction(unreduced_kind, out);
}

mp_status_t mp_op_sharding_write(mp_arena_t *arena, const mp_boxes_t *boxes, bool spell_out,
                                 mp_strbuf_t *out, bool *out_is_grid) {
  mp_tiles_t tiles;
  *out_is_grid = true;
  if (boxes == NULL) return NULL;
  MP_RETURN_IF_ERROR(mp_placement_to_tiles(arena, boxes, out_is_grid, &tiles));
  if (*out_is_grid) op_sharding_write_tiles(&tiles, boxes->unreduced_kind, spell_out, out);
  return mp_strbuf_status(out);
}

void mp_op_sharding_write_manual(mp_strbuf_t *out) {
  mp_proto_put_varint(out, FIELD_TYPE, TYPE_MANUAL);
}

void mp_op_sharding_write_tuple(const mp_str_t *elements, uint32_t count, mp_strbuf_t *out) {
  mp_proto_put_varint(out, FIELD_TYPE, TYPE_TUPLE);
  for (uint32_t i = 0; i < count; ++i) mp_proto_put_bytes(out, FIELD_TUPLE, elements[i]);
}

// ---- Reading ----

// A list of numbers as text between brackets.
typedef struct {
  mp_strbuf_t text;
  uint32_t count;
} list_t;

typedef struct {
  uint64_t type;
  bool copies_last;
  bool is_grouped;
  uint64_t group, group_kind;  // with is_grouped; kind 0: shard_as, 1: shard_like
  list_t dims, devices, last_dims, reshape, permutation;
  mp_str_t named;
} parsed_t;

static void op_sharding_read_list(mp_proto_reader_t *reader, const mp_proto_field_t *field,
                                  bool are_types, list_t *list) {
  mp_proto_values_t values = mp_proto_values(reader, field, MP_PROTO_VARINT);
  for (uint64_t value; mp_proto_values_next(&values, &value); ++list->count) {
    mp_strbuf_puts(&list->text, list->count == 0 ? "" : ",");
    if (!are_types) {
      mp_strbuf_printf(&list->text, "%" PRIu64, value);
    } else if (value < TYPE_COUNT && g_types[value] != NULL) {
      mp_strbuf_puts(&list->text, g_types[value]);
    } else {
      mp_proto_fault(reader, field, "a type of subgroup that does not exist");
    }
  }
}

static mp_status_t op_sharding_parse(mp_str_t message, parsed_t *parsed) {
  mp_proto_reader_t reader = mp_proto_reader(message, "OpSharding");
  mp_proto_field_t field;
  while (mp_proto_next(&reader, &field)) {
    switch (field.number) {
      case FIELD_TYPE:
        parsed->type = mp_proto_varint(&reader, &field);
        break;
      case FIELD_REPLICATE_ON_LAST_DIM:
        parsed->copies_last = mp_proto_bool(&reader, &field);
        break;
      case FIELD_IS_GROUPED:
        parsed->is_grouped = mp_proto_bool(&reader, &field);
        break;
      case FIELD_GROUP:
        parsed->group = mp_proto_varint(&reader, &field);
        break;
      case FIELD_GROUP_KIND:
        parsed->group_kind = mp_proto_varint(&reader, &field);
        break;
      case FIELD_NAMED:
        parsed->named = mp_proto_bytes(&reader, &field);
        break;
      case FIELD_TILE_DIMS:
        op_sharding_read_list(&reader, &field, false, &parsed->dims);
        break;
      case FIELD_TILE_DEVICES:
        op_sharding_read_list(&reader, &field, false, &parsed->devices);
        break;
      case FIELD_LAST_TILE_DIMS:
        op_sharding_read_list(&reader, &field, true, &parsed->last_dims);
        break;
      case FIELD_IOTA_RESHAPE:
        op_sharding_read_list(&reader, &field, false, &parsed->reshape);
        break;
      case FIELD_IOTA_PERMUTATION:
        op_sharding_read_list(&reader, &field, false, &parsed->permutation);
        break;
      default:
        break;
    }
  }
  return mp_proto_reader_status(&reader);
}

static void op_sharding_print_tiles(const parsed_t *parsed, mp_strbuf_t *out) {
  mp_strbuf_printf(out, "devices=[%s]", mp_strbuf_text(&parsed->dims.text));
  if (parsed->reshape.count == 0) {
    mp_strbuf_puts(out, mp_strbuf_text(&parsed->devices.text));
  } else {
    mp_strbuf_printf(out, "<=[%s]", mp_strbuf_text(&parsed->reshape.text));
    if (parsed->reshape.count > 1 && parsed->permutation.count != 0) {
      mp_strbuf_printf(out, "T(%s)", mp_strbuf_text(&parsed->permutation.text));
    }
  }
  if (parsed->copies_last) mp_strbuf_puts(out, " last_tile_dim_replicate");
  if (!parsed->copies_last && parsed->last_dims.count != 0) {
    mp_strbuf_printf(out, " last_tile_dims={%s}", mp_strbuf_text(&parsed->last_dims.text));
  }
}

static mp_status_t op_sharding_print_body(const parsed_t *parsed, mp_strbuf_t *out) {
  if (parsed->type == TYPE_OTHER) {
    op_sharding_print_tiles(parsed, out);
  } else if (parsed->type == TYPE_MAXIMAL) {
    mp_strbuf_printf(out, "maximal device=%s", mp_strbuf_text(&parsed->devices.text));
  } else if (parsed->type < TYPE_COUNT && g_types[parsed->type] != NULL) {
    mp_strbuf_puts(out, g_types[parsed->type]);
  } else {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "OpSharding: type %" PRIu64 " where one sharding is expected",
                          parsed->type);
  }
  if (!parsed->is_grouped) return NULL;
  mp_strbuf_printf(out, " %s %" PRIu64, parsed->group_kind == 0 ? "shard_as" : "shard_like",
                   parsed->group);
  return NULL;
}

mp_status_t mp_op_sharding_print(mp_str_t message, mp_strbuf_t *out) {
  parsed_t parsed = {0};
  mp_status_t status = op_sharding_parse(message, &parsed);
  if (status == NULL && parsed.named.data != NULL) {
    status = mp_named_sharding_print(parsed.named, out);
  } else if (status == NULL) {
    mp_strbuf_putc(out, '{');
    status = op_sharding_print_body(&parsed, out);
    mp_strbuf_putc(out, '}');
  }
  list_t *lists[] = {&parsed.dims, &parsed.devices, &parsed.last_dims, &parsed.reshape,
                     &parsed.permutation};
  for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); ++i) {
    if (status == NULL) status = mp_strbuf_status(&lists[i]->text);
    mp_strbuf_deinit(&lists[i]->text);
  }
  return status != NULL ? status : mp_strbuf_status(out);
}

mp_status_t mp_op_sharding_elements(mp_str_t message, uint32_t count, mp_str_t *out_elements) {
  mp_proto_reader_t reader = mp_proto_reader(message, "OpSharding");
  mp_proto_field_t field;
  uint64_t type = TYPE_REPLICATED;
  uint32_t found = 0;
  while (mp_proto_next(&reader, &field)) {
    if (field.number == FIELD_TYPE) type = mp_proto_varint(&reader, &field);
    if (field.number != FIELD_TUPLE) continue;
    const mp_str_t element = mp_proto_bytes(&reader, &field);
    if (found < count) out_elements[found] = element;
    ++found;
  }
  MP_RETURN_IF_ERROR(mp_proto_reader_status(&reader));
  if (type != TYPE_TUPLE && count == 1) {
    out_elements[0] = message;
    return NULL;
  }
  if (type == TYPE_TUPLE && found == count) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT,
                        "OpSharding: %" PRIu32 " shardings for %" PRIu32 " values", found, count);
}
