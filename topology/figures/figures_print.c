// Parameters of a chip as text.
#include <math.h>

#include "topology/figures/figures_impl.h"

static void figures_print_list(const mp_figure_key_t *key, const mp_figure_list_t *list,
                               mp_strbuf_t *out) {
  const mp_figure_members_t members = mp_figure_members(key);
  for (size_t i = 0; i < members.count; ++i) {
    mp_strbuf_printf(out, "%s%s: %.6g", i == 0 ? "{" : ", ", members.names[i], list->each[i]);
  }
  mp_strbuf_putc(out, '}');
}

// In units that chips' files have: nanoseconds, GB/s, KiB.
static void figures_print_number(mp_figure_type_t type, double number, mp_strbuf_t *out) {
  static const struct {
    double unit;
    const char *name;
  } units[] = {
      [MP_FIGURE_NUMBER] = {1, ""},
      [MP_FIGURE_TIME] = {1e-9, "ns"},
      [MP_FIGURE_RATE] = {1e9, "GB/s"},
      [MP_FIGURE_BYTES] = {1024, "KiB"},
  };
  mp_strbuf_printf(out, "%.6g%s", number / units[type].unit, units[type].name);
}

static void figures_print_one(const mp_chip_figures_t *figures, const mp_figure_key_t *key,
                              mp_chip_source_t source, mp_strbuf_t *out) {
  const char *member = (const char *)figures + key->offset;
  mp_strbuf_printf(out, "%s\t", key->key);
  if (mp_figure_is_list(key)) {
    figures_print_list(key, (const mp_figure_list_t *)(const void *)member, out);
  } else {
    figures_print_number(key->type, *(const double *)(const void *)member, out);
  }
  mp_strbuf_printf(out, "\t%s\t%s\n", mp_chip_source_name(source), key->meaning);
}

void mp_chip_figures_print(const mp_chip_figures_t *figures, mp_strbuf_t *out) {
  for (int i = 0; i < MP_FIGURE_COUNT; ++i) {
    if (!mp_chip_figure_is_given(figures, (mp_chip_figure_t)i)) continue;
    figures_print_one(figures, &mp_figure_keys[i], (mp_chip_source_t)figures->sources[i], out);
  }
}
