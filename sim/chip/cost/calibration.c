// Calibration files: measured efficiencies, a line per class of ops.
#include "sim/base/alloc.h"
#include "sim/base/os/file.h"
#include "sim/chip/cost/chip.h"

typedef struct {
  const char *origin;
  int line;
  int given[MP_WORK_CLASS_COUNT];  // the line; 0: not yet
} calibration_t;

static mp_status_t calibration_find_class(const calibration_t *c, mp_str_t name, int *out_class) {
  const char *names[MP_WORK_CLASS_COUNT];
  for (int i = 0; i < MP_WORK_CLASS_COUNT; ++i) {
    names[i] = mp_work_class_name((mp_work_class_t)i);
    if (!mp_str_is(name, names[i])) continue;
    *out_class = i;
    return NULL;
  }
  const char *nearest = mp_str_nearest(name, names, MP_WORK_CLASS_COUNT);
  if (nearest != NULL) {
    return mp_status_make(MP_INVALID_ARGUMENT, "%s:%d: key '%.*s': unknown, did you mean '%s'?",
                          c->origin, c->line, MP_STR_SHOWN(name, 64), nearest);
  }
  return mp_status_make(MP_INVALID_ARGUMENT,
                        "%s:%d: key '%.*s': unknown, expected a class of operations such as '%s'",
                        c->origin, c->line, MP_STR_SHOWN(name, 64), names[MP_WORK_MATMUL]);
}

static mp_status_t calibration_read_line(calibration_t *c, mp_str_t line, double *efficiency) {
  line = mp_str_trim(mp_str_cut(&line, '#'));
  if (line.size == 0) return NULL;
  const mp_str_t name = mp_str_trim(mp_str_cut(&line, ':'));
  const mp_str_t value = mp_str_trim(line);
  int work_class = 0;
  MP_RETURN_IF_ERROR(calibration_find_class(c, name, &work_class));
  const char *text = mp_work_class_name((mp_work_class_t)work_class);
  if (c->given[work_class] != 0) {
    return mp_status_make(MP_INVALID_ARGUMENT, "%s:%d: key '%s': given twice, first in line %d",
                          c->origin, c->line, text, c->given[work_class]);
  }
  double number = 0;
  const size_t used = mp_str_scan_double(value, &number);
  if (used == 0 || used != value.size || !(number > 0 && number <= 1)) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "%s:%d: key '%s': expected a share of the peak above 0 and up to 1, such "
                          "as 0.7, got '%.*s'",
                          c->origin, c->line, text, MP_STR_SHOWN(value, 64));
  }
  c->given[work_class] = c->line;
  efficiency[work_class] = number;
  return NULL;
}

mp_status_t mp_chip_calibrate(mp_chip_t *chip, const char *origin, mp_str_t text) {
  calibration_t c = {.origin = origin};
  mp_chip_t changed = *chip;
  while (text.size != 0) {
    ++c.line;
    MP_RETURN_IF_ERROR(calibration_read_line(&c, mp_str_cut(&text, '\n'), changed.efficiency));
  }
  *chip = changed;
  return NULL;
}

mp_status_t mp_chip_calibrate_by_file(mp_chip_t *chip, const char *path) {
  char *text = NULL;
  size_t size = 0;
  MP_RETURN_IF_ERROR(mp_file_read("calibration file", path, &text, &size));
  const mp_status_t status = mp_chip_calibrate(chip, path, (mp_str_t){text, size});
  mp_free(text);
  return status;
}
