#include "sim/runtime/replicas/replicas.h"

#include <inttypes.h>

#include "sim/base/alloc.h"
#include "sim/ir/layout.h"
#include "sim/plan/plan.h"
#include "sim/plan/program_blame.h"

// Copies a text into the arena. Consumes `text`.
static mp_status_t replicas_keep_text(mp_arena_t *arena, mp_strbuf_t *text, const char **out_text) {
  mp_status_t status = mp_strbuf_status(text);
  if (status == NULL) {
    *out_text = mp_arena_strndup(arena, mp_strbuf_text(text), text->size);
    if (*out_text == NULL) status = mp_status_out_of_memory();
  }
  mp_strbuf_deinit(text);
  return status;
}

// JAX's name of a result: "result[0]['w']". Empty if the program does not name it.
static mp_str_t replicas_result_info(const mp_program_t *program, uint32_t result) {
  const mp_module_t *module = program->module;
  if (module == NULL || module->main == NULL) return MP_STR("");
  const mp_func_t *main = module->main;
  if (main->result_attrs == NULL || result >= main->num_results) return MP_STR("");
  const mp_attr_t *info =
      main->result_attrs[result] == NULL
          ? NULL
          : mp_attr_dict_get_text(main->result_attrs[result], "jax.result_info");
  return info != NULL && info->kind == MP_KIND_STRING ? info->u.str : MP_STR("");
}

// The name of an array, and the op that computes it.
static mp_status_t replicas_name(mp_arena_t *arena, const mp_program_t *program,
                                 mp_replicated_t *array) {
  mp_strbuf_t name, maker;
  mp_strbuf_init(&name);
  mp_strbuf_init(&maker);
  if (array->is_result) {
    const mp_str_t info = replicas_result_info(program, array->index);
    const bool is_told = mp_str_starts_with(info, "result");
    mp_strbuf_printf(&name, "%s%.*s", is_told ? "" : "result ", MP_STR_ARG(info));
    if (info.size == 0) mp_strbuf_printf(&name, "%" PRIu32, array->index);
    mp_program_describe_result(program, array->index, &maker);
  } else {
    mp_strbuf_printf(&name, "argument %" PRIu32, array->index);
  }
  mp_status_t status = replicas_keep_text(arena, &name, &array->name);
  if (status != NULL) {
    mp_strbuf_deinit(&maker);
    return status;
  }
  return replicas_keep_text(arena, &maker, &array->maker);
}

// The order of an array's dimensions in memory. NULL: row-major.
static mp_status_t replicas_find_order(mp_arena_t *arena, const mp_program_t *program,
                                       mp_replicated_t *array) {
  const mp_func_t *main = program->module == NULL ? NULL : program->module->main;
  if (main == NULL) return NULL;
  const mp_attr_t *const *attrs = array->is_result ? main->result_attrs : main->arg_attrs;
  if (attrs == NULL) return NULL;
  int64_t minor_to_major[MP_MAX_RANK];
  MP_RETURN_IF_ERROR(mp_layout_from_attrs(attrs[array->index], array->rank, minor_to_major));
  if (mp_layout_is_row_major(minor_to_major, array->rank)) return NULL;
  uint32_t *order = MP_ARENA_ARRAY(arena, uint32_t, array->rank);
  MP_RETURN_IF_NULL(order);
  for (uint32_t k = 0; k < array->rank; ++k) {
    order[k] = (uint32_t)mp_layout_logical(minor_to_major, array->rank, k);
  }
  array->order = order;
  return NULL;
}

// The parts of all partitions, with the dimensions in the order of memory.
static mp_status_t replicas_copy_boxes(mp_arena_t *arena, const mp_boxes_t *boxes,
                                       mp_replicated_t *array) {
  const uint32_t rank = array->rank;
  const size_t count = (size_t)boxes->num_partitions * rank;
  int64_t *starts = MP_ARENA_ARRAY(arena, int64_t, count + 1);
  int64_t *sizes = MP_ARENA_ARRAY(arena, int64_t, count + 1);
  if (starts == NULL || sizes == NULL) return mp_status_out_of_memory();
  for (size_t i = 0; i < count; ++i) {
    const size_t k = i % rank;
    const size_t from = array->order == NULL ? i : i - k + array->order[k];
    starts[i] = boxes->starts[from];
    sizes[i] = boxes->sizes[from];
  }
  array->starts = starts;
  array->sizes = sizes;
  return NULL;
}

// Sets the first device with the same part for each device. False: all parts differ.
static mp_status_t replicas_find_first(mp_arena_t *arena, const mp_replicas_t *replicas,
                                       const mp_boxes_t *boxes, mp_replicated_t *array,
                                       bool *out_any) {
  const uint32_t partitions = replicas->num_partitions;
  uint32_t *first = MP_ARENA_ARRAY(arena, uint32_t, replicas->num_devices + 1);
  MP_RETURN_IF_NULL(first);
  memset(first, 0, partitions * sizeof(*first));
  if (boxes != NULL) MP_RETURN_IF_ERROR(mp_plan_find_owners(arena, boxes, first));
  *out_any = false;
  for (uint32_t p = 0; p < partitions; ++p) *out_any = *out_any || first[p] != p;
  // Different replicas hold different data.
  for (uint32_t d = partitions; d < replicas->num_devices; ++d) {
    first[d] = first[d % partitions] + d / partitions * partitions;
  }
  array->first = first;
  return NULL;
}

static mp_status_t replicas_add(mp_replicas_t *replicas, const mp_program_t *program,
                                mp_replicated_t *arrays, bool is_result, uint32_t index) {
  const mp_program_io_t *io = is_result ? &program->results[index] : &program->params[index];
  const mp_boxes_t *boxes = io->sharding;
  if (!mp_type_is_tensor(io->type) || io->bytes == 0) return NULL;
  if (boxes != NULL && boxes->partials != NULL) return NULL;  // partial sums, which differ
  mp_replicated_t array = {
      .is_result = is_result, .index = index, .dtype = io->type->dtype, .rank = io->type->rank};
  bool is_wanted = false;
  MP_RETURN_IF_ERROR(replicas_find_first(replicas->arena, replicas, boxes, &array, &is_wanted));
  if (!is_wanted) return NULL;
  array.dims = mp_arena_copy(replicas->arena, io->type->dims, array.rank * sizeof(int64_t));
  MP_RETURN_IF_NULL(array.dims);
  MP_RETURN_IF_ERROR(replicas_find_order(replicas->arena, program, &array));
  if (boxes != NULL) MP_RETURN_IF_ERROR(replicas_copy_boxes(replicas->arena, boxes, &array));
  MP_RETURN_IF_ERROR(replicas_name(replicas->arena, program, &array));
  arrays[replicas->num_arrays++] = array;
  return NULL;
}

static mp_status_t replicas_fill(mp_replicas_t *replicas, const mp_program_t *program,
                                 const uint32_t *ids) {
  mp_arena_t *arena = replicas->arena;
  replicas->program = mp_arena_strndup(arena, program->name.data, program->name.size);
  replicas->ids = mp_arena_copy(arena, ids, replicas->num_devices * sizeof(*ids));
  const size_t most = (size_t)program->num_params + program->num_results;
  mp_replicated_t *arrays = MP_ARENA_ARRAY(arena, mp_replicated_t, most + 1);
  if (replicas->program == NULL || replicas->ids == NULL || arrays == NULL) {
    return mp_status_out_of_memory();
  }
  replicas->arrays = arrays;
  for (uint32_t p = 0; p < program->num_params; ++p) {
    MP_RETURN_IF_ERROR(replicas_add(replicas, program, arrays, false, p));
  }
  replicas->num_params = replicas->num_arrays;
  for (uint32_t r = 0; r < program->num_results; ++r) {
    MP_RETURN_IF_ERROR(replicas_add(replicas, program, arrays, true, r));
  }
  return NULL;
}

mp_status_t mp_replicas_create(const mp_program_t *program, const uint32_t *ids,
                               mp_replicas_t **out_replicas) {
  *out_replicas = NULL;
  if (program->num_partitions < 2) return NULL;
  mp_replicas_t *replicas = mp_calloc(1, sizeof(*replicas));
  MP_RETURN_IF_NULL(replicas);
  atomic_init(&replicas->references, 1);
  replicas->num_partitions = program->num_partitions;
  replicas->num_devices = program->num_replicas * program->num_partitions;
  mp_status_t status = mp_arena_create(&replicas->arena);
  if (status == NULL) status = replicas_fill(replicas, program, ids);
  if (status == NULL && replicas->num_arrays != 0) {
    *out_replicas = replicas;
  } else {
    mp_replicas_release(replicas);
  }
  return status;
}

mp_replicas_t *mp_replicas_retain(mp_replicas_t *replicas) {
  // Relaxed: the caller has a reference already.
  if (replicas != NULL) {
    atomic_fetch_add_explicit(&replicas->references, 1, memory_order_relaxed);
  }
  return replicas;
}

void mp_replicas_release(mp_replicas_t *replicas) {
  if (replicas == NULL) return;
  // As all counts of references: the last one frees it after the others.
  if (atomic_fetch_sub_explicit(&replicas->references, 1, memory_order_acq_rel) != 1) return;
  mp_arena_release(replicas->arena);
  mp_free(replicas);
}
