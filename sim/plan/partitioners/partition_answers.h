// The answers of custom partitioners, as bytes that are stored with a program: a process that loads
// the program does not need the partitioners, which are functions of the process that stored it.
//
// Answers are used in the order in which they were given. The message (PartitionAnswers) is
//   1 repeated: 1 target of the call, 2 hash of the question, 3 program, 4 repeated: sharding of an
//   operand, 5 sharding of the result.
#ifndef MINIPOD_SIM_PLAN_PARTITIONERS_PARTITION_ANSWERS_H_
#define MINIPOD_SIM_PLAN_PARTITIONERS_PARTITION_ANSWERS_H_

#include "sim/base/arena.h"
#include "sim/foreign/foreign_partitioner.h"

// Appends an answer to a record. Errors are kept in the buffer.
void mp_partition_answers_add(mp_strbuf_t *record, mp_str_t target,
                              const mp_foreign_question_t *question,
                              const mp_foreign_answer_t *answer);

// Whether the record has an answer for calls of this target.
bool mp_partition_answers_know(mp_str_t record, mp_str_t target);

// Takes the answer to a question, which must be the next one of the record, and leaves the rest in
// `*record`. The answer borrows from the record; its list of shardings is in `arena`.
// INVALID_ARGUMENT when the record is damaged or has the answers to other questions.
MP_NODISCARD mp_status_t mp_partition_answers_take(mp_arena_t *arena, mp_str_t *record,
                                                   mp_str_t target,
                                                   const mp_foreign_question_t *question,
                                                   mp_foreign_answer_t *out_answer);

#endif  // MINIPOD_SIM_PLAN_PARTITIONERS_PARTITION_ANSWERS_H_
