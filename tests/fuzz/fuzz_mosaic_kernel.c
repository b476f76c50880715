// Kernels of mutated Mosaic modules: priced, compiled, and run with checks if that takes little
// time. Each array has an allocation of its own, so that ASan sees accesses beyond its bounds.
//
// A module does not say what it is called with. Each of its windows gets an array of two blocks per
// dimension, or of its own size if it is in HBM; those behind the first half are results.
#include "sim/mosaic/kernel/mosaic_kernel.h"
#include "sim/mosaic/price/price.h"
#include "sim/mosaic/read/mosaic_call.h"
#include "sim/mosaic/read/mosaic_reader.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_tokens.h"

enum { MOST_ARRAYS = 16, MOST_ELEMENTS = 1 << 18, MOST_PARTS = 64, LINE = 64 };

typedef struct {
  mp_module_t *module;
  const mp_mosaic_module_t *mosaic;
  uint32_t num_operands, num_results;
  const mp_type_t *types[MOST_ARRAYS];  // operands, then results
  mp_op_t *op;
} call_t;

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  return fuzz_set_limits(argc, argv);
}

// ---- the call ----

static uint32_t count_of(const mp_mosaic_func_t *func, const char *name) {
  const mp_mosaic_attr_t *attr = mp_mosaic_attr(func->attrs, func->num_attrs, name);
  const bool is_known = attr != NULL && attr->i64 >= 0 && attr->i64 <= func->body->num_args;
  return is_known ? (uint32_t)attr->i64 : 0;
}

static uint32_t rank_of(const mp_mosaic_func_t *func) {
  const mp_mosaic_attr_t *bounds = mp_mosaic_attr(func->attrs, func->num_attrs, "iteration_bounds");
  return bounds == NULL || bounds->kind != MP_MOSAIC_INTS ? 0 : bounds->ints.count;
}

static bool is_whole(const mp_mosaic_type_t *type) {
  return type->space == MP_MOSAIC_SPACE_ANY || type->space == MP_MOSAIC_SPACE_HBM;
}

// An array of so many blocks per dimension.
static bool add_array(call_t *call, const mp_mosaic_type_t *type, int64_t blocks) {
  int64_t dims[MP_MAX_RANK], count = 1;
  const uint32_t index = call->num_operands + call->num_results;
  if (type->kind != MP_MOSAIC_MEMREF || type->element != MP_MOSAIC_NUMBER) return false;
  if (type->rank > MP_MAX_RANK || index == MOST_ARRAYS) return false;
  for (uint32_t d = 0; d < type->rank; ++d) {
    if (type->dims[d] < 0 || type->dims[d] > MOST_ELEMENTS) return false;
    dims[d] = type->dims[d] * blocks;
    count *= dims[d];
    if (count > MOST_ELEMENTS) return false;
  }
  mp_status_t status =
      mp_type_tensor(call->module->arena, type->dtype, dims, type->rank, &call->types[index]);
  const bool is_made = status == NULL;
  mp_status_release(status);
  return is_made;
}

static bool add_arrays(call_t *call, const mp_mosaic_func_t *func) {
  const uint32_t first = rank_of(func), num_args = func->body->num_args;
  const uint32_t prefetched = count_of(func, "scalar_prefetch");
  const uint32_t scratch = count_of(func, "scratch_operands");
  if (num_args < first + prefetched + scratch) return false;
  const uint32_t windows = num_args - first - prefetched - scratch, results = (windows + 1) / 2;
  for (uint32_t i = 0; i < prefetched + windows; ++i) {
    const bool is_result = i >= prefetched + windows - results;
    const mp_mosaic_type_t *type = func->body->args[first + i].type;
    if (!add_array(call, type, i < prefetched || is_whole(type) ? 1 : 2)) return false;
    *(is_result ? &call->num_results : &call->num_operands) += 1;
  }
  return true;
}

static mp_status_t make_op(call_t *call) {
  mp_block_t *block = NULL;
  mp_value_t *values[MOST_ARRAYS];
  const mp_attr_t *target = NULL;
  MP_RETURN_IF_ERROR(mp_block_create(call->module, call->num_operands, call->types, &block));
  for (uint32_t i = 0; i < call->num_operands; ++i) values[i] = &block->args[i];
  MP_RETURN_IF_ERROR(mp_attr_make_string(call->module->arena, MP_STR(MP_MOSAIC_TARGET), &target));
  const mp_named_attr_t attrs[] = {{MP_ATTR_CALL_TARGET_NAME, MP_STR("call_target_name"), target}};
  const mp_op_spec_t spec = {.code = MP_OP_CUSTOM_CALL,
                             .num_operands = call->num_operands,
                             .operands = values,
                             .num_results = call->num_results,
                             .result_types = call->types + call->num_operands,
                             .num_attrs = 1,
                             .attrs = attrs};
  MP_RETURN_IF_ERROR(mp_op_create(call->module, &spec, &call->op));
  mp_block_append(block, call->op);
  return NULL;
}

// ---- pricing ----

// Whether the kernel is done soon, with operands that are all zeros.
static bool is_short(const call_t *call, void *const *arrays) {
  mp_price_operand_t operands[MOST_ARRAYS];
  const mp_price_chip_t chips[] = {
      {.clock = 1e9, .bandwidth = 1e12, .latency = 1e-6, .cores = 2, .rules = {true, true, true}},
      {.clock = 1e9, .is_wide = true, .bandwidth = 1e12, .latency = 1e-6, .cores = 1}};
  const double most = 1e-3;
  bool is_so = true;
  for (uint32_t c = 0; c < 2; ++c) {
    mp_price_t price;
    for (uint32_t i = 0; i < call->num_operands; ++i) {
      int64_t count = 0;
      (void)mp_type_num_elements(call->types[i], &count);
      operands[i] = (mp_price_operand_t){c == 0 ? NULL : arrays[i], count, false};
    }
    mp_status_t status =
        mp_price_kernel(&chips[c], call->mosaic, operands, call->num_operands, &price);
    is_so = status == NULL && !price.is_guessed && !price.is_sampled && price.seconds < most;
    if (status == NULL && !(price.seconds >= 0)) __builtin_trap();
    mp_status_release(status);
  }
  return is_so;
}

// ---- running ----

static void *make_array(const mp_type_t *type) {
  int64_t bytes = 0;
  (void)mp_type_num_bytes(type, &bytes);
  void *data = NULL;
  if (posix_memalign(&data, LINE, (size_t)bytes + 1) != 0) abort();
  memset(data, 0, (size_t)bytes + 1);
  return data;
}

static void run(const mp_kernel_t *kernel, void *const *arrays, uint32_t num_operands) {
  const size_t bytes = kernel->scratch_bytes + 1;
  void *scratch = NULL, *shared = NULL;
  if (posix_memalign(&scratch, LINE, bytes) != 0) abort();
  if (posix_memalign(&shared, LINE, kernel->shared_bytes + 1) != 0) abort();
  mp_status_t status = NULL;
  mp_kernel_call_t call = {(const void *const *)arrays, arrays + num_operands, scratch, 0, shared};
  for (uint32_t p = 0; p < kernel->num_parts && p < MOST_PARTS && status == NULL; ++p) {
    call.part = p;
    memset(scratch, 0xAB, bytes);
    status = kernel->run(kernel, &call);
  }
  if (status == NULL && kernel->finish != NULL && kernel->num_parts <= MOST_PARTS) {
    call.part = 0;
    status = kernel->finish(kernel, &call);
  }
  mp_status_release(status);
  free(shared);
  free(scratch);
}

static void try_kernel(call_t *call) {
  void *arrays[MOST_ARRAYS];
  const uint32_t count = call->num_operands + call->num_results;
  for (uint32_t i = 0; i < count; ++i) arrays[i] = make_array(call->types[i]);
  const bool runs = is_short(call, arrays);
  for (int checks = 0; checks < 2; ++checks) {
    const mp_mosaic_target_t target = {.checks = checks == 1};
    const mp_kernel_t *kernel = NULL;
    mp_status_t status =
        mp_mosaic_make_kernel_of(call->module->arena, call->op, call->mosaic, &target, 0, &kernel);
    if (status == NULL && runs && kernel->talk == NULL) run(kernel, arrays, call->num_operands);
    mp_status_release(status);
  }
  for (uint32_t i = 0; i < count; ++i) free(arrays[i]);
}

static bool try_module(const mp_mosaic_module_t *mosaic) {
  call_t call = {.mosaic = mosaic};
  const mp_mosaic_func_t *func = mp_mosaic_find_kernel(mosaic);
  if (func == NULL || mp_module_create(&call.module) != NULL) return false;
  bool is_made = add_arrays(&call, func);
  if (is_made) {
    mp_status_t status = make_op(&call);
    is_made = status == NULL;
    mp_status_release(status);
  }
  if (is_made) try_kernel(&call);
  mp_module_release(call.module);
  return is_made;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  mp_mosaic_module_t *module = NULL;
  mp_status_t status = mp_mosaic_read(data, size, &module);
  if (status == NULL) status = mp_mosaic_verify(module);
  if (status == NULL) fuzz_pool_add(data, size, try_module(module));
  mp_mosaic_module_release(module);
  mp_status_release(status);
  return 0;
}

// ---- mutation ----

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed) {
  uint64_t state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
  if (fuzz_below(&state, 8) == 0) {
    const size_t picked = fuzz_pool_pick(&state, data, max_size);
    if (picked != 0) size = picked;
  }
  const size_t changed = fuzz_mutate_tokens(&state, data, size, max_size);
  return changed != 0 ? changed : LLVMFuzzerMutate(data, size, max_size);
}
