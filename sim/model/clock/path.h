// Paths: the way that one run has taken through its program.
//
// A program says what it does but for the choices that depend on data: where conditional jumps
// went, and how often the loops that are one command went round. A path is the list of these
// choices in the order in which they were made. Together with the program it tells every command
// that the run executed, so that its virtual time can be computed afterwards.
//
// A path belongs to one run and is written by one thread at a time. Writing never fails: when
// memory is short, or a path becomes very long, the rest is left out and the path says so.
#ifndef MINIPOD_SIM_MODEL_CLOCK_PATH_H_
#define MINIPOD_SIM_MODEL_CLOCK_PATH_H_

#include <stdbool.h>
#include <stdint.h>

// `count` equal choices after each other.
typedef struct {
  uint64_t choice;
  uint32_t count;
} mp_path_entry_t;

// Most paths have an entry or two, and runs that are over in microseconds write them: these lie in
// the path itself.
enum { MP_PATH_FEW = 2 };

typedef struct {
  uint32_t num_entries, capacity;  // in all; of `more`
  bool is_cut;                     // later choices are not there
  mp_path_entry_t few[MP_PATH_FEW];
  mp_path_entry_t *more;  // owned: the entries behind the first few
} mp_path_t;

// Added to a choice that was not made but guessed, because the value that decides is not there
// (option `values`: shapes).
#define MP_PATH_GUESSED (UINT64_C(1) << 63)

// Adds a choice: of a conditional jump 0 when it goes on with the next command, and 1 when it
// jumps; of a switch the number of its target; of a loop a count of rounds.
void mp_path_add(mp_path_t *path, uint64_t choice);
// Frees what the path holds; it is empty afterwards.
void mp_path_clear(mp_path_t *path);
// A fingerprint of the choices.
uint64_t mp_path_hash(const mp_path_t *path);

// Where a reader of a path is; all zero at its beginning.
typedef struct {
  uint32_t entry, used;
} mp_path_cursor_t;

// Takes the next choice. False, and 0, when there is none any more.
bool mp_path_take(const mp_path_t *path, mp_path_cursor_t *cursor, uint64_t *out_choice);

#endif  // MINIPOD_SIM_MODEL_CLOCK_PATH_H_
