#include "sim/model/report/report_same.h"

#include <string.h>

#include "sim/base/alloc.h"
#include "sim/base/containers/hash_map.h"
#include "sim/base/hash.h"

// How the devices hold a value: equal labels, equal arrays. Labels are numbered as they come, and
// equal divisions are one object.
typedef struct {
  uint64_t hash;  // of the labels
  uint32_t count;
  const uint32_t *labels;  // [num_partitions]
} division_t;

typedef struct {
  uint64_t hash;
  const division_t *division;
} known_division_t;

typedef struct {
  uint64_t hash;  // of the value's pointer: an exact key
  const division_t *division;
} held_t;

typedef struct {
  uint64_t hash;
  const division_t *a, *b, *both;
} met_t;

typedef struct {
  uint64_t hash;
  uint64_t key;
  uint32_t label;
} label_t;

struct mp_report_same_s {
  mp_arena_t *arena;
  uint32_t num_partitions;
  const division_t *one, *all;  // the same everywhere, and nowhere
  MP_HASH_MAP(known_division_t) divisions;
  MP_HASH_MAP(held_t) held;
  MP_HASH_MAP(met_t) met;
  uint64_t *keys;  // [num_partitions] of a division in the making
};

// So often the body of a loop is looked through until what it carries stays as it is.
enum { SAME_ROUNDS = 16 };

// ---- Divisions ----

static mp_status_t report_same_number(mp_report_same_t *same, uint32_t *labels,
                                      uint32_t *out_count) {
  MP_HASH_MAP(label_t) known = {0};
  mp_status_t status = NULL;
  *out_count = 0;
  for (uint32_t p = 0; p < same->num_partitions && status == NULL; ++p) {
    const uint64_t hash = mp_hash_u64(MP_HASH_START, same->keys[p]);
    const label_t *label;
    MP_HASH_MAP_EACH(&known, hash, label) {
      if (label->key == same->keys[p]) break;
    }
    labels[p] = label != NULL ? label->label : (*out_count)++;
    if (label != NULL) continue;
    status = MP_HASH_MAP_ADD(NULL, &known, &(label_t){hash, same->keys[p], labels[p]});
  }
  MP_HASH_MAP_FREE(&known);
  return status;
}

// The division by same->keys: partitions of equal keys hold the same.
static mp_status_t report_same_divide(mp_report_same_t *same, const division_t **out_division) {
  const size_t bytes = same->num_partitions * sizeof(uint32_t);
  uint32_t *labels = mp_malloc(bytes);
  MP_RETURN_IF_NULL(labels);
  uint32_t count;
  mp_status_t status = report_same_number(same, labels, &count);
  const uint64_t hash = mp_hash_bytes(mp_hash_pointer(same), labels, bytes);
  const known_division_t *known = NULL;
  if (status == NULL) {
    MP_HASH_MAP_EACH(&same->divisions, hash, known) {
      if (memcmp(known->division->labels, labels, bytes) == 0) break;
    }
  }
  if (known != NULL) {
    *out_division = known->division;
  } else if (status == NULL) {
    const uint32_t *copy = mp_arena_copy(same->arena, labels, bytes);
    division_t *made = MP_ARENA_NEW(same->arena, division_t);
    status = copy == NULL || made == NULL ? mp_status_out_of_memory() : NULL;
    if (status == NULL) {
      *made = (division_t){hash, count, copy};
      *out_division = made;
      status = MP_HASH_MAP_ADD(same->arena, &same->divisions, &(known_division_t){hash, made});
    }
  }
  mp_free(labels);
  return status;
}

// As different as both.
static mp_status_t report_same_meet(mp_report_same_t *same, const division_t *a,
                                    const division_t *b, const division_t **out_both) {
  *out_both = a->count == 1 ? b : a;
  if (a == b || a->count == 1 || b->count == 1) return NULL;
  const uint64_t hash = mp_hash_u64(mp_hash_pointer(a), mp_hash_pointer(b));
  const met_t *met;
  MP_HASH_MAP_EACH(&same->met, hash, met) {
    if (met->a != a || met->b != b) continue;
    *out_both = met->both;
    return NULL;
  }
  for (uint32_t p = 0; p < same->num_partitions; ++p) {
    same->keys[p] = (uint64_t)a->labels[p] << 32 | b->labels[p];
  }
  MP_RETURN_IF_ERROR(report_same_divide(same, out_both));
  return MP_HASH_MAP_ADD(same->arena, &same->met, &(met_t){hash, a, b, *out_both});
}

// ---- Values ----

static const division_t *report_same_of(const mp_report_same_t *same, const mp_value_t *value) {
  const held_t *held;
  return MP_HASH_MAP_GET(&same->held, mp_hash_pointer(value), held) == NULL ? NULL : held->division;
}

static mp_status_t report_same_hold(mp_report_same_t *same, const mp_value_t *value,
                                    const division_t *division) {
  return MP_HASH_MAP_SET(same->arena, &same->held, &(held_t){mp_hash_pointer(value), division});
}

static mp_status_t report_same_hold_results(mp_report_same_t *same, const mp_op_t *op,
                                            const division_t *division) {
  for (uint32_t i = 0; i < op->num_results; ++i) {
    MP_RETURN_IF_ERROR(report_same_hold(same, &op->results[i], division));
  }
  return NULL;
}

static mp_status_t report_same_meet_operands(mp_report_same_t *same, const mp_op_t *op,
                                             const division_t **out_division) {
  *out_division = same->one;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const division_t *one = report_same_of(same, op->operands[i]);
    MP_RETURN_IF_ERROR(
        report_same_meet(same, *out_division, one == NULL ? same->all : one, out_division));
  }
  return NULL;
}

static mp_status_t report_same_parameter(mp_report_same_t *same, const mp_boxes_t *boxes,
                                         const division_t **out_division) {
  *out_division = same->one;
  if (boxes == NULL) return NULL;
  *out_division = same->all;
  if (boxes->partials != NULL || boxes->num_partitions != same->num_partitions) return NULL;
  const size_t bytes = boxes->rank * sizeof(int64_t);
  for (uint32_t p = 0; p < same->num_partitions; ++p) {
    const size_t at = (size_t)p * boxes->rank;
    uint64_t key = mp_hash_bytes(MP_HASH_START, boxes->starts + at, bytes);
    key = mp_hash_bytes(key, boxes->sizes + at, bytes);
    same->keys[p] = key;
  }
  return report_same_divide(same, out_division);
}

// ---- Collectives ----

// Sets the keys of a group's members: by what all of them bring, and each one's place where members
// get parts.
static void report_same_key_group(mp_report_same_t *same, const division_t *in,
                                  const int64_t *members, int64_t count, bool has_parts) {
  uint64_t hash = MP_HASH_START;
  for (int64_t i = 0; i < count; ++i) {
    if (members[i] >= 0) hash = mp_hash_u64(hash, in->labels[members[i]]);
  }
  for (int64_t i = 0; i < count; ++i) {
    if (members[i] < 0) continue;
    same->keys[members[i]] = has_parts ? mp_hash_u64(hash, (uint64_t)i) : hash;
  }
}

static bool report_same_has_members(const mp_report_same_t *same, const mp_attr_t *attr,
                                    int64_t columns) {
  if (attr == NULL || attr->kind != MP_KIND_INTS || attr->u.ints.rank != 2) return false;
  if (columns != 0 && attr->u.ints.dims[1] != columns) return false;
  for (size_t i = 0; i < attr->u.ints.count; ++i) {
    if (attr->u.ints.values[i] >= (int64_t)same->num_partitions) return false;
  }
  return true;
}

static mp_status_t report_same_groups(mp_report_same_t *same, const mp_op_t *op,
                                      const division_t *in, const division_t **out_division) {
  const mp_attr_t *groups = mp_op_attr(op, MP_ATTR_REPLICA_GROUPS);
  *out_division = same->all;
  if (!report_same_has_members(same, groups, 0)) return NULL;
  const bool has_parts = op->code == MP_OP_REDUCE_SCATTER || op->code == MP_OP_ALL_TO_ALL;
  for (uint32_t p = 0; p < same->num_partitions; ++p) same->keys[p] = p;  // of no group
  const int64_t columns = groups->u.ints.dims[1];
  for (int64_t g = 0; g < groups->u.ints.dims[0]; ++g) {
    report_same_key_group(same, in, groups->u.ints.values + g * columns, columns, has_parts);
  }
  return report_same_divide(same, out_division);
}

static mp_status_t report_same_permute(mp_report_same_t *same, const mp_op_t *op,
                                       const division_t *in, const division_t **out_division) {
  const mp_attr_t *pairs = mp_op_attr(op, MP_ATTR_SOURCE_TARGET_PAIRS);
  *out_division = same->all;
  if (!report_same_has_members(same, pairs, 2)) return NULL;
  for (uint32_t p = 0; p < same->num_partitions; ++p) same->keys[p] = 0;  // they get zeros
  for (int64_t i = 0; i < pairs->u.ints.dims[0]; ++i) {
    const int64_t *pair = pairs->u.ints.values + 2 * i;
    if (pair[0] >= 0 && pair[1] >= 0) same->keys[pair[1]] = 1 + (uint64_t)in->labels[pair[0]];
  }
  return report_same_divide(same, out_division);
}

static mp_status_t report_same_collective(mp_report_same_t *same, const mp_op_t *op) {
  const division_t *in, *out = same->all;
  MP_RETURN_IF_ERROR(report_same_meet_operands(same, op, &in));
  switch (op->code) {
    case MP_OP_ALL_REDUCE:
    case MP_OP_ALL_GATHER:
    case MP_OP_REDUCE_SCATTER:
    case MP_OP_ALL_TO_ALL:
      MP_RETURN_IF_ERROR(report_same_groups(same, op, in, &out));
      break;
    case MP_OP_COLLECTIVE_PERMUTE:
      MP_RETURN_IF_ERROR(report_same_permute(same, op, in, &out));
      break;
    default:
      break;
  }
  return report_same_hold_results(same, op, out);
}

// ---- Control flow ----

static mp_status_t report_same_block(mp_report_same_t *same, const mp_block_t *block);

// Makes what a block's arguments hold at least as different as these values.
static mp_status_t report_same_carry(mp_report_same_t *same, const mp_block_t *block,
                                     mp_value_t *const *values, uint32_t count,
                                     const division_t *choice, bool *out_has_changed) {
  for (uint32_t i = 0; i < count && i < block->num_args; ++i) {
    const division_t *was = report_same_of(same, &block->args[i]);
    const division_t *in = report_same_of(same, values[i]), *now;
    if (in == NULL) in = same->all;
    MP_RETURN_IF_ERROR(report_same_meet(same, in, choice, &now));
    if (was != NULL) MP_RETURN_IF_ERROR(report_same_meet(same, was, now, &now));
    *out_has_changed |= now != was;
    MP_RETURN_IF_ERROR(report_same_hold(same, &block->args[i], now));
  }
  return NULL;
}

static const mp_op_t *report_same_end_of(const mp_block_t *block) {
  return block->last;
}

// Devices that may go round differently often carry different values.
static mp_status_t report_same_while(mp_report_same_t *same, const mp_op_t *op) {
  const mp_block_t *cond = op->regions[0], *body = op->regions[1];
  bool has_changed = true;
  MP_RETURN_IF_ERROR(
      report_same_carry(same, cond, op->operands, op->num_operands, same->one, &has_changed));
  for (int round = 0; has_changed; ++round) {
    has_changed = false;
    MP_RETURN_IF_ERROR(report_same_block(same, cond));
    const mp_op_t *test = report_same_end_of(cond), *end = report_same_end_of(body);
    const division_t *choice =
        test->num_operands == 0 ? NULL : report_same_of(same, test->operands[0]);
    if (choice == NULL || round >= SAME_ROUNDS) choice = same->all;
    for (uint32_t i = 0; i < body->num_args && i < cond->num_args; ++i) {
      MP_RETURN_IF_ERROR(
          report_same_hold(same, &body->args[i], report_same_of(same, &cond->args[i])));
    }
    MP_RETURN_IF_ERROR(report_same_block(same, body));
    MP_RETURN_IF_ERROR(
        report_same_carry(same, cond, end->operands, end->num_operands, choice, &has_changed));
  }
  for (uint32_t i = 0; i < op->num_results && i < cond->num_args; ++i) {
    const division_t *out = report_same_of(same, &cond->args[i]);
    MP_RETURN_IF_ERROR(report_same_hold(same, &op->results[i], out));
  }
  return NULL;
}

static mp_status_t report_same_case(mp_report_same_t *same, const mp_op_t *op) {
  const division_t *choice = report_same_of(same, op->operands[0]);
  if (choice == NULL) choice = same->all;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    MP_RETURN_IF_ERROR(report_same_hold(same, &op->results[i], choice));
  }
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    MP_RETURN_IF_ERROR(report_same_block(same, op->regions[r]));
    const mp_op_t *end = report_same_end_of(op->regions[r]);
    for (uint32_t i = 0; i < op->num_results && i < end->num_operands; ++i) {
      const division_t *out = report_same_of(same, end->operands[i]), *both;
      MP_RETURN_IF_ERROR(report_same_meet(same, report_same_of(same, &op->results[i]),
                                          out == NULL ? same->all : out, &both));
      MP_RETURN_IF_ERROR(report_same_hold(same, &op->results[i], both));
    }
  }
  return NULL;
}

// ---- Ops ----

static mp_status_t report_same_barrier(mp_report_same_t *same, const mp_op_t *op) {
  for (uint32_t i = 0; i < op->num_results && i < op->num_operands; ++i) {
    const division_t *in = report_same_of(same, op->operands[i]);
    MP_RETURN_IF_ERROR(report_same_hold(same, &op->results[i], in == NULL ? same->all : in));
  }
  return NULL;
}

static mp_status_t report_same_op(mp_report_same_t *same, const mp_op_t *op) {
  switch (op->code) {
    case MP_OP_PARTITION_ID:
    case MP_OP_REPLICA_ID:
    case MP_OP_RNG:
      return report_same_hold_results(same, op, same->all);
    case MP_OP_WHILE:
      return report_same_while(same, op);
    case MP_OP_CASE:
      return report_same_case(same, op);
    case MP_OP_OPTIMIZATION_BARRIER:
      return report_same_barrier(same, op);
    default:
      break;
  }
  if (mp_op_has(op, MP_OP_TRAIT_COLLECTIVE)) return report_same_collective(same, op);
  const division_t *in;
  MP_RETURN_IF_ERROR(report_same_meet_operands(same, op, &in));
  return report_same_hold_results(same, op, in);
}

static mp_status_t report_same_block(mp_report_same_t *same, const mp_block_t *block) {
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    MP_RETURN_IF_ERROR(report_same_op(same, op));
  }
  return NULL;
}

// ---- Making and reading ----

static mp_status_t report_same_begin(mp_report_same_t *same) {
  same->keys = MP_ARENA_ARRAY(same->arena, uint64_t, same->num_partitions);
  MP_RETURN_IF_NULL(same->keys);
  MP_RETURN_IF_ERROR(report_same_divide(same, &same->one));  // all keys are 0
  for (uint32_t p = 0; p < same->num_partitions; ++p) same->keys[p] = p;
  return report_same_divide(same, &same->all);
}

mp_status_t mp_report_same_create(mp_arena_t *arena, const mp_program_t *program,
                                  mp_report_same_t **out_same) {
  mp_report_same_t *same = MP_ARENA_NEW(arena, mp_report_same_t);
  MP_RETURN_IF_NULL(same);
  *same = (mp_report_same_t){.arena = arena, .num_partitions = program->num_partitions};
  *out_same = same;
  if (program->num_replicas != 1 || program->num_partitions < 2) return NULL;
  if (program->partitioned == NULL) return NULL;
  MP_RETURN_IF_ERROR(report_same_begin(same));
  const mp_block_t *body = program->partitioned->main->body;
  for (uint32_t i = 0; i < body->num_args && i < program->num_params; ++i) {
    const division_t *division;
    MP_RETURN_IF_ERROR(report_same_parameter(same, program->params[i].sharding, &division));
    MP_RETURN_IF_ERROR(report_same_hold(same, &body->args[i], division));
  }
  return report_same_block(same, body);
}

uint32_t mp_report_same_kinds(const mp_report_same_t *same, const mp_value_t *value) {
  const division_t *division = report_same_of(same, value);
  return division == NULL ? 0 : division->count;
}
