// Writing XPlanes: what JAX's and torch_xla's profilers store, and XProf and TensorBoard show
// (tsl/profiler/protobuf/xplane.proto). A plane has lines of events, and a map from the numbers by
// which events name what they are to names.
//
// A plane remembers that memory was short: the status of what it is written to says so. Not
// thread-safe.
#ifndef MINIPOD_SIM_MODEL_REPORT_PROFILE_XPLANE_H_
#define MINIPOD_SIM_MODEL_REPORT_PROFILE_XPLANE_H_

#include <stdint.h>

#include "sim/base/containers/hash_map.h"
#include "sim/base/str.h"

// Statistics of a name, of an event (CONSUMER_TYPE and _ID) or of a plane (DEVICE_TYPE and what
// follows, but for HLO_PROTO): enumerator, XProf's word.
#define MP_XPLANE_STATS(X)                        \
  X(TF_OP, "tf_op")                               \
  X(SOURCE, "source")                             \
  X(HLO_CATEGORY, "hlo_category")                 \
  X(FLOPS, "flops")                               \
  X(BYTES_ACCESSED, "bytes_accessed")             \
  X(MEMORY_ACCESSES, "memory_access_breakdown")   \
  X(PROGRAM_ID, "program_id")                     \
  X(SYMBOL_ID, "symbol_id")                       \
  X(ALGORITHM, "algorithm")                       \
  X(CONSUMER_TYPE, "_ct")                         \
  X(CONSUMER_ID, "_c")                            \
  X(DEVICE_TYPE, "device_type_string")            \
  X(PEAK_TFLOPS, "peak_teraflops_per_second")     \
  X(PEAK_HBM, "peak_hbm_bw_gigabytes_per_second") \
  X(CORE_DETAILS, "core_details")                 \
  X(MXU_USED, "matrix_unit_utilization_percent")  \
  X(HBM_USED, "hbm_utilization_percent")          \
  X(HLO_PROTO, "Hlo Proto")

typedef enum {
  MP_XPLANE_NO_STAT,
#define MP_XPLANE_STAT_ENUM(name, text) MP_XPLANE_##name,
  MP_XPLANE_STATS(MP_XPLANE_STAT_ENUM)
#undef MP_XPLANE_STAT_ENUM
      MP_XPLANE_STAT_END
} mp_xplane_stat_id_t;

// Which of a stat's values counts. BYTES: of a message, in `text`.
typedef enum {
  MP_XPLANE_TEXT,
  MP_XPLANE_BYTES,
  MP_XPLANE_NUMBER,
  MP_XPLANE_SIGNED,  // the same, as XProf reads contexts
  MP_XPLANE_RATE
} mp_xplane_stat_kind_t;

typedef struct {
  mp_xplane_stat_id_t id;
  mp_xplane_stat_kind_t kind;
  mp_str_t text;
  uint64_t number;
  double rate;
} mp_xplane_stat_t;

enum { MP_XPLANE_LINES = 4 };

typedef struct {
  uint64_t hash;
} mp_xplane_known_t;

typedef struct {
  int64_t start;  // nanoseconds since 1970: what the events' times are counted from
  struct {
    const char *name;    // NULL: no event yet
    mp_strbuf_t events;  // of the line, as they stand in its message
  } lines[MP_XPLANE_LINES];
  mp_strbuf_t names;
  mp_strbuf_t stats;                     // of the plane itself
  MP_HASH_MAP(mp_xplane_known_t) known;  // the numbers that have names
  bool is_used, has_failed;
} mp_xplane_t;

// An empty plane. All zero but for `start`: it needs no other initialization.
void mp_xplane_init(mp_xplane_t *plane, int64_t start);
void mp_xplane_deinit(mp_xplane_t *plane);

// A number for the name of something, from a hash.
static inline uint64_t mp_xplane_number(uint64_t hash) {
  return hash >> 1 | 1;
}
bool mp_xplane_is_named(mp_xplane_t *plane, uint64_t number);
// Names a number; what has a name already keeps it. `short_name` may be empty.
void mp_xplane_put_name(mp_xplane_t *plane, uint64_t number, mp_str_t name, mp_str_t short_name,
                        uint32_t num_stats, const mp_xplane_stat_t *stats);
// Says something of the plane itself; no event has to follow.
void mp_xplane_put_stat(mp_xplane_t *plane, const mp_xplane_stat_t *stat);
typedef struct {
  uint64_t number;           // of its name
  uint64_t begin, duration;  // picoseconds, from the plane's start
  uint32_t num_stats;
  const mp_xplane_stat_t *stats;
} mp_xplane_event_t;

// Puts an event on a line, whose name is borrowed. XProf takes an event with a CONSUMER_TYPE and
// _ID (tsl's context_types.h) for what the event of the host's that has made this context has led
// to.
void mp_xplane_put_event(mp_xplane_t *plane, uint32_t line, const char *line_name,
                         const mp_xplane_event_t *event);
// The bytes that it holds.
size_t mp_xplane_bytes(const mp_xplane_t *plane);
// Appends the plane to an XSpace message.
void mp_xplane_print(const mp_xplane_t *plane, uint64_t id, const char *name, mp_strbuf_t *space);

#endif  // MINIPOD_SIM_MODEL_REPORT_PROFILE_XPLANE_H_
