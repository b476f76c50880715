// A bounds-checked cursor over bytecode, and the format's primitives (MLIR BytecodeFormat.md,
// "Primitives").
//
// Every read moves the cursor past what it read. A read that would pass the cursor's end, or that
// finds a malformed value, is INVALID_ARGUMENT; the error names the offset in the whole program,
// and the cursor's position is then of no further use.
#ifndef MINIPOD_SIM_READERS_BYTECODE_BYTECODE_CURSOR_H_
#define MINIPOD_SIM_READERS_BYTECODE_BYTECODE_CURSOR_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/assert.h"
#include "sim/base/status.h"
#include "sim/base/str.h"

// The most elements of any list.
enum { MP_BC_MAX_COUNT = INT32_MAX };

// Copies of a cursor are independent positions.
typedef struct {
  const uint8_t *start;  // the program's first byte, from which offsets in errors are counted
  const uint8_t *at;     // the next byte to read
  const uint8_t *end;    // the end of what may be read: a program, a section or a table entry
} mp_bc_cursor_t;

// The number of bytes that are still to be read.
static inline size_t mp_bc_left(const mp_bc_cursor_t *c) {
  MP_ASSERT(c->start <= c->at && c->at <= c->end);
  return (size_t)(c->end - c->at);
}

// Makes the error INVALID_ARGUMENT "bytecode: offset N: ..." with the cursor's offset.
MP_NODISCARD MP_PRINTF(2, 3) mp_status_t
    mp_bc_fail(const mp_bc_cursor_t *c, const char *format, ...);
// Makes the same error with the code UNIMPLEMENTED, for input that is well formed but that minipod
// does not know.
MP_NODISCARD MP_PRINTF(2, 3) mp_status_t
    mp_bc_unknown(const mp_bc_cursor_t *c, const char *format, ...);

// Reads one byte.
MP_NODISCARD mp_status_t mp_bc_byte(mp_bc_cursor_t *c, uint8_t *out_value);
// Reads an unsigned number of one to nine bytes.
MP_NODISCARD mp_status_t mp_bc_varint(mp_bc_cursor_t *c, uint64_t *out_value);
// Reads a varint that must be at most `max`; `what` names it in the error.
MP_NODISCARD mp_status_t mp_bc_bounded(mp_bc_cursor_t *c, uint64_t max, const char *what,
                                       uint64_t *out_value);
// Reads a signed number: a varint in zig-zag code (0, -1, 1, -2, ... are 0, 1, 2, 3, ...).
MP_NODISCARD mp_status_t mp_bc_svarint(mp_bc_cursor_t *c, int64_t *out_value);
// Reads a varint whose lowest bit is a flag and whose other bits are the number.
MP_NODISCARD mp_status_t mp_bc_flagged(mp_bc_cursor_t *c, uint64_t *out_value, bool *out_flag);
// Reads a byte that must be 0 or 1.
MP_NODISCARD mp_status_t mp_bc_bool(mp_bc_cursor_t *c, bool *out_value);
// Reads the number of elements that follow. Each element takes at least one byte, so a number
// larger than the bytes that are left, or than MP_BC_MAX_COUNT, is an error; `what` names the
// elements in it.
MP_NODISCARD mp_status_t mp_bc_count(mp_bc_cursor_t *c, const char *what, size_t *out_count);
// The check of mp_bc_count for a number that was read in another way.
MP_NODISCARD mp_status_t mp_bc_check_count(const mp_bc_cursor_t *c, uint64_t count,
                                           const char *what);
// Reads `size` bytes; the result points into the program.
MP_NODISCARD mp_status_t mp_bc_bytes(mp_bc_cursor_t *c, uint64_t size, const uint8_t **out_bytes);
// Reads the bytes up to a NUL, and skips the NUL; the result points into the program.
MP_NODISCARD mp_status_t mp_bc_cstring(mp_bc_cursor_t *c, mp_str_t *out_text);
// Reads a length and that many bytes; the result points into the program.
MP_NODISCARD mp_status_t mp_bc_blob(mp_bc_cursor_t *c, const uint8_t **out_bytes, size_t *out_size);
// Reads the bits of an integer or float of `width` (1 to 64) bits; the upper bits are zero.
MP_NODISCARD mp_status_t mp_bc_bits(mp_bc_cursor_t *c, int width, uint64_t *out_bits);

// Reads one section: its id, and a cursor over its data. `c` moves past the section.
MP_NODISCARD mp_status_t mp_bc_section(mp_bc_cursor_t *c, uint8_t *out_id,
                                       mp_bc_cursor_t *out_data);
// Checks that everything was read; `what` names the item in the error.
MP_NODISCARD mp_status_t mp_bc_finish(const mp_bc_cursor_t *c, const char *what);

#endif  // MINIPOD_SIM_READERS_BYTECODE_BYTECODE_CURSOR_H_
