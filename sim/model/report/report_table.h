// The table: where the virtual time of a client's programs went, as text.
#ifndef MINIPOD_SIM_MODEL_REPORT_REPORT_TABLE_H_
#define MINIPOD_SIM_MODEL_REPORT_REPORT_TABLE_H_

#include "sim/model/report/report_rows.h"

typedef struct {
  const mp_pod_t *pod;
  const mp_network_t *network;  // for the names of links
  const mp_chip_figures_t *figures;
  mp_moment_t now, host;  // virtual
  uint64_t launches, transfers;
  uint64_t pending, lost;  // what is not in the rows
  double late, pace;       // as in mp_model_books_t
  double real_seconds;     // since the client was made
  mp_report_rows_t *rows;  // sorted here: the program that took longest first
} mp_report_table_t;

// Appends the table; lines have at most 100 columns, but for programs whose names
// are longer than the others'. Everything but real_seconds and late
// depends on the programs and the description alone.
MP_NODISCARD mp_status_t mp_report_table_print(mp_report_table_t *table, mp_strbuf_t *out);

// What the table says of one program (report_details.c).
void mp_report_table_program(const mp_report_table_t *table, const mp_report_program_t *row,
                             mp_strbuf_t *out);
// Its callers, unless there is one place alone that has no name of a module (report_callers.c).
void mp_report_callers_print(const mp_report_program_t *row, mp_strbuf_t *out);

// What is found of all programs and of the pod (report_advice.c).
MP_NODISCARD mp_status_t mp_report_advice_print(const mp_report_table_t *table, mp_strbuf_t *out);
// Devices, few among many, that work longer than the rest: `times` as long as these.
MP_NODISCARD mp_status_t mp_report_advice_slow(const mp_report_rows_t *rows,
                                               void (*tell)(void *context, uint32_t device,
                                                            double times),
                                               void *context);

// Sorts its programs: the one that took longest first.
void mp_report_table_sort(mp_report_table_t *table);

// ---- For programs (report_json.c) ----

// Appends one object. Times are seconds. Those of a program are of the device that takes longest
// ("seconds", summed over launches) or of all its devices together ("available" and what it is made
// of: "work", "collective", "waiting", and "idle", which is none of these). "devices" are those
// that it is compiled for, "runs" those that took part in its launches, added up. The rows of "ops"
// add up to "work" with "other_work", of which "unsure" rests on estimated or copied parameters,
// those of "collectives" to "collective" with "other_collective". "classes" are all of "work" by
// kinds of kernels; their "flops", too, are sums. "layers" are all of it again, by the names of the
// user's framework; "callers" are the places of the script that launched the program, if known,
// with their launches, runs and times. "members" and "first_members" (global ids) of a collective
// say which devices meet: of its largest group. "guessed" are the branches taken ("branches": how
// many there are) and rounds gone (0 branches) where a value that is absent decides; "guesses"
// counts them all. Of programs that a paced or virtual clock has seen twice, "every" is the time
// from one launch to the next, and "every_host" what of it is the host's own work. "findings" of a
// program are what could be done otherwise, with times of all its devices, and those of the whole
// are devices that are slow. Programs are sorted as in the table, all of them.
MP_NODISCARD mp_status_t mp_report_json_print(mp_report_table_t *table, mp_strbuf_t *out);

#endif  // MINIPOD_SIM_MODEL_REPORT_REPORT_TABLE_H_
