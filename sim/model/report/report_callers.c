// The places of the script that launch a program, in the table: those that take longest.
#include <inttypes.h>

#include "sim/model/report/report_table.h"
#include "sim/model/report/report_text.h"

// Lines keep to 100 columns: of long names and places the end is shown.
enum { CALLERS_MOST = 8, CALLERS_NAME = 32, CALLERS_PLACE = 35 };

// A label such as "blocks.0.up (backward) at train.py:12" has a name and a place; other texts are
// one of them.
typedef struct {
  mp_str_t name, place;
} caller_parts_t;

static caller_parts_t report_callers_split(const char *text) {
  const char *at = strstr(text, " at ");
  const size_t size = strlen(text);
  if (at == NULL && size != 0 && text[size - 1] == ')')
    return (caller_parts_t){.name = mp_str(text)};
  if (at == NULL) return (caller_parts_t){.place = mp_str(text)};
  return (caller_parts_t){{text, (size_t)(at - text)}, mp_report_user_place(at + 4)};
}

static void report_callers_line(const mp_report_program_t *row, const caller_parts_t *parts,
                                const mp_model_caller_books_t *sum, mp_strbuf_t *out) {
  char each[MP_REPORT_NUMBER], share[MP_REPORT_NUMBER];
  mp_strbuf_printf(out, "  %-*.*s %8" PRIu64 " %8s %7s", CALLERS_NAME,
                   MP_STR_ARG(mp_report_end_of(parts->name, CALLERS_NAME)), sum->launches,
                   mp_report_time(sum->launches == 0 ? 0 : sum->time / sum->launches, each),
                   mp_report_share((double)sum->available, (double)row->available, share));
  if (parts->place.size != 0) {
    mp_strbuf_printf(out, "  %.*s", MP_STR_ARG(mp_report_end_of(parts->place, CALLERS_PLACE)));
  }
  mp_strbuf_putc(out, '\n');
}

// Whether the table says more than the program's own lines.
static bool report_callers_is_wanted(const mp_report_program_t *row) {
  if (row->callers.count != 1) return row->callers.count != 0;
  return report_callers_split(row->callers.items[0].text).name.size != 0;
}

// Writes the indices of the callers that take longest, the longest first. Returns how many.
static uint32_t report_callers_choose(const mp_report_program_t *row, uint32_t *chosen) {
  const mp_model_caller_books_t *items = row->callers.items;
  uint32_t count = 0;
  for (uint32_t i = 0; i < row->callers.count; ++i) {
    if (strcmp(items[i].text, MP_MODEL_OTHER_CALLERS) == 0) continue;
    uint32_t at = count < CALLERS_MOST ? count++ : count;
    for (; at > 0 && items[chosen[at - 1]].available < items[i].available; --at) {
      if (at < CALLERS_MOST) chosen[at] = chosen[at - 1];
    }
    if (at < CALLERS_MOST) chosen[at] = i;
  }
  return count;
}

void mp_report_callers_print(const mp_report_program_t *row, mp_strbuf_t *out) {
  uint32_t chosen[CALLERS_MOST];
  if (!report_callers_is_wanted(row)) return;
  const uint32_t count = report_callers_choose(row, chosen);
  mp_model_caller_books_t rest = {
      .launches = row->launches, .time = row->time, .available = row->available};
  mp_strbuf_printf(out, "  %-*s %8s %8s %7s  %s\n", CALLERS_NAME, "launched by", "launches", "each",
                   "share", "at");
  for (uint32_t i = 0; i < count; ++i) {
    const mp_model_caller_books_t *caller = &row->callers.items[chosen[i]];
    const caller_parts_t parts = report_callers_split(caller->text);
    report_callers_line(row, &parts, caller, out);
    rest.launches -= caller->launches;
    rest.time -= caller->time;
    rest.available -= caller->available;
  }
  const char *name = row->callers.count > count ? MP_MODEL_OTHER_CALLERS : "(no label)";
  if (rest.launches != 0)
    report_callers_line(row, &(caller_parts_t){.name = mp_str(name)}, &rest, out);
}
