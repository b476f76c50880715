// Errors about ops that a TPU's compiler refuses.
#include <stdarg.h>

#include "sim/ir/print/print_parts.h"
#include "sim/mosaic/ir/mosaic_ir.h"

enum { MOST_NODES = 1024 };  // of a location that is printed with all frames

// The location without the outer ones of several names ("add:", "f/add"): JAX takes what stands
// before the frames as a function's name.
static const mp_loc_t *mosaic_refused_loc(const mp_loc_t *loc) {
  for (;;) {
    if (loc->kind != MP_LOC_NAME || loc->num_children != 1) return loc;
    const mp_loc_t *child = loc->children[0];
    if (child->kind != MP_LOC_NAME || child->num_children != 1) return loc;
    if (child->children[0]->kind == MP_LOC_FILE) return loc;  // a frame
    loc = child;
  }
}

// JAX makes an error with a line `loc(...)` and the word Mosaic a MosaicError, whose traceback is
// that location; it takes the line out (jax/_src/pallas/mosaic/error_handling.py).
mp_status_t mp_mosaic_op_refused(const mp_mosaic_op_t *op, const char *format, ...) {
  va_list args;
  va_start(args, format);
  mp_status_t why = mp_status_vmake(MP_UNIMPLEMENTED, format, args);
  va_end(args);
  mp_status_t plain = mp_mosaic_op_error(op, MP_UNIMPLEMENTED, "%s", mp_status_message(why));
  mp_status_release(why);
  if (op->loc == NULL) return plain;
  mp_strbuf_t loc;
  mp_strbuf_init(&loc);
  uint64_t room = MOST_NODES;
  mp_print_loc(mosaic_refused_loc(op->loc), &room, &loc);
  mp_status_t status = mp_status_make(MP_UNIMPLEMENTED, "%s\nlocation: %s\n",
                                      mp_status_message(plain), mp_strbuf_text(&loc));
  mp_strbuf_deinit(&loc);
  mp_status_release(plain);
  return status;
}
