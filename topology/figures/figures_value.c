// Values of parameters, as a chip's file has them.
#include <stddef.h>

#include "topology/figures/figures_impl.h"
#include "topology/spec_value.h"

const mp_figure_key_t mp_figure_keys[] = {
#define ROW(member, key, type, meaning) \
  {key, MP_FIGURE_##type, offsetof(mp_chip_figures_t, member), meaning},
    MP_CHIP_FIGURES(ROW)
#undef ROW
};

static const char *const g_compilers[] = {
#define ROW(name, text) [MP_CHIP_COMPILER_##name] = text,
    MP_CHIP_COMPILERS(ROW)
#undef ROW
};

#define ROW(position, name, meaning) name,
#define NAMES(list)                  static const char *const g_names_##list[] = {MP_##list##_MEMBERS(ROW)};
MP_FIGURE_LISTS(NAMES)
#undef NAMES
#undef ROW

mp_figure_members_t mp_figure_members(const mp_figure_key_t *key) {
  static const mp_figure_members_t members[] = {
#define ROW(list) [MP_FIGURE_##list] = {MP_##list##_COUNT, g_names_##list},
      MP_FIGURE_LISTS(ROW)
#undef ROW
  };
  return members[key->type];
}

void mp_figure_clear(const mp_figure_key_t *key, mp_chip_figures_t *figures) {
  char *member = (char *)figures + key->offset;
  const double absent = NAN;
  if (mp_figure_is_list(key)) {
    memset(member, 0, sizeof(mp_figure_list_t));
  } else if (key->type != MP_FIGURE_COMPILER) {
    memcpy(member, &absent, sizeof(absent));
  }
}

const char *mp_chip_figure_key(mp_chip_figure_t figure) {
  return mp_figure_keys[figure].key;
}

bool mp_chip_figure_is_given(const mp_chip_figures_t *figures, mp_chip_figure_t figure) {
  const mp_figure_key_t *key = &mp_figure_keys[figure];
  const char *member = (const char *)figures + key->offset;
  if (key->type == MP_FIGURE_COMPILER) return false;
  if (mp_figure_is_list(key)) return ((const mp_figure_list_t *)(const void *)member)->count != 0;
  return !isnan(*(const double *)(const void *)member);
}

bool mp_chip_figure_is_unsure(const mp_chip_figures_t *figures, mp_chip_figure_t figure) {
  const uint8_t source = figures->sources[figure];
  return mp_chip_figure_is_given(figures, figure) &&
         (source == MP_CHIP_SOURCE_UNMARKED || source == MP_CHIP_SOURCE_ESTIMATE ||
          source == MP_CHIP_SOURCE_COPIED);
}

bool mp_figure_parse_number(mp_str_t text, double *out) {
  const size_t used = mp_str_scan_double(text, out);
  return used != 0 && used == text.size && isfinite(*out) && *out >= 0;
}

static bool figures_value_bytes(mp_str_t text, double *out) {
  uint64_t bytes = 0;
  if (!mp_spec_value_parse(MP_SPEC_BYTES, text, &bytes) || bytes == UINT64_MAX) return false;
  *out = (double)bytes;
  return true;
}

static bool figures_value_compiler(mp_str_t text, mp_chip_compiler_t *out) {
  for (int i = 0; i < MP_CHIP_COMPILER_COUNT; ++i) {
    if (!mp_str_is(text, g_compilers[i])) continue;
    *out = (mp_chip_compiler_t)i;
    return true;
  }
  return false;
}

bool mp_figure_parse(const mp_figure_key_t *key, mp_str_t text, mp_chip_figures_t *figures) {
  void *member = (char *)figures + key->offset;
  switch (key->type) {
    case MP_FIGURE_COMPILER:
      return figures_value_compiler(text, member);
    case MP_FIGURE_NUMBER:
      return mp_figure_parse_number(text, member);
    case MP_FIGURE_TIME:
      return mp_spec_value_parse(MP_SPEC_TIME, text, member);
    case MP_FIGURE_RATE:
      return mp_spec_value_parse(MP_SPEC_RATE, text, member);
    case MP_FIGURE_BYTES:
      return figures_value_bytes(text, member);
    default:
      return false;
  }
}

const char *mp_figure_expected(mp_figure_type_t type) {
  static const char *const texts[] = {
      [MP_FIGURE_COMPILER] = "plain, tpu or gpu",  [MP_FIGURE_NUMBER] = "a number from 0",
      [MP_FIGURE_TIME] = "a time such as 1.5us",   [MP_FIGURE_RATE] = "a rate such as 800GB/s",
      [MP_FIGURE_BYTES] = "a size such as 128MiB",
  };
  return texts[type];
}
