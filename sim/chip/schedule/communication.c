#include "sim/chip/schedule/communication.h"

#include "sim/base/assert.h"
#include "sim/chip/fuse/chip_fusion_kinds.h"
#include "sim/chip/rules/chip_policy.h"
#include "sim/ir/op_name.h"

mp_status_t mp_communication_start(mp_communication_t *c, uint32_t num_positions) {
  c->items = MP_ARENA_ARRAY(c->scratch, uint32_t, (size_t)num_positions + 1);
  MP_RETURN_IF_NULL(c->items);
  for (uint32_t i = 0; i < num_positions; ++i) c->items[i] = UINT32_MAX;
  return NULL;
}

mp_status_t mp_communication_add(mp_communication_t *c, const mp_op_t *op, uint32_t *out_number) {
  mp_chip_collective_t one = {.op = op, .name = mp_op_short_name(op)};
  *out_number = c->collectives.count;
  MP_RETURN_IF_ERROR(mp_plan_lower_collective(c->arena, &c->groups, op, c->program->num_replicas,
                                              c->program->num_partitions, *out_number,
                                              &one.collective));
  return MP_ARRAY_PUSH(c->arena, &c->collectives, one);
}

mp_status_t mp_communication_add_copy(mp_communication_t *c, const mp_op_t *op,
                                      uint32_t *out_number) {
  const mp_chip_links_t *links = c->links;
  const bool is_known = links != NULL && links->host_bandwidth > 0;
  mp_chip_copy_t copy = {
      .op = op,
      .is_to_host = op->results[0].is_on_host,
      .is_async = links != NULL && mp_chip_policy(&c->chip->figures)->starts_host_copies,
      .bytes = mp_chip_fusion_bytes_of(&c->chip->figures, op->results[0].type)};
  if (is_known) copy.seconds = links->host_latency + copy.bytes / links->host_bandwidth;
  MP_ASSERT(copy.bytes >= 0 && copy.seconds >= 0);
  *out_number = c->copies.count;
  return MP_ARRAY_PUSH(c->arena, &c->copies, copy);
}

bool mp_communication_is_in(const mp_op_t *op) {
  if (mp_plan_is_collective(op) || mp_op_crosses(op)) return true;
  for (uint32_t i = 0; i < op->num_regions; ++i) {
    for (const mp_op_t *in = op->regions[i]->first; in != NULL; in = in->next) {
      if (mp_communication_is_in(in)) return true;
    }
  }
  return false;
}

uint32_t mp_communication_num_tracks(const mp_chip_t *chip) {
  const double tracks = mp_figure_or(chip->figures.overlap_tracks, 1);
  return tracks < 1 ? 1 : (uint32_t)tracks;
}
