#include "pjrt/command/exec_part.h"

#include <string.h>

#include "pjrt/command/exec_values.h"

// A contiguous row: its offsets in the part and in the whole array, and its length.
typedef void exec_part_row_t(void *context, int64_t here, int64_t there, int64_t count);

static void exec_part_visit(const mp_exec_part_t *part, exec_part_row_t *visit, void *context) {
  const int64_t row = part->rank == 0 ? 1 : part->dims[part->rank - 1];
  int64_t index[MP_MAX_RANK] = {0}, there = part->begin;
  for (int64_t here = 0; here < part->count; here += row) {
    visit(context, here, there, row);
    for (uint32_t d = part->rank; d-- > 1;) {
      there += part->steps[d - 1];
      if (++index[d - 1] < part->dims[d - 1]) break;
      there -= part->steps[d - 1] * part->dims[d - 1];
      index[d - 1] = 0;
    }
  }
}

typedef struct {
  size_t size;  // of an element
  const char *from;
  char *to;
  mp_dtype_t dtype;
  uint64_t seed;
  uint32_t argument;
} exec_part_copy_t;

static void exec_part_take_row(void *context, int64_t here, int64_t there, int64_t count) {
  const exec_part_copy_t *copy = context;
  memcpy(copy->to + (size_t)here * copy->size, copy->from + (size_t)there * copy->size,
         (size_t)count * copy->size);
}

static void exec_part_give_row(void *context, int64_t here, int64_t there, int64_t count) {
  exec_part_take_row(context, there, here, count);
}

static void exec_part_draw_row(void *context, int64_t here, int64_t there, int64_t count) {
  const exec_part_copy_t *copy = context;
  for (int64_t i = 0; i < count; ++i) {
    mp_exec_values_random(copy->seed, copy->argument, there + i, copy->dtype,
                          copy->to + (size_t)(here + i) * copy->size);
  }
}

void mp_exec_part_take(const mp_exec_part_t *part, const mp_exec_array_t *whole, char *out_data) {
  exec_part_copy_t copy = {
      .size = mp_dtype_size(whole->dtype), .from = whole->data, .to = out_data};
  exec_part_visit(part, exec_part_take_row, &copy);
}

void mp_exec_part_give(const mp_exec_part_t *part, const char *data, mp_exec_array_t *whole) {
  exec_part_copy_t copy = {.size = mp_dtype_size(whole->dtype), .from = data, .to = whole->data};
  exec_part_visit(part, exec_part_give_row, &copy);
}

void mp_exec_part_draw(const mp_exec_part_t *part, mp_dtype_t dtype, uint64_t seed,
                       uint32_t argument, char *out_data) {
  exec_part_copy_t copy = {.size = mp_dtype_size(dtype),
                           .to = out_data,
                           .dtype = dtype,
                           .seed = seed,
                           .argument = argument};
  exec_part_visit(part, exec_part_draw_row, &copy);
}
