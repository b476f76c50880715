#include "sim/runtime/runs/shape_memory.h"

#include <string.h>

#include "sim/kernels/shape.h"

// At the beginning of a region: what parameters without values point to, in computations whose
// small operands only partly have values.
enum { SHAPE_MEMORY_NOTHING = MP_SMALL_BYTES };

static uint64_t shape_memory_result_bytes(const mp_program_t *program, uint32_t r) {
  const mp_program_io_t *io = &program->results[r];
  const uint64_t given = io->alias >= 0 ? program->params[io->alias].bytes : 0;
  return mp_round_up_64(given > io->bytes ? given : io->bytes);
}

static uint64_t shape_memory_bytes(const mp_run_t *run) {
  const mp_program_t *program = run->executable->program;
  uint64_t bytes = SHAPE_MEMORY_NOTHING + mp_round_up_64(program->arena_bytes);
  for (uint32_t r = 0; r < program->num_results; ++r)
    bytes += shape_memory_result_bytes(program, r);
  return bytes;
}

// The values of a parameter; NULL: it has none.
static const mp_values_t *shape_memory_known(const mp_run_t *run, uint32_t p) {
  const mp_values_t *values = mp_shape_run_values(run->shape_run, p);
  return values != NULL && values->are_there && values->data != NULL ? values : NULL;
}

// Sets the address of parameter p: its own bytes, a copy of them in `place` (unless NULL), or the
// place that all parameters without values share.
static void shape_memory_set_param(mp_run_t *run, uint32_t p, char *place) {
  const mp_program_t *program = run->executable->program;
  const mp_values_t *values = shape_memory_known(run, p);
  if (place == NULL) {
    run->params[p] = values == NULL ? run->region->data : values->data;
    return;
  }
  run->params[p] = place;
  const uint64_t bytes = program->params[p].bytes;
  if (values != NULL && bytes <= MP_SMALL_BYTES) memcpy(place, values->data, bytes);
}

mp_status_t mp_shape_memory_begin(mp_run_t *run) {
  const mp_program_t *program = run->executable->program;
  mp_regions_t *regions = &run->device->client->regions;
  MP_RETURN_IF_ERROR(mp_region_take(regions, shape_memory_bytes(run), &run->region));
  char *cursor = run->region->data + SHAPE_MEMORY_NOTHING;
  run->arena = cursor;
  cursor += mp_round_up_64(program->arena_bytes);
  for (uint32_t r = 0; r < program->num_results; ++r) {
    run->results[r] = cursor;
    cursor += shape_memory_result_bytes(program, r);
  }
  for (uint32_t p = 0; p < program->num_params; ++p) {
    const int32_t alias = program->params[p].alias;
    // For the program a donated parameter and its result are one place.
    shape_memory_set_param(run, p, alias >= 0 ? run->results[alias] : NULL);
  }
  return NULL;
}

// Returns contents with these bytes: the newest contents of this result on any device, if they are
// equal.
static mp_status_t shape_memory_share(mp_contents_t **newest, const void *data, uint64_t bytes,
                                      mp_contents_t **out_contents) {
  if (*newest == NULL || memcmp((*newest)->data, data, bytes) != 0) {
    mp_contents_t *contents;
    MP_RETURN_IF_ERROR(mp_contents_create(bytes, &contents));
    memcpy(contents->data, data, bytes);
    mp_contents_release(*newest);
    *newest = contents;
  }
  *out_contents = mp_contents_retain(*newest);
  return NULL;
}

static mp_status_t shape_memory_keep(mp_run_t *run, uint32_t r, mp_values_t *values) {
  mp_lock_t *lock = &run->device->client->regions.lock;
  const uint64_t bytes = run->executable->program->results[r].bytes;
  MP_ASSERT(bytes <= MP_SMALL_BYTES && values->contents == NULL);
  mp_lock(lock);
  mp_status_t status =
      shape_memory_share(&run->executable->newest[r], run->results[r], bytes, &values->contents);
  mp_unlock(lock);
  if (status == NULL) values->data = values->contents->data;
  return status;
}

mp_status_t mp_shape_memory_end(mp_run_t *run) {
  const uint32_t num_params = run->executable->program->num_params;
  for (uint32_t r = 0; r < run->executable->program->num_results; ++r) {
    mp_values_t *values = mp_shape_run_values(run->shape_run, num_params + r);
    if (values->are_there) MP_RETURN_IF_ERROR(shape_memory_keep(run, r, values));
  }
  return NULL;
}
