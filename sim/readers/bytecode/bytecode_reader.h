// The bytecode reader's own state and the parts that its files share. Not for use outside of
// sim/readers/{bytecode,vhlo,sdy}*.
//
// A read goes: sections (bytecode_sections.c) -> operations (bytecode_ir.c), which pull attributes
// and types out of their tables when they first need them (bytecode_tables.c). The decoders of an
// entry belong to its dialect: bytecode_builtin.c, vhlo_attr.c, vhlo_type.c, sdy_attr.c.
#ifndef MINIPOD_SIM_READERS_BYTECODE_BYTECODE_READER_H_
#define MINIPOD_SIM_READERS_BYTECODE_BYTECODE_READER_H_

#include "sim/base/arena.h"
#include "sim/ir/module.h"
#include "sim/readers/bytecode/bytecode_cursor.h"

// MLIR's section ids.
enum {
  MP_BC_SECTION_STRINGS,
  MP_BC_SECTION_DIALECTS,
  MP_BC_SECTION_ENTRIES,
  MP_BC_SECTION_OFFSETS,
  MP_BC_SECTION_IR,
  MP_BC_SECTION_RESOURCES,
  MP_BC_SECTION_RESOURCE_TABLE,
  MP_BC_SECTION_DIALECT_VERSION,
  MP_BC_SECTION_PROPERTIES,
  MP_BC_SECTION_COUNT
};

enum {
  MP_BC_NEWEST_VERSION = 6,
  MP_BC_MAX_ENTRY_DEPTH = 256,   // attributes within attributes: call stacks in locations
  MP_BC_MAX_REGION_DEPTH = 128,  // regions within regions
  MP_BC_MAX_VALUE_TYPE = 16384,  // parts of a tuple type with all its tuples
};

typedef enum {
  MP_BC_BUILTIN,
  MP_BC_VHLO,
  MP_BC_SDY,
  MP_BC_STABLEHLO,
  MP_BC_OTHER_DIALECT,
} mp_bc_dialect_t;

// What an attribute entry decodes to. All but ATTR and LOC are parts of other attributes.
typedef enum {
  MP_BC_ATTR,            // mp_attr_t
  MP_BC_LOC,             // mp_loc_t
  MP_BC_BOUNDS,          // mp_index_list_t: bounds of dynamic dimensions
  MP_BC_MESH_AXIS,       // mp_mesh_axis_t
  MP_BC_SUB_AXIS,        // mp_axis_ref_t without name
  MP_BC_AXIS_REF,        // mp_axis_ref_t
  MP_BC_DIM_SHARDING,    // mp_dim_sharding_t
  MP_BC_DIM_MAPPING,     // mp_index_list_t
  MP_BC_TENSOR_MAPPING,  // mp_tensor_mapping_t
  MP_BC_ALL_TO_ALL,      // mp_all_to_all_param_t
} mp_bc_object_t;

// What a type entry decodes to. A scalar's `type` is a tensor of rank 0: the form that type
// attributes have for it.
typedef struct {
  const mp_type_t *type;
  mp_dtype_t dtype;         // of a scalar; INVALID otherwise
  const mp_quant_t *quant;  // of a quantised scalar
} mp_bc_type_t;

// One entry of the attribute or type table.
typedef struct {
  mp_bc_cursor_t bytes;
  mp_str_t dialect_name;
  mp_bc_dialect_t dialect;
  bool custom;  // encoded by its dialect; otherwise assembly text
  enum { MP_BC_UNREAD, MP_BC_READING, MP_BC_READ } state;
  uint64_t weight;  // nodes when written out as a tree; entries may be shared
  mp_bc_object_t kind;
  const void *object;      // what the kind says; mp_bc_type_t for types
  const mp_attr_t *plain;  // a dense attribute as plain integers; made on demand
} mp_bc_entry_t;

typedef struct {
  mp_str_t name;
  mp_bc_dialect_t dialect;
} mp_bc_dialect_entry_t;

typedef struct mp_bc_op_row_s mp_bc_op_row_t;

typedef struct {
  uint32_t dialect;
  mp_str_t name;
  bool registered;            // the writer knew the operation (versions from 5)
  const mp_bc_op_row_t *row;  // of an operation of the IR; NULL for others
} mp_bc_op_name_t;

typedef struct mp_bc_mesh_s mp_bc_mesh_t;

typedef struct {
  mp_bc_cursor_t whole;
  uint64_t version;
  mp_bc_cursor_t sections[MP_BC_SECTION_COUNT];
  bool present[MP_BC_SECTION_COUNT];

  mp_arena_t *scratch;  // the reader's own tables; dies with the read
  mp_module_t *module;
  mp_arena_t *arena;  // the module's

  mp_str_t *strings;
  size_t num_strings;
  mp_bc_dialect_entry_t *dialects;
  size_t num_dialects;
  mp_bc_op_name_t *op_names;
  size_t num_op_names;
  mp_bc_cursor_t *properties;
  size_t num_properties;
  mp_bc_entry_t *attrs;
  size_t num_attrs;
  mp_bc_entry_t *types;
  size_t num_types;

  int entry_depth;
  uint64_t weight;      // of the entry being decoded, so far
  uint64_t max_weight;  // of any entry

  mp_bc_mesh_t *meshes;  // referred to or defined
} mp_bc_reader_t;

// ---- bytecode_sections.c ----

// Indexes the sections and reads all of them but the operations.
MP_NODISCARD mp_status_t mp_bc_read_sections(mp_bc_reader_t *r);
MP_NODISCARD mp_status_t mp_bc_string(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_str_t *out_text);

// ---- bytecode_tables.c ----

// References: an index, then what it stands for, decoded.
MP_NODISCARD mp_status_t mp_bc_object(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_object_t kind,
                                      const void **out_object);
MP_NODISCARD mp_status_t mp_bc_attr(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                    const mp_attr_t **out_attr);
// An attribute of this kind; `what` names it in the error.
MP_NODISCARD mp_status_t mp_bc_attr_of(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_attr_kind_t kind,
                                       const char *what, const mp_attr_t **out_attr);
MP_NODISCARD mp_status_t mp_bc_text(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_str_t *out_text);
MP_NODISCARD mp_status_t mp_bc_loc(mp_bc_reader_t *r, mp_bc_cursor_t *c, const mp_loc_t **out_loc);
MP_NODISCARD mp_status_t mp_bc_type(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                    const mp_bc_type_t **out_type);
// A type that a value can have: not a scalar.
MP_NODISCARD mp_status_t mp_bc_value_type(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                          const mp_type_t **out_type);
MP_NODISCARD mp_status_t mp_bc_value_type_at(mp_bc_reader_t *r, const mp_bc_cursor_t *c,
                                             uint64_t index, const mp_type_t **out_type);
MP_NODISCARD mp_status_t mp_bc_scalar(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                      const mp_bc_type_t **out_type);
// An attribute reference whose payload came out of a flagged number.
MP_NODISCARD mp_status_t mp_bc_attr_at(mp_bc_reader_t *r, const mp_bc_cursor_t *c, uint64_t index,
                                       const mp_attr_t **out_attr);
MP_NODISCARD mp_status_t mp_bc_object_at(mp_bc_reader_t *r, const mp_bc_cursor_t *c, uint64_t index,
                                         mp_bc_object_t kind, const void **out_object);
MP_NODISCARD mp_status_t mp_bc_type_at(mp_bc_reader_t *r, const mp_bc_cursor_t *c, uint64_t index,
                                       const mp_bc_type_t **out_type);
// A list of references to entries of one kind, their objects of `size` bytes copied into an array.
MP_NODISCARD mp_status_t mp_bc_objects(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_object_t kind,
                                       size_t size, const void **out_array, uint32_t *out_count);
// A list of attribute references.
MP_NODISCARD mp_status_t mp_bc_attrs(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                     const mp_attr_t *const **out_attrs, size_t *out_count);
MP_NODISCARD mp_status_t mp_bc_value_types(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                           const mp_type_t *const **out_types, size_t *out_count);
// A list of signed numbers.
MP_NODISCARD mp_status_t mp_bc_index_list(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                          mp_index_list_t *out_list);
// The plain form (INTS, BOOLS, arrays of them) of the attribute at an index, for an operation's own
// attributes; those that are not dense integers stay what they are.
MP_NODISCARD mp_status_t mp_bc_plain_attr_at(mp_bc_reader_t *r, const mp_bc_cursor_t *c,
                                             uint64_t index, const mp_attr_t **out_attr);

// ---- dialects: decode one entry; `c` covers its bytes ----

MP_NODISCARD mp_status_t mp_bc_builtin_attr(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                            mp_bc_entry_t *entry);
MP_NODISCARD mp_status_t mp_bc_builtin_type(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                            mp_bc_type_t *out_type);
MP_NODISCARD mp_status_t mp_bc_vhlo_attr(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                         mp_bc_entry_t *entry);
MP_NODISCARD mp_status_t mp_bc_vhlo_type(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                         mp_bc_type_t *out_type);
MP_NODISCARD mp_status_t mp_bc_sdy_attr(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_entry_t *entry);
MP_NODISCARD mp_status_t mp_bc_stablehlo_type(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                              mp_bc_type_t *out_type);

// ---- bytecode_values.c: forms that dialects share ----

// A fresh attribute as the entry's object.
MP_NODISCARD mp_status_t mp_bc_new_attr(mp_bc_reader_t *r, mp_bc_entry_t *entry,
                                        mp_attr_kind_t kind, mp_attr_t **out_attr);
// Type reference and bits: an integer (a boolean if the type is i1), a float.
MP_NODISCARD mp_status_t mp_bc_int_attr(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_entry_t *entry);
MP_NODISCARD mp_status_t mp_bc_float_attr(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                          mp_bc_entry_t *entry);
MP_NODISCARD mp_status_t mp_bc_string_attr(mp_bc_reader_t *r, mp_bc_entry_t *entry, mp_str_t text);
// A list of attributes; a list of (name, attribute) pairs.
MP_NODISCARD mp_status_t mp_bc_array_attr(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                          mp_bc_entry_t *entry);
MP_NODISCARD mp_status_t mp_bc_dict_attr(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                         mp_bc_entry_t *entry);
// Type reference (a tensor's) and blob.
MP_NODISCARD mp_status_t mp_bc_dense_attr(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                          mp_bc_entry_t *entry);
// Dense integers as INTS, dense booleans as BOOLS, arrays of such as arrays; others unchanged.
MP_NODISCARD mp_status_t mp_bc_plain_attr(mp_bc_reader_t *r, const mp_bc_cursor_t *c,
                                          const mp_attr_t *attr, const mp_attr_t **out_attr);

// Types: scalar; tensor (dimensions, then the element type) with optional bounds; and so on.
MP_NODISCARD mp_status_t mp_bc_scalar_type(mp_bc_reader_t *r, mp_dtype_t dtype,
                                           const mp_quant_t *quant, mp_bc_type_t *out_type);
MP_NODISCARD mp_status_t mp_bc_tensor_type(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                           mp_type_kind_t kind, const mp_index_list_t *bounds,
                                           mp_bc_type_t *out_type);
MP_NODISCARD mp_status_t mp_bc_unranked_type(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                             mp_bc_type_t *out_type);
MP_NODISCARD mp_status_t mp_bc_complex_type(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                            mp_bc_type_t *out_type);
// One list of types (tuple, future) or two (function).
MP_NODISCARD mp_status_t mp_bc_compound_type(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                             mp_type_kind_t kind, mp_bc_type_t *out_type);

// ---- sdy_mesh.c ----

// The mesh of this name; it may be defined later.
MP_NODISCARD mp_status_t mp_bc_mesh_ref(mp_bc_reader_t *r, mp_str_t name,
                                        const mp_mesh_t **out_mesh);
MP_NODISCARD mp_status_t mp_bc_mesh_define(mp_bc_reader_t *r, const mp_bc_cursor_t *c,
                                           mp_str_t name, const mp_mesh_t *mesh);
// Every mesh that was referred to must have been defined.
MP_NODISCARD mp_status_t mp_bc_mesh_check(mp_bc_reader_t *r);

// ---- bytecode_ops.c: which attributes an operation stores ----

enum { MP_BC_MAX_OP_ATTRS = 18 };

struct mp_bc_op_row_s {
  const char *spelling;  // without dialect
  // Opcode, then the attributes in stored order up to a 0; MP_BC_OPTIONAL marks optional ones.
  uint16_t fields[1 + MP_BC_MAX_OP_ATTRS + 1];
};

enum { MP_BC_OPTIONAL = 0x8000 };

// NULL when the dialect has no such operation.
const mp_bc_op_row_t *mp_bc_op_find(mp_bc_dialect_t dialect, mp_str_t spelling);

// Named attributes that an operation brings, in the two places where they can be.
typedef struct {
  mp_bc_cursor_t properties;  // empty when there are none
  const mp_attr_t *dict;      // discardable ones; before version 5 all. May be NULL
} mp_bc_op_attrs_t;

// All attributes of an operation of the IR: its own in plain form and normalised to the newest
// spelling, then the discardable ones.
MP_NODISCARD mp_status_t mp_bc_op_attrs(mp_bc_reader_t *r, const mp_bc_op_row_t *row,
                                        const mp_bc_op_attrs_t *stored, mp_named_attr_t **out_attrs,
                                        uint32_t *out_count);
// The attributes with these names (`num_names` of them, in stored order) of an operation that is
// not of the IR; absent ones are NULL. `optional` has a bit for each name that is optional.
MP_NODISCARD mp_status_t mp_bc_op_fields(mp_bc_reader_t *r, const char *const *names,
                                         uint32_t num_names, uint32_t optional,
                                         const mp_bc_op_attrs_t *stored,
                                         const mp_attr_t **out_fields);

// ---- bytecode_module.c ----

MP_NODISCARD mp_status_t mp_bc_read_ir(mp_bc_reader_t *r);

#endif  // MINIPOD_SIM_READERS_BYTECODE_BYTECODE_READER_H_
