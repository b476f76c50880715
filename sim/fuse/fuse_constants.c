// Computes small arrays that depend only on constants, by the kernels that would compute them in
// each run. Examples are masks, index vectors and the poses of bodies at rest; programs recompute
// them in each round of a loop.
//
// Broadcasts, reshapes and iotas stay, because their readers need no array. A select by a constant
// becomes the selected value: for example, a variance divides by n - 0 and checks whether that is
// positive.
#include <string.h>

#include "sim/base/containers/hash_map.h"
#include "sim/base/hash.h"
#include "sim/fuse/fuse_graph.h"
#include "sim/ir/reducer.h"
#include "sim/kernels/shape.h"
#include "sim/kernels/strided.h"
#include "sim/kernels/table/kernel_table.h"
#include "sim/passes/rewrite/rewrite.h"

// MOST_BYTES: of an array that is computed here; MOST_READ: of its operands in total; MOST_WORK:
// the number of elements of the result times that of an operand, for ops that may read an operand
// again for each element.
enum { MOST_BYTES = 64 * 1024, MOST_READ = 256 * 1024, MOST_WORK = 1 << 22, MOST_OPERANDS = 32 };

// The elements of an op's result, if they are known. The hash is the op's (mp_hash_pointer).
typedef struct {
  uint64_t hash;
  const void *elements;
} elements_t;

typedef struct {
  mp_module_t *module;
  mp_arena_t *scratch;
  MP_HASH_MAP(elements_t) known;
} folder_t;

static int64_t fuse_constants_bytes(const mp_value_t *value) {
  int64_t bytes = 0;
  return mp_type_is_tensor(value->type) && mp_type_is_static(value->type) &&
                 mp_type_num_bytes(value->type, &bytes)
             ? bytes
             : INT64_MAX;
}

// Whether the op gives the same result whenever it has the same operands, and is no control flow.
static bool fuse_constants_is_plain(const mp_op_t *op) {
  const mp_op_info_t *info = mp_op_info(op->code);
  const bool has_kind = op->code == MP_OP_REDUCE && op->num_results == 1 &&
                        mp_reducer_kind(op->regions[0]) != MP_REDUCE_CUSTOM;
  return op->num_results == 1 && op->num_operands <= MOST_OPERANDS &&
         (op->num_regions == 0 || has_kind) && info->effect == MP_OP_EFFECT_PURE &&
         info->role == MP_OP_ROLE_KERNEL && op->code != MP_OP_CUSTOM_CALL;
}

static bool fuse_constants_is_small(const mp_op_t *op) {
  const int64_t bytes = fuse_constants_bytes(&op->results[0]);
  if (bytes == 0 || bytes > MOST_BYTES) return false;
  const bool is_heavy = mp_op_info(op->code)->cost == MP_OP_COST_HEAVY ||
                        mp_op_info(op->code)->cost == MP_OP_COST_COUNTED;
  const int64_t count = mp_shape_count(op->results[0].type);
  int64_t read = 0;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const int64_t more = fuse_constants_bytes(op->operands[i]);
    if (more > MOST_READ - read) return false;
    read += more;
    if (is_heavy && MP_WORK(count, mp_shape_count(op->operands[i]->type), 1) > MOST_WORK) {
      return false;
    }
  }
  return true;
}

static void *fuse_constants_memory(const folder_t *folder, size_t bytes) {
  char *memory = mp_arena_alloc(folder->scratch, bytes + 63);
  return memory == NULL ? NULL : memory + (64 - (uintptr_t)memory % 64) % 64;
}

static mp_status_t fuse_constants_elements(folder_t *folder, const mp_value_t *value,
                                           const void **out_elements);

// Runs the kernel of an op whose operands have these elements. `out_elements` is NULL if it cannot
// run; then the program will report the error.
static mp_status_t fuse_constants_run(const folder_t *folder, const mp_op_t *op,
                                      const void *const *operands, const void **out_elements) {
  const mp_kernel_t *kernel = NULL;
  mp_status_t status = mp_kernel_create(folder->scratch, op, &kernel);
  *out_elements = NULL;
  if (status != NULL && mp_status_code(status) == MP_UNIMPLEMENTED) {
    mp_status_ignore(status);
    return NULL;
  }
  MP_RETURN_IF_ERROR(status);
  if (kernel->num_parts != 1 || kernel->finish != NULL) return NULL;
  const size_t bytes = (size_t)fuse_constants_bytes(&op->results[0]);
  void *result = fuse_constants_memory(folder, bytes);
  void *scratch = fuse_constants_memory(folder, kernel->scratch_bytes + 1);
  if (result == NULL || scratch == NULL) return mp_status_out_of_memory();
  const mp_kernel_call_t call = {.operands = operands, .results = &result, .scratch = scratch};
  status = kernel->run(kernel, &call);
  if (status == NULL) *out_elements = result;
  mp_status_ignore(status);
  return NULL;
}

// Computes the op if all operands of its kernel are known.
static mp_status_t fuse_constants_compute(folder_t *folder, const mp_op_t *op,
                                          const void **out_elements) {
  const void *operands[MOST_OPERANDS];
  *out_elements = NULL;
  if (!fuse_constants_is_plain(op) || !fuse_constants_is_small(op)) return NULL;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    MP_RETURN_IF_ERROR(fuse_constants_elements(folder, mp_kernel_operand(op, i), &operands[i]));
    if (operands[i] == NULL) return NULL;
  }
  return fuse_constants_run(folder, op, operands, out_elements);
}

// The stored elements of a constant, one after the other.
static mp_status_t fuse_constants_of_constant(const folder_t *folder, const mp_op_t *op,
                                              const void **out_elements) {
  const int64_t bytes = fuse_constants_bytes(&op->results[0]);
  *out_elements = NULL;
  if (bytes == 0 || bytes > MOST_READ) return NULL;
  void *elements = fuse_constants_memory(folder, (size_t)bytes);
  MP_RETURN_IF_NULL(elements);
  if (mp_copy_constant(op, elements)) *out_elements = elements;
  return NULL;
}

// Whether the value may be known without being a constant: views of constants and iotas.
static bool fuse_constants_is_light(const mp_op_t *op) {
  return op->code == MP_OP_IOTA || op->code == MP_OP_BROADCAST_IN_DIM || op->code == MP_OP_RESHAPE;
}

// The elements of a value that depends only on constants; NULL for other values.
static mp_status_t fuse_constants_elements(folder_t *folder, const mp_value_t *value,
                                           const void **out_elements) {
  const mp_op_t *op = value->op;
  *out_elements = NULL;
  if (op == NULL || (op->code != MP_OP_CONSTANT && !fuse_constants_is_light(op))) return NULL;
  const elements_t *known = NULL;
  if (MP_HASH_MAP_GET(&folder->known, mp_hash_pointer(op), known) != NULL) {
    *out_elements = known->elements;
    return NULL;
  }
  elements_t entry = {.hash = mp_hash_pointer(op)};
  MP_RETURN_IF_ERROR(op->code == MP_OP_CONSTANT
                         ? fuse_constants_of_constant(folder, op, &entry.elements)
                         : fuse_constants_compute(folder, op, &entry.elements));
  *out_elements = entry.elements;
  return MP_HASH_MAP_ADD(folder->scratch, &folder->known, &entry);
}

// Makes the op a constant: of one element, if all are the same.
static mp_status_t fuse_constants_become(const folder_t *folder, mp_op_t *op,
                                         const char *elements) {
  const mp_type_t *type = op->results[0].type;
  const size_t size = mp_dtype_size(type->dtype), bytes = (size_t)mp_shape_bytes(type);
  const bool is_splat = memcmp(elements, elements + size, bytes - size) == 0;
  const mp_attr_t *value = NULL;
  MP_RETURN_IF_ERROR(mp_attr_make_dense(folder->module->arena, type, elements,
                                        is_splat ? size : bytes, is_splat, &value));
  const mp_named_attr_t attr = mp_rewrite_attr(MP_ATTR_VALUE, value);
  op->num_regions = 0;
  MP_RETURN_IF_ERROR(mp_rewrite_set_operands(folder->module, op, NULL, 0));
  return mp_rewrite_become(folder->module, op, MP_OP_CONSTANT, &attr, 1);
}

// select(constant, x, y) becomes an identity reshape of x or y.
static mp_status_t fuse_constants_choose(const folder_t *folder, mp_op_t *op) {
  const mp_op_t *which = op->operands[0]->op;
  const uint8_t *bit = which != NULL && which->code == MP_OP_CONSTANT ? mp_op_splat(which) : NULL;
  if (bit == NULL) return NULL;
  mp_value_t *chosen = op->operands[*bit != 0 ? 1 : 2];
  MP_RETURN_IF_ERROR(mp_rewrite_become(folder->module, op, MP_OP_RESHAPE, NULL, 0));
  return mp_rewrite_set_operands(folder->module, op, &chosen, 1);
}

static mp_status_t fuse_constants_visit(folder_t *folder, mp_op_t *op) {
  const void *elements = NULL;
  if (op->num_operands == 0 || fuse_constants_is_light(op)) return NULL;
  MP_RETURN_IF_ERROR(fuse_constants_compute(folder, op, &elements));
  if (elements != NULL) return fuse_constants_become(folder, op, elements);
  return op->code == MP_OP_SELECT ? fuse_constants_choose(folder, op) : NULL;
}

// Ops in program order, so that their readers find constants.
static mp_status_t fuse_constants_block(folder_t *folder, mp_block_t *block) {
  for (mp_op_t *op = block->first; op != NULL; op = op->next) {
    if (mp_op_info(op->code)->role != MP_OP_ROLE_CONTROL) {
      MP_RETURN_IF_ERROR(fuse_constants_visit(folder, op));
      continue;
    }
    for (uint32_t r = 0; r < op->num_regions; ++r) {
      MP_RETURN_IF_ERROR(fuse_constants_block(folder, op->regions[r]));
    }
  }
  return NULL;
}

mp_status_t mp_fuse_constants(mp_module_t *module, mp_arena_t *scratch) {
  folder_t folder = {.module = module, .scratch = scratch};
  return fuse_constants_block(&folder, module->main->body);
}
