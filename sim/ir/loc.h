// Source locations: where an op came from in the user's program.
#ifndef MINIPOD_SIM_IR_LOC_H_
#define MINIPOD_SIM_IR_LOC_H_

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
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

// What people are shown of a location; each may be NULL.
typedef struct {
  const mp_loc_t *name;     // the outermost name, or the one that is marked
  const mp_loc_t *file;     // the user's line: the innermost frame outside of installed packages
  const mp_loc_t *library;  // the innermost frame, where it is one of an installed package
} mp_loc_found_t;

// A name that begins like this is a path ("blocks.0.up/addmm" after the mark) and goes before names
// outside of it: minipod's Python package marks those of frameworks that put no paths into
// locations.
#define MP_LOC_PATH_MARK "minipod:"

// The path of a location: the name without the mark; empty: there is none. `loc` may be NULL.
mp_str_t mp_loc_path(const mp_loc_t *loc);

// `loc` may be NULL. Where all frames are those of installed packages (or of Python's standard
// library), `file` is the innermost of them, and `library` is NULL.
mp_loc_found_t mp_loc_find(const mp_loc_t *loc);

// Whether there is any position in a file.
bool mp_loc_has_file(const mp_loc_t *loc);

// Whether the tree of a location has at most `*room` nodes, which are then taken from it; otherwise
// nothing is left, so that asking for many large trees is cheap. Call stacks may be deep; all else
// in a location is nested no deeper than the readers allow.
bool mp_loc_count(const mp_loc_t *loc, uint64_t *room);

// Appends what error messages show of a location: the op's own name, which is the last part of the
// outermost name's path, the user's line, and that of the library which it calls, without the
// folder of packages: `dot_general at train.py:12:7, in flax/nnx/nn/linear.py:422:8`. Appends
// "unknown location" when there is neither; `loc` may be NULL. Control characters are escaped.
void mp_loc_describe(const mp_loc_t *loc, mp_strbuf_t *out);

// Makes an error about an op at a location, which may be unknown: "<message> [<op>, <location>]".
// If `within`, the name of the op's function, is not empty, " (<within>)" follows the location.
MP_NODISCARD MP_PRINTF(5, 0) mp_status_t
    mp_loc_verror(mp_status_code_t code, const char *op, const mp_loc_t *loc, mp_str_t within,
                  const char *format, va_list args);

#endif  // MINIPOD_SIM_IR_LOC_H_
