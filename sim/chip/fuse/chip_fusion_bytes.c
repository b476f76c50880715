// Finds the reads and writes of each fusion.
#include <math.h>

#include "sim/base/assert.h"
#include "sim/base/hash.h"
#include "sim/chip/fuse/chip_fusion_policy.h"

static mp_status_t chip_fusion_bytes_note_made(mp_chip_fusion_find_t *find, uint32_t number,
                                               const mp_chip_fusion_member_t *member) {
  for (uint32_t i = 0; i < member->op->num_results; ++i) {
    mp_chip_fusion_value_t *entry;
    MP_RETURN_IF_ERROR(mp_chip_fusion_value(find, &member->op->results[i], &entry));
    entry->made_by = number;
  }
  return NULL;
}

// The bytes of a value on the chip, in tiles on TPUs.
static double chip_fusion_bytes_tiled(const mp_chip_fusion_find_t *find,
                                      const mp_chip_fusion_value_t *entry,
                                      const mp_value_t *value) {
  if (entry->padding > 0) return mp_work_bytes_of(value->type) * entry->padding;
  return mp_layouts_bytes(&find->out->layouts, value);
}

// The bytes of the array that a fusion reads: of the layout copy, if it reads one.
static double chip_fusion_bytes_in_copy(const mp_chip_fusion_find_t *find,
                                        const mp_chip_fusion_value_t *entry,
                                        const mp_chip_fusion_access_t *access) {
  if (access->copy == MP_LAYOUT_NONE) return chip_fusion_bytes_tiled(find, entry, access->value);
  return mp_layouts_copy_bytes(&find->out->layouts.copies.items[access->copy]);
}

// Adds the bytes that an op reads of a value, unless its fusion makes the value. If several ops of
// a fusion read the same value, they read at most the whole value.
static mp_status_t chip_fusion_bytes_read(mp_chip_fusion_find_t *find, uint32_t number,
                                          const mp_value_t *value, double bytes, uint8_t sides,
                                          uint32_t copy) {
  mp_chip_fusion_value_t *entry;
  MP_RETURN_IF_ERROR(mp_chip_fusion_value(find, value, &entry));
  if (entry->made_by == number) return NULL;
  const double whole = mp_work_bytes_of(value->type);
  if (entry->reader != number) {
    entry->reader = number;
    entry->bytes = 0;
    entry->access = find->out->accesses.count;
    ++find->out->fusions.items[number].num_reads;
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(find->arena, &find->out->accesses,
                                     (mp_chip_fusion_access_t){.value = value, .copy = copy}));
  }
  find->out->accesses.items[entry->access].sides |= sides;
  if (whole == 0) return NULL;
  entry->bytes = fmin(whole, entry->bytes + bytes);
  mp_chip_fusion_access_t *access = &find->out->accesses.items[entry->access];
  MP_ASSERT(bytes >= 0 && entry->bytes <= whole);
  access->bytes = entry->bytes / whole * chip_fusion_bytes_in_copy(find, entry, access);
  return NULL;
}

// The bytes that an op reads of an operand: a slice reads whole tiles along the lanes.
static double chip_fusion_bytes_of_operand(const mp_chip_fusion_find_t *find, const mp_op_t *op,
                                           uint32_t operand, uint32_t copy) {
  const mp_layouts_t *layouts = &find->out->layouts;
  const double bytes = mp_work_bytes_read(op, operand);
  const bool is_slice = op->code == MP_OP_SLICE || op->code == MP_OP_DYNAMIC_SLICE;
  if (!is_slice || operand > 0 || layouts->num_values == 0) return bytes;
  const mp_type_t *array = op->operands[0]->type, *slice = op->results[0].type;
  const int32_t lane = copy == MP_LAYOUT_NONE ? layouts->values[op->operands[0]->id].lane
                                              : layouts->copies.items[copy].to.lane;
  if (lane < 0 || slice->dims[lane] == 0) return bytes;
  const double size = (double)slice->dims[lane];
  const double tiles = ceil(size / MP_TILE_LANES) * MP_TILE_LANES;
  return bytes * fmin(tiles, (double)array->dims[lane]) / size;
}

static mp_status_t chip_fusion_bytes_read_operands(mp_chip_fusion_find_t *find, uint32_t number,
                                                   const mp_chip_fusion_member_t *member) {
  const mp_op_t *op = member->op;
  mp_work_t work;
  const mp_chip_fusion_kind_t kind = mp_chip_fusion_kind(find->figures, op, &work);
  for (mp_chip_fusion_read_t read = {0}; mp_chip_fusion_next(find->figures, op, kind, &read);) {
    const uint32_t copy = mp_layouts_copy_for(&find->out->layouts, op->operands[read.operand], op);
    const double bytes = member->share * chip_fusion_bytes_of_operand(find, op, read.operand, copy);
    MP_RETURN_IF_ERROR(chip_fusion_bytes_read(
        find, number, read.value, bytes, mp_chip_fusion_sides(member, kind, read.operand), copy));
  }
  return NULL;
}

static mp_status_t chip_fusion_bytes_write_results(mp_chip_fusion_find_t *find, uint32_t number,
                                                   const mp_chip_fusion_member_t *member) {
  const mp_op_t *op = member->op;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    mp_chip_fusion_value_t *entry;
    const mp_value_t *value = &op->results[i];
    MP_RETURN_IF_ERROR(mp_chip_fusion_value(find, value, &entry));
    if (entry->written_by == MP_CHIP_FUSION_NONE ||
        mp_chip_fusion_now(find, entry->written_by) != number) {
      continue;
    }
    const double whole = mp_work_bytes_of(value->type);
    if (whole == 0) continue;
    const bool is_part = !mp_chip_fusion_is_selection(find->figures, op);
    double share = is_part ? mp_work_bytes_written(op, i) / whole : 1;
    if (find->policy->writes_once) share = fmin(share, 1);
    const double bytes = share * chip_fusion_bytes_tiled(find, entry, value);
    ++find->out->fusions.items[number].num_writes;
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(
        find->arena, &find->out->accesses,
        (mp_chip_fusion_access_t){.value = value, .bytes = bytes, .copy = MP_LAYOUT_NONE}));
  }
  return NULL;
}

typedef mp_status_t (*chip_fusion_bytes_visit_t)(mp_chip_fusion_find_t *find, uint32_t number,
                                                 const mp_chip_fusion_member_t *member);

static mp_status_t chip_fusion_bytes_each(mp_chip_fusion_find_t *find, uint32_t number,
                                          chip_fusion_bytes_visit_t visit) {
  const mp_chip_fusion_t *fusion = &find->out->fusions.items[number];
  for (const mp_chip_fusion_member_t *m = NULL; mp_chip_fusion_visit(find->out, fusion, &m);) {
    MP_RETURN_IF_ERROR(visit(find, number, m));
  }
  return NULL;
}

static mp_status_t chip_fusion_bytes_find(mp_chip_fusion_find_t *find, uint32_t number) {
  find->out->fusions.items[number].first_access = find->out->accesses.count;
  MP_RETURN_IF_ERROR(chip_fusion_bytes_each(find, number, chip_fusion_bytes_note_made));
  MP_RETURN_IF_ERROR(chip_fusion_bytes_each(find, number, chip_fusion_bytes_read_operands));
  MP_RETURN_IF_ERROR(chip_fusion_bytes_each(find, number, chip_fusion_bytes_write_results));
  const mp_chip_fusion_t *fusion = &find->out->fusions.items[number];
  MP_ASSERT(fusion->first_access + fusion->num_reads + fusion->num_writes ==
            find->out->accesses.count);
  return NULL;
}

// From the last fusion to the first, as the sweep found them backwards: accesses follow the
// program.
mp_status_t mp_chip_fusion_find_accesses(mp_chip_fusion_find_t *find) {
  for (uint32_t number = find->out->fusions.count; number-- > 0;) {
    MP_RETURN_IF_ERROR(chip_fusion_bytes_find(find, number));
  }
  return NULL;
}
