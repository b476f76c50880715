// Scalars and views.
#include <string.h>

#include "sim/mosaic/price/price_walk.h"
#include "sim/mosaic/run/mosaic_scalar.h"

static void price_scalar_set(mp_price_func_t *func, const mp_mosaic_op_t *op, int64_t number) {
  func->slots[op->results[0].id] = (mp_price_slot_t){.is_known = true, .number = number};
}

static const mp_price_slot_t *price_scalar_operand(const mp_price_func_t *func,
                                                   const mp_mosaic_op_t *op, uint32_t i) {
  return &func->slots[op->operands[i]->id];
}

static bool price_scalar_is_integer(const mp_mosaic_value_t *value) {
  return value->type->kind == MP_MOSAIC_SCALAR && !mp_dtype_is_float(value->type->dtype);
}

// ---- views ----

// An offset so many strides on. Indices out of bounds may be any numbers.
static int64_t price_scalar_move(int64_t offset, int64_t index, int64_t stride) {
  return (int64_t)((uint64_t)offset + (uint64_t)index * (uint64_t)stride);
}

static void price_scalar_make_dense(mp_price_view_t *view) {
  int64_t stride = 1;
  for (uint32_t d = view->rank; d-- > 0;) {
    view->strides[d] = stride;
    if (view->dims[d] > 0 && stride < INT64_MAX / view->dims[d]) stride *= view->dims[d];
  }
}

mp_status_t mp_price_view(mp_price_walk_t *walk, const mp_mosaic_type_t *type,
                          mp_price_object_t *object, mp_price_view_t **out_view) {
  mp_price_view_t *view = MP_ARENA_NEW(walk->arena, mp_price_view_t);
  MP_RETURN_IF_NULL(view);
  *view = (mp_price_view_t){.object = object, .is_sized = true, .has_offset = true};
  view->rank = type->rank < MP_PRICE_MAX_RANK ? type->rank : MP_PRICE_MAX_RANK;
  for (uint32_t d = 0; d < view->rank; ++d) {
    view->dims[d] = type->dims[d];
    if (type->dims[d] == MP_MOSAIC_DYNAMIC) view->is_sized = false;
  }
  price_scalar_make_dense(view);
  *out_view = view;
  return NULL;
}

// The view of a result: made once per value, and changed each time.
static mp_status_t price_scalar_new_view(mp_price_walk_t *walk, mp_price_func_t *func,
                                         const mp_mosaic_op_t *op, mp_price_view_t **out_view) {
  mp_price_slot_t *slot = &func->slots[op->results[0].id];
  if (slot->view == NULL) {
    slot->view = MP_ARENA_NEW(walk->arena, mp_price_view_t);
    MP_RETURN_IF_NULL(slot->view);
  }
  *out_view = slot->view;
  return NULL;
}

// base, an index for each dimension, sizes of dynamic dimensions.
static void price_scalar_slice(const mp_price_func_t *func, const mp_mosaic_op_t *op,
                               const mp_price_view_t *base, mp_price_view_t *out) {
  const mp_mosaic_type_t *type = op->results[0].type;
  const uint32_t num_indices = mp_mosaic_op_segment(op, 1, 0);
  uint32_t dynamic = 1 + num_indices;
  *out = *base;
  for (uint32_t d = 0; d < base->rank && d < num_indices && d < type->rank; ++d) {
    const mp_price_slot_t *index = price_scalar_operand(func, op, 1 + d);
    if (index->is_known)
      out->offset = price_scalar_move(out->offset, index->number, base->strides[d]);
    out->has_offset = out->has_offset && index->is_known;
    out->dims[d] = type->dims[d];
    if (type->dims[d] != MP_MOSAIC_DYNAMIC) continue;
    const mp_price_slot_t *size =
        dynamic < op->num_operands ? price_scalar_operand(func, op, dynamic) : NULL;
    ++dynamic;
    const bool is_known = size != NULL && size->is_known;
    out->dims[d] = is_known ? size->number : base->dims[d];
    out->is_sized = out->is_sized && is_known;
  }
}

static void price_scalar_squeeze(const mp_mosaic_op_t *op, const mp_price_view_t *base,
                                 mp_price_view_t *out) {
  uint32_t left = op->results[0].type->rank, to = 0;
  mp_price_view_t view = *base;
  for (uint32_t d = 0; d < base->rank; ++d) {
    const bool drops = base->dims[d] == 1 && base->rank - d > left;
    if (drops || to >= MP_PRICE_MAX_RANK || left == 0) continue;
    view.dims[to] = base->dims[d];
    view.strides[to++] = base->strides[d];
    --left;
  }
  view.rank = to;
  *out = view;
}

// Another shape or type of the same memory: elements can no longer be found.
static void price_scalar_recast(const mp_mosaic_op_t *op, const mp_price_view_t *base,
                                mp_price_view_t *out) {
  const mp_mosaic_type_t *type = op->results[0].type;
  const bool same_rank = type->rank == base->rank;
  mp_price_view_t view = *base;
  view.rank = type->rank < MP_PRICE_MAX_RANK ? type->rank : MP_PRICE_MAX_RANK;
  bool changes = !same_rank;
  for (uint32_t d = 0; d < view.rank; ++d) {
    if (type->dims[d] == MP_MOSAIC_DYNAMIC && same_rank) continue;
    changes |= view.dims[d] != type->dims[d];
    view.dims[d] = type->dims[d];
    view.is_sized = view.is_sized && type->dims[d] != MP_MOSAIC_DYNAMIC;
  }
  if (changes) {
    view.has_offset = false;
    price_scalar_make_dense(&view);
  }
  *out = view;
}

static mp_status_t price_scalar_view_op(mp_price_walk_t *walk, mp_price_func_t *func,
                                        const mp_mosaic_op_t *op) {
  mp_price_view_t *view = NULL;
  if (op->num_operands == 0 || op->operands[0]->type->kind != MP_MOSAIC_MEMREF) {
    if (func->slots[op->results[0].id].view != NULL) return NULL;
    mp_price_object_t *object = MP_ARENA_NEW(walk->arena, mp_price_object_t);
    MP_RETURN_IF_NULL(object);
    *object = (mp_price_object_t){.dtype = op->results[0].type->dtype};
    return mp_price_view(walk, op->results[0].type, object, &func->slots[op->results[0].id].view);
  }
  MP_RETURN_IF_ERROR(price_scalar_new_view(walk, func, op, &view));
  const mp_price_view_t *base = price_scalar_operand(func, op, 0)->view;
  if (base == NULL) {
    mp_price_view_t *whole = NULL;
    MP_RETURN_IF_ERROR(mp_price_view(walk, op->results[0].type, NULL, &whole));
    *view = *whole;
    view->has_offset = false;
  } else if (op->code == MP_MOSAIC_MEMREF_SLICE) {
    price_scalar_slice(func, op, base, view);
  } else if (op->code == MP_MOSAIC_MEMREF_SQUEEZE) {
    price_scalar_squeeze(op, base, view);
  } else {
    price_scalar_recast(op, base, view);
  }
  return NULL;
}

// ---- memory of scalars ----

// The element of memref.load or memref.store; false: it is not known.
static bool price_scalar_element(const mp_price_func_t *func, const mp_mosaic_op_t *op,
                                 uint32_t base, mp_price_object_t **out_object, int64_t *out_at) {
  const mp_price_view_t *view = price_scalar_operand(func, op, base)->view;
  if (view == NULL) return false;
  *out_object = view->object;
  int64_t at = view->offset;
  bool is_known = view->has_offset;
  for (uint32_t i = base + 1; i < op->num_operands && i - base - 1 < view->rank; ++i) {
    const mp_price_slot_t *index = price_scalar_operand(func, op, i);
    is_known = is_known && index->is_known;
    at = price_scalar_move(at, index->number, view->strides[i - base - 1]);
  }
  *out_at = at;
  return is_known && *out_object != NULL && at >= 0 && at < (*out_object)->count;
}

static void price_scalar_load(mp_price_func_t *func, const mp_mosaic_op_t *op) {
  mp_price_object_t *object = NULL;
  int64_t at = 0;
  func->slots[op->results[0].id].is_known = false;
  if (!price_scalar_is_integer(&op->results[0])) return;
  if (!price_scalar_element(func, op, 0, &object, &at)) return;
  if (object->cells != NULL && object->is_known[at]) price_scalar_set(func, op, object->cells[at]);
}

static void price_scalar_store(mp_price_func_t *func, const mp_mosaic_op_t *op) {
  mp_price_object_t *object = NULL;
  int64_t at = 0;
  const mp_price_slot_t *value = price_scalar_operand(func, op, 0);
  const bool found = price_scalar_element(func, op, 1, &object, &at);
  if (object == NULL) return;
  if (object->cells == NULL) return;
  if (!found) {
    memset(object->is_known, 0, (size_t)object->count * sizeof(*object->is_known));
    return;
  }
  object->cells[at] = value->number;
  object->is_known[at] = value->is_known;
}

// ---- integers ----

static uint8_t price_scalar_bits(const mp_mosaic_value_t *value) {
  return (uint8_t)mp_dtype_bits(value->type->dtype);
}

static void price_scalar_constant(mp_price_func_t *func, const mp_mosaic_op_t *op) {
  const mp_mosaic_attr_t *value = mp_mosaic_op_attr(op, "value");
  if (value != NULL && (value->kind == MP_MOSAIC_INT || value->kind == MP_MOSAIC_BOOL))
    price_scalar_set(func, op, value->kind == MP_MOSAIC_BOOL ? value->i64 != 0 : value->i64);
}

static void price_scalar_convert(mp_price_func_t *func, const mp_mosaic_op_t *op) {
  const mp_price_slot_t *a = price_scalar_operand(func, op, 0);
  const uint8_t from = price_scalar_bits(op->operands[0]), to = price_scalar_bits(&op->results[0]);
  const bool is_unsigned = op->code == MP_MOSAIC_EXTUI || op->code == MP_MOSAIC_INDEX_CASTUI;
  if (!a->is_known) return;
  if (from == 1) {
    price_scalar_set(func, op, is_unsigned ? a->number & 1 : -(a->number & 1));
  } else if (to > from && is_unsigned) {
    price_scalar_set(func, op, (int64_t)mp_mosaic_unsigned(from, a->number));
  } else {
    price_scalar_set(func, op, mp_mosaic_signed(to, a->number));
  }
}

static void price_scalar_integer(mp_price_func_t *func, const mp_mosaic_op_t *op) {
  const mp_price_slot_t *a = price_scalar_operand(func, op, 0);
  const mp_price_slot_t *b = price_scalar_operand(func, op, 1);
  const uint8_t bits = price_scalar_bits(op->operands[0]);
  if (op->code == MP_MOSAIC_SELECT) {
    const mp_price_slot_t *chosen = !a->is_known     ? NULL
                                    : a->number != 0 ? b
                                                     : price_scalar_operand(func, op, 2);
    if (chosen != NULL && chosen->is_known) price_scalar_set(func, op, chosen->number);
    return;
  }
  if (!a->is_known || !b->is_known) return;
  if (op->code == MP_MOSAIC_CMPI) {
    price_scalar_set(func, op,
                     mp_mosaic_compare((uint8_t)mp_mosaic_op_int(op, "predicate", 0), bits,
                                       a->number, b->number));
  } else {
    price_scalar_set(func, op, mp_mosaic_integer(op->code, bits, a->number, b->number));
  }
}

static bool price_scalar_is_conversion(mp_mosaic_opcode_t code) {
  return code == MP_MOSAIC_EXTSI || code == MP_MOSAIC_EXTUI || code == MP_MOSAIC_TRUNCI ||
         code == MP_MOSAIC_INDEX_CAST || code == MP_MOSAIC_INDEX_CASTUI ||
         code == MP_MOSAIC_ASSUME_MULTIPLE;
}

static void price_scalar_number(mp_price_walk_t *walk, mp_price_func_t *func,
                                const mp_mosaic_op_t *op) {
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    if (!price_scalar_is_integer(op->operands[i])) return;
  }
  if (op->code == MP_MOSAIC_CONSTANT) {
    price_scalar_constant(func, op);
  } else if (price_scalar_is_conversion(op->code)) {
    price_scalar_convert(func, op);
  } else if (mp_mosaic_is_integer(op->code) || op->code == MP_MOSAIC_CMPI ||
             op->code == MP_MOSAIC_SELECT) {
    price_scalar_integer(func, op);
  } else if (op->code == MP_MOSAIC_DEVICE_ID || op->code == MP_MOSAIC_CORE_ID ||
             op->code == MP_MOSAIC_SUBCORE_ID) {
    price_scalar_set(func, op, 0);  // devices and cores take equally long
  } else if (op->code == MP_MOSAIC_ITERATION_BOUND) {
    const int64_t dim = mp_mosaic_op_int(op, "dim", -1);
    if (walk->bounds != NULL && dim >= 0 && dim < MP_PRICE_MAX_GRID)
      price_scalar_set(func, op, walk->bounds[dim]);
  }
}

mp_status_t mp_price_evaluate(mp_price_walk_t *walk, mp_price_func_t *func,
                              const mp_mosaic_op_t *op) {
  ++walk->evaluated;
  if (op->code == MP_MOSAIC_MEMREF_STORE) {
    price_scalar_store(func, op);
    return NULL;
  }
  if (op->num_results != 1) return NULL;
  if (op->results[0].type->kind == MP_MOSAIC_MEMREF) return price_scalar_view_op(walk, func, op);
  func->slots[op->results[0].id].is_known = false;
  if (op->code == MP_MOSAIC_MEMREF_LOAD) {
    price_scalar_load(func, op);
  } else if (op->code == MP_MOSAIC_MEMREF_DIM) {
    const mp_price_view_t *view = price_scalar_operand(func, op, 0)->view;
    const mp_price_slot_t *dim = price_scalar_operand(func, op, 1);
    if (view != NULL && view->is_sized && dim->is_known && dim->number >= 0 &&
        dim->number < (int64_t)view->rank)
      price_scalar_set(func, op, view->dims[dim->number]);
  } else if (price_scalar_is_integer(&op->results[0])) {
    price_scalar_number(walk, func, op);
  }
  return NULL;
}
