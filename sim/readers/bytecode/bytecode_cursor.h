// A bounds-checked cursor over bytecode: the format's primitives (MLIR BytecodeFormat.md,
// "Primitives"). All errors name the offset in the whole program.
#ifndef MINIPOD_SIM_READERS_BYTECODE_BYTECODE_CURSOR_H_
#define MINIPOD_SIM_READERS_BYTECODE_BYTECODE_CURSOR_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/base/str.h"

// The most elements of anything that is counted.
enum { MP_BC_MAX_COUNT = INT32_MAX };

// Copies of a cursor are independent positions.
typedef struct {
  const uint8_t *start;  // of the program, what offsets count from
  const uint8_t *at;     // next byte
  const uint8_t *end;    // of what may be read: the program, a section or a table entry
} mp_bc_cursor_t;

static inline size_t mp_bc_left(const mp_bc_cursor_t *c) {
  return (size_t)(c->end - c->at);
}

// INVALID_ARGUMENT "bytecode: offset N: ..." at the cursor.
MP_NODISCARD MP_PRINTF(2, 3) mp_status_t
    mp_bc_fail(const mp_bc_cursor_t *c, const char *format, ...);
// The same with UNIMPLEMENTED: well formed, but nothing that minipod knows.
MP_NODISCARD MP_PRINTF(2, 3) mp_status_t
    mp_bc_unknown(const mp_bc_cursor_t *c, const char *format, ...);

MP_NODISCARD mp_status_t mp_bc_byte(mp_bc_cursor_t *c, uint8_t *out_value);
MP_NODISCARD mp_status_t mp_bc_varint(mp_bc_cursor_t *c, uint64_t *out_value);
// A varint that must be at most `max`; `what` names it in the error.
MP_NODISCARD mp_status_t mp_bc_bounded(mp_bc_cursor_t *c, uint64_t max, const char *what,
                                       uint64_t *out_value);
// Zig-zag coded.
MP_NODISCARD mp_status_t mp_bc_svarint(mp_bc_cursor_t *c, int64_t *out_value);
// A varint whose lowest bit is a flag.
MP_NODISCARD mp_status_t mp_bc_flagged(mp_bc_cursor_t *c, uint64_t *out_value, bool *out_flag);
// A byte that is 0 or 1.
MP_NODISCARD mp_status_t mp_bc_bool(mp_bc_cursor_t *c, bool *out_value);
// The count of elements that follow and take a byte or more each: at most the bytes left
// and MP_BC_MAX_COUNT.
MP_NODISCARD mp_status_t mp_bc_count(mp_bc_cursor_t *c, const char *what, size_t *out_count);
// Checks a count that came otherwise against the same bounds.
MP_NODISCARD mp_status_t mp_bc_check_count(const mp_bc_cursor_t *c, uint64_t count,
                                           const char *what);
MP_NODISCARD mp_status_t mp_bc_bytes(mp_bc_cursor_t *c, uint64_t size, const uint8_t **out_bytes);
// Bytes up to a NUL, which is skipped.
MP_NODISCARD mp_status_t mp_bc_cstring(mp_bc_cursor_t *c, mp_str_t *out_text);
// Length and bytes.
MP_NODISCARD mp_status_t mp_bc_blob(mp_bc_cursor_t *c, const uint8_t **out_bytes, size_t *out_size);
// The bits of an integer or float of 1 to 64 bits, upper bits zero.
MP_NODISCARD mp_status_t mp_bc_bits(mp_bc_cursor_t *c, int width, uint64_t *out_bits);

// One section: id and a cursor over its data; `c` moves past it.
MP_NODISCARD mp_status_t mp_bc_section(mp_bc_cursor_t *c, uint8_t *out_id,
                                       mp_bc_cursor_t *out_data);
// Everything must have been read; `what` names the thing that has bytes left over.
MP_NODISCARD mp_status_t mp_bc_finish(const mp_bc_cursor_t *c, const char *what);

#endif  // MINIPOD_SIM_READERS_BYTECODE_BYTECODE_CURSOR_H_
