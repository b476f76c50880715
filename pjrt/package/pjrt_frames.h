// Finds the label of an eager op by Python's stack. The package finds the module and the line of an
// op, which takes it some 10 us, and keeps the label here: by the module, the script's instruction
// and the library's. The next op with the same three gets the label without the package.
//
// All functions are called with Python's lock.
#ifndef MINIPOD_PJRT_PACKAGE_PJRT_FRAMES_H_
#define MINIPOD_PJRT_PACKAGE_PJRT_FRAMES_H_

#include <stdbool.h>
#include <stddef.h>

#include "pjrt/package/pjrt_foreign.h"

// What a code object is to a search: the package's kinds (places.py).
typedef enum {
  MP_FRAMES_UNKNOWN,
  MP_FRAMES_PASSED,   // the framework's
  MP_FRAMES_LIBRARY,  // of another package
  MP_FRAMES_USER,     // the script's: the search for a line ends
  MP_FRAMES_MODULE,   // works for `self`, a module or an optimizer
  MP_FRAMES_OTHER,    // the package decides
} mp_frames_kind_t;

// Functions of CPython. Those with a result that is an object give a reference to it, which `drop`
// gives back, but for `current`, which lends.
typedef struct {
  size_t struct_size;
  void *(*current)(void);  // PyEval_GetFrame
  void *(*back)(void *frame);
  void *(*code)(void *frame);
  int (*instruction)(void *frame);
  void *(*variable)(void *frame, const char *name);  // NULL, and an exception: there is none
  void (*clear)(void);                               // the exception
  void (*drop)(void *object);
} minipod_frames_python_t;

// Begins to find labels, which are from minipod_label; those from before are forgotten.
MP_EXPORT void minipod_frames_begin(const minipod_frames_python_t *python);
// Says what a code is, which lives as long as the process.
MP_EXPORT void minipod_frames_know(const void *code, int kind);
// Says that a module or optimizer has a name, or another one than before; false: that it is about
// to be freed.
MP_EXPORT void minipod_frames_name(const void *module, bool is_named);
// The label of an op that the calling function dispatches. NULL: the package must find it.
MP_EXPORT const char *minipod_frames_find(void);
// Keeps the label for what this thread's last search has found, if that was enough for a label.
MP_EXPORT void minipod_frames_keep(const char *label);

#endif  // MINIPOD_PJRT_PACKAGE_PJRT_FRAMES_H_
