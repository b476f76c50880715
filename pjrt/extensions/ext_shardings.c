// The Shardings extension (type 19): how an executable's parameters and results are split over its
// partitions, as OpSharding messages.

#include "pjrt/pjrt_executable.h"
#include "sim/base/proto.h"
#include "sim/numeric/dims.h"
#include "sim/spmd/sharding/placement.h"

// Fields of OpSharding, and the one type that is written; no bytes at all mean "replicated".
enum {
  FIELD_TYPE = 1,
  FIELD_TILE_DIMS = 3,
  FIELD_TILE_DEVICES = 4,
  FIELD_REPLICATE_ON_LAST_DIM = 6,
  FIELD_LAST_TILE_DIMS = 8,
  FIELD_IOTA_RESHAPE = 9,
  FIELD_IOTA_PERMUTATION = 10,
  TYPE_REPLICATED = 0,
  TYPE_OTHER = 3,
  TYPE_MANUAL = 4,
  TYPE_UNREDUCED = 6,
};

static void ext_shardings_write_devices(const mp_tiles_t *tiles, int64_t count, mp_strbuf_t *out) {
  bool is_iota = true;
  for (int64_t i = 0; i < count && is_iota; ++i) is_iota = tiles->partitions[i] == i;
  static const int64_t no_permutation[] = {0};
  if (is_iota) {
    mp_proto_put_packed(out, FIELD_IOTA_RESHAPE, &count, 1);
    mp_proto_put_packed(out, FIELD_IOTA_PERMUTATION, no_permutation, 1);
  } else {
    mp_proto_put_packed(out, FIELD_TILE_DEVICES, tiles->partitions, (size_t)count);
  }
}

// Writes what the dimensions after the tensor's own mean: partial sums, then copies.
static void ext_shardings_write_subgroups(const mp_tiles_t *tiles, mp_strbuf_t *out) {
  if (tiles->terms == 1) {
    if (tiles->copies > 1) mp_proto_put_varint(out, FIELD_REPLICATE_ON_LAST_DIM, 1);
    return;
  }
  const int64_t kinds[2] = {TYPE_UNREDUCED, TYPE_REPLICATED};
  mp_proto_put_packed(out, FIELD_LAST_TILE_DIMS, kinds, tiles->copies > tiles->terms ? 2 : 1);
}

static void ext_shardings_write_sharding(const mp_tiles_t *tiles, mp_strbuf_t *out) {
  int64_t dims[MP_MAX_RANK + 2];
  const int64_t count = tiles->copies * mp_dims_product(tiles->tiles, 0, tiles->rank);
  for (uint32_t d = 0; d < tiles->rank; ++d) dims[d] = tiles->tiles[d];
  if (count == tiles->copies && tiles->terms == 1) return;  // one tile: replicated
  uint32_t num_dims = tiles->rank;
  mp_proto_put_varint(out, FIELD_TYPE, TYPE_OTHER);
  if (tiles->terms > 1) dims[num_dims++] = tiles->terms;
  if (tiles->copies > tiles->terms) dims[num_dims++] = tiles->copies / tiles->terms;
  mp_proto_put_packed(out, FIELD_TILE_DIMS, dims, num_dims);
  ext_shardings_write_devices(tiles, count, out);
  ext_shardings_write_subgroups(tiles, out);
}

mp_status_t mp_pjrt_write_sharding(mp_arena_t *arena, const mp_boxes_t *boxes, bool is_manual,
                                   mp_strbuf_t *out) {
  if (is_manual) {
    mp_proto_put_varint(out, FIELD_TYPE, TYPE_MANUAL);
    return NULL;
  }
  if (boxes == NULL) return NULL;
  bool is_grid = false;
  mp_tiles_t tiles;
  MP_RETURN_IF_ERROR(mp_placement_to_tiles(arena, boxes, &is_grid, &tiles));
  if (!is_grid) {
    return mp_status_make(MP_INTERNAL, "the parts of a value are not a grid");
  }
  ext_shardings_write_sharding(&tiles, out);
  return NULL;
}

static mp_status_t ext_shardings_list_one(mp_arena_t *arena, const mp_boxes_t *boxes,
                                          const char **out_bytes, size_t *out_size) {
  *out_bytes = "";
  *out_size = 0;
  if (boxes == NULL) return NULL;
  mp_strbuf_t bytes;
  mp_strbuf_init(&bytes);
  mp_status_t status = mp_pjrt_write_sharding(arena, boxes, false, &bytes);
  if (status == NULL) status = mp_strbuf_status(&bytes);
  if (status == NULL) {
    *out_bytes = mp_arena_strndup(arena, mp_strbuf_text(&bytes), bytes.size);
    *out_size = bytes.size;
    if (*out_bytes == NULL) status = mp_status_out_of_memory();
  }
  mp_strbuf_deinit(&bytes);
  return status;
}

static mp_status_t ext_shardings_list_all(mp_arena_t *arena, const mp_program_io_t *values,
                                          uint32_t count, const char ***out_shardings,
                                          size_t **out_sizes) {
  if (count == 0) return NULL;  // no list, not an empty one: the client tells them apart
  const char **shardings = MP_ARENA_ARRAY(arena, const char *, count + 1);
  size_t *sizes = MP_ARENA_ARRAY(arena, size_t, count + 1);
  MP_RETURN_IF_NULL(shardings);
  MP_RETURN_IF_NULL(sizes);
  for (uint32_t i = 0; i < count; ++i) {
    MP_RETURN_IF_ERROR(ext_shardings_list_one(arena, values[i].sharding, &shardings[i], &sizes[i]));
  }
  *out_shardings = shardings;
  *out_sizes = sizes;
  return NULL;
}

// A program of one partition has no shardings. For a program without outputs, jaxlib takes a
// missing list, but not an empty one.
mp_status_t mp_pjrt_list_shardings(PJRT_Executable *executable) {
  const mp_program_t *program = executable->program;
  if (program->num_partitions == 1) return NULL;
  MP_RETURN_IF_ERROR(ext_shardings_list_all(executable->arena, program->params, program->num_params,
                                            &executable->parameter_shardings,
                                            &executable->parameter_sharding_sizes));
  if (program->num_results == 0) return NULL;
  return ext_shardings_list_all(executable->arena, program->results, program->num_results,
                                &executable->output_shardings, &executable->output_sharding_sizes);
}

static PJRT_Error *ext_shardings_parameter_shardings(
    PJRT_Shardings_PJRT_Executable_ParameterShardings_Args *args) {
  if (args->executable == NULL) {
    return mp_pjrt_error(mp_pjrt_null_argument(__func__, "executable"));
  }
  args->num_parameters = args->executable->program->num_params;
  args->shardings = args->executable->parameter_shardings;
  args->sharding_sizes = args->executable->parameter_sharding_sizes;
  return NULL;
}

static PJRT_Error *ext_shardings_output_shardings(
    PJRT_Shardings_PJRT_Executable_OutputShardings_Args *args) {
  if (args->executable == NULL) {
    return mp_pjrt_error(mp_pjrt_null_argument(__func__, "executable"));
  }
  args->num_outputs = args->executable->program->num_results;
  args->shardings = args->executable->output_shardings;
  args->sharding_sizes = args->executable->output_sharding_sizes;
  return NULL;
}

PJRT_Shardings_Extension mp_pjrt_shardings_extension = {
    .base = {.struct_size = sizeof(PJRT_Shardings_Extension),
             .type = PJRT_Extension_Type_Shardings},
    .PJRT_Shardings_PJRT_Executable_ParameterShardings = ext_shardings_parameter_shardings,
    .PJRT_Shardings_PJRT_Executable_OutputShardings = ext_shardings_output_shardings,
};
