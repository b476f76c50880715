// "minipod.check_index": checks that an index of a user's kernel is within bounds.
//
// backend_config is "<count>;<text>". The operands are `count` triples (index, least, greatest) and
// then numbers that the text shows, too; all are integers of rank 0. "{7}" in the text stands for
// operand 7. The result is the first index.
#include <string.h>

#include "sim/kernels/movement/movement_makers.h"
#include "sim/kernels/shape.h"

typedef struct {
  mp_kernel_t base;
  uint32_t num_checks;
  mp_str_t text;
} check_kernel_t;

static int64_t index_check_load(const mp_kernel_t *kernel, const mp_kernel_call_t *call,
                                uint32_t operand) {
  return mp_load_index(mp_op_operand_type(kernel->op, operand)->dtype, call->operands[operand]);
}

// The number of the operand for "{7}" at the beginning of `text`; false if `text` does not begin
// like that.
static bool index_check_find_operand(const mp_op_t *op, mp_str_t text, uint32_t *out_operand,
                                     size_t *out_size) {
  const char *end = text.size == 0 ? NULL : memchr(text.data, '}', text.size);
  if (end == NULL || text.data[0] != '{') return false;
  const size_t size = (size_t)(end - text.data);
  long long operand = 0;
  if (!mp_str_parse_i64((mp_str_t){text.data + 1, size - 1}, &operand)) return false;
  if (operand < 0 || operand >= op->num_operands) return false;
  *out_operand = (uint32_t)operand;
  *out_size = size + 1;
  return true;
}

static mp_status_t index_check_fail(const check_kernel_t *self, const mp_kernel_call_t *call) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  for (size_t i = 0; i < self->text.size;) {
    const mp_str_t rest = {self->text.data + i, self->text.size - i};
    uint32_t operand = 0;
    size_t size = 1;
    if (index_check_find_operand(self->base.op, rest, &operand, &size)) {
      mp_strbuf_printf(&text, "%lld", (long long)index_check_load(&self->base, call, operand));
    } else {
      mp_strbuf_putc(&text, rest.data[0]);
    }
    i += size;
  }
  mp_status_t status = mp_strbuf_status(&text);
  if (status == NULL) {
    status = mp_op_error(self->base.op, MP_OUT_OF_RANGE, "%s", mp_strbuf_text(&text));
  }
  mp_strbuf_deinit(&text);
  return status;
}

static mp_status_t index_check_run(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const check_kernel_t *self = (const check_kernel_t *)kernel;
  for (uint32_t i = 0; i < self->num_checks; ++i) {
    const int64_t index = index_check_load(kernel, call, 3 * i);
    if (index < index_check_load(kernel, call, 3 * i + 1) ||
        index > index_check_load(kernel, call, 3 * i + 2)) {
      return index_check_fail(self, call);
    }
  }
  memmove(call->results[0], call->operands[0],
          mp_dtype_size(mp_op_result_type(kernel->op, 0)->dtype));
  return NULL;
}

static bool index_check_is_integer(const mp_type_t *type) {
  return mp_type_is_tensor(type) && type->rank == 0 && mp_dtype_is_integer(type->dtype);
}

mp_status_t mp_call_make_index_check(mp_arena_t *arena, const mp_op_t *op,
                                     const mp_kernel_t **out_kernel) {
  check_kernel_t *self = MP_ARENA_NEW(arena, check_kernel_t);
  MP_RETURN_IF_NULL(self);
  mp_kernel_init(&self->base, index_check_run, op);
  self->text = mp_op_str(op, MP_ATTR_BACKEND_CONFIG);
  long long count = 0;
  bool is_valid = mp_str_parse_i64(mp_str_cut(&self->text, ';'), &count) && count > 0 &&
                  count <= op->num_operands / 3 && op->num_results == 1;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    is_valid = is_valid && index_check_is_integer(mp_op_operand_type(op, i));
  }
  if (!is_valid || !mp_type_equal(mp_op_operand_type(op, 0), mp_op_result_type(op, 0))) {
    return mp_op_error(
        op, MP_INVALID_ARGUMENT,
        "custom_call minipod.check_index needs a backend_config of \"<count>;<text>\","
        " triples of integers and one result");
  }
  self->num_checks = (uint32_t)count;
  self->base.in_place = 1;
  *out_kernel = &self->base;
  return NULL;
}
