// Paths: the way that one run has taken through its program.
//
// A program says what it does but for the choices that depend on data: how often each of its loops
// went round, and which way its branches went. A path has, for each loop and branch, the list of
// its choices in the order in which they were made. The order between different ones is not kept:
// this machine may do independent ones in another order than the described chip.
//
// A path belongs to one run and is written by one thread at a time. Writing never fails: when
// memory is short, or a path becomes very long, the rest is left out and the path says so.
#ifndef MINIPOD_SIM_MODEL_CLOCK_REPLAY_PATH_H_
#define MINIPOD_SIM_MODEL_CLOCK_REPLAY_PATH_H_

#include <stdbool.h>
#include <stdint.h>

// `count` equal choices after each other.
typedef struct {
  uint64_t choice, count;
} mp_path_entry_t;

// Most loops are entered once, and runs that are over in microseconds write this: going round, and
// leaving, lie in the stream itself.
enum { MP_PATH_FEW = 2 };

// The choices of one loop or branch.
typedef struct {
  uint32_t control;                // its number (mp_op_t.control)
  uint32_t num_entries, capacity;  // in all; of `more`
  mp_path_entry_t few[MP_PATH_FEW];
  mp_path_entry_t *more;  // owned: the entries behind the first few
} mp_path_stream_t;

typedef struct {
  bool is_cut;                     // later choices are missing
  uint32_t num_streams, capacity;  // in all; of `more`
  uint32_t last;                   // the stream that was written last
  mp_path_stream_t one;            // the first one: many programs have no other
  mp_path_stream_t *more;          // owned
} mp_path_t;

// Added to a choice that was not made but guessed, because the value that decides was not computed
// (option `values`: shapes).
#define MP_PATH_GUESSED (UINT64_C(1) << 63)

// Adds a choice that was made `count` times: of a loop 0 when it goes round, and 1 when it is left;
// of a branch the number of the region. Control 0 is not followed.
void mp_path_add(mp_path_t *path, uint32_t control, uint64_t choice, uint64_t count);
// Frees what the path holds; it is empty afterwards.
void mp_path_clear(mp_path_t *path);
// A fingerprint of the choices.
uint64_t mp_path_hash(const mp_path_t *path);

// Where a reader of one stream is; all zero at its beginning.
typedef struct {
  uint32_t entry;
  uint64_t used;
} mp_path_cursor_t;

// How many equal choices of a loop or branch come next, and which; 0 when there are none any more.
uint64_t mp_path_next(const mp_path_t *path, uint32_t control, const mp_path_cursor_t *cursor,
                      uint64_t *out_choice);
// Takes so many of them.
void mp_path_take(const mp_path_t *path, uint32_t control, mp_path_cursor_t *cursor,
                  uint64_t count);

#endif  // MINIPOD_SIM_MODEL_CLOCK_REPLAY_PATH_H_
