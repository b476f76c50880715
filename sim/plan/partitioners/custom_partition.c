#include "sim/plan/partitioners/custom_partition.h"

#include "sim/base/proto.h"
#include "sim/foreign/foreign_partitioner.h"
#include "sim/foreign/foreign_values.h"
#include "sim/ir/verify/verify.h"
#include "sim/passes/passes.h"
#include "sim/plan/partitioners/partition_answers.h"
#include "sim/readers/reader.h"
#include "sim/spmd/sharding/op_sharding.h"

// Fields of ShapeProto and LayoutProto, and the element type of a tuple.
enum {
  FIELD_ELEMENT_TYPE = 2,
  FIELD_DIMENSIONS = 3,
  FIELD_TUPLE_SHAPES = 4,
  FIELD_LAYOUT = 5,
  FIELD_IS_DYNAMIC = 6,
  LAYOUT_MINOR_TO_MAJOR = 1,
  TYPE_TUPLE = 13,
};

// Copies the buffer's text into the arena, and empties the buffer.
static mp_status_t custom_partition_keep(mp_arena_t *arena, mp_strbuf_t *buffer,
                                         mp_str_t *out_text) {
  mp_status_t status = mp_strbuf_status(buffer);
  char *copy =
      status == NULL ? mp_arena_strndup(arena, mp_strbuf_text(buffer), buffer->size) : NULL;
  if (status == NULL && copy == NULL) status = mp_status_out_of_memory();
  if (status == NULL) *out_text = (mp_str_t){copy, buffer->size};
  mp_strbuf_deinit(buffer);
  mp_strbuf_init(buffer);
  return status;
}

// ---- Questions ----

static void custom_partition_write_shape(const mp_type_t *type, mp_strbuf_t *out) {
  int64_t minor_to_major[MP_MAX_RANK], fixed[MP_MAX_RANK];
  for (uint32_t i = 0; i < type->rank; ++i) {
    minor_to_major[i] = type->rank - 1 - i;
    fixed[i] = 0;
  }
  // The interface of foreign functions has XLA's numbers of the element types.
  mp_proto_put_varint(out, FIELD_ELEMENT_TYPE, (uint64_t)mp_foreign_dtype(type->dtype));
  mp_proto_put_packed(out, FIELD_DIMENSIONS, type->dims, type->rank);
  mp_strbuf_t layout;
  mp_strbuf_init(&layout);
  mp_proto_put_packed(&layout, LAYOUT_MINOR_TO_MAJOR, minor_to_major, type->rank);
  mp_proto_put_message(out, FIELD_LAYOUT, &layout);
  mp_strbuf_deinit(&layout);
  mp_proto_put_packed(out, FIELD_IS_DYNAMIC, fixed, type->rank);
}

static mp_status_t custom_partition_make_aval(mp_arena_t *arena, const mp_op_t *op,
                                              const mp_type_t *type, const mp_boxes_t *boxes,
                                              mp_foreign_aval_t *out_aval) {
  if (!mp_type_is_tensor(type) || !mp_type_is_static(type) ||
      mp_foreign_dtype(type->dtype) == XLA_FFI_DataType_INVALID) {
    return mp_op_error(op, MP_UNIMPLEMENTED,
                       "a call with a partitioner of its own takes and gives arrays only");
  }
  bool is_grid = true;
  mp_strbuf_t buffer;
  mp_strbuf_init(&buffer);
  custom_partition_write_shape(type, &buffer);
  MP_RETURN_IF_ERROR(custom_partition_keep(arena, &buffer, &out_aval->shape));
  // Partitioners cannot express a sharding that is no grid: it is passed to them as replicated.
  mp_status_t status = mp_op_sharding_write(arena, boxes, false, &buffer, &is_grid);
  if (status == NULL) return custom_partition_keep(arena, &buffer, &out_aval->sharding);
  mp_strbuf_deinit(&buffer);
  return status;
}

static mp_status_t custom_partition_make_tuple(mp_arena_t *arena, const mp_foreign_aval_t *elements,
                                               uint32_t count, mp_foreign_aval_t *out_aval) {
  mp_str_t *shardings = MP_ARENA_ARRAY(arena, mp_str_t, count);
  MP_RETURN_IF_NULL(shardings);
  mp_strbuf_t buffer;
  mp_strbuf_init(&buffer);
  mp_proto_put_varint(&buffer, FIELD_ELEMENT_TYPE, TYPE_TUPLE);
  for (uint32_t i = 0; i < count; ++i) {
    mp_proto_put_bytes(&buffer, FIELD_TUPLE_SHAPES, elements[i].shape);
    shardings[i] = elements[i].sharding;
  }
  MP_RETURN_IF_ERROR(custom_partition_keep(arena, &buffer, &out_aval->shape));
  mp_op_sharding_write_tuple(shardings, count, &buffer);
  return custom_partition_keep(arena, &buffer, &out_aval->sharding);
}

static mp_status_t custom_partition_make_question(mp_arena_t *arena, const mp_op_t *op,
                                                  const mp_boxes_t *const *operands,
                                                  const mp_boxes_t *const *results,
                                                  mp_foreign_question_t *out_question) {
  mp_foreign_aval_t *of_operands = MP_ARENA_ARRAY(arena, mp_foreign_aval_t, op->num_operands);
  mp_foreign_aval_t *of_results = MP_ARENA_ARRAY(arena, mp_foreign_aval_t, op->num_results);
  if (of_operands == NULL || of_results == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    MP_RETURN_IF_ERROR(
        custom_partition_make_aval(arena, op, op->operands[i]->type, operands[i], &of_operands[i]));
  }
  for (uint32_t i = 0; i < op->num_results; ++i) {
    MP_RETURN_IF_ERROR(
        custom_partition_make_aval(arena, op, op->results[i].type, results[i], &of_results[i]));
  }
  *out_question = (mp_foreign_question_t){
      .num_operands = op->num_operands,
      .operands = of_operands,
      .config = mp_op_str(op, MP_ATTR_BACKEND_CONFIG),
  };
  if (op->num_results != 1) {
    return custom_partition_make_tuple(arena, of_results, op->num_results, &out_question->result);
  }
  out_question->result = of_results[0];
  return NULL;
}

// ---- Answers ----

static mp_status_t custom_partition_print(mp_arena_t *arena, mp_str_t message, mp_str_t *out_text) {
  mp_strbuf_t buffer;
  mp_strbuf_init(&buffer);
  mp_status_t status = mp_op_sharding_print(message, &buffer);
  if (status == NULL) return custom_partition_keep(arena, &buffer, out_text);
  mp_strbuf_deinit(&buffer);
  return status;
}

static mp_status_t custom_partition_read_shardings(mp_arena_t *arena, const mp_op_t *op,
                                                   const mp_foreign_answer_t *answer,
                                                   mp_custom_answer_t *out_answer) {
  mp_str_t *operands = MP_ARENA_ARRAY(arena, mp_str_t, op->num_operands);
  mp_str_t *results = MP_ARENA_ARRAY(arena, mp_str_t, op->num_results);
  if (operands == NULL || results == NULL) return mp_status_out_of_memory();
  MP_RETURN_IF_ERROR(mp_op_sharding_elements(answer->result_sharding, op->num_results, results));
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    MP_RETURN_IF_ERROR(custom_partition_print(arena, answer->operand_shardings[i], &operands[i]));
  }
  for (uint32_t i = 0; i < op->num_results; ++i) {
    MP_RETURN_IF_ERROR(custom_partition_print(arena, results[i], &results[i]));
  }
  out_answer->operand_shardings = operands;
  out_answer->result_shardings = results;
  return NULL;
}

// Reads the program and desugars it into one function. It lives as long as `module`.
static mp_status_t custom_partition_read_program(mp_module_t *module, mp_str_t code,
                                                 mp_module_t **out_program) {
  mp_module_t *program = NULL;
  MP_RETURN_IF_ERROR(mp_read_program(code.data, code.size, MP_PROGRAM_MLIR, &program));
  mp_module_adopt(module, program);
  MP_RETURN_IF_ERROR(mp_module_verify(program));
  MP_RETURN_IF_ERROR(mp_passes_prepare(program));
  MP_RETURN_IF_ERROR(mp_module_verify(program));
  *out_program = program;
  return NULL;
}

// ---- The bridge ----

static bool custom_partition_knows(void *context, mp_str_t target) {
  const mp_plan_answers_t *answers = context;
  if (answers->was_given) return mp_partition_answers_know(answers->given, target);
  return mp_foreign_find_partitioner(target) != NULL;
}

static mp_status_t custom_partition_get_answer(mp_plan_answers_t *answers, mp_arena_t *arena,
                                               mp_str_t target,
                                               const mp_foreign_question_t *question,
                                               mp_foreign_answer_t *out_answer) {
  if (answers->was_given) {
    return mp_partition_answers_take(arena, &answers->left, target, question, out_answer);
  }
  const mp_foreign_partitioner_t *partitioner = mp_foreign_find_partitioner(target);
  return partitioner->ask(partitioner->partitioner, question, out_answer);
}

static mp_status_t custom_partition_ask(void *context, mp_module_t *module, const mp_op_t *op,
                                        const mp_boxes_t *const *operands,
                                        const mp_boxes_t *const *results,
                                        mp_custom_answer_t *out_answer) {
  mp_plan_answers_t *answers = context;
  const mp_str_t target = mp_op_str(op, MP_ATTR_CALL_TARGET_NAME);
  mp_foreign_question_t question;
  MP_RETURN_IF_ERROR(
      custom_partition_make_question(module->arena, op, operands, results, &question));
  mp_foreign_answer_t answer = {0};
  mp_status_t status =
      custom_partition_get_answer(answers, module->arena, target, &question, &answer);
  if (status == NULL) {
    mp_partition_answers_add(&answers->taken, target, &question, &answer);
    status = custom_partition_read_shardings(module->arena, op, &answer, out_answer);
  }
  if (status == NULL) {
    status = mp_status_annotate(
        custom_partition_read_program(module, answer.module, &out_answer->module),
        "the program that its partitioner made");
  }
  if (answer.cleanup != NULL) answer.cleanup(answer.data);
  return status;
}

mp_custom_partitioner_t mp_plan_custom_partitioner(mp_plan_answers_t *answers) {
  return (mp_custom_partitioner_t){answers, custom_partition_knows, custom_partition_ask};
}
