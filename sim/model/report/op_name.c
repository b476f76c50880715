#include "sim/model/report/op_name.h"

mp_str_t mp_op_path(const mp_loc_t *loc) {
  const mp_loc_t *name, *file;
  mp_loc_find(loc, &name, &file);
  return name == NULL ? MP_STR("") : name->text;
}

bool mp_op_source(const mp_loc_t *loc, mp_str_t *out_file, uint32_t *out_line) {
  const mp_loc_t *name, *file;
  mp_loc_find(loc, &name, &file);
  if (file == NULL) return false;
  *out_file = file->text;
  *out_line = file->line;
  return true;
}
