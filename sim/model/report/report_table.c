#include "sim/model/report/report_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/model/report/report_text.h"

enum { REPORT_TABLE_PROGRAMS = 40, REPORT_TABLE_DEVICES = 64, REPORT_TABLE_NAME = 32 };

// The text, or its end: there the line of a place is.
static const char *report_table_end_of(const char *text, size_t most) {
  const size_t size = strlen(text);
  return size <= most ? text : text + size - most;
}

static int report_table_longer(const void *a, const void *b) {
  const mp_report_program_t *x = a, *y = b;
  if (x->time != y->time) return x->time > y->time ? -1 : 1;
  const int by_name = strcmp(x->name, y->name);
  if (by_name != 0) return by_name;
  return x->key < y->key ? -1 : x->key > y->key;
}

// ---- All programs ----

typedef struct {
  uint64_t launches, collectives;
  mp_moment_t time, available, work, waiting, traffic, hidden;
  mp_moment_t transfers;  // of one device on the average
} sum_t;

static void report_table_add(sum_t *sum, const mp_report_program_t *row) {
  sum->launches += row->launches;
  sum->collectives += row->collectives;
  sum->time += row->time;
  sum->available += row->available;
  sum->transfers += row->num_devices == 0 ? 0 : row->transfers / row->num_devices;
  sum->work += row->work;
  sum->waiting += row->waiting;
  sum->traffic += row->traffic;
  sum->hidden += row->hidden;
}

static void report_table_program_line(const char *name, const char *devices, const sum_t *sum,
                                      mp_moment_t whole, mp_strbuf_t *out) {
  char time[MP_REPORT_NUMBER], each[MP_REPORT_NUMBER], share[MP_REPORT_NUMBER];
  char work[MP_REPORT_NUMBER], traffic[MP_REPORT_NUMBER], waiting[MP_REPORT_NUMBER];
  char hidden[MP_REPORT_NUMBER], transfers[MP_REPORT_NUMBER];
  const double available = (double)sum->available;
  // Of one device on the average.
  const double devices_hidden = available == 0 ? 0 : (double)sum->hidden / available;
  mp_strbuf_printf(out,
                   "%-*s %7s %9" PRIu64 " %12" PRIu64 " %10s %10s %8s %8s %11s %8s %10s %10s\n",
                   REPORT_TABLE_NAME, report_table_end_of(name, REPORT_TABLE_NAME), devices,
                   sum->launches, sum->collectives, mp_report_time(sum->time, time),
                   mp_report_time(sum->launches == 0 ? 0 : sum->time / sum->launches, each),
                   mp_report_share((double)sum->time, (double)whole, share),
                   mp_report_share((double)sum->work, available, work),
                   mp_report_share((double)sum->traffic, available, traffic),
                   mp_report_share((double)sum->waiting, available, waiting),
                   mp_report_time((mp_moment_t)(devices_hidden * (double)sum->time), hidden),
                   mp_report_time(sum->transfers, transfers));
}

static void report_table_programs(const mp_report_rows_t *rows, mp_strbuf_t *out) {
  sum_t all = {0}, rest = {0};
  for (uint32_t i = 0; i < rows->programs.count; ++i) {
    report_table_add(&all, &rows->programs.items[i]);
  }
  mp_strbuf_printf(out, "%-*s %7s %9s %12s %10s %10s %8s %8s %11s %8s %10s %10s\n",
                   REPORT_TABLE_NAME, "program", "devices", "launches", "collectives", "time",
                   "each", "share", "work", "collective", "waiting", "hidden", "transfers");
  for (uint32_t i = 0; i < rows->programs.count; ++i) {
    const mp_report_program_t *row = &rows->programs.items[i];
    if (i >= REPORT_TABLE_PROGRAMS) {
      report_table_add(&rest, row);
      continue;
    }
    sum_t one = {0};
    char devices[MP_REPORT_NUMBER];
    (void)snprintf(devices, sizeof(devices), "%" PRIu32, row->num_devices);
    report_table_add(&one, row);
    report_table_program_line(row->name, devices, &one, all.time, out);
  }
  if (rest.launches != 0) report_table_program_line("(others)", "", &rest, all.time, out);
  report_table_program_line("all programs", "", &all, all.time, out);
}

// ---- One program ----

static void report_table_put_link(const mp_report_table_t *table, int64_t link, double bytes,
                                  double seconds, mp_moment_t traffic, mp_strbuf_t *out) {
  if (link < 0) return;
  char amount[MP_REPORT_NUMBER], load[MP_REPORT_NUMBER];
  mp_strbuf_printf(out, "%s: %s, busy %s", mp_network_link(table->network, (uint32_t)link)->name,
                   mp_report_scaled(bytes, "B", amount),
                   mp_report_share(seconds, mp_moment_seconds(traffic), load));
}

// What a program's line has and no row of its details: with it these add up. `column`: where the
// shares of the rows end.
static void report_table_others(const mp_report_program_t *row, mp_moment_t all, mp_moment_t rows,
                                int column, mp_strbuf_t *out) {
  char share[MP_REPORT_NUMBER];
  if (all <= rows || (double)(all - rows) < 0.0005 * (double)row->available) return;
  mp_report_share((double)(all - rows), (double)row->available, share);
  mp_strbuf_printf(out, "  %-18s %*s\n", "(others)", column - 19, share);
}

static void report_table_collectives(const mp_report_table_t *table, const mp_report_program_t *row,
                                     mp_strbuf_t *out) {
  mp_moment_t exposed = 0;
  mp_strbuf_printf(out, "  %-18s %8s %10s %-10s %-24s %10s %10s %8s %8s %8s  %-32s %s\n",
                   "collective", "count", "bytes", "how", "algorithm", "time each", "longest",
                   "share", "hidden", "waiting", "at", "busiest link");
  for (uint32_t i = 0; i < row->num_collectives; ++i) {
    const mp_report_collective_t *c = &row->collective[i];
    char bytes[MP_REPORT_NUMBER], each[MP_REPORT_NUMBER], longest[MP_REPORT_NUMBER];
    char share[MP_REPORT_NUMBER], waiting[MP_REPORT_NUMBER], hidden[MP_REPORT_NUMBER];
    const char *algorithm =
        c->met.algorithm == MP_ALGORITHM_AUTO ? "messages" : mp_algorithm_name(c->met.algorithm);
    mp_strbuf_printf(
        out, "  %-18s %8" PRIu64 " %10s %-10s %-24s %10s %10s %8s %8s %8s  %-32s ", c->kind,
        c->met.count, mp_report_scaled(c->bytes, "B", bytes), mp_overlap_name(c->overlap),
        algorithm, mp_report_time(c->met.count == 0 ? 0 : c->met.traffic / c->met.count, each),
        mp_report_time(c->met.longest, longest),
        mp_report_share((double)(c->met.members - c->met.hidden), (double)row->available, share),
        mp_report_share((double)c->met.hidden, (double)row->available, hidden),
        mp_report_share((double)c->met.waiting, (double)row->available, waiting), c->place);
    // Groups use links side by side: what counts is how long one round of all takes.
    report_table_put_link(table, c->link, c->link_bytes, c->link_seconds * c->round, c->met.traffic,
                          out);
    mp_strbuf_putc(out, '\n');
    exposed += c->met.members - c->met.hidden;
  }
  report_table_others(row, row->traffic, exposed, 95, out);
}

static void report_table_copies(const mp_report_program_t *row, mp_strbuf_t *out) {
  mp_strbuf_printf(out, "  %-18s %8s %10s %-10s %10s %8s %8s  %s\n", "host copy", "count", "bytes",
                   "how", "time each", "share", "hidden", "at");
  for (uint32_t i = 0; i < row->num_copies; ++i) {
    const mp_report_copy_t *c = &row->copy[i];
    char bytes[MP_REPORT_NUMBER], each[MP_REPORT_NUMBER];
    char share[MP_REPORT_NUMBER], hidden[MP_REPORT_NUMBER];
    // While a device waits for one it may wait for those before it.
    const mp_moment_t exposed = c->did.exposed < c->did.time ? c->did.exposed : c->did.time;
    mp_strbuf_printf(
        out, "  %-18s %8" PRIu64 " %10s %-10s %10s %8s %8s  %s\n",
        c->is_to_host ? "to host" : "from host", c->did.count,
        mp_report_scaled(c->bytes, "B", bytes),
        mp_overlap_name(c->is_async ? MP_OVERLAP_ASYNC : MP_OVERLAP_SYNC),
        mp_report_time(c->did.count == 0 ? 0 : c->did.time / c->did.count, each),
        mp_report_share((double)c->did.exposed, (double)row->available, share),
        mp_report_share((double)(c->did.time - exposed), (double)row->available, hidden), c->place);
  }
}

static void report_table_space(const char *whose, const mp_twin_space_t *space, mp_strbuf_t *out) {
  char arguments[MP_REPORT_NUMBER], results[MP_REPORT_NUMBER], temporaries[MP_REPORT_NUMBER];
  mp_strbuf_printf(out, "  memory of %s arguments %s, other results %s, temporaries %s\n", whose,
                   mp_report_scaled((double)space->arguments, "B", arguments),
                   mp_report_scaled((double)(space->results - space->aliased), "B", results),
                   mp_report_scaled((double)space->temporaries, "B", temporaries));
}

// Of programs that have anything on the host.
static void report_table_memory(const mp_report_program_t *row, mp_strbuf_t *out) {
  const mp_twin_space_t *host = &row->memory.host;
  if (host->arguments + host->results + host->temporaries == 0) return;
  report_table_space("a device:", &row->memory.device, out);
  report_table_space("it at its host:", host, out);
}

static void report_table_ops(const mp_report_program_t *row, mp_strbuf_t *out) {
  mp_moment_t work = 0;
  mp_strbuf_printf(out, "  %-18s %8s %10s %-12s %12s %10s %10s %8s %-8s %s\n", "op", "count",
                   "bytes", "class", "flops", "time", "time each", "share", "bound by", "at");
  for (uint32_t i = 0; i < row->num_ops; ++i) {
    const mp_report_op_t *op = &row->op[i];
    char bytes[MP_REPORT_NUMBER], flops[MP_REPORT_NUMBER], time[MP_REPORT_NUMBER];
    char each[MP_REPORT_NUMBER], share[MP_REPORT_NUMBER];
    mp_strbuf_printf(out, "  %-18s %8" PRIu64 " %10s %-12s %12s %10s %10s %8s %-8s %s\n", op->name,
                     op->count, mp_report_scaled(op->bytes, "B", bytes),
                     mp_work_class_name(op->work_class), mp_report_scaled(op->flops, "flop", flops),
                     mp_report_time(op->time, time),
                     mp_report_time(op->count == 0 ? 0 : op->time / op->count, each),
                     mp_report_share((double)op->time, (double)row->available, share),
                     mp_bound_name(op->bound), op->place);
    work += op->time;
  }
  report_table_others(row, row->work, work, 93, out);
}

// "branch 1 of 0 to 2, the largest", "5 rounds".
static void report_table_guess(const mp_report_guess_t *guess, char *text, size_t size) {
  const char *why = guess->why == MP_BRANCH_LARGEST    ? ", the largest"
                    : guess->why == MP_BRANCH_SMALLEST ? ", the smallest"
                                                       : "";
  if (guess->branches == 0) {
    (void)snprintf(text, size, "%" PRIu64 " round%s", guess->taken, guess->taken == 1 ? "" : "s");
  } else {
    (void)snprintf(text, size, "branch %" PRIu64 " of 0 to %" PRIu32 "%s", guess->taken,
                   guess->branches - 1, why);
  }
}

static void report_table_guesses(const mp_report_program_t *row, mp_strbuf_t *out) {
  mp_strbuf_puts(out,
                 "  what decides here is absent (option values: shapes): its times are those of "
                 "these guesses\n");
  mp_strbuf_printf(out, "  %-32s %8s  %s\n", "guess", "count", "at");
  for (uint32_t i = 0; i < row->num_guesses; ++i) {
    const mp_report_guess_t *guess = &row->guess[i];
    char what[2 * MP_REPORT_NUMBER + 32];
    report_table_guess(guess, what, sizeof(what));
    mp_strbuf_printf(out, "  %-32s %8" PRIu64 "  %s\n", what, guess->count, guess->place);
  }
}

// What a script's own log says of a step that is launched again and again.
static void report_table_rhythm(const mp_report_program_t *row, mp_strbuf_t *out) {
  char seconds[MP_REPORT_NUMBER], host[MP_REPORT_NUMBER];
  if (row->rhythm.count == 0) return;
  mp_strbuf_printf(out, "  launched every %s, of which the host's own work is %s (medians)\n",
                   mp_report_time(mp_moment_of(row->rhythm.seconds), seconds),
                   mp_report_time(mp_moment_of(row->rhythm.host_seconds), host));
}

static void report_table_program(const mp_report_table_t *table, const mp_report_program_t *row,
                                 mp_strbuf_t *out) {
  mp_strbuf_printf(out, "\n%s on %" PRIu32 " device%s\n", row->name, row->num_devices,
                   row->num_devices == 1 ? "" : "s");
  report_table_rhythm(row, out);
  if (row->is_cut) {
    mp_strbuf_puts(out, "  not all of its choices are known: some loops count as one round\n");
  }
  if (row->num_guesses != 0) report_table_guesses(row, out);
  if (row->link >= 0) {
    mp_strbuf_puts(out, "  busiest link ");
    report_table_put_link(table, row->link, row->link_bytes, row->link_seconds, row->time, out);
    mp_strbuf_putc(out, '\n');
  }
  if (row->num_collectives != 0) report_table_collectives(table, row, out);
  report_table_memory(row, out);
  if (row->num_copies != 0) report_table_copies(row, out);
  if (row->num_ops != 0) report_table_ops(row, out);
}

// ---- Devices ----

static void report_table_device(const char *name, const mp_replay_device_books_t *device,
                                mp_moment_t now, mp_strbuf_t *out) {
  char work[MP_REPORT_NUMBER], traffic[MP_REPORT_NUMBER], waiting[MP_REPORT_NUMBER];
  char work_share[MP_REPORT_NUMBER], traffic_share[MP_REPORT_NUMBER];
  char waiting_share[MP_REPORT_NUMBER], hidden[MP_REPORT_NUMBER];
  mp_strbuf_printf(out, "%-10s %10s %8s %10s %8s %10s %8s %10s\n", name,
                   mp_report_time(device->work, work),
                   mp_report_share((double)device->work, (double)now, work_share),
                   mp_report_time(device->traffic, traffic),
                   mp_report_share((double)device->traffic, (double)now, traffic_share),
                   mp_report_time(device->waiting, waiting),
                   mp_report_share((double)device->waiting, (double)now, waiting_share),
                   mp_report_time(device->hidden, hidden));
}

// Every device of a small pod; of a large one the one that works most and the one that waits most.
static void report_table_devices(const mp_report_table_t *table, mp_strbuf_t *out) {
  const mp_report_rows_t *rows = table->rows;
  uint32_t busiest = 0, idlest = 0;
  mp_strbuf_printf(out, "\n%-10s %10s %8s %10s %8s %10s %8s %10s\n", "device", "work", "share",
                   "collective", "share", "waiting", "share", "hidden");
  for (uint32_t i = 0; i < rows->num_devices; ++i) {
    if (rows->devices[i].work > rows->devices[busiest].work) busiest = i;
    if (rows->devices[i].waiting > rows->devices[idlest].waiting) idlest = i;
  }
  const bool is_small = rows->num_devices <= REPORT_TABLE_DEVICES;
  for (uint32_t i = 0; i < rows->num_devices; ++i) {
    if (!is_small && i != busiest && i != idlest) continue;
    char name[MP_REPORT_NUMBER];
    (void)snprintf(name, sizeof(name), "%" PRIu32, i);
    report_table_device(name, &rows->devices[i], table->now, out);
  }
  if (!is_small) mp_strbuf_puts(out, "(the one that works most, the one that waits most)\n");
}

// ---- Everything ----

static void report_table_note_guesses(const mp_report_rows_t *rows, mp_strbuf_t *out) {
  uint64_t guessed = 0;
  for (uint32_t i = 0; i < rows->programs.count; ++i) guessed += rows->programs.items[i].guessed;
  if (guessed == 0) return;
  mp_strbuf_printf(out,
                   "guessed: %" PRIu64
                   " times a branch or a loop was decided by a value that is absent; the virtual "
                   "time is that of the guesses, which stand with their programs below\n",
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

void mp_report_table_sort(mp_report_table_t *table) {
  mp_report_program_t *items = table->rows->programs.items;
  const uint32_t count = table->rows->programs.count;
  if (count != 0) qsort(items, count, sizeof(*items), report_table_longer);
}

void mp_report_table_print(mp_report_table_t *table, mp_strbuf_t *out) {
  char now[MP_REPORT_NUMBER], host[MP_REPORT_NUMBER];
  const mp_pod_info_t *info = mp_pod_info(table->pod);
  mp_report_program_t *items = table->rows->programs.items;
  const uint32_t count = table->rows->programs.count;
  mp_report_table_sort(table);
  mp_strbuf_printf(out,
                   "virtual time of %s (%" PRId32
                   " devices): %s, host %s; real time %.3f s; "
                   "launches %" PRIu64 ", transfers %" PRIu64 "\n",
                   info->name, info->num_devices, mp_report_time(table->now, now),
                   mp_report_time(table->host, host), table->real_seconds, table->launches,
                   table->transfers);
  if (table->pending != 0) {
    mp_strbuf_printf(out, "not in the table: %" PRIu64 " launches or transfers that go on\n",
                     table->pending);
  }
  if (table->lost != 0) {
    mp_strbuf_printf(out, "not in the table, because memory was short: %" PRIu64 "\n", table->lost);
  }
  report_table_note_lateness(table, out);
  report_table_note_guesses(table->rows, out);
  mp_strbuf_putc(out, '\n');
  report_table_programs(table->rows, out);
  report_table_devices(table, out);
  for (uint32_t i = 0; i < count && i < REPORT_TABLE_PROGRAMS; ++i) {
    report_table_program(table, &items[i], out);
  }
}
