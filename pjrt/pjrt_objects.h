// The objects behind the opaque types of the PJRT C API, and what the files of pjrt/ share.
//
// The objects are thin: they hold the runtime's counted objects and the lists, names and attributes
// that the interface lends to its callers (which live as long as their owner, so they are made
// once, when the owner is). An event of the interface *is* a runtime event: one handle, one
// reference.
//
// Each function of the table is written as `mp_status_t mp_<name>(<name>_Args *args)`, e.g.
// mp_PJRT_Client_Create; pjrt/plugin/pjrt_api.c wraps each in a function that checks `args` and its
// struct_size and converts the status to a PJRT_Error. So the functions may read and write all
// fields up to the `required` one of PJRT_FUNCTIONS, and newer ones only if MP_HAS is true.
//
// The clients of the interface end the process when a getter or a destroyer fails. Those fail only
// for a NULL object.
#ifndef MINIPOD_PJRT_PJRT_OBJECTS_H_
#define MINIPOD_PJRT_PJRT_OBJECTS_H_

#include <stdatomic.h>

#include "pjrt/c_api/c_api.h"
#include "pjrt/c_api/c_api_ext.h"
#include "sim/base/arena.h"
#include "sim/base/assert.h"
#include "sim/base/options.h"
#include "sim/base/status.h"
#include "sim/foreign/foreign_context.h"
#include "sim/ir/type.h"
#include "sim/runtime/buffers/buffer.h"
#include "sim/runtime/client.h"
#include "sim/runtime/devices/event.h"
#include "sim/runtime/runs/executable.h"
#include "sim/runtime/runs/shapes.h"
#include "topology/pod.h"

#define MP_PLATFORM_NAME "minipod"

#define MP_DECLARE_FUNCTION(result, name, required) mp_status_t mp_##name(name##_Args *args);
PJRT_FUNCTIONS(MP_DECLARE_FUNCTION)
#undef MP_DECLARE_FUNCTION

// ---- arguments (pjrt_args.c) ----

// Whether the caller's struct has this field.
#define MP_HAS(args, field) \
  ((args)->struct_size >=   \
   (size_t)((const char *)&(args)->field - (const char *)(args)) + sizeof((args)->field))

// INVALID_ARGUMENT "PJRT_Client_Create: client is NULL" when the field is NULL.
#define MP_REQUIRE(args, field)                                                \
  do {                                                                         \
    if ((args)->field == NULL) return mp_pjrt_null_argument(__func__, #field); \
  } while (0)
// The error of MP_REQUIRE. `function` is the C function's name, which messages show without its
// "mp_"; the same holds for all functions below.
MP_NODISCARD mp_status_t mp_pjrt_null_argument(const char *function, const char *field);
// A caller's text; NULL is the empty text.
static inline mp_str_t mp_pjrt_str(const char *data, size_t size) {
  return data == NULL ? mp_str("") : (mp_str_t){data, size};
}

// Functions of the table that return a property of an object. In the value, `it` is the object in
// the arguments: MP_GETTER(PJRT_Device_IsAddressable, device, is_addressable, it->is_addressable).
#define MP_GETTER(name, object, field, value)         \
  mp_status_t mp_##name(name##_Args *args) {          \
    MP_REQUIRE(args, object);                         \
    const __typeof__(args->object) it = args->object; \
    args->field = value;                              \
    return NULL;                                      \
  }
// The same for a list and its length.
#define MP_LIST_GETTER(name, object, list, items, length, count) \
  mp_status_t mp_##name(name##_Args *args) {                     \
    MP_REQUIRE(args, object);                                    \
    const __typeof__(args->object) it = args->object;            \
    args->list = items;                                          \
    args->length = count;                                        \
    return NULL;                                                 \
  }
// The same for a text that ends in NUL, with its length in `field`_size.
#define MP_TEXT_GETTER(name, object, field, text) \
  MP_LIST_GETTER(name, object, field, text, field##_size, strlen(args->field))

// UNIMPLEMENTED with the function's name and a reason (a sentence).
#define MP_UNIMPLEMENTED(reason) mp_pjrt_unimplemented(__func__, reason)
// The error of MP_UNIMPLEMENTED.
MP_NODISCARD mp_status_t mp_pjrt_unimplemented(const char *function, const char *reason);

// Checks a shape from a caller: the element type is known, rank and dimensions are in range.
// INVALID_ARGUMENT otherwise.
MP_NODISCARD mp_status_t mp_pjrt_check_shape(const char *function, PJRT_Buffer_Type type,
                                             const int64_t *dims, size_t num_dims,
                                             mp_dtype_t *out_dtype);

// Options from a caller, in the form of the options table. The caller frees the array by mp_free;
// names and values in it are borrowed. INVALID_ARGUMENT for a type of value that is not known.
MP_NODISCARD mp_status_t mp_pjrt_read_named_values(const PJRT_NamedValue *values, size_t count,
                                                   mp_named_value_t **out_values);

// A named value that borrows its name and its value: mp_pjrt_named_string, mp_pjrt_named_int,
// mp_pjrt_named_ints and mp_pjrt_named_float.
PJRT_NamedValue mp_pjrt_named_string(const char *name, const char *value);
PJRT_NamedValue mp_pjrt_named_int(const char *name, int64_t value);
PJRT_NamedValue mp_pjrt_named_ints(const char *name, const int64_t *values, size_t count);
PJRT_NamedValue mp_pjrt_named_float(const char *name, float value);

// Lends a caller the written bytes, with their holder and its deleter. Consumes `bytes`. Returns
// `status`, the writer's, if that is an error; otherwise fails when memory is short.
MP_NODISCARD mp_status_t mp_pjrt_lend_bytes(mp_status_t status, mp_strbuf_t *bytes,
                                            const char **out_data, size_t *out_size,
                                            PJRT_Serialized **out_holder,
                                            void (**out_deleter)(PJRT_Serialized *));

// ---- errors (pjrt_error.c) ----

// An error of the interface, which the client destroys; NULL for OK. Consumes `status`. Never
// fails: when memory is short it returns a static object.
PJRT_Error *mp_pjrt_error(mp_status_t status);
// Logs, at level debug, the source line in minipod that made an error that leaves the library, in
// builds that know it.
void mp_pjrt_log_origin(mp_status_t status);
// Logs, at the level warning, the errors of launches that the script never read (unread.h).
void mp_pjrt_log_unread(void);
// A new status from a code and a message that need not end in NUL.
mp_status_t mp_pjrt_status(PJRT_Error_Code code, const char *message, size_t message_size);
// The status of an error that one of the client's callbacks has returned, and that a minipod
// function has made; consumes the error. OK for NULL.
MP_NODISCARD mp_status_t mp_pjrt_take_error(PJRT_Error *error);

// ---- key-value callbacks (pjrt_key_value.c) ----

// The store in the arguments, which lives as long as they do; false: they have none.
bool mp_pjrt_key_value_store(PJRT_Client_Create_Args *args, const mp_options_t *options,
                             mp_key_value_store_t *out_store);

// ---- events (pjrt_event.c) ----

// A reference to a runtime event as a handle of the interface.
static inline PJRT_Event *mp_pjrt_event(mp_event_t *event) {
  return (PJRT_Event *)event;
}
// The runtime event that a handle is a reference to; borrowed.
static inline mp_event_t *mp_event_of(PJRT_Event *event) {
  return (mp_event_t *)event;
}

// ---- topology (pjrt_topology.c), client (pjrt_client.c), memories (pjrt_memory.c) ----

struct PJRT_MemoryDescription {
  mp_memory_space_t space;
};

struct PJRT_DeviceDescription {
  const mp_pod_device_t *info;
  int32_t process_index;
  const char *kind;
  const char *to_string;
  const char *debug_string;
  const PJRT_NamedValue *attributes;
  size_t num_attributes;
};

struct PJRT_TopologyDescription {
  mp_arena_t *arena;
  mp_pod_t *pod;
  const char *platform_version;
  PJRT_DeviceDescription *descriptions;  // by device id
  PJRT_DeviceDescription **description_list;
  size_t num_devices;
  const PJRT_NamedValue *attributes;
  size_t num_attributes;
  mp_platform_t platform;  // that frameworks see
  bool is_detached;  // a pod that is only described: nothing runs on it, each host is a process
  bool is_borrowed;  // the client owns it, and PJRT_TopologyDescription_Destroy has no effect
  bool is_subslice;  // it was made as a part of another (the TpuTopology extension)
  bool is_timed;  // virtual times are kept: its executables also have the described chip's program
};

// Whether clients may pass libtpu's options: frameworks see TPUs, or the devices are TPUs under
// another platform.
static inline bool mp_pjrt_takes_libtpu_options(const PJRT_TopologyDescription *topology) {
  return topology->platform == MP_PLATFORM_TPU || mp_pod_is_tpu(topology->pod);
}

// The description of a pod; `platform` and `is_detached` as in the struct. Takes the caller's
// reference to `pod`, also on failure. RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_pjrt_topology_create(mp_pod_t *pod, mp_platform_t platform,
                                                 bool is_detached,
                                                 PJRT_TopologyDescription **out_topology);
// Frees the description, borrowed or not, with its reference to the pod. NULL: nothing.
void mp_pjrt_topology_release(PJRT_TopologyDescription *topology);

typedef struct mp_pjrt_user_data_s mp_pjrt_user_data_t;

struct PJRT_Device {
  mp_device_t *device;
  PJRT_Client *client;
  PJRT_DeviceDescription *description;
  PJRT_Memory **memories;  // [MP_MEMORY_SPACE_COUNT], the default one first; NULL: not addressable
  bool is_addressable;
};

// A memory of the interface. `base`, the part that the interface knows, comes first.
typedef struct {
  PJRT_Memory base;
  mp_memory_t *memory;
  PJRT_Device *device;
  PJRT_Device *device_list[1];
  mp_memory_space_t space;
  int id;
  const char *to_string;
  const char *debug_string;
  mp_pjrt_user_data_t *user_data;  // a list, under user_data_mutex of pjrt_memory.c
} mp_pjrt_memory_t;

// What stands behind a memory of the interface.
static inline mp_pjrt_memory_t *mp_pjrt_memory(PJRT_Memory *memory) {
  return (mp_pjrt_memory_t *)memory;
}
// Deletes the user data that callers have attached to it. The memory must have no other users.
void mp_pjrt_memory_deinit(mp_pjrt_memory_t *memory);
// What PJRT_Memory objects point to: the functions for user data.
extern const PJRT_Memory_FunctionTable mp_pjrt_memory_functions;

// The references are the user's handle and one for each buffer and executable, because these point
// to devices and memories of the client. PJRT_Client_Destroy releases the runtime at once.
struct PJRT_Client {
  atomic_int references;
  mp_client_t *client;  // NULL once the user has destroyed the client
  mp_arena_t *arena;    // of the lists below
  PJRT_TopologyDescription *topology;
  PJRT_Device *devices;  // by id
  PJRT_Device **device_list;
  PJRT_Device **addressable_list;
  mp_pjrt_memory_t *memories;  // of the addressable devices, in the order of their ids
  PJRT_Memory **addressable_memory_list;
  size_t num_devices, num_addressable, num_addressable_memories;
  const char *dump;     // the folder that the option names, or ""
  bool op_by_op;        // nothing is fused
  bool as_written;      // nothing is rewritten as XLA does
  bool checks_kernels;  // runs of Mosaic kernels are checked
  // In the list of clients that get faults, if an observer keeps one; it adds clients without
  // allocating.
  PJRT_Client *next;
};

// Like PJRT_Client_Create, but in a given world (sim/runtime/client.h), for tests.
MP_NODISCARD mp_status_t mp_pjrt_client_create_in(const mp_options_t *options, mp_world_t *world,
                                                  PJRT_Client **out_client);
// mp_pjrt_client_retain adds a reference and returns the client; the last mp_pjrt_client_release
// frees it.
PJRT_Client *mp_pjrt_client_retain(PJRT_Client *client);
void mp_pjrt_client_release(PJRT_Client *client);

// The memory of the interface for a memory of this process. Borrowed.
static inline PJRT_Memory *mp_pjrt_memory_of(const PJRT_Client *client, const mp_memory_t *memory) {
  const uint32_t index = mp_memory_id(memory) - (uint32_t)client->memories[0].id;
  MP_ASSERT(index < client->num_addressable_memories);
  return &client->memories[index].base;
}

// From now on the client asks for ready events without waiting for them, and tells the model of
// time when its host waits (mp_model_wait). pjrt_buffer.c
void mp_pjrt_expect_waits(void);

// ---- labels of launches (pjrt_label.c) ----

// The label of the process's launches from now on, which names where the script makes them
// ("blocks.0.up at train.py:12"), or NULL. Frameworks may launch on a thread of their own, so all
// threads have one label.
const char *mp_pjrt_label(void);
// A copy of a text that can be a label, kept until the process ends. NULL when memory is short.
const char *mp_pjrt_label_create(const char *text);
// Where the label, a pointer to such a copy or NULL, is written.
void *mp_pjrt_label_slot(void);

// What other processes bring to the collectives of the process's launches from now on, if they do
// not exist; and where that is written, as an int.
mp_others_t mp_pjrt_others(void);
void *mp_pjrt_others_slot(void);

// ---- executables (pjrt_executable.c, pjrt_loaded_executable.c) ----

// The result of one compilation. The getters lend the arrays, which are in the arena; only
// `references`, `optimized` and `timed_properties` change after creation.
struct PJRT_Executable {
  atomic_int references;
  mp_arena_t *arena;
  PJRT_Client *client;             // retained; NULL when compiled for a topology without client
  mp_executable_t *executable;     // the runtime's; NULL without client
  mp_program_t *owned_program;     // NULL with a client
  const mp_program_t *program;     // the one of `executable`, or owned_program
  const mp_chip_memory_t *memory;  // of the described chip; NULL: time is not modelled
  mp_str_t code, format, options;  // as received: what Serialize writes
  const char *name;
  const char *fingerprint;
  PJRT_NamedValue *properties;
  size_t num_properties;
  PJRT_Buffer_Type *output_types;
  int64_t *output_dims;  // of all outputs, one after the other
  size_t *output_ranks;
  const char **output_kinds, **parameter_kinds;
  size_t *output_kind_sizes, *parameter_kind_sizes;
  // Clients with GSPMD's first form of shardings (torch_xla) compare lists of devices.
  bool lists_devices;
  const char **output_shardings, **parameter_shardings;  // OpSharding bytes; NULL: none
  size_t *output_sharding_sizes, *parameter_sharding_sizes;
  PJRT_Layouts_MemoryLayout **output_layouts, **parameter_layouts;
  // Made on first use:
  atomic_uintptr_t optimized;         // mp_pjrt_optimized_t *
  atomic_uintptr_t timed_properties;  // PJRT_NamedValue *: num_properties, and the time
};
// mp_pjrt_executable_retain adds a reference and returns the executable; the last
// mp_pjrt_executable_release frees it.
PJRT_Executable *mp_pjrt_executable_retain(PJRT_Executable *executable);
void mp_pjrt_executable_release(PJRT_Executable *executable);

struct PJRT_LoadedExecutable {
  PJRT_Executable *executable;  // retained
  size_t num_addressable;
  PJRT_Device **addressable_list;  // in logical order
  PJRT_LogicalDeviceIds *logical_ids;
  uint32_t *logical;       // of each addressable device: its number in the executable
  atomic_bool is_deleted;  // a concurrent Execute counts as before it or after it
};

// ---- buffers (pjrt_buffer.c) ----

// The runtime's buffer is row-major in the dimensions of memory; if the layout is not row-major,
// the user sees them in another order. There may be millions, so the struct is as small as
// possible.
struct PJRT_Buffer {
  mp_buffer_t *buffer;             // a reference
  PJRT_Client *client;             // retained
  atomic_int external_references;  // that the user has not returned yet
  bool is_row_major;
  // If not row-major: its layout, followed by the dimensions that the user sees.
  union {
    const PJRT_Layouts_MemoryLayout *layout;
    int64_t dim;
  } order[];  // [1 + rank], or nothing
};
// NULL: row-major.
static inline const PJRT_Layouts_MemoryLayout *mp_pjrt_buffer_layout(const PJRT_Buffer *buffer) {
  return buffer->is_row_major ? NULL : buffer->order[0].layout;
}
// A handle for `buffer`, whose reference it takes, even on failure. `layout` NULL: row-major.
// `buffer` may be NULL and follow later (mp_pjrt_buffer_fill); then `layout` must be for its rank.
// RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_pjrt_buffer_wrap(PJRT_Client *client, mp_buffer_t *buffer,
                                             const PJRT_Layouts_MemoryLayout *layout,
                                             PJRT_Buffer **out_buffer);
// Gives a handle without buffer its buffer, and takes the caller's reference to it. Cannot fail.
void mp_pjrt_buffer_fill(PJRT_Buffer *wrapper, mp_buffer_t *buffer);
// Frees a handle, whether it has a buffer or not, with the external references that were never
// given back. NULL: nothing.
void mp_pjrt_buffer_destroy(PJRT_Buffer *buffer);
// The dimensions that the user sees, as many as the buffer's type has. Borrowed.
const int64_t *mp_pjrt_buffer_dims(const PJRT_Buffer *buffer);
// The memory that a caller chose: `memory`, or the default one of `device`. INVALID_ARGUMENT when
// both are NULL, or when the device belongs to another process.
MP_NODISCARD mp_status_t mp_pjrt_choose_memory(const char *function, PJRT_Memory *memory,
                                               PJRT_Device *device, mp_memory_t **out_memory);

// ---- layouts (pjrt_layout.c) ----

// An order of dimensions. Each order is made once and never freed, so that pointers can be
// compared.
struct PJRT_Layouts_MemoryLayout {
  size_t rank;
  bool is_row_major;
  int64_t minor_to_major[MP_MAX_RANK];
  char text[3 * MP_MAX_RANK + 2];  // "{1,0}"
  PJRT_Layouts_MemoryLayout *next;
};

// The layout with this order, which must name each dimension once. RESOURCE_EXHAUSTED when memory
// is short. Thread-safe.
MP_NODISCARD mp_status_t mp_pjrt_layout_get(const int64_t *minor_to_major, size_t rank,
                                            PJRT_Layouts_MemoryLayout **out_layout);
// The same for the row-major order.
MP_NODISCARD mp_status_t mp_pjrt_layout_row_major(size_t rank,
                                                  PJRT_Layouts_MemoryLayout **out_layout);
// A caller's shape with its layout in device memory.
typedef struct {
  mp_dtype_t dtype;
  uint32_t rank;
  int64_t dims[MP_MAX_RANK];                // in the order of memory
  const PJRT_Layouts_MemoryLayout *layout;  // NULL: row-major
} mp_pjrt_shape_t;
// Reads a caller's shape and layout (NULL: row-major). Fails like mp_pjrt_check_shape; with
// UNIMPLEMENTED for tiles and gaps, INVALID_ARGUMENT for an invalid layout.
MP_NODISCARD mp_status_t mp_pjrt_shape_read(const char *function, PJRT_Buffer_Type type,
                                            const int64_t *dims, size_t num_dims,
                                            const PJRT_Buffer_MemoryLayout *layout,
                                            mp_pjrt_shape_t *out_shape);
// Permutes dimensions or strides from the user's order to that of memory. `layout` NULL: row-major.
void mp_pjrt_layout_to_memory(const PJRT_Layouts_MemoryLayout *layout, const int64_t *values,
                              size_t rank, int64_t *out_values);

// The byte strides of a host array with this layout: the dense ones for an order of dimensions, or
// those that the layout gives. `layout` NULL: row-major. UNIMPLEMENTED for tiles.
MP_NODISCARD mp_status_t mp_pjrt_layout_strides(const char *function,
                                                const PJRT_Buffer_MemoryLayout *layout,
                                                const int64_t *dims, size_t rank, size_t item_size,
                                                int64_t *out_strides);

// ---- contexts of executions: a PJRT_ExecuteContext is a foreign context under another name ----

static inline mp_foreign_context_t *mp_pjrt_execute_context(PJRT_ExecuteContext *context) {
  return (mp_foreign_context_t *)context;
}

#endif  // MINIPOD_PJRT_PJRT_OBJECTS_H_
