#include "sim/model/report/profile/memory_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/base/proto.h"
#include "sim/chip/memory/chip_memory.h"
#include "sim/model/report/events/watching.h"

// The fields of xla/service/hlo.proto and xla/xla_data.proto that are written here.
enum { HLO_MODULE = 1, HLO_BUFFER_ASSIGNMENT = 3 };
enum {
  MODULE_NAME = 1,
  MODULE_ENTRY_NAME = 2,
  MODULE_COMPUTATIONS = 3,
  MODULE_PROGRAM_SHAPE = 4,
  MODULE_ENTRY_ID = 6,
};
enum {
  COMPUTATION_NAME = 1,
  COMPUTATION_INSTRUCTIONS = 2,
  COMPUTATION_PROGRAM_SHAPE = 4,
  COMPUTATION_ID = 5,
  COMPUTATION_ROOT_ID = 6,
};
enum {
  INSTRUCTION_NAME = 1,
  INSTRUCTION_OPCODE = 2,
  INSTRUCTION_SHAPE = 3,
  INSTRUCTION_METADATA = 7,
  INSTRUCTION_PARAMETER = 9,
  INSTRUCTION_TARGET = 28,
  INSTRUCTION_ID = 35,
};
enum { METADATA_OP_NAME = 2, METADATA_FILE = 3, METADATA_LINE = 4 };
enum { PROGRAM_PARAMETERS = 1, PROGRAM_RESULT = 2, PROGRAM_NAMES = 3 };
enum { SHAPE_TYPE = 2, SHAPE_DIMS = 3, SHAPE_LAYOUT = 5, SHAPE_DYNAMIC = 6 };
enum { LAYOUT_MINOR_TO_MAJOR = 1, TYPE_TUPLE = 13, TYPE_TOKEN = 17 };
enum { ASSIGNMENT_BUFFERS = 1, ASSIGNMENT_ALLOCATIONS = 3, ASSIGNMENT_TRACES = 4 };
enum { BUFFER_ID = 1, BUFFER_SIZE = 2, BUFFER_DEFINED_AT = 3 };
enum { LOCATION_NAME = 2, LOCATION_ID = 4 };
enum {
  ALLOCATION_INDEX = 1,
  ALLOCATION_SIZE = 2,
  ALLOCATION_IS_PARAMETER = 5,
  ALLOCATION_PARAMETER = 6,
  ALLOCATION_LIVES_ON = 7,
  ALLOCATION_ASSIGNED = 9,
};
enum { ASSIGNED_BUFFER = 1, ASSIGNED_OFFSET = 2, ASSIGNED_SIZE = 3 };
enum { TRACE_EVENTS = 1, TRACE_ALLOCATION = 3 };
enum { EVENT_KIND = 1, EVENT_BUFFER = 2, EVENT_NAME = 4 };
enum { EVENT_ALLOC, EVENT_FREE };

static const char k_entry[] = "main";

// The message in the making: its parts, and how many instructions there are. An instruction, its
// buffer and the buffer's allocation have the same number; all temporaries share an allocation.
typedef struct {
  mp_strbuf_t computation, program_shape, assignment;
  mp_strbuf_t temporaries, trace;  // what is assigned to their allocation, and their events
  int64_t count;
} memory_plan_t;

// ---- shapes ----

// So many bytes, where there is no value that they are of.
static void memory_plan_print_bytes(uint64_t bytes, mp_strbuf_t *out) {
  const int64_t dims[] = {(int64_t)bytes};
  mp_proto_put_varint(out, SHAPE_TYPE, (uint64_t)mp_dtype_number(MP_DTYPE_U8, MP_NUMBERS_XLA));
  mp_proto_put_packed(out, SHAPE_DIMS, dims, 1);
}

static void memory_plan_print_shape(const mp_type_t *type, uint64_t bytes, mp_strbuf_t *out) {
  if (type != NULL && type->kind == MP_TYPE_TOKEN) {
    mp_proto_put_varint(out, SHAPE_TYPE, TYPE_TOKEN);
    return;
  }
  if (type == NULL || !mp_type_is_static(type)) {
    memory_plan_print_bytes(bytes, out);
    return;
  }
  const int number = mp_dtype_number(type->dtype, MP_NUMBERS_XLA);
  int64_t order[MP_MAX_RANK], dynamic[MP_MAX_RANK] = {0};
  for (uint32_t i = 0; i < type->rank; ++i) order[i] = (int64_t)(type->rank - 1 - i);
  mp_proto_put_varint(out, SHAPE_TYPE, (uint64_t)number);
  mp_proto_put_packed(out, SHAPE_DIMS, type->dims, type->rank);
  mp_strbuf_t layout;
  mp_strbuf_init(&layout);
  mp_proto_put_packed(&layout, LAYOUT_MINOR_TO_MAJOR, order, type->rank);
  mp_proto_put_message(out, SHAPE_LAYOUT, &layout);
  mp_proto_put_packed(out, SHAPE_DYNAMIC, dynamic, type->rank);
  mp_strbuf_deinit(&layout);
}

// ---- instructions ----

// What a buffer is of: a parameter of this number, or (-1) something that is computed.
typedef struct {
  mp_str_t name;
  const mp_type_t *type;  // NULL: bytes
  uint64_t bytes;
  int64_t parameter;
  const mp_loc_t *loc;  // NULL: unknown
} memory_plan_buffer_t;

static void memory_plan_print_metadata(const mp_loc_t *loc, mp_strbuf_t *out) {
  mp_str_t file;
  uint32_t line;
  mp_strbuf_t metadata;
  mp_strbuf_init(&metadata);
  mp_proto_put_bytes(&metadata, METADATA_OP_NAME, mp_op_path(loc));
  if (mp_op_source(loc, &file, &line)) {
    mp_proto_put_bytes(&metadata, METADATA_FILE, file);
    mp_proto_put_varint(&metadata, METADATA_LINE, line);
  }
  mp_proto_put_message(out, INSTRUCTION_METADATA, &metadata);
  mp_strbuf_deinit(&metadata);
}

// Adds the instruction that stands for a buffer, and the buffer; its number comes back.
static int64_t memory_plan_add(memory_plan_t *plan, const memory_plan_buffer_t *buffer) {
  const int64_t id = plan->count++;
  mp_strbuf_t shape, instruction, location, logical;
  mp_strbuf_init(&shape);
  mp_strbuf_init(&instruction);
  mp_strbuf_init(&location);
  mp_strbuf_init(&logical);
  memory_plan_print_shape(buffer->type, buffer->bytes, &shape);
  mp_proto_put_bytes(&instruction, INSTRUCTION_NAME, buffer->name);
  mp_proto_put_bytes(&instruction, INSTRUCTION_OPCODE,
                     mp_str(buffer->parameter < 0 ? "custom-call" : "parameter"));
  mp_proto_put_message(&instruction, INSTRUCTION_SHAPE, &shape);
  if (buffer->loc != NULL) memory_plan_print_metadata(buffer->loc, &instruction);
  if (buffer->parameter < 0) {
    mp_proto_put_bytes(&instruction, INSTRUCTION_TARGET, mp_str("minipod"));
  } else {
    mp_proto_put_varint(&instruction, INSTRUCTION_PARAMETER, (uint64_t)buffer->parameter);
    mp_proto_put_message(&plan->program_shape, PROGRAM_PARAMETERS, &shape);
    mp_proto_put_bytes(&plan->program_shape, PROGRAM_NAMES, buffer->name);
  }
  mp_proto_put_varint(&instruction, INSTRUCTION_ID, (uint64_t)id);
  mp_proto_put_message(&plan->computation, COMPUTATION_INSTRUCTIONS, &instruction);
  mp_proto_put_bytes(&location, LOCATION_NAME, buffer->name);
  mp_proto_put_varint(&location, LOCATION_ID, (uint64_t)id);
  mp_proto_put_varint(&logical, BUFFER_ID, (uint64_t)id);
  mp_proto_put_varint(&logical, BUFFER_SIZE, buffer->bytes);
  mp_proto_put_message(&logical, BUFFER_DEFINED_AT, &location);
  mp_proto_put_message(&plan->assignment, ASSIGNMENT_BUFFERS, &logical);
  mp_strbuf_deinit(&shape);
  mp_strbuf_deinit(&instruction);
  mp_strbuf_deinit(&location);
  mp_strbuf_deinit(&logical);
  return id;
}

static void memory_plan_put_assigned(int64_t id, uint64_t offset, uint64_t bytes,
                                     mp_strbuf_t *out) {
  mp_strbuf_t assigned;
  mp_strbuf_init(&assigned);
  mp_proto_put_varint(&assigned, ASSIGNED_BUFFER, (uint64_t)id);
  mp_proto_put_varint(&assigned, ASSIGNED_OFFSET, offset);
  mp_proto_put_varint(&assigned, ASSIGNED_SIZE, bytes);
  mp_proto_put_message(out, ALLOCATION_ASSIGNED, &assigned);
  mp_strbuf_deinit(&assigned);
}

// ---- arguments and results ----

// An argument, or a result that has a place of its own.
static void memory_plan_add_io(memory_plan_t *plan, const mp_program_io_t *io, const char *what,
                               uint32_t index, bool is_parameter,
                               const mp_chip_figures_t *figures) {
  mp_strbuf_t name, allocation;
  mp_strbuf_init(&name);
  mp_strbuf_init(&allocation);
  mp_strbuf_printf(&name, "%s.%" PRIu32, what, index);
  const uint64_t bytes = io->memory == MP_MEMORY_DEVICE ? mp_memory_bytes(figures, io->type) : 0;
  const int64_t id = memory_plan_add(
      plan, &(memory_plan_buffer_t){.name = {mp_strbuf_text(&name), name.size},
                                    .type = io->type,
                                    .bytes = bytes,
                                    .parameter = is_parameter ? (int64_t)index : -1});
  mp_proto_put_varint(&allocation, ALLOCATION_INDEX, (uint64_t)id);
  mp_proto_put_varint(&allocation, ALLOCATION_SIZE, bytes);
  if (is_parameter) {
    mp_proto_put_varint(&allocation, ALLOCATION_IS_PARAMETER, 1);
    mp_proto_put_varint(&allocation, ALLOCATION_PARAMETER, index);
  }
  if (!is_parameter || io->alias >= 0) mp_proto_put_varint(&allocation, ALLOCATION_LIVES_ON, 1);
  memory_plan_put_assigned(id, 0, bytes, &allocation);
  mp_proto_put_message(&plan->assignment, ASSIGNMENT_ALLOCATIONS, &allocation);
  mp_strbuf_deinit(&name);
  mp_strbuf_deinit(&allocation);
}

static void memory_plan_add_ios(memory_plan_t *plan, const mp_program_t *program,
                                const mp_chip_figures_t *figures) {
  for (uint32_t i = 0; i < program->num_params; ++i) {
    memory_plan_add_io(plan, &program->params[i], "argument", i, true, figures);
  }
  for (uint32_t i = 0; i < program->num_results; ++i) {
    if (program->results[i].alias >= 0) continue;  // it is where an argument was
    memory_plan_add_io(plan, &program->results[i], "result", i, false, figures);
  }
}

// ---- temporaries ----

typedef struct {
  uint32_t position;
  bool is_free;
  int64_t id;
  char name[64];
} memory_plan_event_t;

static int memory_plan_compare(const void *a, const void *b) {
  const memory_plan_event_t *x = a, *y = b;
  if (x->is_free != y->is_free) return x->is_free ? 1 : -1;  // all live at one moment
  return (x->position > y->position) - (x->position < y->position);
}

static void memory_plan_put_event(memory_plan_t *plan, const memory_plan_event_t *event) {
  mp_strbuf_t message;
  mp_strbuf_init(&message);
  mp_proto_put_varint(&message, EVENT_KIND, event->is_free ? EVENT_FREE : EVENT_ALLOC);
  mp_proto_put_varint(&message, EVENT_BUFFER, (uint64_t)event->id);
  mp_proto_put_bytes(&message, EVENT_NAME, mp_str(event->name));
  mp_proto_put_message(&plan->trace, TRACE_EVENTS, &message);
  mp_strbuf_deinit(&message);
}

// Adds a temporary and what is known of its life: two events.
static void memory_plan_add_place(memory_plan_t *plan, const mp_memory_place_t *place,
                                  const char *what, memory_plan_event_t *events) {
  const mp_value_t *value = place->value;
  const mp_op_t *op = value != NULL ? value->op : NULL;
  memory_plan_event_t event = {.position = place->first, .id = plan->count};
  (void)snprintf(event.name, sizeof(event.name), "%s.%" PRId64,
                 op != NULL ? mp_op_info(op->code)->name : what, plan->count);
  const memory_plan_buffer_t buffer = {.name = mp_str(event.name),
                                       .type = value != NULL ? value->type : NULL,
                                       .bytes = place->bytes,
                                       .parameter = -1,
                                       .loc = op != NULL ? op->loc : NULL};
  (void)memory_plan_add(plan, &buffer);
  memory_plan_put_assigned(event.id, place->offset, place->bytes, &plan->temporaries);
  events[0] = events[1] = event;
  events[1].position = place->last;
  events[1].is_free = true;
}

static void memory_plan_add_temporaries(memory_plan_t *plan, const mp_chip_space_t *space) {
  memory_plan_event_t events[2 * (MP_MEMORY_MOST_PLACES + 1)];
  uint64_t rest = space->temporaries;
  uint32_t count = 0;
  for (uint32_t i = 0; i < space->num_places; ++i, count += 2) {
    memory_plan_add_place(plan, &space->places[i], "work", &events[count]);
    rest -= space->places[i].bytes < rest ? space->places[i].bytes : rest;
  }
  if (rest > 0) {
    const mp_memory_place_t others = {.bytes = rest, .last = UINT32_MAX};
    memory_plan_add_place(plan, &others, "others", &events[count]);
    count += 2;
  }
  if (count == 0) return;
  qsort(events, count, sizeof(events[0]), memory_plan_compare);
  for (uint32_t i = 0; i < count; ++i) memory_plan_put_event(plan, &events[i]);
  const uint64_t index = (uint64_t)plan->count;
  mp_strbuf_t allocation;
  mp_strbuf_init(&allocation);
  mp_proto_put_varint(&allocation, ALLOCATION_INDEX, index);
  mp_proto_put_varint(&allocation, ALLOCATION_SIZE, space->temporaries);
  mp_strbuf_append(&allocation, mp_strbuf_text(&plan->temporaries), plan->temporaries.size);
  mp_proto_put_message(&plan->assignment, ASSIGNMENT_ALLOCATIONS, &allocation);
  mp_proto_put_varint(&plan->trace, TRACE_ALLOCATION, index);
  mp_proto_put_message(&plan->assignment, ASSIGNMENT_TRACES, &plan->trace);
  mp_strbuf_deinit(&allocation);
}

// ---- the message ----

// Ends the computation with an empty tuple: what it returns does not matter.
static void memory_plan_end(memory_plan_t *plan) {
  mp_strbuf_t shape, root;
  mp_strbuf_init(&shape);
  mp_strbuf_init(&root);
  mp_proto_put_varint(&shape, SHAPE_TYPE, TYPE_TUPLE);
  mp_proto_put_bytes(&root, INSTRUCTION_NAME, mp_str("end"));
  mp_proto_put_bytes(&root, INSTRUCTION_OPCODE, mp_str("tuple"));
  mp_proto_put_message(&root, INSTRUCTION_SHAPE, &shape);
  mp_proto_put_varint(&root, INSTRUCTION_ID, (uint64_t)plan->count);
  mp_proto_put_message(&plan->computation, COMPUTATION_INSTRUCTIONS, &root);
  mp_proto_put_message(&plan->program_shape, PROGRAM_RESULT, &shape);
  mp_proto_put_bytes(&plan->computation, COMPUTATION_NAME, mp_str(k_entry));
  mp_proto_put_message(&plan->computation, COMPUTATION_PROGRAM_SHAPE, &plan->program_shape);
  mp_proto_put_varint(&plan->computation, COMPUTATION_ID, 1);
  mp_proto_put_varint(&plan->computation, COMPUTATION_ROOT_ID, (uint64_t)plan->count);
  mp_strbuf_deinit(&shape);
  mp_strbuf_deinit(&root);
}

void mp_memory_plan_print(const mp_chip_program_t *chip_program, const mp_chip_figures_t *figures,
                          mp_str_t name, mp_strbuf_t *out) {
  memory_plan_t plan = {.count = 1};
  memory_plan_add_ios(&plan, chip_program->program, figures);
  memory_plan_add_temporaries(&plan, &chip_program->memory.device);
  memory_plan_end(&plan);
  mp_strbuf_t module;
  mp_strbuf_init(&module);
  mp_proto_put_bytes(&module, MODULE_NAME, name);
  mp_proto_put_bytes(&module, MODULE_ENTRY_NAME, mp_str(k_entry));
  mp_proto_put_message(&module, MODULE_COMPUTATIONS, &plan.computation);
  mp_proto_put_message(&module, MODULE_PROGRAM_SHAPE, &plan.program_shape);
  mp_proto_put_varint(&module, MODULE_ENTRY_ID, 1);
  mp_proto_put_message(out, HLO_MODULE, &module);
  mp_proto_put_message(out, HLO_BUFFER_ASSIGNMENT, &plan.assignment);
  mp_strbuf_deinit(&module);
  mp_strbuf_deinit(&plan.computation);
  mp_strbuf_deinit(&plan.program_shape);
  mp_strbuf_deinit(&plan.assignment);
  mp_strbuf_deinit(&plan.temporaries);
  mp_strbuf_deinit(&plan.trace);
}
