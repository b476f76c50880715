#include "sim/model/report/report_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/model/report/report_text.h"

enum {
  REPORT_TABLE_PROGRAMS = 40,
  REPORT_TABLE_LEAST = 100,  // a program's time is at least one part in so many of all time
  REPORT_TABLE_DEVICES = 64,
  REPORT_TABLE_NAME = 24,
  REPORT_TABLE_LONGEST = 32
};

static int report_table_longer(const void *a, const void *b) {
  const mp_report_program_t *x = a, *y = b;
  if (x->time != y->time) return x->time > y->time ? -1 : 1;
  const int by_name = strcmp(x->name, y->name);
  if (by_name != 0) return by_name;
  return x->key < y->key ? -1 : x->key > y->key;
}

// ---- All programs ----

typedef struct {
  uint64_t launches;
  mp_moment_t time, available, work, waiting, traffic, hidden;
} sum_t;

static void report_table_add(sum_t *sum, const mp_report_program_t *row) {
  sum->launches += row->launches;
  sum->time += row->time;
  sum->available += row->available;
  sum->work += row->work;
  sum->waiting += row->waiting;
  sum->traffic += row->traffic;
  sum->hidden += row->hidden;
}

static void report_table_program_line(const char *name, const char *devices, const sum_t *sum,
                                      mp_moment_t whole, mp_strbuf_t *out) {
  char time[MP_REPORT_NUMBER], each[MP_REPORT_NUMBER], share[MP_REPORT_NUMBER];
  char work[MP_REPORT_NUMBER], traffic[MP_REPORT_NUMBER], waiting[MP_REPORT_NUMBER];
  char hidden[MP_REPORT_NUMBER];
  const double available = (double)sum->available;
  // Of one device on the average.
  const double devices_hidden = available == 0 ? 0 : (double)sum->hidden / available;
  mp_strbuf_printf(out, "%-*.*s %7s %8" PRIu64 " %8s %8s %7s %7s %7s %7s %8s\n", REPORT_TABLE_NAME,
                   MP_STR_ARG(mp_report_end_of(mp_str(name), REPORT_TABLE_LONGEST)), devices,
                   sum->launches, mp_report_time(sum->time, time),
                   mp_report_time(sum->launches == 0 ? 0 : sum->time / sum->launches, each),
                   mp_report_share((double)sum->time, (double)whole, share),
                   mp_report_share((double)sum->work, available, work),
                   mp_report_share((double)sum->traffic, available, traffic),
                   mp_report_share((double)sum->waiting, available, waiting),
                   mp_report_time((mp_moment_t)(devices_hidden * (double)sum->time), hidden));
}

// Those that have a line and details; all others are one line.
typedef struct {
  bool first[REPORT_TABLE_PROGRAMS];
  uint32_t num_others;
} shown_t;

// A program with guesses is never too short, because all times depend on its guesses.
static bool report_table_is_short(const mp_report_program_t *row, mp_moment_t whole) {
  return row->time < whole / REPORT_TABLE_LEAST && row->guessed == 0;
}

// Of sorted rows. Never only one program is left out because it is short.
static shown_t report_table_choose(const mp_report_rows_t *rows) {
  const uint32_t count = rows->programs.count, most = REPORT_TABLE_PROGRAMS;
  shown_t shown = {.num_others = count > most ? count - most : 0};
  mp_moment_t whole = 0;
  uint32_t num_short = 0;
  for (uint32_t i = 0; i < count; ++i) whole += rows->programs.items[i].time;
  for (uint32_t i = 0; i < count && i < most; ++i) {
    shown.first[i] = !report_table_is_short(&rows->programs.items[i], whole);
    num_short += !shown.first[i];
  }
  if (shown.num_others + num_short == 1) {
    memset(shown.first, true, most);
  } else {
    shown.num_others += num_short;
  }
  return shown;
}

static bool report_table_is_shown(const shown_t *shown, uint32_t i) {
  return i < REPORT_TABLE_PROGRAMS && shown->first[i];
}

static void report_table_program_row(const mp_report_program_t *row, mp_moment_t whole,
                                     mp_strbuf_t *out) {
  sum_t one = {0};
  char devices[MP_REPORT_NUMBER], name[REPORT_TABLE_LONGEST + 16];
  const mp_str_t end = mp_report_end_of(mp_str(row->name), REPORT_TABLE_LONGEST);
  const int size = snprintf(name, sizeof(name), "%.*s", MP_STR_ARG(end));
  if (row->number != 0) {
    (void)snprintf(name + size, sizeof(name) - (size_t)size, " #%" PRIu32, row->number);
  }
  (void)snprintf(devices, sizeof(devices), "%" PRIu32, mp_report_partners(row));
  report_table_add(&one, row);
  report_table_program_line(name, devices, &one, whole, out);
}

static void report_table_programs(const mp_report_rows_t *rows, const shown_t *shown,
                                  mp_strbuf_t *out) {
  sum_t all = {0}, rest = {0};
  char others[2 * MP_REPORT_NUMBER];
  for (uint32_t i = 0; i < rows->programs.count; ++i) {
    report_table_add(&all, &rows->programs.items[i]);
    if (!report_table_is_shown(shown, i)) report_table_add(&rest, &rows->programs.items[i]);
  }
  mp_strbuf_printf(out, "%-*s %7s %8s %8s %8s %7s %7s %7s %7s %8s\n", REPORT_TABLE_NAME, "program",
                   "devices", "launches", "time", "each", "share", "work", "network", "waiting",
                   "hidden");
  for (uint32_t i = 0; i < rows->programs.count; ++i) {
    if (!report_table_is_shown(shown, i)) continue;
    report_table_program_row(&rows->programs.items[i], all.time, out);
  }
  (void)snprintf(others, sizeof(others), "(%" PRIu32 " other program%s)", shown->num_others,
                 shown->num_others == 1 ? "" : "s");
  if (shown->num_others != 0) report_table_program_line(others, "", &rest, all.time, out);
  report_table_program_line("all programs", "", &all, all.time, out);
}

// ---- Devices ----

static void report_table_device(const char *name, const mp_replay_device_books_t *device,
                                mp_moment_t now, mp_strbuf_t *out) {
  char work[MP_REPORT_NUMBER], traffic[MP_REPORT_NUMBER], waiting[MP_REPORT_NUMBER];
  char work_share[MP_REPORT_NUMBER], traffic_share[MP_REPORT_NUMBER];
  char waiting_share[MP_REPORT_NUMBER], hidden[MP_REPORT_NUMBER];
  mp_strbuf_printf(out, "%-11s %10s %8s %10s %8s %10s %8s %10s\n", name,
                   mp_report_time(device->work, work),
                   mp_report_share((double)device->work, (double)now, work_share),
                   mp_report_time(device->traffic, traffic),
                   mp_report_share((double)device->traffic, (double)now, traffic_share),
                   mp_report_time(device->waiting, waiting),
                   mp_report_share((double)device->waiting, (double)now, waiting_share),
                   mp_report_time(device->hidden, hidden));
}

static bool report_table_is_alike(const mp_replay_device_books_t *a,
                                  const mp_replay_device_books_t *b) {
  return a->work == b->work && a->traffic == b->traffic && a->waiting == b->waiting &&
         a->hidden == b->hidden;
}

// The first device behind `from` that differs from it.
static uint32_t report_table_end_of_alike(const mp_report_rows_t *rows, uint32_t from) {
  uint32_t end = from + 1;
  while (end < rows->num_devices &&
         report_table_is_alike(&rows->devices[from], &rows->devices[end])) {
    ++end;
  }
  return end;
}

static void report_table_run(const mp_report_table_t *table, uint32_t from, uint32_t end,
                             mp_strbuf_t *out) {
  char name[2 * MP_REPORT_NUMBER];
  if (end == from + 1) {
    (void)snprintf(name, sizeof(name), "%" PRIu32, from);
  } else {
    (void)snprintf(name, sizeof(name), "%" PRIu32 "-%" PRIu32, from, end - 1);
  }
  report_table_device(name, &table->rows->devices[from], table->now, out);
}

// Devices that follow one another and did alike are one line. Where that leaves many lines there
// are two: the one that works most and the one that waits most.
static void report_table_devices(const mp_report_table_t *table, mp_strbuf_t *out) {
  const mp_report_rows_t *rows = table->rows;
  uint32_t busiest = 0, idlest = 0, lines = 0;
  mp_strbuf_printf(out, "\n%-11s %10s %8s %10s %8s %10s %8s %10s\n", "device", "work", "share",
                   "network", "share", "waiting", "share", "hidden");
  for (uint32_t i = 0; i < rows->num_devices; i = report_table_end_of_alike(rows, i), ++lines) {
    if (rows->devices[i].work > rows->devices[busiest].work) busiest = i;
    if (rows->devices[i].waiting > rows->devices[idlest].waiting) idlest = i;
  }
  const bool is_small = lines <= REPORT_TABLE_DEVICES;
  for (uint32_t i = 0, end; i < rows->num_devices; i = end) {
    end = report_table_end_of_alike(rows, i);
    if (is_small || i == busiest || i == idlest) report_table_run(table, i, end, out);
  }
  if (!is_small) mp_strbuf_puts(out, "(those that work most, those that wait most)\n");
}

// ---- Everything ----

static void report_table_note_guesses(const mp_report_rows_t *rows, mp_strbuf_t *out) {
  uint64_t guessed = 0;
  for (uint32_t i = 0; i < rows->programs.count; ++i) guessed += rows->programs.items[i].guessed;
  if (guessed == 0) return;
  mp_strbuf_printf(out,
                   "guessed: %" PRIu64
                   " times, because the condition of a branch or loop was not computed; the "
                   "virtual time is that of the guesses, which the programs below list\n",
                   guessed);
}

// How far real time could not follow; nothing where it need not, or did.
static void report_table_note_lateness(const mp_report_table_t *table, mp_strbuf_t *out) {
  if (table->pace == 0 || table->late < 0.001) return;
  mp_strbuf_printf(out,
                   "paced (%g real seconds for a virtual one): the script has waited %.3f s longer "
                   "than on the pod, because this machine is slower; its own clocks show that\n",
                   table->pace, table->late);
}

static int report_table_older(const void *a, const void *b) {
  const mp_report_program_t *x = a, *y = b;
  const int by_name = strcmp(x->name, y->name);
  if (by_name != 0) return by_name;
  return x->serial < y->serial ? -1 : x->serial > y->serial;
}

// Numbers programs that have their name in common.
static void report_table_number(mp_report_program_t *items, uint32_t count) {
  if (count != 0) qsort(items, count, sizeof(*items), report_table_older);
  for (uint32_t i = 1; i < count; ++i) {
    if (strcmp(items[i - 1].name, items[i].name) != 0) continue;
    if (items[i - 1].number == 0) items[i - 1].number = 1;
    items[i].number = items[i - 1].number + 1;
  }
}

void mp_report_table_sort(mp_report_table_t *table) {
  mp_report_program_t *items = table->rows->programs.items;
  const uint32_t count = table->rows->programs.count;
  report_table_number(items, count);
  if (count != 0) qsort(items, count, sizeof(*items), report_table_longer);
}

mp_status_t mp_report_table_print(mp_report_table_t *table, mp_strbuf_t *out) {
  char now[MP_REPORT_NUMBER], host[MP_REPORT_NUMBER];
  const mp_pod_info_t *info = mp_pod_info(table->pod);
  mp_report_program_t *items = table->rows->programs.items;
  const uint32_t count = table->rows->programs.count;
  mp_report_table_sort(table);
  mp_strbuf_printf(out,
                   "virtual time of %s (%" PRId32
                   " devices): %s, host %s; real time %.3f s\n"
                   "launches %" PRIu64 ", transfers %" PRIu64 "\n",
                   info->name, info->num_devices, mp_report_time(table->now, now),
                   mp_report_time(table->host, host), table->real_seconds, table->launches,
                   table->transfers);
  if (table->pending != 0) {
    mp_strbuf_printf(out,
                     "not in the table: %" PRIu64 " launches or transfers that are still running\n",
                     table->pending);
  }
  if (table->lost != 0) {
    mp_strbuf_printf(out, "not in the table, because memory was short: %" PRIu64 "\n", table->lost);
  }
  report_table_note_lateness(table, out);
  report_table_note_guesses(table->rows, out);
  mp_strbuf_putc(out, '\n');
  const shown_t shown = report_table_choose(table->rows);
  report_table_programs(table->rows, &shown, out);
  report_table_devices(table, out);
  for (uint32_t i = 0; i < count; ++i) {
    if (report_table_is_shown(&shown, i)) mp_report_table_program(table, &items[i], out);
  }
  return mp_report_advice_print(table, out);
}
