#include "sim/plan/partitioners/partition_answers.h"

#include "sim/base/hash.h"
#include "sim/base/proto.h"

enum { FIELD_ANSWER = 1 };
enum { FIELD_TARGET = 1, FIELD_QUESTION, FIELD_PROGRAM, FIELD_OPERAND, FIELD_RESULT };

static const char message_name[] = "answers of partitioners";

static uint64_t partition_answers_hash_text(uint64_t hash, mp_str_t text) {
  return mp_hash_bytes(mp_hash_u64(hash, text.size), text.data, text.size);
}

static uint64_t partition_answers_hash_aval(uint64_t hash, const mp_foreign_aval_t *aval) {
  return partition_answers_hash_text(partition_answers_hash_text(hash, aval->shape),
                                     aval->sharding);
}

// The call's configuration is not hashed, because it names objects of the process that asked first.
static uint64_t partition_answers_hash(const mp_foreign_question_t *question) {
  uint64_t hash = mp_hash_u64(MP_HASH_START, question->num_operands);
  for (uint32_t i = 0; i < question->num_operands; ++i) {
    hash = partition_answers_hash_aval(hash, &question->operands[i]);
  }
  return partition_answers_hash_aval(hash, &question->result);
}

void mp_partition_answers_add(mp_strbuf_t *record, mp_str_t target,
                              const mp_foreign_question_t *question,
                              const mp_foreign_answer_t *answer) {
  mp_strbuf_t bytes;
  mp_strbuf_init(&bytes);
  mp_proto_put_bytes(&bytes, FIELD_TARGET, target);
  mp_proto_put_varint(&bytes, FIELD_QUESTION, partition_answers_hash(question));
  mp_proto_put_bytes(&bytes, FIELD_PROGRAM, answer->module);
  for (uint32_t i = 0; i < question->num_operands; ++i) {
    mp_proto_put_bytes(&bytes, FIELD_OPERAND, answer->operand_shardings[i]);
  }
  mp_proto_put_bytes(&bytes, FIELD_RESULT, answer->result_sharding);
  mp_proto_put_message(record, FIELD_ANSWER, &bytes);
  mp_strbuf_deinit(&bytes);
}

// Reads the first answer of a record; false at its end and where it is damaged.
static bool partition_answers_first(mp_str_t record, mp_str_t *out_answer, mp_str_t *out_rest) {
  mp_proto_reader_t reader = mp_proto_reader(record, message_name);
  mp_proto_field_t field;
  if (!mp_proto_next(&reader, &field) || field.number != FIELD_ANSWER) return false;
  *out_answer = mp_proto_bytes(&reader, &field);
  *out_rest = (mp_str_t){(const char *)reader.cursor, (size_t)(reader.end - reader.cursor)};
  return reader.fault == NULL;
}

static mp_str_t partition_answers_target(mp_str_t answer) {
  mp_proto_reader_t reader = mp_proto_reader(answer, message_name);
  mp_proto_field_t field;
  while (mp_proto_next(&reader, &field)) {
    if (field.number == FIELD_TARGET) return mp_proto_bytes(&reader, &field);
  }
  return MP_STR("");
}

bool mp_partition_answers_know(mp_str_t record, mp_str_t target) {
  mp_str_t answer = MP_STR("");
  while (partition_answers_first(record, &answer, &record)) {
    if (mp_str_equal(partition_answers_target(answer), target)) return true;
  }
  return false;
}

mp_status_t mp_partition_answers_take(mp_arena_t *arena, mp_str_t *record, mp_str_t target,
                                      const mp_foreign_question_t *question,
                                      mp_foreign_answer_t *out_answer) {
  mp_str_t bytes = MP_STR(""), rest = MP_STR("");
  mp_str_t *operands = MP_ARENA_ARRAY(arena, mp_str_t, question->num_operands + 1);
  MP_RETURN_IF_NULL(operands);
  bool is_known = partition_answers_first(*record, &bytes, &rest) &&
                  mp_str_equal(partition_answers_target(bytes), target);
  uint64_t hash = 0;
  uint32_t count = 0;
  mp_foreign_answer_t answer = {.operand_shardings = operands};
  mp_proto_reader_t reader = mp_proto_reader(bytes, message_name);
  mp_proto_field_t field;
  while (is_known && mp_proto_next(&reader, &field)) {
    if (field.number == FIELD_QUESTION) hash = mp_proto_varint(&reader, &field);
    if (field.number == FIELD_PROGRAM) answer.module = mp_proto_bytes(&reader, &field);
    if (field.number == FIELD_RESULT) answer.result_sharding = mp_proto_bytes(&reader, &field);
    if (field.number != FIELD_OPERAND) continue;
    is_known = count < question->num_operands;
    if (is_known) operands[count++] = mp_proto_bytes(&reader, &field);
  }
  MP_RETURN_IF_ERROR(mp_proto_reader_status(&reader));
  if (!is_known || count != question->num_operands || hash != partition_answers_hash(question)) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "the stored answers of partitioners are not those to this program's "
                          "questions: it was stored with other options");
  }
  *record = rest;
  *out_answer = answer;
  return NULL;
}
