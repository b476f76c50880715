// Source locations: where an op came from in the user's program.
#ifndef MINIPOD_SIM_IR_LOC_H_
#define MINIPOD_SIM_IR_LOC_H_

#include <stdint.h>

#include "sim/base/str.h"

typedef enum {
  MP_LOC_UNKNOWN,
  MP_LOC_FILE,       // file:line:column
  MP_LOC_NAME,       // "name" of child
  MP_LOC_CALL_SITE,  // callee at caller
  MP_LOC_FUSED,      // children
} mp_loc_kind_t;

typedef struct mp_loc_s mp_loc_t;
struct mp_loc_s {
  mp_loc_kind_t kind;
  mp_str_t text;                  // FILE: file; NAME: name
  uint32_t line, column;          // FILE; 0: not known
  uint32_t end_line, end_column;  // FILE ranges; 0: none
  uint32_t num_children;          // NAME: 0 or 1; CALL_SITE: 2 (callee, caller); FUSED: n
  const mp_loc_t *const *children;
};

// The outermost name, and the innermost position in a file: the callee's rather than the caller's.
// NULL where there is none; `loc` may be NULL.
void mp_loc_find(const mp_loc_t *loc, const mp_loc_t **out_name, const mp_loc_t **out_file);

// Appends what error messages show of a location: the op's own name, which is the last part of the
// outermost name's path, and the innermost position in a file: `psum at train.py:12:7`. Appends
// "unknown location" when there is neither; `loc` may be NULL.
void mp_loc_describe(const mp_loc_t *loc, mp_strbuf_t *out);

#endif  // MINIPOD_SIM_IR_LOC_H_
