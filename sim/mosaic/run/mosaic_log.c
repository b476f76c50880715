// Printing what a kernel asks for (tpu.log, tpu.log_buffer). A TPU prints it with
// xla_tpu_enable_log_recorder; here it is always printed.
#include <inttypes.h>

#include "sim/base/alloc.h"
#include "sim/base/log.h"
#include "sim/base/str.h"
#include "sim/mosaic/run/mosaic_scalar.h"
#include "sim/mosaic/run/mosaic_step.h"
#include "sim/mosaic/run/mosaic_view.h"

enum { MOST_PER_LINE = 32 };

static void mosaic_log_put(mp_dtype_t dtype, const char *element, mp_strbuf_t *out) {
  if (mp_dtype_is_float(dtype)) {
    mp_strbuf_printf(out, "%.9g", mp_float_decode(dtype, element));
  } else {
    mp_strbuf_printf(out, "%" PRId64, mp_mosaic_scalar_load(dtype, element));
  }
}

// A register has the bits of a float.
static void mosaic_log_put_value(const mp_mosaic_logged_t *value, const mp_mosaic_state_t *state,
                                 mp_strbuf_t *out) {
  const bool is_float = mp_dtype_is_float(value->dtype);
  if (value->is_vector || is_float) {
    mosaic_log_put(value->dtype,
                   value->is_vector ? state->vectors[value->index]
                                    : (const char *)&state->registers[value->index],
                   out);
  } else {
    mp_strbuf_printf(out, "%" PRId64, state->registers[value->index]);
  }
}

// ---- scalars ----

// Puts value 0 in the place of "$0". Since JAX 0.11 a letter says how: "$u0" is unsigned. Returns
// how long that is; 0: it is no place.
static size_t mosaic_log_place(const mp_mosaic_log_t *log, const mp_mosaic_state_t *state,
                               const char *at, mp_strbuf_t *out) {
  if (at[0] != '$') return 0;
  const bool has_letter = at[1] >= 'a' && at[1] <= 'z';
  const char *digit = at + (has_letter ? 2 : 1);
  uint32_t number = 0;
  if (*digit < '0' || *digit > '9') return 0;
  for (; *digit >= '0' && *digit <= '9' && number < log->count; ++digit) {
    number = number * 10 + (uint32_t)(*digit - '0');
  }
  if (number >= log->count) return 0;
  const mp_mosaic_logged_t *value = &log->values[number];
  if (at[1] == 'u' && !value->is_vector) {
    mp_strbuf_printf(out, "%" PRIu32, (uint32_t)state->registers[value->index]);
  } else {
    mosaic_log_put_value(value, state, out);
  }
  return (size_t)(digit - at);
}

static void mosaic_log_scalars(const mp_mosaic_log_t *log, const mp_mosaic_state_t *state) {
  mp_strbuf_t line;
  mp_strbuf_init(&line);
  for (const char *at = log->text; *at != '\0';) {
    const size_t size = log->is_formatted ? mosaic_log_place(log, state, at, &line) : 0;
    if (size == 0) mp_strbuf_putc(&line, *at);
    at += size == 0 ? 1 : size;
  }
  for (uint32_t i = 0; i < log->count && !log->is_formatted; ++i) {
    mp_strbuf_printf(&line, "%s%s[] ", i == 0 ? "" : ", ", mp_dtype_name(log->values[i].dtype));
    mosaic_log_put_value(&log->values[i], state, &line);
  }
  mp_log_notice("%s", mp_strbuf_text(&line));
  mp_strbuf_deinit(&line);
}

// ---- vectors ----

static void mosaic_log_part(const mp_mosaic_log_t *log, const char *elements, int64_t begin,
                            int64_t end) {
  const mp_dtype_t dtype = log->values[0].dtype;
  mp_strbuf_t line;
  mp_strbuf_init(&line);
  mp_strbuf_printf(&line, "%selements %lld to %lld: {", log->text, (long long)begin,
                   (long long)end - 1);
  for (int64_t i = begin; i < end; ++i) {
    if (i > begin) mp_strbuf_puts(&line, ", ");
    mosaic_log_put(dtype, elements + (size_t)i * mp_dtype_size(dtype), &line);
  }
  mp_strbuf_puts(&line, "}");
  mp_log_notice("%s", mp_strbuf_text(&line));
  mp_strbuf_deinit(&line);
}

static mp_status_t mosaic_log_view(const mp_mosaic_log_t *log, const mp_mosaic_view_t *view) {
  const int64_t count = mp_mosaic_view_count(view);
  const int64_t last = view->rank == 0 ? 1 : view->dims[view->rank - 1];
  if (count <= 0) return NULL;
  char *elements = mp_malloc((size_t)count * view->element);
  MP_RETURN_IF_NULL(elements);
  mp_status_t status = mp_mosaic_view_read(view, elements);
  for (int64_t row = 0; row < count && status == NULL; row += last) {
    for (int64_t i = row; i < row + last; i += MOST_PER_LINE) {
      const int64_t end = i + MOST_PER_LINE;
      mosaic_log_part(log, elements, i, end < row + last ? end : row + last);
    }
  }
  mp_free(elements);
  return status;
}

mp_status_t mp_mosaic_step_log(const mp_mosaic_log_t *log, const mp_mosaic_state_t *state) {
  if (log->count == 1 && log->values[0].is_view) {
    return mosaic_log_view(log, &state->views[log->values[0].index]);
  }
  mosaic_log_scalars(log, state);
  return NULL;
}
