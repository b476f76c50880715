// Making executables, shared by compiling, loading and deserializing.
#ifndef MINIPOD_PJRT_PJRT_EXECUTABLE_H_
#define MINIPOD_PJRT_PJRT_EXECUTABLE_H_

#include "pjrt/pjrt_compile.h"
#include "pjrt/pjrt_objects.h"

// Compiles `source` and copies it into the executable. With a client the result can be launched;
// without one (NULL) it is for a pod of `pod_devices` devices that may not exist here.
MP_NODISCARD mp_status_t mp_pjrt_executable_compile(PJRT_Client *client, uint32_t pod_devices,
                                                    const mp_pjrt_source_t *source,
                                                    PJRT_Executable **out_executable);

// The same with its devices' lists; to be destroyed with PJRT_LoadedExecutable_Destroy.
MP_NODISCARD mp_status_t mp_pjrt_loaded_executable_compile(PJRT_Client *client,
                                                           const mp_pjrt_source_t *source,
                                                           PJRT_LoadedExecutable **out_loaded);

// A caller's program and options; borrowed.
MP_NODISCARD mp_status_t mp_pjrt_read_program(const PJRT_Program *program, const char *options,
                                              size_t options_size, mp_pjrt_source_t *out_source);

// Fills the lists of OpShardings (ext_shardings.c).
MP_NODISCARD mp_status_t mp_pjrt_list_shardings(PJRT_Executable *executable);

#endif  // MINIPOD_PJRT_PJRT_EXECUTABLE_H_
