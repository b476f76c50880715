// Collectives that devices wait for, by kind and by the axis along which they go.
#include <inttypes.h>
#include <string.h>

#include "sim/model/report/report_fold.h"

static bool report_exposed_is_along(const mp_report_collective_t *a,
                                    const mp_report_collective_t *b) {
  return strcmp(a->kind, b->kind) == 0 && strcmp(a->axes, b->axes) == 0 &&
         a->members == b->members && a->first[0] == b->first[0] && a->first[1] == b->first[1];
}

// "all_gather along data": axes of the program's mesh, or the distribution of its groups over the
// devices.
static void report_exposed_put_along(const mp_report_collective_t *c, mp_strbuf_t *out) {
  const uint32_t stride = c->members > 1 ? c->first[1] - c->first[0] : 0;
  mp_strbuf_printf(out, "%s along ", c->kind);
  if (*c->axes != '\0') {
    mp_strbuf_puts(out, c->axes);
  } else if (c->members == 0) {
    mp_strbuf_puts(out, "pairs");
  } else {
    mp_strbuf_printf(out, "groups of %" PRIu32, c->members);
    if (stride != 0) mp_strbuf_printf(out, ", %" PRIu32 " apart", stride);
  }
}

mp_status_t mp_report_exposed(mp_report_places_t *places, const mp_report_program_t *row,
                              uint32_t c, mp_report_finding_t *out_finding) {
  const mp_report_collective_t *first = &row->collective[c];
  mp_moment_t longest = 0;
  mp_strbuf_t text;
  *out_finding = (mp_report_finding_t){.finding = MP_FINDING_EXPOSED, .what = "", .place = ""};
  for (uint32_t i = 0; i < row->num_collectives; ++i) {
    const mp_report_collective_t *one = &row->collective[i];
    if (!report_exposed_is_along(one, first)) continue;
    if (i < c) {
      out_finding->time = 0;  // it was the row before
      return NULL;
    }
    const mp_moment_t exposed = one->met.members - one->met.hidden;
    out_finding->time += exposed;
    if (exposed >= longest) out_finding->place = one->place;
    longest = exposed > longest ? exposed : longest;
  }
  mp_strbuf_init(&text);
  report_exposed_put_along(first, &text);
  mp_status_t status = mp_strbuf_status(&text);
  if (status == NULL) {
    const mp_str_t what = {mp_strbuf_text(&text), text.size};
    status = mp_report_intern(places, what, &out_finding->what);
  }
  mp_strbuf_deinit(&text);
  return status;
}
