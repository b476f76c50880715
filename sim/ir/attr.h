// Attributes: decoded once by a reader, immutable, in the module's arena.
//
// Every attribute of StableHLO, VHLO and Shardy has one of the kinds below. Only the user's own
// metadata (strings in dictionaries) is carried along as text without being understood.
#ifndef MINIPOD_SIM_IR_ATTR_H_
#define MINIPOD_SIM_IR_ATTR_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/str.h"
#include "sim/ir/op_list.h"
#include "sim/ir/type.h"

typedef enum {
  MP_ATTR_OTHER,  // a name that minipod gives no meaning; see mp_named_attr_t.name
#define MP_ATTR_ENUM(name, text) MP_ATTR_##name,
  MP_ATTR_NAMES(MP_ATTR_ENUM)
#undef MP_ATTR_ENUM
      MP_ATTR_NAME_COUNT
} mp_attr_name_t;

typedef enum {
  MP_KIND_UNIT,
  MP_KIND_BOOL,
  MP_KIND_INT,                // i64 (signless, sign-extended); dtype = its width
  MP_KIND_FLOAT,              // f64; dtype = its format
  MP_KIND_STRING,             // str; symbol references too
  MP_KIND_ENUM,               // enumeration
  MP_KIND_INTS,               // ints: i64 array, or table (rank 2): padding, groups, pairs
  MP_KIND_BOOLS,              // ints, each 0 or 1
  MP_KIND_DENSE,              // dense: constant's value
  MP_KIND_TYPE,               // type
  MP_KIND_ARRAY,              // array
  MP_KIND_DICT,               // dict
  MP_KIND_RESULT_ACCURACY,    // accuracy
  MP_KIND_OUTPUT_ALIAS,       // alias
  MP_KIND_MESH_GROUPS,        // mesh_groups: #stablehlo.replica_group_mesh_axes
  MP_KIND_MESH,               // mesh
  MP_KIND_SHARDING,           // sharding: #sdy.sharding
  MP_KIND_SHARDINGS,          // shardings: #sdy.sharding_per_value
  MP_KIND_AXES,               // axes: sdy axis list (manual_axes: names without sub-axes)
  MP_KIND_AXES_LISTS,         // axes_lists: one axis list per dimension
  MP_KIND_ALL_TO_ALL_PARAMS,  // all_to_all_params
  MP_KIND_SHARDING_RULE,      // rule: #sdy.op_sharding_rule
  MP_KIND_BOXES,              // boxes: minipod.exchange
} mp_attr_kind_t;

// The enumerations that a MP_KIND_ENUM value can belong to: name, StableHLO's name, the code of its
// attributes in VHLO's bytecode, and spellings by VHLO's numbers, which the values are; NULL where
// a number is not used. Versions of interfaces are written as numbers and need no name.
#define MP_ENUMS(X)                                                                               \
  X(COMPARISON_DIRECTION, "comparison_direction", 3, "EQ", "NE", "GE", "GT", "LE", "LT")          \
  X(COMPARISON_TYPE, "comparison_type", 4, "NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED") \
  X(API_VERSION, "", 5, "API_VERSION_UNSPECIFIED", "API_VERSION_ORIGINAL",                        \
    "API_VERSION_STATUS_RETURNING", "API_VERSION_STATUS_RETURNING_UNIFIED",                       \
    "API_VERSION_TYPED_FFI")                                                                      \
  X(FFT_TYPE, "fft_type", 7, "FFT", "IFFT", "RFFT", "IRFFT")                                      \
  X(PRECISION, "precision", 11, "DEFAULT", "HIGH", "HIGHEST")                                     \
  X(RNG_ALGORITHM, "rng_algorithm", 12, "DEFAULT", "THREE_FRY", "PHILOX")                         \
  X(RNG_DISTRIBUTION, "rng_distribution", 13, NULL, "UNIFORM", "NORMAL")                          \
  X(TRANSPOSE, "transpose", 16, "TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")      \
  X(RESULT_ACCURACY_MODE, "result_accuracy_mode", 19, "DEFAULT", "HIGHEST", "TOLERANCE")

typedef enum {
#define MP_ENUM_ENUM(name, ...) MP_ENUM_##name,
  MP_ENUMS(MP_ENUM_ENUM)
#undef MP_ENUM_ENUM
      MP_ENUM_COUNT
} mp_enum_kind_t;

enum { MP_CMP_EQ, MP_CMP_NE, MP_CMP_GE, MP_CMP_GT, MP_CMP_LE, MP_CMP_LT, MP_CMP_COUNT };
enum { MP_CMP_NOTYPE, MP_CMP_FLOAT, MP_CMP_TOTALORDER, MP_CMP_SIGNED, MP_CMP_UNSIGNED };
enum {
  MP_API_UNSPECIFIED,
  MP_API_ORIGINAL,
  MP_API_STATUS_RETURNING,
  MP_API_STATUS_RETURNING_UNIFIED,
  MP_API_TYPED_FFI
};
enum { MP_FFT_FFT, MP_FFT_IFFT, MP_FFT_RFFT, MP_FFT_IRFFT };
enum { MP_PRECISION_DEFAULT, MP_PRECISION_HIGH, MP_PRECISION_HIGHEST };
enum { MP_RNG_DEFAULT, MP_RNG_THREE_FRY, MP_RNG_PHILOX };
enum { MP_RNG_UNIFORM = 1, MP_RNG_NORMAL = 2 };
enum { MP_TRANSPOSE_INVALID, MP_TRANSPOSE_NO, MP_TRANSPOSE_YES, MP_TRANSPOSE_ADJOINT };
enum { MP_ACCURACY_DEFAULT, MP_ACCURACY_HIGHEST, MP_ACCURACY_TOLERANCE };

// The name of a value in StableHLO's text, such as "LT" for (COMPARISON_DIRECTION, 5); NULL for a
// number that the enumeration does not have.
const char *mp_enum_value_name(mp_enum_kind_t kind, uint32_t value);
// The value with this name; -1 when there is none.
int mp_enum_value_from_name(mp_enum_kind_t kind, mp_str_t name);

typedef struct mp_attr_s mp_attr_t;

typedef struct {
  mp_attr_name_t name;
  mp_str_t text;  // the spelling, also for known names
  const mp_attr_t *value;
} mp_named_attr_t;

// ---- Shardy (sdy dialect documentation; shapes and meaning as there) ----

typedef struct {
  mp_str_t name;
  int64_t size;
} mp_mesh_axis_t;

typedef struct {
  mp_str_t name;  // without @; "" for a mesh that is written out where it is used
  uint32_t num_axes;
  const mp_mesh_axis_t *axes;
  // 0: the devices are 0, 1, 2, ... in order. A mesh without axes and with one id is a "maximal"
  // mesh: a value that is sharded by it lies as a whole on the partition of that number.
  uint32_t num_device_ids;
  const int64_t *device_ids;
} mp_mesh_t;

// "x", or the sub-axis "x":(pre_size)size.
typedef struct {
  mp_str_t name;
  int64_t pre_size;  // 1 for a whole axis
  int64_t size;      // 0 for a whole axis
} mp_axis_ref_t;

typedef struct {
  uint32_t count;
  const mp_axis_ref_t *axes;
} mp_axis_list_t;

typedef struct {
  mp_axis_list_t axes;
  bool is_open;
  int64_t priority;  // -1: none
} mp_dim_sharding_t;

enum { MP_UNREDUCED_SUM, MP_UNREDUCED_MAX, MP_UNREDUCED_MIN };

typedef struct {
  const mp_mesh_t *mesh;  // resolved by the reader
  uint32_t rank;
  const mp_dim_sharding_t *dims;
  mp_axis_list_t replicated;
  mp_axis_list_t unreduced;
  uint32_t unreduced_kind;
} mp_sdy_sharding_t;

typedef struct {
  uint32_t count;
  const mp_sdy_sharding_t *shardings;
} mp_sdy_shardings_t;

typedef struct {
  mp_axis_list_t axes;
  int64_t source_dim;
  int64_t target_dim;
} mp_all_to_all_param_t;

typedef struct {
  uint32_t count;
  const int64_t *values;
} mp_index_list_t;

// Whether `value` is in the list.
static inline bool mp_index_list_has(mp_index_list_t list, int64_t value) {
  for (uint32_t i = 0; i < list.count; ++i) {
    if (list.values[i] == value) return true;
  }
  return false;
}

// One list of factor indices per dimension.
typedef struct {
  uint32_t rank;
  const mp_index_list_t *dims;
} mp_tensor_mapping_t;

typedef struct {
  mp_index_list_t factor_sizes;
  uint32_t num_operands;
  const mp_tensor_mapping_t *operands;
  uint32_t num_results;
  const mp_tensor_mapping_t *results;
  mp_index_list_t reduction, need_replication, permutation, blocked_propagation;
  bool is_custom;
} mp_sharding_rule_t;

// ---- minipod.exchange: where each partition's part of a tensor lies ----

// Partition p holds the box [starts[p*rank+d], starts[p*rank+d] + sizes[p*rank+d]) of a tensor with
// dimensions `dims`. Only partitions of one group exchange data. Built by sim/spmd.
typedef struct {
  uint32_t num_partitions;
  uint32_t rank;
  const int64_t *dims;    // [rank], the whole tensor
  const int64_t *starts;  // [num_partitions * rank]
  const int64_t *sizes;   // [num_partitions * rank]
  const int32_t *groups;  // [num_partitions], the number of each partition's group
  // NULL when partitions with the same box hold copies of it. Otherwise the value is unreduced: a
  // partition's number here is the first partition that holds a term of the same sum.
  // [num_partitions]
  const int32_t *partials;
  uint32_t unreduced_kind;  // with partials, how terms are combined: MP_UNREDUCED_SUM, ...
} mp_boxes_t;

struct mp_attr_s {
  mp_attr_kind_t kind;
  mp_dtype_t dtype;  // INT, FLOAT
  union {
    bool boolean;
    int64_t i64;
    double f64;
    mp_str_t str;
    struct {
      mp_enum_kind_t kind;
      uint32_t value;
    } enumeration;
    struct {
      const int64_t *values;  // row-major, splats expanded
      size_t count;
      uint32_t rank;  // 1 or 2
      int64_t dims[2];
    } ints;
    struct {
      const mp_type_t *type;
      // Elements in row-major order as dtype.h stores them (booleans take one byte each), or a
      // single one when `splat`. In the module's arena like everything else.
      const void *data;
      size_t size;  // bytes
      bool splat;
    } dense;
    const mp_type_t *type;
    struct {
      const mp_attr_t *const *items;
      size_t count;
    } array;
    struct {
      const mp_named_attr_t *items;
      size_t count;
    } dict;
    struct {
      double atol, rtol;
      int64_t ulps;
      uint32_t mode;
    } accuracy;
    struct {
      mp_index_list_t output_tuple_indices;
      int64_t operand_index;
      mp_index_list_t operand_tuple_indices;
    } alias;
    struct {
      const mp_mesh_t *mesh;
      mp_axis_list_t axes;
    } mesh_groups;
    const mp_mesh_t *mesh;
    const mp_sdy_sharding_t *sharding;
    mp_sdy_shardings_t shardings;
    mp_axis_list_t axes;
    struct {
      uint32_t count;
      const mp_axis_list_t *lists;
    } axes_lists;
    struct {
      uint32_t count;
      const mp_all_to_all_param_t *params;
    } all_to_all_params;
    const mp_sharding_rule_t *rule;
    const mp_boxes_t *boxes;
  } u;
};

// The spelling of a name that the IR knows, such as "dimensions".
const char *mp_attr_name_text(mp_attr_name_t name);
// The name with this spelling; MP_ATTR_OTHER when the IR does not know it.
mp_attr_name_t mp_attr_name_from_text(mp_str_t text);

// Each of these makes an attribute in `arena`. Arrays and texts are copied into the arena; a type
// is not and must live as long. The only error is RESOURCE_EXHAUSTED.
MP_NODISCARD mp_status_t mp_attr_make_bool(mp_arena_t *arena, bool value,
                                           const mp_attr_t **out_attr);
// INT: an integer of the type `dtype`.
MP_NODISCARD mp_status_t mp_attr_make_int(mp_arena_t *arena, mp_dtype_t dtype, int64_t value,
                                          const mp_attr_t **out_attr);
// INTS of rank 1: a list of `count` integers.
MP_NODISCARD mp_status_t mp_attr_make_ints(mp_arena_t *arena, const int64_t *values, size_t count,
                                           const mp_attr_t **out_attr);
// INTS of rank 2: `rows` x `columns` integers in row-major order.
MP_NODISCARD mp_status_t mp_attr_make_table(mp_arena_t *arena, const int64_t *values, int64_t rows,
                                            int64_t columns, const mp_attr_t **out_attr);
// STRING.
MP_NODISCARD mp_status_t mp_attr_make_string(mp_arena_t *arena, mp_str_t text,
                                             const mp_attr_t **out_attr);
// ENUM: a value that the enumeration must have.
MP_NODISCARD mp_status_t mp_attr_make_enum(mp_arena_t *arena, mp_enum_kind_t kind, uint32_t value,
                                           const mp_attr_t **out_attr);
// TYPE.
MP_NODISCARD mp_status_t mp_attr_make_type(mp_arena_t *arena, const mp_type_t *type,
                                           const mp_attr_t **out_attr);
// DENSE: a constant of `size` bytes, which are all elements of `type` or, with `splat`, one.
MP_NODISCARD mp_status_t mp_attr_make_dense(mp_arena_t *arena, const mp_type_t *type,
                                            const void *data, size_t size, bool splat,
                                            const mp_attr_t **out_attr);

// The value of `key` in a dictionary; NULL when it has none, or when `dict` is NULL or no
// dictionary.
const mp_attr_t *mp_attr_dict_get(const mp_attr_t *dict, mp_attr_name_t key);
// The same by spelling, for names that the IR does not know.
const mp_attr_t *mp_attr_dict_get_text(const mp_attr_t *dict, const char *key);
// A copy of a dictionary in which `key`, which it must have, has another value.
MP_NODISCARD mp_status_t mp_attr_dict_replace(mp_arena_t *arena, const mp_attr_t *dict,
                                              mp_attr_name_t key, const mp_attr_t *value,
                                              const mp_attr_t **out_dict);

// Whether both have the same structure and values; floating-point numbers are compared by their
// bits. Boxes (MP_KIND_BOXES) are equal only if they are the same object.
bool mp_attr_equal(const mp_attr_t *a, const mp_attr_t *b);

#endif  // MINIPOD_SIM_IR_ATTR_H_
