// The list of all extensions that minipod offers. pjrt/plugin/ chains their tables, in this order.
//
// An extension is its declarations in pjrt/c_api/, a file of its own here, which defines its table,
// and a row. A table without a row does not compile, a row without a table does not link.
#ifndef MINIPOD_PJRT_EXTENSIONS_EXTENSIONS_H_
#define MINIPOD_PJRT_EXTENSIONS_EXTENSIONS_H_

#include "pjrt/c_api/c_api_ext.h"
#include "pjrt/c_api/c_api_profiler.h"
#include "pjrt/c_api/c_api_tpu_topology.h"
#include "pjrt/pjrt_objects.h"

// The name in the interface; minipod's name.
#define MP_PJRT_EXTENSIONS(X)                 \
  X(Profiler, profiler)                       \
  X(Custom_Partitioner, custom_partitioner)   \
  X(Layouts, layouts)                         \
  X(FFI, ffi)                                 \
  X(MemoryDescriptions, memory_descriptions)  \
  X(CrossHostTransfers, cross_host_transfers) \
  X(TpuTopology, tpu_topology)                \
  X(Shardings, shardings)                     \
  X(AbiVersion, abi_version)                  \
  X(HostMemoryAllocator, host_memory_allocator)

// Their tables: mp_pjrt_profiler_extension, …; and their places in the list.
#define MP_PJRT_EXTENSION_DECLARE(type, name) \
  extern PJRT_##type##_Extension mp_pjrt_##name##_extension;
#define MP_PJRT_EXTENSION_ENUM(type, name) MP_PJRT_EXTENSION_##name,
MP_PJRT_EXTENSIONS(MP_PJRT_EXTENSION_DECLARE)
enum { MP_PJRT_EXTENSIONS(MP_PJRT_EXTENSION_ENUM) MP_PJRT_EXTENSION_COUNT };
#undef MP_PJRT_EXTENSION_DECLARE
#undef MP_PJRT_EXTENSION_ENUM

// MP_REQUIRE for an extension's functions, which return errors of the interface.
#define MP_EXTENSION_REQUIRE(args, field)                                                     \
  do {                                                                                        \
    if ((args)->field == NULL) return mp_pjrt_error(mp_pjrt_null_argument(__func__, #field)); \
  } while (0)

// How a table is defined: MP_PJRT_EXTENSION(FFI, ffi) = {MP_PJRT_EXTENSION_BASE(FFI), slots};
#define MP_PJRT_EXTENSION(type_, name)                                         \
  _Static_assert((int)MP_PJRT_EXTENSION_##name < (int)MP_PJRT_EXTENSION_COUNT, \
                 "every extension has a row in MP_PJRT_EXTENSIONS");           \
  PJRT_##type_##_Extension mp_pjrt_##name##_extension
// Its head; the list determines the next one in the chain.
#define MP_PJRT_EXTENSION_BASE(type_) \
  .base = {.struct_size = sizeof(PJRT_##type_##_Extension), .type = PJRT_Extension_Type_##type_}

#endif  // MINIPOD_PJRT_EXTENSIONS_EXTENSIONS_H_
