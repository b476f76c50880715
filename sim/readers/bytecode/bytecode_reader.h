// The bytecode reader's own state and the functions that its files share; private to this folder
// and to the reader of Mosaic's bytecode (sim/mosaic/read), which shares what is MLIR's: the
// container, the tables, the builtin dialect, the structure of the IR section.
//
// A program is read in this order: bytecode_sections.c finds the sections and reads the tables of
// strings and names; bytecode_module.c and bytecode_ir.c then read the operations. Attributes and
// types stand in two tables of encoded entries; an entry is decoded when an operation or another
// entry first refers to it (bytecode_tables.c). The decoder of an entry belongs to its dialect:
// bytecode_builtin.c, vhlo_attr.c, vhlo_type.c, sdy_attr.c.
//
// Functions with a cursor read at the cursor and move it past what they read, as in
// bytecode_cursor.h; their errors are those of that header. Results live in the module's arena
// unless a comment says scratch. A reader is used by one thread.
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
  MP_BC_NEWEST_VERSION = 6,      // of the container format
  MP_BC_MAX_ENTRY_DEPTH = 256,   // entries within entries; call stacks do not count
  MP_BC_MAX_REGION_DEPTH = 128,  // regions within regions
  MP_BC_MAX_VALUE_TYPE = 16384,  // nodes of a value's type: a tuple, its elements, theirs, ...
};

// The dialects that the reader distinguishes. Attributes of StableHLO itself (unlike VHLO's) are
// not read; of its types only the token and the future are.
typedef enum {
  MP_BC_BUILTIN,
  MP_BC_VHLO,
  MP_BC_SDY,
  MP_BC_STABLEHLO,
  MP_BC_OTHER_DIALECT,
} mp_bc_dialect_t;

// What an attribute entry decodes to; the comment is the C type of the decoded object. All but
// ATTR and LOC occur only as parts of other attributes.
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
  MP_BC_OTHER,           // none: only the entry's `other` is set
} mp_bc_object_t;

// What a type entry decodes to. The table also holds element types (f32) by themselves; these are
// called scalars here, and their `type` is a tensor of rank 0, because that is what an attribute
// with an element type as its value becomes.
typedef struct {
  const mp_type_t *type;
  mp_dtype_t dtype;         // of a scalar; INVALID otherwise
  const mp_quant_t *quant;  // of a quantised scalar
  const void *other;        // the type in another IR (sim/mosaic/read); NULL: it has none
} mp_bc_type_t;

// One entry of the attribute or type table.
typedef struct {
  mp_bc_cursor_t bytes;  // the encoded entry
  mp_str_t dialect_name;
  mp_bc_dialect_t dialect;
  bool custom;  // the dialect's own encoding; otherwise the entry is assembly text
  // UNREAD: not decoded yet. READING: being decoded further up the call stack, so a reference to
  // the entry now means that it contains itself, which is an error. READ: the fields below hold.
  enum { MP_BC_UNREAD, MP_BC_READING, MP_BC_READ } state;
  // The nodes of the tree that starts here, shared entries counted each time they occur. A file of
  // a few bytes can encode a tree of exponential size, and later stages walk trees: hence a limit.
  uint64_t weight;
  mp_bc_object_t kind;     // of attributes
  const void *object;      // of the type that `kind` names; an mp_bc_type_t for types
  const mp_attr_t *plain;  // the attribute after mp_bc_plain_attr; NULL until first used
  const void *other;       // the attribute in another IR (sim/mosaic/read); NULL: it has none
} mp_bc_entry_t;

// One row of the table of dialects.
typedef struct {
  mp_str_t name;
  mp_bc_dialect_t dialect;
} mp_bc_dialect_entry_t;

typedef struct mp_bc_op_row_s mp_bc_op_row_t;

// One row of the table of operation names.
typedef struct {
  uint32_t dialect;           // row in the table of dialects
  mp_str_t name;              // without the dialect
  bool registered;            // the writer knew the operation (stored from version 5 on)
  const mp_bc_op_row_t *row;  // of an operation of the IR; NULL for others
} mp_bc_op_name_t;

typedef struct mp_bc_mesh_s mp_bc_mesh_t;

typedef struct mp_bc_reader_s mp_bc_reader_t;
typedef mp_status_t (*mp_bc_decoder_t)(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_entry_t *entry);

// Everything that is known during one read.
struct mp_bc_reader_s {
  // mp_bc_decode_attr and mp_bc_decode_type. The tables call them by pointer, because dialects in
  // turn look up other entries.
  mp_bc_decoder_t decode_attr, decode_type;

  mp_bc_cursor_t whole;  // the whole program
  uint64_t version;      // of the container
  mp_bc_cursor_t sections[MP_BC_SECTION_COUNT];
  bool present[MP_BC_SECTION_COUNT];

  mp_arena_t *scratch;  // temporaries of this read; freed at its end
  mp_module_t *module;  // the result
  mp_arena_t *arena;    // the module's

  // The tables, in scratch (the strings' characters are in the module's arena).
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

  int entry_depth;  // how many entries are being decoded, each within the one before
  // The weight so far of the innermost of them; if there is none, of everything that the program
  // refers to, without the locations of its ops.
  uint64_t weight;
  uint64_t max_weight, max_program_weight;  // the limits for any entry, and for the program

  mp_bc_mesh_t *meshes;  // list of all meshes that were referred to or defined so far
};

// ---- bytecode_sections.c ----

// Finds the sections and reads all of them but the operations.
MP_NODISCARD mp_status_t mp_bc_read_sections(mp_bc_reader_t *r);
// Reads the index of a string and returns the string.
MP_NODISCARD mp_status_t mp_bc_string(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_str_t *out_text);

// ---- bytecode_tables.c ----
//
// Each of these reads a reference, which is an index into the attribute or the type table, decodes
// the entry if it is not decoded yet, and returns the decoded object. An index that is out of range
// and an entry of another kind are errors. The variants ending in _at take an index that was read
// already;
// `c` says only where the reference stands, for errors.

// An attribute entry that decodes to an object of this kind.
MP_NODISCARD mp_status_t mp_bc_object(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_object_t kind,
                                      const void **out_object);
// An attribute (MP_BC_ATTR).
MP_NODISCARD mp_status_t mp_bc_attr(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                    const mp_attr_t **out_attr);
// An attribute of the IR's kind `kind`; `what` names it in the error.
MP_NODISCARD mp_status_t mp_bc_attr_of(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_attr_kind_t kind,
                                       const char *what, const mp_attr_t **out_attr);
// The text of a string attribute.
MP_NODISCARD mp_status_t mp_bc_text(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_str_t *out_text);
// A location.
MP_NODISCARD mp_status_t mp_bc_loc(mp_bc_reader_t *r, mp_bc_cursor_t *c, const mp_loc_t **out_loc);
// Any type, scalars included; the object is in scratch.
MP_NODISCARD mp_status_t mp_bc_type(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                    const mp_bc_type_t **out_type);
// A type that a value can have: no scalar, function or none type, and with at most
// MP_BC_MAX_VALUE_TYPE nodes.
MP_NODISCARD mp_status_t mp_bc_value_type(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                          const mp_type_t **out_type);
// The same for an index that was read already.
MP_NODISCARD mp_status_t mp_bc_value_type_at(mp_bc_reader_t *r, const mp_bc_cursor_t *c,
                                             uint64_t index, const mp_type_t **out_type);
// A scalar: an element type by itself; the object is in scratch.
MP_NODISCARD mp_status_t mp_bc_scalar(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                      const mp_bc_type_t **out_type);
// mp_bc_attr and mp_bc_object for an index that was read already.
MP_NODISCARD mp_status_t mp_bc_attr_at(mp_bc_reader_t *r, const mp_bc_cursor_t *c, uint64_t index,
                                       const mp_attr_t **out_attr);
MP_NODISCARD mp_status_t mp_bc_object_at(mp_bc_reader_t *r, const mp_bc_cursor_t *c, uint64_t index,
                                         mp_bc_object_t kind, const void **out_object);
// A list of references to entries of one kind; the objects, `size` bytes each, are copied into one
// array.
MP_NODISCARD mp_status_t mp_bc_objects(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_object_t kind,
                                       size_t size, const void **out_array, uint32_t *out_count);
// The entry of an attribute, or a type, decoded.
MP_NODISCARD mp_status_t mp_bc_attr_entry_at(mp_bc_reader_t *r, const mp_bc_cursor_t *c,
                                             uint64_t index, mp_bc_entry_t **out_entry);
MP_NODISCARD mp_status_t mp_bc_type_at(mp_bc_reader_t *r, const mp_bc_cursor_t *c, uint64_t index,
                                       const mp_bc_type_t **out_type);
// A list of references to attributes.
MP_NODISCARD mp_status_t mp_bc_attrs(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                     const mp_attr_t *const **out_attrs, size_t *out_count);
// A list of references to types that values can have.
MP_NODISCARD mp_status_t mp_bc_value_types(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                           const mp_type_t *const **out_types, size_t *out_count);
// Reads a list of signed numbers; no reference is involved.
MP_NODISCARD mp_status_t mp_bc_index_list(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                          mp_index_list_t *out_list);

// ---- bytecode_dialects.c ----

// Decode an entry of the table of attributes, or types; `c` covers the entry's bytes. UNIMPLEMENTED
// for entries stored as text and for unknown dialects.
MP_NODISCARD mp_status_t mp_bc_decode_attr(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                           mp_bc_entry_t *entry);
MP_NODISCARD mp_status_t mp_bc_decode_type(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                           mp_bc_entry_t *entry);

// ---- dialects ----
//
// Each of these decodes one entry of its dialect's own encoding; `c` covers the entry's bytes. The
// decoders of attributes set `kind` and `object` of the entry, those of types fill in `*out_type`.
// A code of the dialect that minipod does not support is UNIMPLEMENTED.

// Attributes and locations of the builtin dialect.
MP_NODISCARD mp_status_t mp_bc_builtin_attr(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                            mp_bc_entry_t *entry);
// Types of the builtin dialect.
MP_NODISCARD mp_status_t mp_bc_builtin_type(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                            mp_bc_type_t *out_type);
// Attributes of VHLO.
MP_NODISCARD mp_status_t mp_bc_vhlo_attr(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                         mp_bc_entry_t *entry);
// Types of VHLO.
MP_NODISCARD mp_status_t mp_bc_vhlo_type(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                         mp_bc_type_t *out_type);
// Attributes of Shardy, which has no types.
MP_NODISCARD mp_status_t mp_bc_sdy_attr(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_entry_t *entry);
// Types of StableHLO.
MP_NODISCARD mp_status_t mp_bc_stablehlo_type(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                              mp_bc_type_t *out_type);

// ---- bytecode_values.c: forms that dialects share ----

// Makes an attribute, zero but for its kind, and sets it as the entry's object.
MP_NODISCARD mp_status_t mp_bc_new_attr(mp_bc_reader_t *r, mp_bc_entry_t *entry,
                                        mp_attr_kind_t kind, mp_attr_t **out_attr);
// Reads a type reference and bits: an integer, or a boolean when the type is i1.
MP_NODISCARD mp_status_t mp_bc_int_attr(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_entry_t *entry);
// Reads a type reference and bits: a floating-point number.
MP_NODISCARD mp_status_t mp_bc_float_attr(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                          mp_bc_entry_t *entry);
// Makes a string attribute of `text`, which must live as long as the module.
MP_NODISCARD mp_status_t mp_bc_string_attr(mp_bc_reader_t *r, mp_bc_entry_t *entry, mp_str_t text);
// Reads a list of attributes.
MP_NODISCARD mp_status_t mp_bc_array_attr(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                          mp_bc_entry_t *entry);
// Reads a list of (name, attribute) pairs.
MP_NODISCARD mp_status_t mp_bc_dict_attr(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                         mp_bc_entry_t *entry);
// Reads a constant: the reference of a tensor type of known shape, and a blob of its elements, or
// of one element that stands for all (a splat).
MP_NODISCARD mp_status_t mp_bc_dense_attr(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                          mp_bc_entry_t *entry);
// The form in which the IR holds an operation's own attributes: dense integers of rank 1 or 2
// become INTS, dense booleans become BOOLS, arrays are converted item by item, and everything else
// stays the same object.
MP_NODISCARD mp_status_t mp_bc_plain_attr(mp_bc_reader_t *r, const mp_bc_cursor_t *c,
                                          const mp_attr_t *attr, const mp_attr_t **out_attr);
// The attribute at an index in plain form (mp_bc_plain_attr), made once per entry.
MP_NODISCARD mp_status_t mp_bc_plain_attr_at(mp_bc_reader_t *r, const mp_bc_cursor_t *c,
                                             uint64_t index, const mp_attr_t **out_attr);

// Makes a scalar's type; nothing is read.
MP_NODISCARD mp_status_t mp_bc_scalar_type(mp_bc_reader_t *r, mp_dtype_t dtype,
                                           const mp_quant_t *quant, mp_bc_type_t *out_type);
// Reads a tensor's dimensions and the reference of its element type. `bounds` (NULL: none) are the
// upper bounds of its dynamic dimensions, one per dimension.
MP_NODISCARD mp_status_t mp_bc_tensor_type(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                           mp_type_kind_t kind, const mp_index_list_t *bounds,
                                           mp_bc_type_t *out_type);
// Reads the reference of the element type of a tensor of unknown rank.
MP_NODISCARD mp_status_t mp_bc_unranked_type(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                             mp_bc_type_t *out_type);
// Reads the reference of a complex type's parts; only f32 and f64 are supported.
MP_NODISCARD mp_status_t mp_bc_complex_type(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                            mp_bc_type_t *out_type);
// Reads one list of types (tuple, future) or two (a function's inputs and results).
MP_NODISCARD mp_status_t mp_bc_compound_type(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                             mp_type_kind_t kind, mp_bc_type_t *out_type);

// ---- sdy_mesh.c ----

// The mesh of this name. It may be defined later: until then the object is empty but for the name.
MP_NODISCARD mp_status_t mp_bc_mesh_ref(mp_bc_reader_t *r, mp_str_t name,
                                        const mp_mesh_t **out_mesh);
// Copies `mesh` into the mesh of this name and adds that to the module; a second definition is an
// error.
MP_NODISCARD mp_status_t mp_bc_mesh_define(mp_bc_reader_t *r, const mp_bc_cursor_t *c,
                                           mp_str_t name, const mp_mesh_t *mesh);
// At the end of a read: a mesh that was referred to but never defined is INVALID_ARGUMENT.
MP_NODISCARD mp_status_t mp_bc_mesh_check(mp_bc_reader_t *r);

// ---- bytecode_ops.c: which attributes an operation stores ----

enum { MP_BC_MAX_OP_ATTRS = 18 };

// How one spelling of an operation is stored.
struct mp_bc_op_row_s {
  const char *spelling;  // without dialect
  // Opcode, then the attributes in stored order up to a 0; MP_BC_OPTIONAL marks optional ones.
  uint16_t fields[1 + MP_BC_MAX_OP_ATTRS + 1];
};

enum { MP_BC_OPTIONAL = 0x8000 };

// The row of an operation; NULL when the dialect has no such operation of the IR.
const mp_bc_op_row_t *mp_bc_op_find(mp_bc_dialect_t dialect, mp_str_t spelling);

// An operation's attributes as the file holds them, in the two places where they can be.
typedef struct {
  mp_bc_cursor_t properties;  // its own attributes, without names; empty when there are none
  // From version 5 on the discardable attributes only, before that all attributes. May be NULL.
  const mp_attr_t *dict;
} mp_bc_op_attrs_t;

// All attributes of an operation of the IR: first its own, in plain form and completed to those
// that the newest version of VHLO has, then the discardable ones.
MP_NODISCARD mp_status_t mp_bc_op_attrs(mp_bc_reader_t *r, const mp_bc_op_row_t *row,
                                        const mp_bc_op_attrs_t *stored, mp_named_attr_t **out_attrs,
                                        uint32_t *out_count);
// The attributes of an operation that is not of the IR (a function, a mesh, a module). `names` are
// the `num_names` names in stored order, and bit i of `optional` is set when name i is optional.
// `out_fields[num_names]` gets the attributes, NULL for absent ones.
MP_NODISCARD mp_status_t mp_bc_op_fields(mp_bc_reader_t *r, const char *const *names,
                                         uint32_t num_names, uint32_t optional,
                                         const mp_bc_op_attrs_t *stored,
                                         const mp_attr_t **out_fields);

// ---- bytecode_module.c ----

// Reads the IR section into r->module, after mp_bc_read_sections.
MP_NODISCARD mp_status_t mp_bc_read_ir(mp_bc_reader_t *r);

#endif  // MINIPOD_SIM_READERS_BYTECODE_BYTECODE_READER_H_
