// Functions that the Python package calls in the library, and has JAX call: what is done around the
// calls of jitted functions.
#ifndef MINIPOD_PJRT_PACKAGE_PJRT_LAUNCH_H_
#define MINIPOD_PJRT_PACKAGE_PJRT_LAUNCH_H_

#include "pjrt/package/pjrt_foreign.h"
#include "pjrt/pjrt_objects.h"

// A function of CPython that is called by its protocol "vectorcall".
typedef void *(*mp_python_call_t)(void *callable, void *const *arguments, size_t flags,
                                  void *names);
// Says what minipod_launch calls.
MP_EXPORT void minipod_follow_launches(mp_python_call_t real);
// A call of a function of JAX that launches: the host's clock stands for as long as it takes, for
// the work is for all devices of the process, of which a host of the pod has few.
MP_EXPORT void *minipod_launch(void *callable, void *const *arguments, size_t flags, void *names);
// What CPython calls when an object has no references any more.
typedef void (*mp_python_drop_t)(void *object);
// Says what minipod_drop calls.
MP_EXPORT void minipod_follow_drops(mp_python_drop_t real);
// The end of an array of JAX, with an object for each shard: the host's clock stands meanwhile, for
// the same reason.
MP_EXPORT void minipod_drop(void *array);
// Has that clock stand for this thread until minipod_unstand. False: it does already, or is the
// system's.
MP_EXPORT bool minipod_stand(void);
// False: it did not stand for this thread.
MP_EXPORT bool minipod_unstand(void);

// Gets the arguments of a call of minipod_launch, and raises nothing.
typedef void (*mp_python_donated_t)(void *const *arguments, size_t flags, void *names);
// Has `donated` called after a call of minipod_launch that has donated very many buffers.
MP_EXPORT void minipod_follow_donations(mp_python_donated_t donated);
// Whether a client of the process has run programs for their shapes alone: that is what pods of
// very many devices are for.
MP_EXPORT bool minipod_has_shapes_only(void);

// ---- for the library ----

// Notes what a client is that was made.
void mp_pjrt_launch_begin(const PJRT_Client *client);

#endif  // MINIPOD_PJRT_PACKAGE_PJRT_LAUNCH_H_
