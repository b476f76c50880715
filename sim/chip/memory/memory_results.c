// The memory of main's results: which values are made there.
#include "sim/chip/fuse/chip_fusion_kinds.h"
#include "sim/chip/memory/memory_values.h"

// What devices exchanged is copied to the result's memory when the program ends, or leaves scratch
// memory for it. Returns whether this result is such.
static bool memory_results_land(mp_memory_values_t *all, const mp_value_t *value) {
  if (!mp_chip_fusion_is_received(all->figures, value)) return false;
  mp_memory_value_t *place = mp_memory_place_of(all, value);
  if (place->kind != MP_MEMORY_TEMPORARY) return false;
  if (mp_chip_fusion_is_received_near(all->figures, (double)place->bytes)) {
    place->kind = MP_MEMORY_ELSEWHERE;
  }
  return true;
}

// Results lie in memory of their own, which is there from the beginning.
void mp_memory_sweep_results(mp_memory_values_t *all) {
  const mp_block_t *body = all->program->partitioned->main->body;
  const mp_op_t *terminator = mp_block_terminator(body);
  for (uint32_t i = 0; i < terminator->num_operands; ++i) {
    mp_memory_read(all, terminator, terminator->operands[i], terminator->id, MP_MEMORY_NOBODY);
    if (mp_memory_own_end(all, body, i) == NULL) continue;
    if (memory_results_land(all, terminator->operands[i])) continue;
    mp_memory_value_t *place = mp_memory_place_of(all, terminator->operands[i]);
    if (place->kind != MP_MEMORY_TEMPORARY) continue;
    place->kind = MP_MEMORY_RESULT;
    place->result = i;
  }
}

// A donated argument whose memory takes what devices exchanged is read in a copy, unless that was
// sent from there.
static void memory_results_copy_donated(mp_memory_values_t *all, const mp_value_t *argument,
                                        const mp_value_t *result) {
  mp_memory_value_t *place = mp_memory_place_of(all, argument);
  if (!mp_chip_fusion_is_received(all->figures, result) || !mp_memory_is_live(place)) return;
  if (mp_chip_fusion_is_sent_from(result, argument) || place->kind != MP_MEMORY_ARGUMENT) return;
  place->copied = place->bytes;
  place->copied_first = 1;
  place->copied_last = place->last;
}

// A result whose memory is an argument's waits elsewhere while that is still read.
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
