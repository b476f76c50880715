// One program in the table: its collectives, copies and operations.
#include <inttypes.h>
#include <stdio.h>

#include "sim/chip/basis/kernel_basis.h"
#include "sim/model/report/report_table.h"
#include "sim/model/report/report_text.h"

// Of what stands at the end of lines, which keep to 100 columns: a place's end has the line.
enum {
  DETAILS_OPS = 16,
  DETAILS_NAME = 20,
  DETAILS_PLACE = 32,
  DETAILS_ENDS = 22,
  DETAILS_GUESSED = 54
};

// The link that a row loads most: ", slice 0 (2,1,0) -x busy 58.4 %".
static void report_details_put_link(const mp_report_table_t *table, int64_t link, double seconds,
                                    mp_moment_t traffic, mp_strbuf_t *out) {
  if (link < 0) return;
  char load[MP_REPORT_NUMBER];
  mp_strbuf_printf(out, ", %s busy %s", mp_network_link(table->network, (uint32_t)link)->name,
                   mp_report_share(seconds, mp_moment_seconds(traffic), load));
}

// What a program's line has and no row of its details: with it these add up. `column`: where the
// shares of the rows end.
static void report_details_others(const mp_report_program_t *row, mp_moment_t all, mp_moment_t rows,
                                  int column, mp_strbuf_t *out) {
  char share[MP_REPORT_NUMBER];
  if (all <= rows || (double)(all - rows) < 0.0005 * (double)row->available) return;
  mp_report_share((double)(all - rows), (double)row->available, share);
  mp_strbuf_printf(out, "  %-18s%*s\n", "(others)", column - 20, share);
}

// Where it is in the user's program, without the operation's name before it where the row has that
// or it takes too much room, and without the library's line where that does; of a long path the
// end, from a folder on if there is one.
static mp_str_t report_details_place(const char *name, const char *text, size_t most) {
  mp_str_t place = mp_str(text);
  const char *at = strstr(text, " at ");
  const size_t size = strlen(name);
  const bool is_named = at == text + size && strncmp(text, name, size) == 0;
  const size_t before = at == NULL ? 0 : (size_t)(at - text) + 4;
  if (place.size - (is_named ? before : 0) > most) place = mp_report_user_place(text);
  if (is_named || place.size > most) place = (mp_str_t){text + before, place.size - before};
  if (place.size <= most) return place;
  const mp_str_t end = mp_report_end_of(place, most);
  const char *folder = memchr(end.data, '/', end.size);
  const size_t cut = folder == NULL ? 0 : (size_t)(folder - end.data) + 1;
  return cut == end.size ? end : (mp_str_t){end.data + cut, end.size - cut};
}

// A line of figures, and a line of where and how.
static void report_details_collective(const mp_report_table_t *table,
                                      const mp_report_program_t *row,
                                      const mp_report_collective_t *c, mp_strbuf_t *out) {
  char bytes[MP_REPORT_NUMBER], each[MP_REPORT_NUMBER], longest[MP_REPORT_NUMBER];
  char share[MP_REPORT_NUMBER], waiting[MP_REPORT_NUMBER], hidden[MP_REPORT_NUMBER];
  const double available = (double)row->available;
  const char *algorithm =
      c->met.algorithm == MP_ALGORITHM_AUTO ? "messages" : mp_algorithm_name(c->met.algorithm);
  mp_strbuf_printf(out, "  %-18s %8" PRIu64 " %9s %-10s %8s %8s %8s %8s %8s\n", c->kind,
                   c->met.count, mp_report_scaled(c->bytes, "B", bytes),
                   mp_overlap_name(c->overlap),
                   mp_report_time(c->met.count == 0 ? 0 : c->met.traffic / c->met.count, each),
                   mp_report_time(c->met.longest, longest),
                   mp_report_share((double)(c->met.members - c->met.hidden), available, share),
                   mp_report_share((double)c->met.hidden, available, hidden),
                   mp_report_share((double)c->met.waiting, available, waiting));
  mp_strbuf_printf(out, "    at %.*s, %s",
                   MP_STR_ARG(report_details_place(c->kind, c->place, DETAILS_PLACE)), algorithm);
  // Groups use links side by side: what counts is how long one round of all takes.
  report_details_put_link(table, c->link, c->link_seconds * c->round, c->met.traffic, out);
  mp_strbuf_putc(out, '\n');
}

static void report_details_collectives(const mp_report_table_t *table,
                                       const mp_report_program_t *row, mp_strbuf_t *out) {
  mp_moment_t exposed = 0;
  mp_strbuf_printf(out, "  %-18s %8s %9s %-10s %8s %8s %8s %8s %8s\n", "collective", "count",
                   "bytes", "how", "each", "longest", "share", "hidden", "waiting");
  for (uint32_t i = 0; i < row->num_collectives; ++i) {
    const mp_report_collective_t *c = &row->collective[i];
    report_details_collective(table, row, c, out);
    exposed += c->met.members - c->met.hidden;
  }
  report_details_others(row, row->traffic, exposed, 76, out);
}

static void report_details_copies(const mp_report_program_t *row, mp_strbuf_t *out) {
  mp_strbuf_printf(out, "  %-18s %8s %9s %-10s %8s %8s %8s  %s\n", "host copy", "count", "bytes",
                   "how", "each", "share", "hidden", "at");
  for (uint32_t i = 0; i < row->num_copies; ++i) {
    const mp_report_copy_t *c = &row->copy[i];
    char bytes[MP_REPORT_NUMBER], each[MP_REPORT_NUMBER];
    char share[MP_REPORT_NUMBER], hidden[MP_REPORT_NUMBER];
    // While a device waits for one it may wait for those before it.
    const mp_moment_t exposed = c->did.exposed < c->did.time ? c->did.exposed : c->did.time;
    mp_strbuf_printf(
        out, "  %-18s %8" PRIu64 " %9s %-10s %8s %8s %8s  %.*s\n",
        c->is_to_host ? "to host" : "from host", c->did.count,
        mp_report_scaled(c->bytes, "B", bytes),
        mp_overlap_name(c->is_async ? MP_OVERLAP_ASYNC : MP_OVERLAP_SYNC),
        mp_report_time(c->did.count == 0 ? 0 : c->did.time / c->did.count, each),
        mp_report_share((double)c->did.exposed, (double)row->available, share),
        mp_report_share((double)(c->did.time - exposed), (double)row->available, hidden),
        MP_STR_ARG(mp_report_end_of(mp_report_user_place(c->place), DETAILS_ENDS)));
  }
}

static void report_details_space(const char *whose, const mp_chip_space_t *space,
                                 mp_strbuf_t *out) {
  char arguments[MP_REPORT_NUMBER], results[MP_REPORT_NUMBER], temporaries[MP_REPORT_NUMBER];
  mp_strbuf_printf(out, "  memory of %s arguments %s, other results %s, temporaries %s\n", whose,
                   mp_report_scaled((double)space->arguments, "B", arguments),
                   mp_report_scaled((double)(space->results - space->aliased), "B", results),
                   mp_report_scaled((double)space->temporaries, "B", temporaries));
}

// Of programs that have anything on the host.
static void report_details_memory(const mp_report_program_t *row, mp_strbuf_t *out) {
  const mp_chip_space_t *host = &row->memory.host;
  if (host->arguments + host->results + host->temporaries == 0) return;
  report_details_space("a device:", &row->memory.device, out);
  report_details_space("it at its host:", host, out);
}

static void report_details_ops(const mp_report_program_t *row, mp_strbuf_t *out) {
  mp_moment_t work = 0;
  mp_strbuf_printf(out, "  %-20s %7s %9s %10s %8s %7s %-7s  %s\n", "op", "count", "bytes", "flops",
                   "each", "share", "bound", "at");
  for (uint32_t i = 0; i < row->num_ops && i < DETAILS_OPS; ++i) {
    const mp_report_op_t *op = &row->op[i];
    char bytes[MP_REPORT_NUMBER], flops[MP_REPORT_NUMBER], each[MP_REPORT_NUMBER];
    char share[MP_REPORT_NUMBER];
    mp_strbuf_printf(
        out, "  %-20.*s %7" PRIu64 " %9s %10s %8s %7s %-7s  %.*s\n",
        MP_STR_ARG(mp_report_end_of(mp_str(op->name), DETAILS_NAME)), op->count,
        mp_report_scaled(op->bytes, "B", bytes), mp_report_scaled(op->flops, "flop", flops),
        mp_report_time(op->count == 0 ? 0 : op->time / op->count, each),
        mp_report_share((double)op->time, (double)row->available, share), mp_bound_name(op->bound),
        MP_STR_ARG(report_details_place(op->name, op->place, DETAILS_ENDS)));
    work += op->time;
  }
  report_details_others(row, row->work, work, 68, out);
}

// The parts of TPU kernels, of one run.
static void report_details_kernels(const mp_report_program_t *row, mp_strbuf_t *out) {
  bool has_any = false;
  for (uint32_t i = 0; i < row->num_ops && i < DETAILS_OPS; ++i) {
    const mp_report_kernel_t *kernel = &row->op[i].kernel;
    char fill[MP_REPORT_NUMBER], compute[MP_REPORT_NUMBER], wait[MP_REPORT_NUMBER];
    char vmem[MP_REPORT_NUMBER];
    if (kernel->bound == NULL) continue;
    if (!has_any) {
      mp_strbuf_printf(out, "  %-24s %8s %8s %8s %9s  %s\n", "kernel bound by", "fill", "compute",
                       "DMA wait", "VMEM", "at");
    }
    has_any = true;
    mp_strbuf_printf(
        out, "  %-24s %8s %8s %8s %9s  %.*s\n", kernel->bound, mp_report_time(kernel->fill, fill),
        mp_report_time(kernel->compute, compute), mp_report_time(kernel->wait, wait),
        mp_report_scaled(kernel->vmem, "B", vmem),
        MP_STR_ARG(report_details_place(row->op[i].name, row->op[i].place, DETAILS_ENDS)));
  }
}

// "branch 1 of 0 to 2, the largest", "5 rounds".
static void report_details_guess(const mp_report_guess_t *guess, char *text, size_t size) {
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

static void report_details_guesses(const mp_report_program_t *row, mp_strbuf_t *out) {
  mp_strbuf_puts(out,
                 "  conditions were not computed (option values: shapes): the times are those of "
                 "these guesses\n");
  mp_strbuf_printf(out, "  %-32s %8s  %s\n", "guess", "count", "at");
  for (uint32_t i = 0; i < row->num_guesses; ++i) {
    const mp_report_guess_t *guess = &row->guess[i];
    char what[2 * MP_REPORT_NUMBER + 32];
    report_details_guess(guess, what, sizeof(what));
    mp_strbuf_printf(out, "  %-32s %8" PRIu64 "  ", what, guess->count);
    // A long path loses its beginning, and not the operation before it.
    const mp_str_t place = mp_report_user_place(guess->place);
    const char *at = strstr(guess->place, " at ");
    const size_t size = at == NULL ? 0 : (size_t)(at - guess->place) + 4;
    const size_t most = size < DETAILS_GUESSED ? DETAILS_GUESSED - size : 0;
    const mp_str_t end = mp_report_end_of((mp_str_t){place.data + size, place.size - size}, most);
    mp_strbuf_printf(out, "%.*s%.*s\n", (int)size, place.data, MP_STR_ARG(end));
  }
}

// What a script's own log says of a step that is launched again and again.
static void report_details_rhythm(const mp_report_program_t *row, mp_strbuf_t *out) {
  char seconds[MP_REPORT_NUMBER], host[MP_REPORT_NUMBER];
  if (row->rhythm.count == 0) return;
  mp_strbuf_printf(out, "  launched every %s, of which the host's own work is %s (medians)\n",
                   mp_report_time(mp_moment_of(row->rhythm.seconds), seconds),
                   mp_report_time(mp_moment_of(row->rhythm.host_seconds), host));
}

// On the average of its devices.
static void report_details_transfers(const mp_report_program_t *row, mp_strbuf_t *out) {
  char time[MP_REPORT_NUMBER];
  if (row->transfers == 0) return;
  mp_strbuf_printf(out, "  waited %s for transfers of its arguments\n",
                   mp_report_time(row->transfers / mp_report_partners(row), time));
}

void mp_report_table_program(const mp_report_table_t *table, const mp_report_program_t *row,
                             mp_strbuf_t *out) {
  const uint32_t partners = mp_report_partners(row);
  mp_strbuf_printf(out, "\n%s", row->name);
  if (row->number != 0) mp_strbuf_printf(out, " #%" PRIu32, row->number);
  mp_strbuf_printf(out, " on %" PRIu32 " device%s\n", partners, partners == 1 ? "" : "s");
  report_details_rhythm(row, out);
  report_details_transfers(row, out);
  mp_report_callers_print(row, out);
  if (row->is_cut) {
    mp_strbuf_puts(out, "  not all of its choices are known: some loops count as one round\n");
  }
  if (row->num_guesses != 0) report_details_guesses(row, out);
  if (row->link >= 0) {
    char amount[MP_REPORT_NUMBER];
    mp_strbuf_printf(out, "  busiest link: %s", mp_report_scaled(row->link_bytes, "B", amount));
    report_details_put_link(table, row->link, row->link_seconds, row->time, out);
    mp_strbuf_putc(out, '\n');
  }
  if (row->num_collectives != 0) report_details_collectives(table, row, out);
  report_details_memory(row, out);
  if (row->num_copies != 0) report_details_copies(row, out);
  mp_kernel_basis_print(table->figures, row->by_figure, out);
  if (row->num_ops != 0) report_details_ops(row, out);
  report_details_kernels(row, out);
}
