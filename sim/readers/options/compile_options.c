#include "sim/readers/options/compile_options.h"

#include "sim/base/proto.h"
#include "sim/readers/options/debug_options.h"

enum { MAX_SHAPE_DEPTH = 32, MAX_DEVICES = 1 << 24 };

// Field numbers.
enum { ARGUMENT_LAYOUTS = 1, TUPLED = 2, BUILD_OPTIONS = 3, PORTABLE = 4, PROFILE = 5, ENV = 7 };
enum {
  DEVICE_ORDINAL = 1,
  RESULT_LAYOUT = 2,
  NUM_REPLICAS = 4,
  NUM_PARTITIONS = 5,
  USE_SPMD = 6,
  USE_AUTO_SPMD = 7,
  DEVICE_ASSIGNMENT = 9,
  PROPAGATE_TO_OUTPUT = 12,
  PROPAGATE_TO_PARAMETERS = 18,
  USE_SHARDY = 19,
};
enum { REPLICA_COUNT = 1, COMPUTATION_COUNT = 2, COMPUTATION_DEVICES = 3 };
enum { SHAPE_TUPLE_SHAPES = 4, SHAPE_LAYOUT = 5 };
enum { LAYOUT_MINOR_TO_MAJOR = 1, LAYOUT_TILES = 6, LAYOUT_MEMORY_SPACE = 8 };

// ---- layouts: row-major, or refused ----

static mp_status_t compile_options_check_minor_to_major(mp_proto_reader_t *reader,
                                                        const mp_proto_field_t *field,
                                                        const char *what) {
  mp_proto_values_t values = mp_proto_values(reader, field, MP_PROTO_VARINT);
  uint64_t expected = mp_proto_values_count(&values), dim = 0;
  while (mp_proto_values_next(&values, &dim)) {
    if (dim == --expected) continue;
    return mp_status_make(MP_UNIMPLEMENTED,
                          "compile options: %s has a layout that is not row-major", what);
  }
  return NULL;
}

static mp_status_t compile_options_check_layout(mp_proto_reader_t reader, const char *what) {
  mp_proto_field_t field;
  while (mp_proto_next(&reader, &field)) {
    // In protocol buffers' unpacked form each dimension is a field, here taken as a whole layout:
    // only a layout of rank 1 passes then.
    if (field.number == LAYOUT_MINOR_TO_MAJOR) {
      MP_RETURN_IF_ERROR(compile_options_check_minor_to_major(&reader, &field, what));
    } else if (field.number == LAYOUT_TILES || field.number == LAYOUT_MEMORY_SPACE) {
      return mp_status_make(MP_UNIMPLEMENTED,
                            "compile options: %s has a layout with tiles or a memory space", what);
    }
  }
  return mp_proto_reader_status(&reader);
}

static mp_status_t compile_options_check_shape(mp_proto_reader_t reader, const char *what,
                                               int depth) {
  mp_proto_field_t field;
  while (mp_proto_next(&reader, &field)) {
    if (field.number == SHAPE_LAYOUT) {
      MP_RETURN_IF_ERROR(
          compile_options_check_layout(mp_proto_message(&reader, &field, "LayoutProto"), what));
    } else if (field.number == SHAPE_TUPLE_SHAPES && depth >= MAX_SHAPE_DEPTH) {
      mp_proto_fault(&reader, &field, "tuples are nested too deeply");
    } else if (field.number == SHAPE_TUPLE_SHAPES) {
      MP_RETURN_IF_ERROR(compile_options_check_shape(
          mp_proto_message(&reader, &field, "ShapeProto"), what, depth + 1));
    }
  }
  return mp_proto_reader_status(&reader);
}

// ---- device assignment ----

typedef struct {
  uint32_t *ids;  // [replica * partitions + partition]
  uint64_t replicas, partitions;
  uint64_t next;  // partition of the next row
} assignment_t;

// Reads the devices of one computation, which is one partition: one device per replica.
static mp_status_t compile_options_read_row(mp_proto_reader_t reader, assignment_t *assignment) {
  mp_proto_field_t field;
  uint64_t replica = 0;
  if (assignment->next >= assignment->partitions) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "compile options: the device assignment has more rows than its %llu "
                          "computations",
                          (unsigned long long)assignment->partitions);
  }
  while (mp_proto_next(&reader, &field)) {
    if (field.number != 1) continue;
    mp_proto_values_t values = mp_proto_values(&reader, &field, MP_PROTO_VARINT);
    uint64_t id = 0;
    while (mp_proto_values_next(&values, &id)) {
      if (id > INT32_MAX) {
        mp_proto_fault(&reader, &field, "not a device id");
      } else if (replica >= assignment->replicas) {
        mp_proto_fault(&reader, &field, "more devices than replicas");
      } else {
        assignment->ids[replica++ * assignment->partitions + assignment->next] = (uint32_t)id;
      }
      if (reader.fault != NULL) break;
    }
  }
  MP_RETURN_IF_ERROR(mp_proto_reader_status(&reader));
  if (replica != assignment->replicas) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "compile options: the device assignment has %llu devices for computation "
                          "%llu, not one for each of %llu replicas",
                          (unsigned long long)replica, (unsigned long long)assignment->next,
                          (unsigned long long)assignment->replicas);
  }
  ++assignment->next;
  return NULL;
}

static mp_status_t compile_options_read_assignment_size(mp_proto_reader_t reader,
                                                        assignment_t *assignment) {
  mp_proto_field_t field;
  while (mp_proto_next(&reader, &field)) {
    if (field.number == REPLICA_COUNT) assignment->replicas = mp_proto_varint(&reader, &field);
    if (field.number == COMPUTATION_COUNT) {
      assignment->partitions = mp_proto_varint(&reader, &field);
    }
  }
  return mp_proto_reader_status(&reader);
}

static mp_status_t compile_options_read_assignment(mp_proto_reader_t reader, mp_arena_t *arena,
                                                   mp_compile_options_t *options) {
  assignment_t assignment = {0};
  uint64_t size = (uint64_t)(reader.end - reader.cursor);
  MP_RETURN_IF_ERROR(compile_options_read_assignment_size(reader, &assignment));
  // Every id takes at least one byte of the message, so larger counts are wrong.
  if (assignment.replicas < 1 || assignment.replicas > MAX_DEVICES || assignment.partitions < 1 ||
      assignment.partitions > MAX_DEVICES || assignment.replicas * assignment.partitions > size ||
      assignment.replicas * assignment.partitions > MAX_DEVICES) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "compile options: the device assignment has %llu replicas of %llu "
                          "computations in %llu bytes",
                          (unsigned long long)assignment.replicas,
                          (unsigned long long)assignment.partitions, (unsigned long long)size);
  }
  assignment.ids = MP_ARENA_ARRAY(arena, uint32_t, assignment.replicas * assignment.partitions);
  MP_RETURN_IF_NULL(assignment.ids);
  mp_proto_field_t field;
  while (mp_proto_next(&reader, &field)) {
    if (field.number != COMPUTATION_DEVICES) continue;
    MP_RETURN_IF_ERROR(compile_options_read_row(
        mp_proto_message(&reader, &field, "DeviceAssignmentProto"), &assignment));
  }
  MP_RETURN_IF_ERROR(mp_proto_reader_status(&reader));
  if (assignment.next != assignment.partitions) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "compile options: the device assignment has %llu rows for %llu "
                          "computations",
                          (unsigned long long)assignment.next,
                          (unsigned long long)assignment.partitions);
  }
  options->assignment = assignment.ids;
  options->assigned_replicas = (uint32_t)assignment.replicas;
  options->assigned_partitions = (uint32_t)assignment.partitions;
  return NULL;
}

// ---- the messages ----

// Appends the values of one occurrence of a repeated boolean field: one value, or a packed list.
static mp_status_t compile_options_read_flags(mp_proto_reader_t *reader,
                                              const mp_proto_field_t *field, mp_arena_t *arena,
                                              mp_flag_list_t *list) {
  mp_proto_values_t values = mp_proto_values(reader, field, MP_PROTO_VARINT);
  uint64_t value = 0;
  while (mp_proto_values_next(&values, &value)) {
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(arena, list, value != 0));
  }
  return NULL;
}

static uint32_t compile_options_read_count(mp_proto_reader_t *reader,
                                           const mp_proto_field_t *field) {
  uint64_t value = mp_proto_varint(reader, field);
  if (value > MAX_DEVICES) mp_proto_fault(reader, field, "too large for a count of devices");
  return (uint32_t)value;
}

static mp_status_t compile_options_read_build_field(mp_proto_reader_t *reader,
                                                    const mp_proto_field_t *field,
                                                    mp_arena_t *arena,
                                                    mp_compile_options_t *options) {
  switch (field->number) {
    case DEVICE_ORDINAL:
      options->device_ordinal = (int64_t)mp_proto_varint(reader, field);
      return NULL;
    case RESULT_LAYOUT:
      return compile_options_check_shape(mp_proto_message(reader, field, "ShapeProto"),
                                         "result_layout", 0);
    case NUM_REPLICAS:
      options->num_replicas = compile_options_read_count(reader, field);
      return NULL;
    case NUM_PARTITIONS:
      options->num_partitions = compile_options_read_count(reader, field);
      return NULL;
    case USE_SPMD:
      options->use_spmd_partitioning = mp_proto_bool(reader, field);
      return NULL;
    case USE_AUTO_SPMD:
      if (!mp_proto_bool(reader, field)) return NULL;
      return mp_status_make(MP_UNIMPLEMENTED,
                            "compile options: use_auto_spmd_partitioning is not supported");
    case DEVICE_ASSIGNMENT:
      return compile_options_read_assignment(
          mp_proto_message(reader, field, "DeviceAssignmentProto"), arena, options);
    case PROPAGATE_TO_OUTPUT:
      return compile_options_read_flags(reader, field, arena, &options->propagate_to_output);
    case PROPAGATE_TO_PARAMETERS:
      return compile_options_read_flags(reader, field, arena, &options->propagate_to_parameters);
    case USE_SHARDY:
      options->use_shardy_partitioner = mp_proto_bool(reader, field);
      return NULL;
    default:
      return NULL;  // efforts, profiles, debug options: hints for other compilers
  }
}

static mp_status_t compile_options_read_build_options(mp_proto_reader_t reader, mp_arena_t *arena,
                                                      mp_compile_options_t *options) {
  mp_proto_field_t field;
  while (mp_proto_next(&reader, &field)) {
    MP_RETURN_IF_ERROR(compile_options_read_build_field(&reader, &field, arena, options));
  }
  return mp_proto_reader_status(&reader);
}

static mp_status_t compile_options_read_override(mp_proto_reader_t entry, mp_arena_t *arena,
                                                 mp_compile_options_t *options) {
  mp_str_t flag = {0};
  MP_RETURN_IF_ERROR(
      mp_debug_option_read(entry, options->is_tpu, arena, &options->as_written, &flag));
  return flag.size == 0 ? NULL : MP_ARRAY_PUSH(arena, &options->libtpu_flags, flag);
}

static mp_status_t compile_options_read_field(mp_proto_reader_t *reader,
                                              const mp_proto_field_t *field, mp_arena_t *arena,
                                              mp_compile_options_t *options) {
  switch (field->number) {
    case ARGUMENT_LAYOUTS:
      return compile_options_check_shape(mp_proto_message(reader, field, "ShapeProto"),
                                         "argument_layouts", 0);
    case TUPLED:
      options->is_tupled = mp_proto_bool(reader, field);
      return NULL;
    case BUILD_OPTIONS:
      return compile_options_read_build_options(
          mp_proto_message(reader, field, "ExecutableBuildOptionsProto"), arena, options);
    case PORTABLE:
      options->compile_portable = mp_proto_bool(reader, field);
      return NULL;
    case PROFILE:
      options->profile_version = (int64_t)mp_proto_varint(reader, field);
      return NULL;
    case ENV:
      return compile_options_read_override(
          mp_proto_message(reader, field, "CompileOptionsProto.env_option_overrides"), arena,
          options);
    default:
      return NULL;
  }
}

// Counts that stand both in the options and in the device assignment must agree.
static mp_status_t compile_options_check_counts(const mp_compile_options_t *options) {
  if (options->assignment == NULL) return NULL;
  uint32_t replicas = options->num_replicas == 0 ? 1 : options->num_replicas;
  uint32_t partitions = options->num_partitions == 0 ? 1 : options->num_partitions;
  if (replicas == options->assigned_replicas && partitions == options->assigned_partitions) {
    return NULL;
  }
  return mp_status_make(MP_INVALID_ARGUMENT,
                        "compile options: requested are %u replicas of %u partitions, the device "
                        "assignment has %u replicas of %u",
                        replicas, partitions, options->assigned_replicas,
                        options->assigned_partitions);
}

mp_status_t mp_compile_options_read(const void *data, size_t size, bool is_tpu, mp_arena_t *arena,
                                    mp_compile_options_t *out_options) {
  mp_compile_options_t options = {.device_ordinal = -1, .is_tpu = is_tpu};
  mp_proto_reader_t reader = mp_proto_reader((mp_str_t){data, size}, "CompileOptionsProto");
  mp_proto_field_t field;
  while (mp_proto_next(&reader, &field)) {
    MP_RETURN_IF_ERROR(compile_options_read_field(&reader, &field, arena, &options));
  }
  MP_RETURN_IF_ERROR(mp_proto_reader_status(&reader));
  MP_RETURN_IF_ERROR(compile_options_check_counts(&options));
  *out_options = options;
  return NULL;
}
