// The memory of main's results: which values are made there, and which temporaries use it before.
#include <stdlib.h>

#include "sim/chip/fuse/chip_fusion_kinds.h"
#include "sim/chip/memory/memory_impl.h"

// A result that devices exchanged is copied from a place of its own, or from VMEM, when the program
// ends. Returns whether this result is.
static bool memory_results_land(mp_memory_values_t *all, const mp_value_t *value) {
  if (!mp_chip_fusion_is_received(all->figures, value)) return false;
  mp_memory_value_t *place = mp_memory_place_of(all, value);
  if (place->kind != MP_MEMORY_TEMPORARY) return false;
  if (mp_chip_fusion_is_received_near(all->figures, (double)place->bytes)) {
    place->kind = MP_MEMORY_ELSEWHERE;
  }
  return true;
}

// Other results are made in memory of their own, which exists from the beginning.
void mp_memory_sweep_results(mp_memory_values_t *all) {
  const mp_block_t *body = all->program->partitioned->main->body;
  const mp_op_t *terminator = mp_block_terminator(body);
  for (uint32_t i = 0; i < terminator->num_operands; ++i) {
    mp_memory_read(all, terminator, terminator->operands[i], terminator->id, MP_MEMORY_NONE);
    if (mp_memory_own_end(all, body, i) == NULL) continue;
    if (memory_results_land(all, terminator->operands[i])) continue;
    mp_memory_value_t *place = mp_memory_place_of(all, terminator->operands[i]);
    if (place->kind != MP_MEMORY_TEMPORARY) continue;
    place->kind = MP_MEMORY_RESULT;
    place->result = i;
  }
}

// If what devices exchanged aliases a donated argument, that is copied before it is read, unless it
// is what they sent.
static void memory_results_copy_donated(mp_memory_values_t *all, const mp_value_t *argument,
                                        const mp_value_t *result) {
  mp_memory_value_t *place = mp_memory_place_of(all, argument);
  if (!mp_chip_fusion_is_received(all->figures, result) || !mp_memory_is_live(place)) return;
  if (mp_chip_fusion_is_sent_from(result, argument) || place->kind != MP_MEMORY_ARGUMENT) return;
  place->copied = place->bytes;
  place->copied_first = 1;
  place->copied_last = place->last;
}

// A result that aliases a donated argument is a temporary if an op still reads the argument.
void mp_memory_sweep_arguments(mp_memory_values_t *all) {
  const mp_block_t *body = all->program->partitioned->main->body;
  const mp_op_t *terminator = mp_block_terminator(body);
  for (uint32_t i = 0; i < body->num_args; ++i) {
    const int32_t result = all->program->params[i].alias;
    if (result < 0) continue;
    memory_results_copy_donated(all, &body->args[i], terminator->operands[result]);
    mp_memory_hand_over(all, &body->args[i]);
    const mp_memory_value_t *argument = mp_memory_place_of(all, &body->args[i]);
    mp_memory_value_t *place = mp_memory_place_of(all, terminator->operands[result]);
    const bool is_in_way = place != argument && place->kind == MP_MEMORY_RESULT &&
                           place->result == (uint32_t)result && mp_memory_is_live(argument) &&
                           argument->last >= place->first;
    if (is_in_way) place->kind = MP_MEMORY_TEMPORARY;
  }
}

// ---- temporaries in the memory of results ----

// The memory of a result, free after position `after` and before `until`.
typedef struct {
  uint64_t bytes;
  uint32_t after, until;
  uint32_t latest;  // the last temporary in it, among the tenants; UINT32_MAX: none
} memory_results_buffer_t;

typedef struct {
  uint32_t first, last;
  uint32_t next;  // another tenant of the buffer
} memory_results_tenant_t;

typedef struct {
  MP_ARRAY(memory_results_buffer_t) buffers;
  MP_ARRAY(memory_results_tenant_t) tenants;
} memory_results_t;

static mp_status_t memory_results_find(const mp_memory_values_t *all, mp_arena_t *arena,
                                       memory_results_t *out) {
  const mp_block_t *body = all->program->partitioned->main->body;
  const mp_op_t *terminator = mp_block_terminator(body);
  for (uint32_t i = 0; i < terminator->num_operands; ++i) {
    const mp_memory_value_t *place = mp_memory_place_of(all, terminator->operands[i]);
    const int32_t alias = all->program->results[i].alias;
    memory_results_buffer_t buffer = {
        .bytes = place->bytes, .until = terminator->id, .latest = UINT32_MAX};
    if (place->value->is_on_host || place->bytes == 0) continue;
    if (place->kind == MP_MEMORY_RESULT && place->result == i) buffer.until = place->first;
    if (alias >= 0) {
      const mp_memory_value_t *argument = mp_memory_place_of(all, &body->args[alias]);
      if (argument == place) continue;
      if (mp_memory_is_live(argument)) buffer.after = argument->last;
    }
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(arena, &out->buffers, buffer));
  }
  return NULL;
}

static int memory_results_compare(const void *left, const void *right) {
  const memory_results_buffer_t *a = left, *b = right;
  return a->bytes == b->bytes ? 0 : a->bytes > b->bytes ? -1 : 1;
}

static bool memory_results_is_free(const memory_results_t *results,
                                   const memory_results_buffer_t *buffer,
                                   const mp_memory_place_t *place) {
  if (place->first <= buffer->after || place->last >= buffer->until) return false;
  for (uint32_t at = buffer->latest; at != UINT32_MAX; at = results->tenants.items[at].next) {
    const memory_results_tenant_t *tenant = &results->tenants.items[at];
    if (tenant->last >= place->first && tenant->first <= place->last) return false;
  }
  return true;
}

mp_status_t mp_memory_use_results(const mp_memory_values_t *all, mp_arena_t *arena,
                                  mp_memory_places_t *places) {
  memory_results_t results = {0};
  MP_RETURN_IF_ERROR(memory_results_find(all, arena, &results));
  memory_results_buffer_t *buffers = results.buffers.items;
  const uint32_t count =
      results.buffers.count < MP_MEMORY_MOST_PACKED ? results.buffers.count : MP_MEMORY_MOST_PACKED;
  if (results.buffers.count == 0) return NULL;
  qsort(buffers, results.buffers.count, sizeof(*buffers), memory_results_compare);
  mp_memory_sort(places);
  uint32_t kept = 0, end = 0;  // the buffers before `end` are large enough
  for (uint32_t i = 0; i < places->count; ++i) {
    const mp_memory_place_t place = places->items[i];
    while (end < count && buffers[end].bytes >= place.bytes) ++end;
    uint32_t at = i < MP_MEMORY_MOST_PACKED ? end : 0;
    while (at > 0 && !memory_results_is_free(&results, &buffers[at - 1], &place)) --at;
    if (at == 0) {
      places->items[kept++] = place;
      continue;
    }
    const memory_results_tenant_t tenant = {place.first, place.last, buffers[at - 1].latest};
    buffers[at - 1].latest = results.tenants.count;
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(arena, &results.tenants, tenant));
  }
  places->count = kept;
  return NULL;
}
