// Findings for people: sentences with shares, at the end of the table; and findings of the pod.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/model/report/report_table.h"
#include "sim/model/report/report_text.h"

// As of the summary in Python (minipod/findings.py).
static const double g_least = 0.02;    // of a program's time; less is not reported
static const double g_program = 0.05;  // of the time of all programs
static const double g_slow = 1.1;      // times the work of the others

enum { ADVICE_COLUMNS = 100, ADVICE_INDENT = 11, ADVICE_PLACE = 80, ADVICE_SLOW = 8 };

// ---- Devices that work longer than the others ----

static int report_advice_compare(const void *a, const void *b) {
  const mp_moment_t x = *(const mp_moment_t *)a, y = *(const mp_moment_t *)b;
  return (x > y) - (x < y);
}

// The median of the work of devices that work at all; `out_busy`: how many these are.
static mp_status_t report_advice_usual(const mp_report_rows_t *rows, double *out_usual,
                                       uint32_t *out_busy) {
  mp_moment_t *work = MP_ARENA_ARRAY(rows->arena, mp_moment_t, rows->num_devices + 1);
  uint32_t busy = 0;
  MP_RETURN_IF_NULL(work);
  for (uint32_t i = 0; i < rows->num_devices; ++i) {
    if (rows->devices[i].work != 0) work[busy++] = rows->devices[i].work;
  }
  *out_busy = busy;
  *out_usual = 0;
  if (busy == 0) return NULL;
  qsort(work, busy, sizeof(*work), report_advice_compare);
  *out_usual = ((double)work[(busy - 1) / 2] + (double)work[busy / 2]) / 2;
  return NULL;
}

mp_status_t mp_report_advice_slow(const mp_report_rows_t *rows,
                                  void (*tell)(void *context, uint32_t device, double times),
                                  void *context) {
  double usual = 0;
  uint32_t busy = 0, slow = 0;
  MP_RETURN_IF_ERROR(report_advice_usual(rows, &usual, &busy));
  for (uint32_t i = 0; i < rows->num_devices; ++i) {
    slow += (double)rows->devices[i].work > g_slow * usual;
  }
  if (busy < 3 || slow > busy / 4) return NULL;
  for (uint32_t i = 0; i < rows->num_devices; ++i) {
    const double work = (double)rows->devices[i].work;
    if (work > g_slow * usual) tell(context, i, work / usual);
  }
  return NULL;
}

// ---- Lines ----

// Breaks lines between words; a path is never cut.
static void report_advice_put_wrapped(const char *share, const char *text, mp_strbuf_t *out) {
  size_t column = ADVICE_INDENT;
  mp_strbuf_printf(out, "  %7s  ", share);
  for (const char *word = text; *word != '\0';) {
    const size_t size = strcspn(word, " ");
    const bool is_first = column == ADVICE_INDENT;
    if (!is_first && column + 1 + size > ADVICE_COLUMNS) {
      mp_strbuf_printf(out, "\n%*s", ADVICE_INDENT, "");
      column = ADVICE_INDENT;
    } else if (!is_first) {
      mp_strbuf_putc(out, ' ');
      column += 1;
    }
    mp_strbuf_printf(out, "%.*s", (int)size, word);
    column += size;
    word += size;
    while (*word == ' ') ++word;
  }
  mp_strbuf_putc(out, '\n');
}

// The line first, of a long path its end, and then the op: "train.py:8:5 (dot_general)".
static void report_advice_put_place(const char *place, mp_strbuf_t *out) {
  const char *at = strstr(place, " at ");
  for (const char *next = at; next != NULL; next = strstr(next + 1, " at ")) at = next;
  const char *line = at == NULL ? place : at + strlen(" at ");
  const mp_str_t end = mp_report_end_of(mp_str(line), ADVICE_PLACE - 3);
  mp_strbuf_printf(out, "%s%.*s", end.size < strlen(line) ? "..." : "", MP_STR_ARG(end));
  if (at != NULL) mp_strbuf_printf(out, " (%.*s)", (int)(at - place), place);
}

static void report_advice_put_text(const mp_report_finding_t *f, mp_strbuf_t *out) {
  switch (f->finding) {
    case MP_FINDING_REPEATED:
      mp_strbuf_printf(out,
                       "repeated work: %" PRIu32 " devices compute the same values: ", f->devices);
      break;
    case MP_FINDING_BATCH:
      mp_strbuf_printf(out,
                       "%s is replicated on %" PRIu32
                       " devices, which all repeat the same matmuls; "
                       "shard it like their other operand: ",
                       f->what, f->devices);
      break;
    case MP_FINDING_ATTENTION:
      mp_strbuf_printf(out, "attention without a fused kernel, %s go through memory: ", f->what);
      break;
    case MP_FINDING_SCATTER:
      mp_strbuf_puts(out,
                     "each device uses only its own part of this all_reduce; a reduce_scatter "
                     "sends half as much: ");
      break;
    case MP_FINDING_EXPOSED:
      mp_strbuf_printf(out, "exposed: %s, most of it at ", f->what);
      break;
    case MP_FINDING_BLOCKS:
      mp_strbuf_printf(out,
                       "overhead of small blocks: %s; larger blocks need fewer steps: ", f->what);
      break;
  }
  report_advice_put_place(f->place, out);
}

static void report_advice_put(const mp_report_finding_t *finding, uint32_t more, double whole,
                              mp_strbuf_t *out) {
  char share[MP_REPORT_NUMBER];
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  report_advice_put_text(finding, &text);
  if (more != 0) mp_strbuf_printf(&text, " and %" PRIu32 " more", more);
  if (mp_strbuf_status(&text) == NULL) {
    report_advice_put_wrapped(mp_report_share((double)finding->time, whole, share),
                              mp_strbuf_text(&text), out);
  }
  mp_strbuf_deinit(&text);
}

// All work that devices repeat as one finding, where most of it is; `out_more`: other places.
static mp_report_finding_t report_advice_repeated(const mp_report_program_t *row,
                                                  uint32_t *out_more) {
  mp_report_finding_t all = {.time = 0};
  uint32_t count = 0;
  for (uint32_t i = 0; i < row->num_findings; ++i) {
    if (row->findings[i].finding != MP_FINDING_REPEATED) continue;
    const mp_moment_t sum = all.time + row->findings[i].time;
    if (count++ == 0) all = row->findings[i];
    all.time = sum;
  }
  *out_more = count == 0 ? 0 : count - 1;
  return all;
}

static void report_advice_program(const mp_report_program_t *row, mp_strbuf_t *out) {
  const double seconds = (double)row->time * mp_report_partners(row);
  const double whole = seconds > (double)row->available ? seconds : (double)row->available;
  uint32_t more;
  mp_report_finding_t repeated = report_advice_repeated(row, &more);
  bool is_first = true;
  for (uint32_t i = 0; i <= row->num_findings; ++i) {
    // Findings are sorted, the heaviest first: where repeated work stands, all of it does.
    const mp_report_finding_t *next = i < row->num_findings ? &row->findings[i] : NULL;
    const mp_moment_t time = next == NULL ? 0 : next->time;
    const bool is_repeated = next == NULL || next->finding == MP_FINDING_REPEATED;
    const mp_report_finding_t *lines[] = {repeated.time >= time ? &repeated : NULL,
                                          is_repeated ? NULL : next};
    for (uint32_t k = 0; k < 2; ++k) {
      if (lines[k] == NULL || lines[k]->time == 0) continue;
      if ((double)lines[k]->time < g_least * whole) continue;
      if (is_first) mp_strbuf_printf(out, "\nfindings, as shares of the time of %s", row->name);
      if (is_first && row->number != 0) mp_strbuf_printf(out, " #%" PRIu32, row->number);
      if (is_first) mp_strbuf_putc(out, '\n');
      is_first = false;
      report_advice_put(lines[k], k == 0 ? more : 0, whole, out);
    }
    if (lines[0] != NULL) repeated.time = 0;
  }
}

typedef struct {
  uint32_t count;
  mp_strbuf_t *out;
} slow_lines_t;

static void report_advice_put_slow(void *context, uint32_t device, double times) {
  slow_lines_t *lines = context;
  char text[128];
  if (lines->count == 0) mp_strbuf_puts(lines->out, "\nfindings about devices\n");
  if (lines->count++ >= ADVICE_SLOW) return;
  (void)snprintf(text, sizeof(text), "device %" PRIu32 " works %.1f times as long as the others",
                 device, times);
  report_advice_put_wrapped("", text, lines->out);
}

mp_status_t mp_report_advice_print(const mp_report_table_t *table, mp_strbuf_t *out) {
  const mp_report_rows_t *rows = table->rows;
  double in_all = 0;
  for (uint32_t i = 0; i < rows->programs.count; ++i) {
    in_all += (double)rows->programs.items[i].time;
  }
  for (uint32_t i = 0; i < rows->programs.count; ++i) {
    const mp_report_program_t *row = &rows->programs.items[i];
    if ((double)row->time >= g_program * in_all) report_advice_program(row, out);
  }
  return mp_report_advice_slow(rows, report_advice_put_slow, &(slow_lines_t){.out = out});
}
