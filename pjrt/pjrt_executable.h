// Making executables, shared by compiling, loading and deserializing.
#ifndef MINIPOD_PJRT_PJRT_EXECUTABLE_H_
#define MINIPOD_PJRT_PJRT_EXECUTABLE_H_

#include "pjrt/compile/pjrt_compile.h"
#include "pjrt/pjrt_objects.h"

// The form of stored executables (pjrt_serialize.c): the end of their magic word, and the version
// in the AbiVersion extension.
#define MP_PJRT_STORED_FORM "1"

// Compiles `source` and keeps a copy of it in the executable, which has one reference. With a
// client the result can be launched; without one (NULL) it is for a pod that may not exist here.
// Fails like mp_pjrt_compile, mp_executable_create and mp_pjrt_executable_plan_memory.
MP_NODISCARD mp_status_t mp_pjrt_executable_compile(PJRT_Client *client,
                                                    const PJRT_TopologyDescription *topology,
                                                    const mp_pjrt_source_t *source,
                                                    PJRT_Executable **out_executable);

// The same for the client's pod, with the lists of devices that the interface lends. The caller
// destroys it with PJRT_LoadedExecutable_Destroy.
MP_NODISCARD mp_status_t mp_pjrt_loaded_executable_compile(PJRT_Client *client,
                                                           const mp_pjrt_source_t *source,
                                                           PJRT_LoadedExecutable **out_loaded);

// The total number of buffers that launches of this thread have donated: an upper bound, because
// buffers that single launches must not donate are counted, too (pjrt_execute.c).
uint64_t mp_pjrt_num_donated(void);

// Reads a caller's program and options, which the result borrows. INVALID_ARGUMENT when something
// is missing.
MP_NODISCARD mp_status_t mp_pjrt_read_program(const PJRT_Program *program, const char *options,
                                              size_t options_size, mp_pjrt_source_t *out_source);

// The bytes of commands and constants: what a device reads besides its data.
int64_t mp_pjrt_executable_code_size(const mp_program_t *program);

// If time is modelled: computes the program's need of the described chip's memory.
// RESOURCE_EXHAUSTED, as from the chip's compiler, if the chip has less. pjrt_memory_plan.c
MP_NODISCARD mp_status_t mp_pjrt_executable_plan_memory(PJRT_Executable *executable,
                                                        const PJRT_TopologyDescription *topology);

// The program as clients read it back (pjrt_optimized.c).
typedef struct mp_pjrt_optimized_s mp_pjrt_optimized_t;
void mp_pjrt_optimized_free(mp_pjrt_optimized_t *optimized);  // NULL: nothing

#endif  // MINIPOD_PJRT_PJRT_EXECUTABLE_H_
