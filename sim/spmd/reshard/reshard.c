#include "sim/spmd/reshard/reshard.h"

#include "sim/base/containers/hash_map.h"
#include "sim/base/hash.h"
#include "sim/numeric/dtype.h"
#include "sim/spmd/build/append.h"
#include "sim/spmd/build/append_collective.h"
#include "sim/spmd/build/unreduced.h"
#include "sim/spmd/reshard/reshard_plan.h"
#include "sim/spmd/reshard/reshard_steps.h"

enum { MP_MAX_COLLECTIVES = 3 };
// The standard collectives are used if they send at most this many times the bytes of an exchange.
#define MP_MAX_EXCESS 1.5

typedef enum {
  MP_WAY_PLAN,
  MP_WAY_PERMUTE,   // the same parts on other devices
  MP_WAY_EXCHANGE,  // with an all_reduce before it if the value is terms
} way_kind_t;

// A known way of resharding, valid for all values of these dimensions and this element type.
typedef struct way_s way_t;
struct way_s {
  const mp_boxes_t *from, *to;
  mp_dtype_t dtype;
  way_kind_t kind;
  double bytes;
  const mp_reshard_plan_t *plan;
  const int64_t *held, *wanted;  // PERMUTE
};

typedef struct {
  uint64_t hash;  // of the pointers `from` and `to`
  way_t *way;
} way_entry_t;

struct mp_resharder_s {
  mp_module_t *module;
  MP_HASH_MAP(way_entry_t) ways;
};

mp_status_t mp_resharder_create(mp_module_t *module, mp_resharder_t **out_resharder) {
  mp_resharder_t *resharder = MP_ARENA_NEW(module->arena, mp_resharder_t);
  MP_RETURN_IF_NULL(resharder);
  resharder->module = module;
  *out_resharder = resharder;
  return NULL;
}

// ---- finding ways ----

// Whether both placements are the same grid of parts, with the same number of holders of each part.
// If so, `held` and `wanted` get the numbers of the parts that each partition holds and needs.
static mp_status_t reshard_match_parts(mp_resharder_t *resharder, const mp_boxes_t *from,
                                       const mp_boxes_t *to, way_t *way, bool *out_found) {
  *out_found = false;
  if (from == NULL || to == NULL || from->partials != NULL || to->partials != NULL) return NULL;
  mp_arena_t *arena = resharder->module->arena;
  const mp_boxes_t *sides[2] = {from, to};
  int64_t *numbers[2] = {NULL, NULL};
  mp_tiles_t tiles[2];
  for (int side = 0; side < 2; ++side) {
    bool is_grid = false;
    MP_RETURN_IF_ERROR(mp_placement_to_tiles(arena, sides[side], &is_grid, &tiles[side]));
    numbers[side] = MP_ARENA_ARRAY(arena, int64_t, from->num_partitions);
    MP_RETURN_IF_NULL(numbers[side]);
    if (!is_grid) return NULL;
    for (uint32_t i = 0; i < from->num_partitions; ++i) {
      numbers[side][tiles[side].partitions[i]] = i / tiles[side].copies;
    }
  }
  for (uint32_t d = 0; d < from->rank; ++d) {
    if (tiles[0].tiles[d] != tiles[1].tiles[d]) return NULL;
  }
  for (uint32_t p = 0; p < from->num_partitions; ++p) {
    if (from->groups[p] != from->groups[0]) return NULL;  // another group has other data
  }
  way->held = numbers[0];
  way->wanted = numbers[1];
  *out_found = true;
  return NULL;
}

static mp_status_t reshard_find_plan(mp_resharder_t *resharder, const mp_type_t *type, way_t *way) {
  mp_reshard_plan_t *plan = MP_ARENA_NEW(resharder->module->arena, mp_reshard_plan_t);
  MP_RETURN_IF_NULL(plan);
  bool found = false;
  MP_RETURN_IF_ERROR(mp_reshard_plan(type, way->from, way->to, plan, &found));
  const bool has_terms = way->from != NULL && way->from->partials != NULL;
  if (!found) return NULL;
  if (!has_terms && (plan->num_collectives > MP_MAX_COLLECTIVES ||
                     plan->bytes > MP_MAX_EXCESS * way->bytes + 1)) {
    return NULL;
  }
  way->kind = MP_WAY_PLAN;
  way->plan = plan;
  way->bytes = plan->bytes;
  return NULL;
}

static mp_status_t reshard_find_way(mp_resharder_t *resharder, const mp_type_t *type,
                                    const mp_boxes_t *from, const mp_boxes_t *to, way_t **out_way) {
  const uint64_t hash = mp_hash_u64((uint64_t)(uintptr_t)from, (uint64_t)(uintptr_t)to);
  const way_entry_t *known;
  MP_HASH_MAP_EACH(&resharder->ways, hash, known) {
    // Boxes include the dimensions; if both placements are whole, there is nothing to do.
    if (known->way->from == from && known->way->to == to && known->way->dtype == type->dtype) {
      *out_way = known->way;
      return NULL;
    }
  }
  way_t *way = MP_ARENA_NEW(resharder->module->arena, way_t);
  MP_RETURN_IF_NULL(way);
  *way = (way_t){.from = from,
                 .to = to,
                 .dtype = type->dtype,
                 .kind = MP_WAY_EXCHANGE,
                 .bytes = mp_reshard_exchange_bytes(type, from, to)};
  MP_RETURN_IF_ERROR(reshard_find_plan(resharder, type, way));
  if (way->kind == MP_WAY_EXCHANGE) {
    bool found = false;
    MP_RETURN_IF_ERROR(reshard_match_parts(resharder, from, to, way, &found));
    if (found) way->kind = MP_WAY_PERMUTE;
    if (from != NULL && from->partials != NULL) {
      int64_t elements = 0;
      if (mp_type_num_elements(type, &elements)) {
        way->bytes += 2.0 * (double)elements * (double)mp_dtype_size(type->dtype);
      }
    }
  }
  const way_entry_t entry = {hash, way};
  MP_RETURN_IF_ERROR(MP_HASH_MAP_ADD(resharder->module->arena, &resharder->ways, &entry));
  *out_way = way;
  return NULL;
}

mp_status_t mp_reshard_cost(mp_resharder_t *resharder, const mp_type_t *type,
                            const mp_boxes_t *from, const mp_boxes_t *to, double *out_bytes) {
  way_t *way = NULL;
  MP_RETURN_IF_ERROR(reshard_find_way(resharder, type, from, to, &way));
  *out_bytes = way->bytes;
  return NULL;
}

// ---- the exchange ----

static mp_status_t reshard_boxes_attr(const mp_reshard_request_t *request, const mp_boxes_t *boxes,
                                      const mp_attr_t **out_attr) {
  mp_attr_t *attr = MP_ARENA_NEW(request->at.module->arena, mp_attr_t);
  MP_RETURN_IF_NULL(attr);
  attr->kind = MP_KIND_BOXES;
  attr->u.boxes = boxes;
  if (boxes == NULL) {
    MP_RETURN_IF_ERROR(mp_placement_whole(request->scope, request->type, &attr->u.boxes));
  }
  *out_attr = attr;
  return NULL;
}

static mp_status_t reshard_append_exchange(const mp_reshard_request_t *request,
                                           mp_value_t **out_value) {
  mp_named_attr_t attrs[2] = {{.name = MP_ATTR_SOURCE, .text = MP_STR("source")},
                              {.name = MP_ATTR_TARGET, .text = MP_STR("target")}};
  MP_RETURN_IF_ERROR(reshard_boxes_attr(request, request->from, &attrs[0].value));
  MP_RETURN_IF_ERROR(reshard_boxes_attr(request, request->to, &attrs[1].value));
  const mp_type_t *result_type = NULL;
  MP_RETURN_IF_ERROR(
      mp_placement_local_type(request->at.module->arena, request->type, request->to, &result_type));
  const mp_op_spec_t spec = {.code = MP_OP_EXCHANGE,
                             .num_operands = 1,
                             .operands = &request->value,
                             .num_results = 1,
                             .result_types = &result_type,
                             .num_attrs = 2,
                             .attrs = attrs};
  return mp_append_spec(&request->at, &spec, out_value);
}

// A value without elements needs no communication: each part is a new empty array.
static mp_status_t reshard_append_empty(const mp_append_at_t *at, const mp_type_t *type,
                                        const mp_boxes_t *to, mp_value_t **out_value) {
  const mp_type_t *local = NULL;
  MP_RETURN_IF_ERROR(mp_placement_local_type(at->module->arena, type, to, &local));
  const size_t size = mp_dtype_size(type->dtype);
  void *zero = mp_arena_alloc(at->module->arena, size);
  MP_RETURN_IF_NULL(zero);
  return mp_append_constant(at, local, zero, size, true, out_value);
}

// Whether both placements have the same parts, so that nothing need be sent in either direction,
// and arrays of the same shape. Parts without elements do not count.
static mp_status_t reshard_have_same_parts(mp_resharder_t *resharder, const mp_type_t *type,
                                           const mp_boxes_t *a, const mp_boxes_t *b,
                                           bool *out_same) {
  const mp_type_t *types[2] = {NULL, NULL};
  MP_RETURN_IF_ERROR(mp_placement_local_type(resharder->module->arena, type, a, &types[0]));
  MP_RETURN_IF_ERROR(mp_placement_local_type(resharder->module->arena, type, b, &types[1]));
  *out_same = mp_type_same_shape(types[0], types[1]) &&
              mp_reshard_exchange_bytes(type, a, b) == 0 &&
              mp_reshard_exchange_bytes(type, b, a) == 0;
  return NULL;
}

mp_status_t mp_reshard(mp_resharder_t *resharder, const mp_reshard_request_t *request,
                       mp_value_t **out_value) {
  const mp_append_at_t *at = &request->at;
  const mp_type_t *type = request->type;
  const mp_boxes_t *from = request->from, *to = request->to;
  mp_value_t *value = request->value;
  int64_t elements = 0;
  if (mp_type_is_tensor(type) && mp_type_num_elements(type, &elements) && elements == 0) {
    return reshard_append_empty(at, type, to, out_value);
  }
  way_t *way = NULL;
  MP_RETURN_IF_ERROR(reshard_find_way(resharder, type, from, to, &way));
  if (way->kind == MP_WAY_PLAN) {
    return mp_reshard_append_steps(at, type, way->plan, value, out_value);
  }
  if (way->kind == MP_WAY_PERMUTE) {
    return mp_reshard_append_permute(at, way->held, way->wanted, from->num_partitions, value,
                                     out_value);
  }
  if (from == NULL || from->partials == NULL) {
    return reshard_append_exchange(request, out_value);
  }
  MP_RETURN_IF_ERROR(
      mp_unreduced_combine(at, from, mp_unreduced_opcode(from->unreduced_kind), value, out_value));
  mp_boxes_t summed = *from;
  summed.partials = NULL;
  mp_reshard_request_t rest = *request;
  MP_RETURN_IF_ERROR(mp_spmd_pool_boxes(request->scope->pool, &summed, &rest.from));
  bool is_done = false;
  MP_RETURN_IF_ERROR(reshard_have_same_parts(resharder, type, rest.from, to, &is_done));
  if (is_done) return NULL;
  rest.value = *out_value;
  return mp_reshard(resharder, &rest, out_value);
}
