#include "sim/plan/plan.h"

#include "sim/base/assert.h"
#include "sim/plan/emitter.h"
#include "sim/plan/program_check.h"

// ---- parameters and results ----

static mp_status_t plan_memory_of(const mp_attr_t *attrs, mp_memory_space_t *out_memory) {
  const mp_attr_t *kind = mp_attr_dict_get(attrs, MP_ATTR_MHLO_MEMORY_KIND);
  *out_memory = MP_MEMORY_DEVICE;
  if (kind == NULL || kind->kind != MP_KIND_STRING) return NULL;
  for (int space = 0; space < MP_MEMORY_SPACE_COUNT; ++space) {
    if (mp_str_is(kind->u.str, mp_memory_space_name((mp_memory_space_t)space))) {
      *out_memory = (mp_memory_space_t)space;
      return NULL;
    }
  }
  return mp_status_make(MP_INVALID_ARGUMENT,
                        "memory kind \"%.*s\"; there are device, pinned_host and unpinned_host",
                        MP_STR_ARG(kind->u.str));
}

static mp_status_t plan_describe_io(const mp_type_t *type, const mp_attr_t *attrs,
                                    const mp_partition_io_t *partition, mp_program_io_t *out_io) {
  int64_t bytes = 0;
  if (mp_type_is_tensor(type) && !mp_type_num_bytes(type, &bytes)) {
    return mp_status_make(MP_INVALID_ARGUMENT, "a tensor of more than 2^63 bytes");
  }
  *out_io = (mp_program_io_t){.type = type,
                              .bytes = (uint64_t)bytes,
                              .alias = -1,
                              .sharding = partition->boxes,
                              .global_type = partition->global_type};
  return plan_memory_of(attrs, &out_io->memory);
}

// Whether a result may take over a parameter's memory: element types and bytes must be equal, with
// `exactly` also the shapes.
static bool plan_can_alias(const mp_program_io_t *param, const mp_program_io_t *result,
                           bool exactly) {
  return result->alias < 0 && result->memory == param->memory && param->bytes != 0 &&
         param->bytes == result->bytes && param->type->dtype == result->type->dtype &&
         (!exactly || mp_type_equal(param->type, result->type));
}

static void plan_take_any_that_fits(mp_program_io_t *params, uint32_t num_params,
                                    mp_program_io_t *results, uint32_t num_results, bool exactly) {
  for (uint32_t i = 0; i < num_params; ++i) {
    for (uint32_t r = 0; r < num_results && params[i].alias == -2; ++r) {
      if (!plan_can_alias(&params[i], &results[r], exactly)) continue;
      params[i].alias = (int32_t)r;
      results[r].alias = (int32_t)i;
    }
  }
}

// Decides which results take over which donated parameters: first those that the program names,
// then any that fit. If no result can use a parameter, the caller keeps it, as with XLA.
static void plan_match_donations(const mp_func_t *main, mp_program_io_t *params,
                                 uint32_t num_params, mp_program_io_t *results,
                                 uint32_t num_results) {
  for (uint32_t i = 0; i < num_params; ++i) {
    const mp_attr_t *attrs = main->arg_attrs == NULL ? NULL : main->arg_attrs[i];
    const mp_attr_t *alias = mp_attr_dict_get(attrs, MP_ATTR_TF_ALIASING_OUTPUT);
    const mp_attr_t *donor = mp_attr_dict_get(attrs, MP_ATTR_JAX_BUFFER_DONOR);
    const bool is_donor = donor != NULL && (donor->kind != MP_KIND_BOOL || donor->u.boolean);
    if (alias != NULL || is_donor) params[i].alias = -2;
    if (alias == NULL || alias->kind != MP_KIND_INT) continue;
    const int64_t r = alias->u.i64;
    if (r < 0 || r >= (int64_t)num_results || !plan_can_alias(&params[i], &results[r], true))
      continue;
    params[i].alias = (int32_t)r;
    results[r].alias = (int32_t)i;
  }
  plan_take_any_that_fits(params, num_params, results, num_results, true);
  plan_take_any_that_fits(params, num_params, results, num_results, false);
  for (uint32_t i = 0; i < num_params; ++i) {
    if (params[i].alias == -2) params[i].alias = -1;
  }
}

static mp_status_t plan_io(mp_emitter_t *emitter) {
  const mp_func_t *main = emitter->module->main;
  mp_program_t *program = emitter->program;
  const uint32_t num_params = main->body->num_args;
  mp_program_io_t *params = MP_ARENA_ARRAY(emitter->arena, mp_program_io_t, num_params);
  mp_program_io_t *results = MP_ARENA_ARRAY(emitter->arena, mp_program_io_t, main->num_results);
  if (params == NULL || results == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < num_params; ++i) {
    MP_RETURN_IF_ERROR(
        mp_status_annotate(plan_describe_io(main->body->args[i].type,
                                            main->arg_attrs == NULL ? NULL : main->arg_attrs[i],
                                            &emitter->options->partition.params[i], &params[i]),
                           "argument %u of main", i));
  }
  for (uint32_t i = 0; i < main->num_results; ++i) {
    MP_RETURN_IF_ERROR(mp_status_annotate(
        plan_describe_io(main->result_types[i],
                         main->result_attrs == NULL ? NULL : main->result_attrs[i],
                         &emitter->options->partition.results[i], &results[i]),
        "result %u of main", i));
  }
  plan_match_donations(main, params, num_params, results, main->num_results);
  program->num_params = num_params;
  program->params = params;
  program->num_results = main->num_results;
  program->results = results;
  return NULL;
}

// ---- main ----

static mp_slot_t plan_io_slot(mp_slot_kind_t kind, const mp_program_io_t *io, uint32_t index) {
  if (io->bytes == 0) return (mp_slot_t){.kind = MP_SLOT_NONE};
  return (mp_slot_t){.kind = kind, .index = index};
}

// The memory of a result is free until the result is written, which is at the end if nothing else
// is known. It is not free if the result takes over a parameter's memory.
static mp_status_t plan_begin_lenders(mp_emitter_t *emitter) {
  const mp_program_t *program = emitter->program;
  const uint32_t end = mp_block_terminator(emitter->module->main->body)->id;
  emitter->lenders =
      MP_ARENA_ARRAY(emitter->scratch, mp_lender_t, (size_t)program->num_results + 1);
  MP_RETURN_IF_NULL(emitter->lenders);
  for (uint32_t i = 0; i < program->num_results; ++i) {
    const mp_program_io_t *result = &program->results[i];
    const bool is_own = result->alias < 0 && result->memory == MP_MEMORY_DEVICE;
    emitter->lenders[i] = (mp_lender_t){is_own ? end : 0, result->bytes};
  }
  return NULL;
}

static mp_status_t plan_bind_results(mp_emitter_t *emitter) {
  mp_block_t *body = emitter->module->main->body;
  const mp_op_t *terminator = mp_block_terminator(body);
  for (uint32_t i = 0; i < emitter->program->num_results; ++i) {
    const mp_program_io_t *result = &emitter->program->results[i];
    const mp_value_t *holder = result->alias < 0 ? NULL : &body->args[result->alias];
    const uint32_t busy = holder == NULL ? 0 : mp_emit_live(emitter, holder)->last_use;
    MP_RETURN_IF_ERROR(mp_emit_bind(emitter, terminator->operands[i], body,
                                    plan_io_slot(MP_SLOT_RESULT, result, i), busy, holder));
  }
  return NULL;
}

// A donated parameter and the result that takes it over have the same memory, so the parameter must
// be read before that result is written.
static mp_status_t plan_return_values(mp_emitter_t *emitter, const mp_op_t *terminator) {
  const mp_program_t *program = emitter->program;
  mp_emit_move_t *moves =
      MP_ARENA_ARRAY(emitter->scratch, mp_emit_move_t, terminator->num_operands);
  MP_RETURN_IF_NULL(moves);
  for (uint32_t i = 0; i < terminator->num_operands; ++i) {
    const mp_program_io_t *result = &program->results[i];
    moves[i] = (mp_emit_move_t){mp_emit_slot(emitter, terminator->operands[i]),
                                plan_io_slot(MP_SLOT_RESULT, result, i), result->type};
    const mp_slot_t from = moves[i].from;
    if (from.kind != MP_SLOT_PARAM) continue;
    const int32_t alias = program->params[from.index].alias;
    if (alias < 0 || (uint32_t)alias == i) continue;
    mp_slot_t place;
    MP_RETURN_IF_ERROR(
        mp_emit_new_place(emitter, terminator->id, terminator->id, result->type, &place));
    MP_RETURN_IF_ERROR(mp_emit_copy(emitter, terminator, from, place, result->type));
    moves[i].from = place;
  }
  return mp_emit_moves(emitter, terminator, moves, terminator->num_operands, terminator->id,
                       terminator->id);
}

static mp_status_t plan_emit_main(mp_emitter_t *emitter) {
  mp_block_t *body = emitter->module->main->body;
  for (uint32_t i = 0; i < body->num_args; ++i) {
    mp_emit_set_slot(emitter, &body->args[i],
                     plan_io_slot(MP_SLOT_PARAM, &emitter->program->params[i], i));
  }
  MP_RETURN_IF_ERROR(plan_bind_results(emitter));
  mp_op_t *terminator = NULL;
  MP_RETURN_IF_ERROR(mp_emit_block(emitter, body, &terminator));
  MP_RETURN_IF_ERROR(plan_return_values(emitter, terminator));
  const mp_cmd_t done = {.kind = MP_CMD_DONE, .loc = terminator->loc, .name = "return"};
  return mp_emit_command(emitter, &done, NULL);
}

// Records that a command names these slots' places.
static void plan_note_command(const mp_slot_t *slots, uint32_t count, mp_place_t *places,
                              uint32_t command) {
  for (uint32_t i = 0; i < count; ++i) {
    if (slots[i].kind != MP_SLOT_ARENA) continue;
    mp_place_t *place = &places[slots[i].index];
    if (command < place->first_command) place->first_command = command;
    if (command > place->last_command) place->last_command = command;
  }
}

// Replaces the numbers of places in slots by the memory that they are in, and offsets.
static void plan_resolve(mp_slot_t *slots, uint32_t count, const mp_place_t *places,
                         uint32_t num_places) {
  for (uint32_t i = 0; i < count; ++i) {
    if (slots[i].kind != MP_SLOT_ARENA) continue;
    MP_ASSERT(slots[i].index < num_places);
    const mp_place_t *place = &places[slots[i].index];
    slots[i].offset = place->offset;
    slots[i].index = 0;
    if (place->lender < 0) continue;
    slots[i].kind = MP_SLOT_RESULT;
    slots[i].index = (uint32_t)place->lender;
  }
}

static mp_status_t plan_finish(mp_emitter_t *emitter) {
  mp_program_t *program = emitter->program;
  MP_RETURN_IF_ERROR(mp_places_pack(emitter->scratch, emitter->places.items, emitter->places.count,
                                    emitter->lenders, program->num_results, &program->arena_bytes));
  mp_place_t *places = emitter->places.items;
  for (uint32_t i = 0; i < emitter->commands.count; ++i) {
    const mp_cmd_t *command = &emitter->commands.items[i];
    plan_note_command(command->operands, command->num_operands, places, i);
    plan_note_command(command->results, command->num_results, places, i);
  }
  for (uint32_t i = 0; i < emitter->commands.count; ++i) {
    // The emitter allocated these arrays, so it may write them; they are const only for readers of
    // the program.
    const mp_cmd_t *command = &emitter->commands.items[i];
    plan_resolve((mp_slot_t *)(uintptr_t)command->operands, command->num_operands, places,
                 emitter->places.count);
    plan_resolve((mp_slot_t *)(uintptr_t)command->results, command->num_results, places,
                 emitter->places.count);
  }
  program->commands = emitter->commands.items;
  program->num_commands = emitter->commands.count;
  program->constants = emitter->constants.items;
  program->num_constants = emitter->constants.count;
  program->calls = emitter->calls.items;
  program->num_calls = emitter->calls.count;
  return NULL;
}

static mp_status_t plan_move_late(mp_emitter_t *emitter) {
  const mp_program_t *program = emitter->program;
  bool *is_donated = MP_ARENA_ARRAY(emitter->scratch, bool, (size_t)program->num_params + 1);
  MP_RETURN_IF_NULL(is_donated);
  for (uint32_t i = 0; i < program->num_params; ++i) {
    is_donated[i] = program->params[i].alias >= 0;
  }
  return mp_plan_move_late(emitter->module, is_donated, emitter->scratch);
}

static mp_status_t plan(mp_emitter_t *emitter) {
  MP_RETURN_IF_ERROR(plan_io(emitter));
  MP_RETURN_IF_ERROR(plan_move_late(emitter));
  MP_RETURN_IF_ERROR(mp_liveness_compute(emitter->module, emitter->scratch, &emitter->live));
  emitter->kernels =
      MP_ARENA_ARRAY(emitter->scratch, const mp_kernel_t *, emitter->live.num_positions);
  emitter->slots =
      MP_ARENA_ARRAY(emitter->scratch, mp_slot_t, (size_t)emitter->live.num_values + 1);
  emitter->has_slot = MP_ARENA_ARRAY(emitter->scratch, bool, (size_t)emitter->live.num_values + 1);
  if (emitter->kernels == NULL || emitter->slots == NULL || emitter->has_slot == NULL) {
    return mp_status_out_of_memory();
  }
  MP_RETURN_IF_ERROR(plan_begin_lenders(emitter));
  MP_RETURN_IF_ERROR(plan_emit_main(emitter));
  MP_RETURN_IF_ERROR(plan_finish(emitter));
  if (emitter->options->open_loops) return NULL;
  return mp_plan_fold_loops(emitter->program, emitter->places.items, emitter->places.count);
}

mp_status_t mp_plan_create(mp_module_t *module, const mp_plan_options_t *options,
                           mp_program_t **out_program) {
  mp_emitter_t emitter = {.module = module, .options = options};
  mp_status_t status = NULL;
  MP_GOTO_IF_ERROR(status, mp_arena_create(&emitter.arena), done);
  MP_GOTO_IF_ERROR(status, mp_arena_create(&emitter.scratch), done);
  emitter.program = MP_ARENA_NEW(emitter.arena, mp_program_t);
  if (emitter.program == NULL) {
    status = mp_status_out_of_memory();
    goto done;
  }
  *emitter.program = (mp_program_t){.arena = emitter.arena,
                                    .module = module,
                                    .name = module->name,
                                    .num_replicas = options->num_replicas,
                                    .num_partitions = options->num_partitions,
                                    .answers = options->answers,
                                    .report = options->partition.report,
                                    .inspected = options->partition.inspected,
                                    .num_inspected = options->partition.num_inspected};
  status = plan(&emitter);
done:
  mp_arena_release(emitter.scratch);
  if (status != NULL) {
    for (uint32_t i = 0; i < emitter.calls.count; ++i) {
      mp_foreign_call_release(emitter.calls.items[i]);
    }
    mp_arena_release(emitter.arena);
    return status;
  }
  emitter.program->partitioned = options->partitioned;
  mp_program_check(emitter.program);
  *out_program = emitter.program;
  return NULL;
}
