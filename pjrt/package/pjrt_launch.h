// Functions that the Python package calls in the library, and that JAX calls through it: work
// around the calls of jitted functions.
#ifndef MINIPOD_PJRT_PACKAGE_PJRT_LAUNCH_H_
#define MINIPOD_PJRT_PACKAGE_PJRT_LAUNCH_H_

#include "pjrt/package/pjrt_foreign.h"
#include "pjrt/pjrt_objects.h"

// A function of CPython that is called by its protocol "vectorcall".
typedef void *(*mp_python_call_t)(void *callable, void *const *arguments, size_t flags,
                                  void *names);
// Sets the function that minipod_launch calls.
MP_EXPORT void minipod_follow_launches(mp_python_call_t real);
// Calls a launching function of JAX while the host's clock stands still: the work is for all
// devices of the process, but a host of the described pod has only few of them.
MP_EXPORT void *minipod_launch(void *callable, void *const *arguments, size_t flags, void *names);
// What CPython calls when an object has no references any more.
typedef void (*mp_python_drop_t)(void *object);
// Says what minipod_drop calls.
MP_EXPORT void minipod_follow_drops(mp_python_drop_t real);
// Frees an array of JAX, with an object for each shard, while the host's clock stands still, for
// the same reason.
MP_EXPORT void minipod_drop(void *array);
// Stops that clock for this thread until minipod_unstand. False: it is already stopped, or it is
// the system's clock.
MP_EXPORT bool minipod_stand(void);
// False: it was not stopped for this thread.
MP_EXPORT bool minipod_unstand(void);

// Copies a text, for ever, with which launches can be labelled; NULL when memory is short.
MP_EXPORT const char *minipod_label(const char *text);
// Where the package writes the label of the launches from now on: a result of minipod_label, or
// NULL. A store of a pointer is enough.
MP_EXPORT void *minipod_label_slot(void);

// Where the package writes what other processes bring to the collectives of the launches from now
// on, if they do not exist (mp_others_t, an int).
MP_EXPORT void *minipod_others_slot(void);

// Gets the arguments of a call of minipod_launch; must not raise.
typedef void (*mp_python_donated_t)(void *const *arguments, size_t flags, void *names);
// Registers `donated`, which is called after a call of minipod_launch that has donated very many
// buffers.
MP_EXPORT void minipod_follow_donations(mp_python_donated_t donated);
// Whether a client of the process has run programs for their shapes alone, as for pods with very
// many devices.
MP_EXPORT bool minipod_has_shapes_only(void);

// ---- for the library ----

// Records the kind of a new client.
void mp_pjrt_launch_begin(const PJRT_Client *client);

#endif  // MINIPOD_PJRT_PACKAGE_PJRT_LAUNCH_H_
