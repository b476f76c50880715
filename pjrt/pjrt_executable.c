// Executables: the result of one compilation, and its properties for callers.

#include "pjrt/pjrt_executable.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "pjrt/compile/pjrt_dump.h"
#include "pjrt/compile/pjrt_sharding.h"
#include "pjrt/pjrt_observer.h"
#include "sim/base/alloc.h"
#include "sim/base/hash.h"
#include "sim/ir/layout.h"
#include "sim/model/clock/model.h"
#include "sim/readers/options/debug_options.h"
#include "sim/readers/options/libtpu_options.h"

PJRT_Executable *mp_pjrt_executable_retain(PJRT_Executable *executable) {
  // Relaxed: the caller has a reference already.
  atomic_fetch_add_explicit(&executable->references, 1, memory_order_relaxed);
  return executable;
}

void mp_pjrt_executable_release(PJRT_Executable *executable) {
  if (executable == NULL) return;
  // Acquire and release, as for all counts: the last one frees what others have made and read.
  const int before = atomic_fetch_sub(&executable->references, 1);
  MP_ASSERT(before > 0);
  if (before != 1) return;
  mp_pjrt_optimized_free((mp_pjrt_optimized_t *)atomic_load(&executable->optimized));
  mp_free((void *)atomic_load(&executable->timed_properties));
  mp_program_release(executable->owned_program);
  mp_executable_release(executable->executable);
  mp_pjrt_client_release(executable->client);
  mp_arena_release(executable->arena);  // the object itself lives in it
}

// ---- the lists that the getters lend ----

static mp_status_t pjrt_executable_list_kinds(mp_arena_t *arena, const mp_program_io_t *values,
                                              uint32_t count, const char ***out_kinds,
                                              size_t **out_sizes) {
  const char **kinds = MP_ARENA_ARRAY(arena, const char *, count + 1);
  size_t *sizes = MP_ARENA_ARRAY(arena, size_t, count + 1);
  MP_RETURN_IF_NULL(kinds);
  MP_RETURN_IF_NULL(sizes);
  for (uint32_t i = 0; i < count; ++i) {
    kinds[i] = mp_memory_space_name(values[i].memory);
    sizes[i] = strlen(kinds[i]);
  }
  *out_kinds = kinds;
  *out_sizes = sizes;
  return NULL;
}

static size_t pjrt_executable_rank_of(const mp_type_t *type) {
  return mp_type_is_tensor(type) ? type->rank : 0;
}

static mp_status_t pjrt_executable_list_layouts(mp_arena_t *arena, const mp_program_io_t *values,
                                                uint32_t count, const mp_attr_t *const *attrs,
                                                PJRT_Layouts_MemoryLayout ***out_layouts) {
  PJRT_Layouts_MemoryLayout **layouts =
      MP_ARENA_ARRAY(arena, PJRT_Layouts_MemoryLayout *, count + 1);
  MP_RETURN_IF_NULL(layouts);
  for (uint32_t i = 0; i < count; ++i) {
    int64_t order[MP_MAX_RANK];
    size_t rank = pjrt_executable_rank_of(values[i].type);
    MP_RETURN_IF_ERROR(
        mp_layout_from_attrs(attrs == NULL ? NULL : attrs[i], (uint32_t)rank, order));
    MP_RETURN_IF_ERROR(mp_pjrt_layout_get(order, rank, &layouts[i]));
  }
  *out_layouts = layouts;
  return NULL;
}

// The program's types have the dimensions in the order of memory; users see them in their own
// order.
static mp_status_t pjrt_executable_list_output_shapes(PJRT_Executable *executable) {
  const mp_program_t *program = executable->program;
  size_t num_dims = 0;
  for (uint32_t i = 0; i < program->num_results; ++i) {
    num_dims += pjrt_executable_rank_of(program->results[i].type);
  }
  executable->output_types =
      MP_ARENA_ARRAY(executable->arena, PJRT_Buffer_Type, program->num_results + 1);
  executable->output_ranks = MP_ARENA_ARRAY(executable->arena, size_t, program->num_results + 1);
  executable->output_dims = MP_ARENA_ARRAY(executable->arena, int64_t, num_dims + 1);
  MP_RETURN_IF_NULL(executable->output_types);
  MP_RETURN_IF_NULL(executable->output_ranks);
  MP_RETURN_IF_NULL(executable->output_dims);
  int64_t *dims = executable->output_dims;
  for (uint32_t i = 0; i < program->num_results; ++i) {
    const mp_type_t *type = program->results[i].type;
    executable->output_types[i] = type->kind == MP_TYPE_TOKEN ? PJRT_Buffer_Type_TOKEN
                                                              : (PJRT_Buffer_Type)mp_dtype_number(
                                                                    type->dtype, MP_NUMBERS_PJRT);
    executable->output_ranks[i] = pjrt_executable_rank_of(type);
    const int64_t *order = executable->output_layouts[i]->minor_to_major;
    for (uint32_t k = 0; k < pjrt_executable_rank_of(type); ++k) {
      dims[mp_layout_logical(order, type->rank, k)] = type->dims[k];
    }
    dims += pjrt_executable_rank_of(type);
  }
  return NULL;
}

static mp_status_t pjrt_executable_add_property(PJRT_Executable *executable, const char *name,
                                                double value) {
  const char *copy = mp_arena_strndup(executable->arena, name, strlen(name));
  MP_RETURN_IF_NULL(copy);
  executable->properties[executable->num_properties++] = mp_pjrt_named_float(copy, (float)value);
  return NULL;
}

// The partitioner's report: collectives of each kind in the program, the bytes that a device
// receives by them, ops computed whole.
static mp_status_t pjrt_executable_list_communication(PJRT_Executable *executable) {
  const mp_spmd_report_t *report = &executable->program->report;
  char name[64];
  for (int kind = 0; kind < MP_COMM_KIND_COUNT; ++kind) {
    const mp_comm_t *comm = &report->comm[kind];
    if (comm->count == 0) continue;
    (void)snprintf(name, sizeof(name), "spmd.%s.count", mp_comm_kind_name((mp_comm_kind_t)kind));
    MP_RETURN_IF_ERROR(pjrt_executable_add_property(executable, name, comm->count));
    (void)snprintf(name, sizeof(name), "spmd.%s.bytes", mp_comm_kind_name((mp_comm_kind_t)kind));
    MP_RETURN_IF_ERROR(pjrt_executable_add_property(executable, name, comm->bytes));
  }
  MP_RETURN_IF_ERROR(pjrt_executable_add_property(executable, "spmd.wire_bytes",
                                                  mp_spmd_report_total(report).bytes));
  return pjrt_executable_add_property(executable, "spmd.replicated.count", report->num_replicated);
}

// Estimates of one device's run, under the names that callers use.
static mp_status_t pjrt_executable_list_properties(PJRT_Executable *executable) {
  enum { MAX_PROPERTIES = 5 + 2 * MP_COMM_KIND_COUNT };
  executable->properties = MP_ARENA_ARRAY(executable->arena, PJRT_NamedValue, MAX_PROPERTIES);
  MP_RETURN_IF_NULL(executable->properties);
  MP_RETURN_IF_ERROR(pjrt_executable_add_property(executable, "flops", executable->program->flops));
  MP_RETURN_IF_ERROR(pjrt_executable_add_property(executable, "transcendentals",
                                                  executable->program->transcendentals));
  MP_RETURN_IF_ERROR(pjrt_executable_add_property(executable, "bytes accessed",
                                                  executable->program->bytes_accessed));
  return executable->program->num_partitions > 1 ? pjrt_executable_list_communication(executable)
                                                 : NULL;
}

static mp_status_t pjrt_executable_copy_source(PJRT_Executable *executable,
                                               const mp_pjrt_source_t *source) {
  mp_arena_t *arena = executable->arena;
  const mp_str_t *from[] = {&source->code, &source->format, &source->options};
  mp_str_t *to[] = {&executable->code, &executable->format, &executable->options};
  uint64_t hash = mp_hash_bytes(MP_HASH_START, MINIPOD_VERSION, sizeof(MINIPOD_VERSION));
  for (int i = 0; i < 3; ++i) {
    to[i]->data = mp_arena_strndup(arena, from[i]->data, from[i]->size);
    to[i]->size = from[i]->size;
    MP_RETURN_IF_NULL(to[i]->data);
    hash = mp_hash_bytes(hash, from[i]->data, from[i]->size);
  }
  char text[24];
  int size = snprintf(text, sizeof(text), "%016" PRIx64, hash);
  executable->fingerprint = mp_arena_strndup(arena, text, (size_t)size);
  MP_RETURN_IF_NULL(executable->fingerprint);
  return NULL;
}

// A program of one partition has no shardings. For a program without outputs, jaxlib accepts a
// missing list, but not an empty one.
static mp_status_t pjrt_executable_list_shardings(PJRT_Executable *executable) {
  const mp_program_t *program = executable->program;
  if (program->num_partitions == 1) return NULL;
  MP_RETURN_IF_ERROR(mp_pjrt_sharding_list(
      executable->arena, program->params, program->num_params, executable->lists_devices,
      &executable->parameter_shardings, &executable->parameter_sharding_sizes));
  return mp_pjrt_sharding_list(executable->arena, program->results, program->num_results,
                               executable->lists_devices, &executable->output_shardings,
                               &executable->output_sharding_sizes);
}

static mp_status_t pjrt_executable_describe(PJRT_Executable *executable,
                                            const mp_pjrt_source_t *source) {
  const mp_program_t *program = executable->program;
  mp_arena_t *arena = executable->arena;
  MP_RETURN_IF_ERROR(pjrt_executable_copy_source(executable, source));
  executable->name = mp_arena_strndup(arena, program->name.data, program->name.size);
  MP_RETURN_IF_NULL(executable->name);
  MP_RETURN_IF_ERROR(pjrt_executable_list_properties(executable));
  const mp_func_t *main = program->module->main;
  MP_RETURN_IF_ERROR(pjrt_executable_list_layouts(arena, program->results, program->num_results,
                                                  main->result_attrs, &executable->output_layouts));
  MP_RETURN_IF_ERROR(pjrt_executable_list_layouts(arena, program->params, program->num_params,
                                                  main->arg_attrs, &executable->parameter_layouts));
  MP_RETURN_IF_ERROR(pjrt_executable_list_output_shapes(executable));
  MP_RETURN_IF_ERROR(pjrt_executable_list_kinds(arena, program->results, program->num_results,
                                                &executable->output_kinds,
                                                &executable->output_kind_sizes));
  MP_RETURN_IF_ERROR(pjrt_executable_list_kinds(arena, program->params, program->num_params,
                                                &executable->parameter_kinds,
                                                &executable->parameter_kind_sizes));
  return pjrt_executable_list_shardings(executable);
}

// ---- making ----

// The VMEM of kernels that ask for none: as libtpu's flags say, or as described.
static int64_t pjrt_executable_scoped_vmem(const mp_pod_t *pod) {
  const char *args = getenv("LIBTPU_INIT_ARGS");
  const uint64_t said = args == NULL ? 0 : mp_libtpu_scoped_vmem(mp_str(args));
  return (int64_t)(said != 0 && mp_pod_is_tpu(pod) ? said : mp_pod_info(pod)->scoped_vmem);
}

// The compilation settings from the client's options and the model of time.
static mp_compile_request_t pjrt_executable_wishes(const PJRT_Client *client,
                                                   const PJRT_TopologyDescription *topology) {
  const mp_pod_info_t *info = mp_pod_info(topology->pod);
  mp_compile_request_t wishes = {
      .keep_partitioned = topology->is_timed,
      .kernels = {.vmem = (int64_t)info->vmem,
                  .smem = (int64_t)info->smem,
                  .scoped_vmem = pjrt_executable_scoped_vmem(topology->pod),
                  .cores = info->cores_per_device,
                  .has_f4 = strcmp(info->kind, "TPU7x") == 0},
  };
  if (client == NULL) return wishes;
  wishes.op_by_op = client->op_by_op;
  wishes.as_written = client->as_written;
  wishes.kernels.checks = client->checks_kernels;
  wishes.open_loops = wishes.absent_calls = mp_client_has_shapes_only(client->client);
  return wishes;
}

static void pjrt_executable_tell_flags(const mp_program_t *program) {
  for (uint32_t i = 0; i < program->num_libtpu_flags; ++i) {
    const mp_str_t flag = program->libtpu_flags[i];
    const bool has_effect = mp_model_takes_libtpu_flag(flag) || mp_libtpu_scoped_vmem(flag) != 0;
    if (!has_effect) mp_debug_option_tell_libtpu(flag);
  }
}

mp_status_t mp_pjrt_executable_compile(PJRT_Client *client,
                                       const PJRT_TopologyDescription *topology,
                                       const mp_pjrt_source_t *source,
                                       PJRT_Executable **out_executable) {
  if (client != NULL && client->client == NULL) {
    return mp_status_make(MP_FAILED_PRECONDITION, "the client was destroyed");
  }
  mp_arena_t *arena = NULL;
  MP_RETURN_IF_ERROR(mp_arena_create(&arena));
  PJRT_Executable *executable = MP_ARENA_NEW(arena, PJRT_Executable);
  if (executable == NULL) {
    mp_arena_release(arena);
    return mp_status_out_of_memory();
  }
  atomic_init(&executable->references, 1);
  executable->arena = arena;
  mp_pjrt_compiled_t compiled = {0};
  const char *dump = client == NULL ? NULL : client->dump;
  const uint32_t number = mp_pjrt_dump_input(dump, source);
  const mp_compile_request_t wishes = pjrt_executable_wishes(client, topology);
  mp_status_t status =
      mp_pjrt_compile(source, (uint32_t)topology->num_devices,
                      mp_pjrt_takes_libtpu_options(topology), &wishes, arena, &compiled);
  if (status == NULL) pjrt_executable_tell_flags(compiled.program);
  if (status == NULL) mp_pjrt_dump_program(dump, number, compiled.program);
  if (status == NULL && client != NULL) {
    executable->client = mp_pjrt_client_retain(client);
    status = mp_executable_create(client->client, compiled.program, compiled.assignment,
                                  &executable->executable);
    executable->program = compiled.program;
  } else if (status == NULL) {
    executable->owned_program = compiled.program;
    executable->program = compiled.program;
  }
  if (status == NULL) status = mp_pjrt_executable_plan_memory(executable, topology);
  executable->lists_devices = !compiled.uses_shardy;
  if (status == NULL) status = pjrt_executable_describe(executable, source);
  if (status == NULL && !source->is_stored) status = mp_pjrt_observe_program(executable->program);
  if (status != NULL) {
    mp_pjrt_executable_release(executable);
    return status;
  }
  *out_executable = executable;
  return NULL;
}

mp_status_t mp_pjrt_read_program(const PJRT_Program *program, const char *options,
                                 size_t options_size, mp_pjrt_source_t *out_source) {
  if (program == NULL) return mp_status_make(MP_INVALID_ARGUMENT, "there is no program");
  if (program->code == NULL || program->format == NULL) {
    return mp_status_make(MP_INVALID_ARGUMENT, "the program's code or format is NULL");
  }
  *out_source = (mp_pjrt_source_t){
      .code = {program->code, program->code_size},
      .format = {program->format, program->format_size},
      .options = {options == NULL ? "" : options, options == NULL ? 0 : options_size},
  };
  return NULL;
}

// Compiles ahead of time for a described pod. The result cannot run, but it can be serialized and
// loaded.
mp_status_t mp_PJRT_Compile(PJRT_Compile_Args *args) {
  MP_REQUIRE(args, topology);
  mp_pjrt_source_t source;
  MP_RETURN_IF_ERROR(mp_pjrt_read_program(args->program, args->compile_options,
                                          args->compile_options_size, &source));
  return mp_pjrt_executable_compile(NULL, args->topology, &source, &args->executable);
}

mp_status_t mp_PJRT_Executable_Destroy(PJRT_Executable_Destroy_Args *args) {
  mp_pjrt_executable_release(args->executable);
  return NULL;
}

// ---- properties ----

MP_TEXT_GETTER(PJRT_Executable_Name, executable, executable_name, it->name)
MP_GETTER(PJRT_Executable_NumReplicas, executable, num_replicas, it->program->num_replicas)
MP_GETTER(PJRT_Executable_NumPartitions, executable, num_partitions, it->program->num_partitions)
MP_GETTER(PJRT_Executable_NumOutputs, executable, num_outputs, it->program->num_results)

MP_GETTER(PJRT_Executable_SizeOfGeneratedCodeInBytes, executable, size_in_bytes,
          mp_pjrt_executable_code_size(it->program))

// The properties and, after them, the seconds of a launch on the described pod. Computed on demand,
// because replaying a launch takes longer than some compilations, and few callers read it.
static mp_status_t pjrt_executable_make_timed(const PJRT_Executable *executable, double seconds,
                                              uintptr_t *out_made) {
  const size_t count = executable->num_properties;
  PJRT_NamedValue *made = mp_calloc(count + 1, sizeof(*made));
  MP_RETURN_IF_NULL(made);
  memcpy(made, executable->properties, count * sizeof(*made));
  made[count] = mp_pjrt_named_float("optimal_seconds", (float)seconds);
  *out_made = (uintptr_t)made;
  return NULL;
}

// They are made once; if two threads make them at the same time, the first one's stay.
static mp_status_t pjrt_executable_time(PJRT_Executable *executable,
                                        const PJRT_NamedValue **out_properties) {
  uintptr_t known = atomic_load(&executable->timed_properties);
  if (known == 0) {
    double seconds = 0;
    uintptr_t made = 0;
    MP_RETURN_IF_ERROR(mp_executable_estimate(executable->executable, &seconds));
    MP_RETURN_IF_ERROR(pjrt_executable_make_timed(executable, seconds, &made));
    // The exchange publishes them; getters lend them without a lock.
    if (atomic_compare_exchange_strong(&executable->timed_properties, &known, made)) {
      known = made;
    } else {
      mp_free((void *)made);
    }
  }
  *out_properties = (const PJRT_NamedValue *)known;
  return NULL;
}

mp_status_t mp_PJRT_Executable_GetCostAnalysis(PJRT_Executable_GetCostAnalysis_Args *args) {
  MP_REQUIRE(args, executable);
  PJRT_Executable *executable = args->executable;
  const bool is_timed =
      executable->executable != NULL && mp_executable_has_time(executable->executable);
  const PJRT_NamedValue *properties = executable->properties;
  if (is_timed) MP_RETURN_IF_ERROR(pjrt_executable_time(executable, &properties));
  args->properties = properties;
  args->num_properties = executable->num_properties + is_timed;
  return NULL;
}

MP_LIST_GETTER(PJRT_Executable_OutputElementTypes, executable, output_types, it->output_types,
               num_output_types, it->program->num_results)

mp_status_t mp_PJRT_Executable_OutputDimensions(PJRT_Executable_OutputDimensions_Args *args) {
  MP_REQUIRE(args, executable);
  args->num_outputs = args->executable->program->num_results;
  args->dims = args->executable->output_dims;
  args->dim_sizes = args->executable->output_ranks;
  return NULL;
}

mp_status_t mp_PJRT_Executable_OutputMemoryKinds(PJRT_Executable_OutputMemoryKinds_Args *args) {
  MP_REQUIRE(args, executable);
  args->num_outputs = args->executable->program->num_results;
  args->memory_kinds = args->executable->output_kinds;
  args->memory_kind_sizes = args->executable->output_kind_sizes;
  return NULL;
}

mp_status_t mp_PJRT_Executable_ParameterMemoryKinds(
    PJRT_Executable_ParameterMemoryKinds_Args *args) {
  MP_REQUIRE(args, executable);
  args->num_parameters = args->executable->program->num_params;
  args->memory_kinds = args->executable->parameter_kinds;
  args->memory_kind_sizes = args->executable->parameter_kind_sizes;
  return NULL;
}

MP_TEXT_GETTER(PJRT_Executable_Fingerprint, executable, executable_fingerprint, it->fingerprint)

mp_status_t mp_PJRT_Executable_GetCompileOptions(PJRT_Executable_GetCompileOptions_Args *args) {
  MP_REQUIRE(args, executable);
  mp_strbuf_t bytes;
  mp_strbuf_init(&bytes);
  mp_strbuf_append(&bytes, args->executable->options.data, args->executable->options.size);
  return mp_pjrt_lend_bytes(NULL, &bytes, &args->serialized_bytes, &args->serialized_bytes_size,
                            &args->serialized_compile_options,
                            &args->serialized_compile_options_deleter);
}
