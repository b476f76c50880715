// Making executables, shared by compiling, loading and deserializing.
#ifndef MINIPOD_PJRT_PJRT_EXECUTABLE_H_
#define MINIPOD_PJRT_PJRT_EXECUTABLE_H_

#include "pjrt/pjrt_compile.h"
#include "pjrt/pjrt_objects.h"

// The form of stored executables (pjrt_serialize.c): the end of their magic word, and the version
// that the AbiVersion extension tells.
#define MP_PJRT_STORED_FORM "1"

// Compiles `source` and keeps a copy of it in the executable, which has one reference. With a
// client the result can be launched; without one (NULL) it is for a pod of `pod_devices` devices
// that may not exist here. Fails like mp_pjrt_compile and mp_executable_create.
MP_NODISCARD mp_status_t mp_pjrt_executable_compile(PJRT_Client *client, uint32_t pod_devices,
                                                    const mp_pjrt_source_t *source,
                                                    PJRT_Executable **out_executable);

// The same for the client's pod, with the lists of devices that the interface lends. The caller
// destroys it with PJRT_LoadedExecutable_Destroy.
MP_NODISCARD mp_status_t mp_pjrt_loaded_executable_compile(PJRT_Client *client,
                                                           const mp_pjrt_source_t *source,
                                                           PJRT_LoadedExecutable **out_loaded);

// Reads a caller's program and options, which the result borrows. INVALID_ARGUMENT when something
// is missing.
MP_NODISCARD mp_status_t mp_pjrt_read_program(const PJRT_Program *program, const char *options,
                                              size_t options_size, mp_pjrt_source_t *out_source);

// The program as clients read it back (pjrt_optimized.c).
typedef struct mp_pjrt_optimized_s mp_pjrt_optimized_t;
void mp_pjrt_optimized_free(mp_pjrt_optimized_t *optimized);  // NULL: nothing

// Calls back for each InspectSharding of the program, with the sharding that its value got.
// INVALID_ARGUMENT for a call that was not made by the jaxlib of this process, and the callback's
// error; both with the call's line. The caller holds no lock, as callbacks run Python.
MP_NODISCARD mp_status_t mp_pjrt_inspect_shardings(const mp_program_t *program);

// Appends boxes (NULL: whole) as an OpSharding message; `is_manual`: they are a device's own;
// `spell_out`: with a list of devices even where a rule would say them. `arena` is for working
// memory. (ext_shardings.c)
MP_NODISCARD mp_status_t mp_pjrt_write_sharding(mp_arena_t *arena, const mp_boxes_t *boxes,
                                                bool is_manual, bool spell_out, mp_strbuf_t *out);

// Fills the executable's lists of OpSharding messages, in its arena (ext_shardings.c).
MP_NODISCARD mp_status_t mp_pjrt_list_shardings(PJRT_Executable *executable);

// What a launch tells a profiler (ext_profiler.c): the time before it is made, 0 when none runs;
// and afterwards, unless that was 0, of each of its devices the program's name and the event of its
// end.
int64_t mp_pjrt_profiler_begin(void);
// The same of the program itself: what its ops are called.
void mp_pjrt_profiler_note_program(const PJRT_Executable *executable);
void mp_pjrt_profiler_note(int64_t begin, const char *name, uint32_t device, mp_event_t *done);

#endif  // MINIPOD_PJRT_PJRT_EXECUTABLE_H_
