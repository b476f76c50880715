// The state of a check; private to this folder.
#ifndef MINIPOD_SIM_MOSAIC_CHECK_MOSAIC_CHECK_IMPL_H_
#define MINIPOD_SIM_MOSAIC_CHECK_MOSAIC_CHECK_IMPL_H_

#include "sim/base/containers/array.h"
#include "sim/mosaic/check/mosaic_check.h"

enum {
  MP_MOSAIC_CHECK_MAX_GRID = 16,
  MP_MOSAIC_CHECK_MOST_SUSPECTS = 64,
  MP_MOSAIC_CHECK_GRANULE = 4,
};

// An instruction in a step of the grid.
typedef struct {
  const mp_mosaic_instruction_t *in;
  int64_t step[MP_MOSAIC_CHECK_MAX_GRID];
} mp_mosaic_moment_t;

// Pieces of memory, in the order of their addresses.
typedef struct {
  char *at;
  size_t bytes;
} mp_mosaic_piece_t;
typedef MP_ARRAY(mp_mosaic_piece_t) mp_mosaic_pieces_t;  // on the heap

typedef struct {
  mp_mosaic_moment_t start;
  mp_mosaic_pieces_t source, target;
  uint32_t source_arg, target_arg;
  const int64_t *semaphore;
  int64_t bytes;
  uint32_t from;  // the name of the device that has started it; NONE: this one
} mp_mosaic_dma_t;

// Memory of which it is known whether it is written: a byte of `set` for each.
typedef struct {
  char *memory;
  size_t bytes;
  uint32_t arg;
  uint8_t *set;
  // By MP_MOSAIC_CHECK_GRANULE bytes: the device's clock when it last used them; 0: never. NULL: no
  // clocks. Under the lock.
  uint32_t *used;
} mp_mosaic_region_t;

typedef struct {
  const int64_t *values;
  int64_t count;
  uint32_t arg;
} mp_mosaic_semaphores_t;

typedef struct {
  mp_mosaic_moment_t load;
  uint32_t arg;
  bool is_divided;
} mp_mosaic_suspect_t;

struct mp_mosaic_check_s {
  mp_mosaic_watcher_t watcher;  // first
  const mp_mosaic_check_name_t *names;
  uint32_t num_names;
  const int64_t *step;
  uint32_t rank;
  mp_lock_t *lock;  // of the regions, which other devices read; NULL: none
  bool is_divided;  // this is the second core
  bool spoils;
  uint32_t spoiled;  // the argument
  MP_ARRAY(mp_mosaic_dma_t) dmas;
  MP_ARRAY(mp_mosaic_region_t) regions;
  MP_ARRAY(mp_mosaic_semaphores_t) semaphores;
  uint32_t num_suspects;
  mp_mosaic_suspect_t suspects[MP_MOSAIC_CHECK_MOST_SUSPECTS];
};

// A part of memory that an instruction reads or writes.
typedef struct {
  const mp_mosaic_instruction_t *in;
  const mp_mosaic_view_t *view;
  const uint8_t *mask;  // NULL: all elements
} mp_mosaic_access_t;

// ---- mosaic_check_text.c ----

void mp_mosaic_check_now(const mp_mosaic_check_t *check, const mp_mosaic_instruction_t *in,
                         mp_mosaic_moment_t *out);
// "tpu.enqueue_dma, kernel.py:12:3, grid step (0, 1)".
void mp_mosaic_check_print(const mp_mosaic_check_t *check, const mp_mosaic_moment_t *moment,
                           mp_strbuf_t *text);
// "scratch memory 0 (argument 4 of the kernel)".
void mp_mosaic_check_print_arg(const mp_mosaic_check_t *check, uint32_t arg, mp_strbuf_t *text);
// FAILED_PRECONDITION with the text, which is released.
MP_NODISCARD mp_status_t mp_mosaic_check_error(mp_strbuf_t *text);

// ---- mosaic_check_dmas.c ----

// What an access does with the memory.
typedef enum {
  MP_MOSAIC_ACCESS_READS,
  MP_MOSAIC_ACCESS_WRITES,
  MP_MOSAIC_ACCESS_ALLOCATES,  // other devices may have written it already
  MP_MOSAIC_ACCESS_COMES,      // a DMA that another device has started writes it
} mp_mosaic_access_kind_t;

// An error if the access races with a DMA in flight.
MP_NODISCARD mp_status_t mp_mosaic_check_races(const mp_mosaic_check_t *check,
                                               const mp_mosaic_access_t *access,
                                               mp_mosaic_access_kind_t kind);
// A DMA begins, which signals the semaphore. Source or target are NULL if they are elsewhere.
// `from`: the name of another device that has started it, or NONE.
MP_NODISCARD mp_status_t mp_mosaic_check_start(
    mp_mosaic_check_t *check, const mp_mosaic_instruction_t *in, const mp_mosaic_view_t *source,
    const mp_mosaic_view_t *target, const int64_t *semaphore, int64_t bytes, uint32_t from);
// A wait has taken from the semaphore, and so much is left.
void mp_mosaic_check_waited(mp_mosaic_check_t *check, const int64_t *semaphore, int64_t left);
void mp_mosaic_check_free_dmas(mp_mosaic_check_t *check);

// ---- mosaic_check_used.c ----

// The device uses memory. `lag`: how often its clock has advanced since.
MP_NODISCARD mp_status_t mp_mosaic_check_use(const mp_mosaic_check_t *check,
                                             const mp_mosaic_state_t *state,
                                             const mp_mosaic_access_t *access, uint32_t lag);
// mp_mosaic_watcher_t.comes: an error if the device has used the memory since.
MP_NODISCARD mp_status_t mp_mosaic_check_comes(mp_mosaic_watcher_t *watcher,
                                               const mp_mosaic_view_t *target, uint32_t known);

// ---- mosaic_check_incoming.c ----

// Takes the DMAs that other devices have started to this one since the last call. An error if one
// races with a DMA in flight.
MP_NODISCARD mp_status_t mp_mosaic_check_take_incoming(mp_mosaic_check_t *check,
                                                       const mp_mosaic_state_t *state);
// Marks what DMAs of other devices that are in flight write as set.
void mp_mosaic_check_set_incoming(const mp_mosaic_check_t *check);

// ---- mosaic_check_semaphores.c ----

MP_NODISCARD mp_status_t mp_mosaic_check_add_semaphores(mp_mosaic_check_t *check,
                                                        const int64_t *values, int64_t count,
                                                        uint32_t arg);

// ---- mosaic_check_unset.c ----

MP_NODISCARD mp_status_t mp_mosaic_check_add_region(mp_mosaic_check_t *check, char *memory,
                                                    size_t bytes, uint32_t arg);
// A load of memory of the argument that nothing has written is a suspect.
void mp_mosaic_check_suspects(mp_mosaic_check_t *check, const mp_mosaic_instruction_t *in,
                              uint32_t arg);
// An access reads memory: an error, or a suspect.
MP_NODISCARD mp_status_t mp_mosaic_check_reads(mp_mosaic_check_t *check,
                                               const mp_mosaic_access_t *access);
// The region in which the memory is; NULL: none.
mp_mosaic_region_t *mp_mosaic_check_find_region(const mp_mosaic_check_t *check, const char *at);
// Marks a piece of memory as set.
void mp_mosaic_check_set(const mp_mosaic_check_t *check, const mp_mosaic_piece_t *piece);
// An access writes memory.
MP_NODISCARD mp_status_t mp_mosaic_check_writes(const mp_mosaic_check_t *check,
                                                const mp_mosaic_access_t *access);
void mp_mosaic_check_free_regions(mp_mosaic_check_t *check);

#endif  // MINIPOD_SIM_MOSAIC_CHECK_MOSAIC_CHECK_IMPL_H_
