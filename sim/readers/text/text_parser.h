// The text reader's state and the functions that its files share; private to this folder and to
// the reader of Mosaic's text (sim/mosaic/read), which shares what is MLIR's: tokens, scalars,
// aliases, locations, scopes, numbers.
//
// The parser is a recursive descent with one token of look-ahead (`tok`). A function reads what its
// comment shows, starting at `tok`, and leaves `tok` at the first token that it did not take. Text
// of another form is INVALID_ARGUMENT with line and column; after an error the parser is of no
// further use. In the comments `x?` means that x may be left out, T a type and FN a function type.
//
// Three limits hold for hostile input: MP_TEXT_MAX_DEPTH bounds nesting, `max_weight` bounds the
// expansion of aliases, and the limits of the arenas bound memory. Results are in the module's
// arena unless a comment says scratch. A parser is used by one thread.
#ifndef MINIPOD_SIM_READERS_TEXT_TEXT_PARSER_H_
#define MINIPOD_SIM_READERS_TEXT_TEXT_PARSER_H_

#include "sim/base/arena.h"
#include "sim/base/assert.h"
#include "sim/base/containers/array.h"
#include "sim/base/containers/hash_map.h"
#include "sim/ir/module.h"
#include "sim/ir/schema.h"
#include "sim/readers/text/text_lexer.h"

enum { MP_TEXT_MAX_DEPTH = 256 };

// An alias `#name = ...` or `!name = ...`, which may be used before its definition. All definitions
// are found before anything else is read; the value of one is read when the alias is first used.
typedef struct {
  mp_str_t name;
  bool is_type;            // `!name`
  mp_lexer_t value;        // the position after `value_token`
  mp_token_t value_token;  // the first token after the '='
  // UNREAD: the value was not needed yet. READING: it is being read further up the call stack, so
  // a use now means that the alias is defined by itself, which is an error. READ: the value is in
  // one of `attr`, `type`, `loc` and `other`.
  enum { MP_ALIAS_UNREAD, MP_ALIAS_READING, MP_ALIAS_READ } state;
  uint64_t weight;  // the nodes that its value expands to, counted again at every use
  const mp_attr_t *attr;
  const mp_type_t *type;
  const mp_loc_t *loc;
  const void *other;  // an attribute or type of another IR (sim/mosaic/read)
} mp_text_alias_t;

// The text of a name, shared by all values with this name: an inner region may reuse a name of an
// outer one.
typedef struct {
  mp_str_t text;
  uint32_t newest;  // one more than the index in `defs` of its newest definition; 0: none now
} mp_text_name_t;

typedef struct {
  uint64_t hash;  // of the text
  uint32_t name;
} mp_text_name_entry_t;

// The definition of a name: an op's results or a block argument.
typedef struct {
  uint32_t name;       // index in `names`
  const void *values;  // [count] pointers to values of the IR that is read
  uint32_t count;
  // One more than the index of the definition of the same name that this one hides; 0: none.
  uint32_t older;
} mp_text_def_t;

// A mesh that was defined or referred to. Shardings may refer to a mesh before its definition.
typedef struct mp_text_mesh_s {
  mp_mesh_t *mesh;  // in the module's arena; the definition fills it in
  bool defined;
  mp_token_t first_use;  // for the error when no definition comes
  struct mp_text_mesh_s *next;
} mp_text_mesh_t;

typedef struct mp_text_s mp_text_t;
struct mp_text_op_s;

// Everything that is known during one read.
struct mp_text_s {
  // mp_text_pretty. Called by pointer, because pretty forms in turn have regions of ops.
  mp_status_t (*pretty)(mp_text_t *t, struct mp_text_op_s *op);
  mp_lexer_t lex;   // behind `tok`
  mp_token_t tok;   // the token of look-ahead
  mp_token_t last;  // the token that was taken last

  mp_module_t *module;  // the result
  mp_arena_t *arena;    // the module's
  mp_arena_t *scratch;  // temporaries of this read; freed at its end
  int depth;            // of nesting
  // Nodes of the program so far; each use of an alias counts with its expansion, because a few
  // lines of aliases of aliases can describe a program of exponential size.
  uint64_t weight, max_weight;

  mp_text_alias_t *aliases;  // [num_aliases], types behind the others, each by name
  uint32_t num_aliases;

  MP_ARRAY(mp_text_name_t) names;
  MP_HASH_MAP(mp_text_name_entry_t) names_by_text;
  MP_ARRAY(mp_text_def_t) defs;  // innermost scope last
  uint32_t scope_start;          // index in `defs` of the innermost region's first definition
  uint32_t visible_start;        // definitions before this index lie outside an isolated region

  mp_text_mesh_t *meshes;  // list of all
};

// Lists of items that are read one by one; the items are in scratch.
typedef MP_ARRAY(int64_t) mp_text_ints_t;
typedef MP_ARRAY(mp_token_t) mp_text_tokens_t;
typedef MP_ARRAY(const mp_type_t *) mp_text_types_t;
typedef MP_ARRAY(const mp_attr_t *) mp_text_attrs_t;
typedef MP_ARRAY(mp_named_attr_t) mp_text_items_t;

// Reads a list such as [x, y] between the marks `open` and `close`: each element, of this type, by
// `read(t, &element)`, to the end of `list`. Returns from the caller on errors.
#define MP_TEXT_LIST(t, open, close, type, list, read)                   \
  do {                                                                   \
    MP_RETURN_IF_ERROR(mp_text_expect(t, open));                         \
    while (!mp_text_is(t, close)) {                                      \
      type mp_element;                                                   \
      if ((list)->count > 0) MP_RETURN_IF_ERROR(mp_text_expect(t, ',')); \
      MP_RETURN_IF_ERROR(read(t, &mp_element));                          \
      MP_RETURN_IF_ERROR(MP_ARRAY_PUSH((t)->scratch, list, mp_element)); \
    }                                                                    \
    mp_text_advance(t);                                                  \
  } while (0)

// ---- text_parser.c: tokens, errors ----

// Makes the error INVALID_ARGUMENT "12:7: expected <what>, found ','" about the current token.
MP_NODISCARD mp_status_t mp_text_expected(const mp_text_t *t, const char *what);
// Makes an error with the line and column of `token`.
MP_NODISCARD MP_PRINTF(4, 5) mp_status_t
    mp_text_error(const mp_text_t *t, const mp_token_t *token, mp_status_code_t code,
                  const char *format, ...);

// Takes the current token: `last` becomes it, `tok` the next one.
void mp_text_advance(mp_text_t *t);
// Whether the current token is this punctuation mark.
bool mp_text_is(const mp_text_t *t, char c);
// Whether the current token is this word.
bool mp_text_is_word(const mp_text_t *t, const char *word);
// Takes the token if it is this punctuation mark; otherwise takes nothing and returns false.
bool mp_text_accept(mp_text_t *t, char c);
// The same for a word.
bool mp_text_accept_word(mp_text_t *t, const char *word);
// Takes this punctuation mark; an error if the text has something else.
MP_NODISCARD mp_status_t mp_text_expect(mp_text_t *t, char c);
// The same for a word.
MP_NODISCARD mp_status_t mp_text_expect_word(mp_text_t *t, const char *word);
// The same for `->`.
MP_NODISCARD mp_status_t mp_text_expect_arrow(mp_text_t *t);
// The token behind the current one, without taking anything.
mp_token_t mp_text_peek(const mp_text_t *t);

// To be called before descending into something nested: counts one level and one node, and fails
// beyond the limits.
MP_NODISCARD mp_status_t mp_text_enter(mp_text_t *t);
// To be called after the descent, but not on errors.
static inline void mp_text_leave(mp_text_t *t) {
  MP_ASSERT(t->depth > 0);
  --t->depth;
}
// Counts `weight` nodes; INVALID_ARGUMENT when the program then has more than `max_weight`.
MP_NODISCARD mp_status_t mp_text_add_weight(mp_text_t *t, uint64_t weight);

// ---- scalars ----

// The value of a hexadecimal digit, 0 to 15, or -1 for another character.
int mp_text_hex_digit(char c);
// The value of an INTEGER or HEX token; false when it takes more than 64 bits.
bool mp_text_scan_u64(const mp_token_t *token, uint64_t *out_value);
// A string, "text": its contents without quotes and escapes.
MP_NODISCARD mp_status_t mp_text_string(mp_text_t *t, mp_str_t *out_text);
// A symbol, @name or @"name": the name without marks and escapes.
MP_NODISCARD mp_status_t mp_text_symbol(mp_text_t *t, mp_str_t *out_name);
// A word or a string.
MP_NODISCARD mp_status_t mp_text_name(mp_text_t *t, mp_str_t *out_name);
// A signed decimal integer that fits into 64 bits.
MP_NODISCARD mp_status_t mp_text_i64(mp_text_t *t, int64_t *out_value);
// true or false.
MP_NODISCARD mp_status_t mp_text_bool(mp_text_t *t, bool *out_value);
// A list of signed integers, [1, 2].
MP_NODISCARD mp_status_t mp_text_index_list(mp_text_t *t, mp_index_list_t *out_list);

// ---- text_alias.c ----

// The alias of that name; NULL when there is none.
mp_text_alias_t *mp_text_find_alias(mp_text_t *t, mp_str_t name, bool is_type);
// Reads an alias's value.
typedef mp_status_t (*mp_text_alias_reader_t)(mp_text_t *t, mp_text_alias_t *alias);
// Reads an alias's value where it stands in the text, if no use did so before; `tok` stays where it
// is. Every use counts the nodes that the alias expands to.
MP_NODISCARD mp_status_t mp_text_read_alias(mp_text_t *t, mp_text_alias_t *alias,
                                            mp_text_alias_reader_t read);
// Before everything else: fills in `t->aliases` with all definitions in the text. A definition must
// be the first thing in its line, as MLIR prints it; two of the same name are an error.
MP_NODISCARD mp_status_t mp_text_find_aliases(mp_text_t *t, const char *text, size_t size);

// ---- text_types.c ----

// Any type: tensor, memref, tuple, token, future, function or none; an alias of one; or a scalar,
// which becomes a tensor of rank 0.
MP_NODISCARD mp_status_t mp_text_type(mp_text_t *t, const mp_type_t **out_type);
// Whether a type begins at the current token.
bool mp_text_is_type(const mp_text_t *t);
// The dimensions of a type, each followed by 'x' ("4x?x"): appends them, MP_DYNAMIC for '?'.
MP_NODISCARD mp_status_t mp_text_dims(mp_text_t *t, mp_text_ints_t *dims);
// An element type: f32, complex<f32>.
MP_NODISCARD mp_status_t mp_text_dtype(mp_text_t *t, mp_dtype_t *out_dtype);
// The types in a function type. The lists are in scratch.
typedef struct {
  const mp_type_t **inputs;
  uint32_t num_inputs;
  const mp_type_t **results;
  uint32_t num_results;
} mp_text_signature_t;
// A function type: (T, T) -> T or (T, T) -> (T, T).
MP_NODISCARD mp_status_t mp_text_signature(mp_text_t *t, mp_text_signature_t *out_signature);

// ---- text_attr_make.c: nothing is read ----

// Makes a dictionary of a copy of the items, sorted by name. A name that occurs twice is an error
// at `token`.
MP_NODISCARD mp_status_t mp_text_make_dict(mp_text_t *t, const mp_token_t *token,
                                           const mp_named_attr_t *items, uint32_t count,
                                           const mp_attr_t **out_dict);
// Makes an attribute that is zero but for its kind.
MP_NODISCARD mp_status_t mp_text_new_attr(mp_text_t *t, mp_attr_kind_t kind, mp_attr_t **out_attr);
// Makes a named attribute; `name` is not copied and must live as long as the module.
MP_NODISCARD mp_status_t mp_text_named_attr(mp_text_t *t, mp_str_t name, const mp_attr_t *value,
                                            mp_named_attr_t *out_attr);

// ---- text_attrs.c ----

// Any attribute, or an alias of one.
MP_NODISCARD mp_status_t mp_text_attr(mp_text_t *t, const mp_attr_t **out_attr);
// A number, -1.5 : f32: INT, FLOAT or BOOL. Without a type it is i64 or f64.
MP_NODISCARD mp_status_t mp_text_number(mp_text_t *t, const mp_attr_t **out_attr);
// array<i64: 1, 2>: INTS, BOOLS for i1, DENSE for other types.
MP_NODISCARD mp_status_t mp_text_numbers(mp_text_t *t, const mp_attr_t **out_attr);
// A list of attributes that `read` reads, [x, y].
MP_NODISCARD mp_status_t mp_text_array(mp_text_t *t,
                                       mp_status_t (*read)(mp_text_t *t,
                                                           const mp_attr_t **out_attr),
                                       const mp_attr_t **out_attr);
// The value of an alias that is none of a type: an attribute or a location.
MP_NODISCARD mp_status_t mp_text_alias_value(mp_text_t *t, mp_text_alias_t *alias);
// {name = value, ...}: appends the items in the order of the text.
MP_NODISCARD mp_status_t mp_text_dict_items(mp_text_t *t, mp_text_items_t *items);
// The same as one attribute with its items sorted by name.
MP_NODISCARD mp_status_t mp_text_dict(mp_text_t *t, const mp_attr_t **out_dict);

// ---- text_dense.c ----

// A constant, <elements> : T, from behind the word `dense`.
MP_NODISCARD mp_status_t mp_text_dense(mp_text_t *t, const mp_attr_t **out_attr);
// The same for a type that `read_type` reads, as the tensor type that has its elements.
typedef mp_status_t (*mp_text_type_reader_t)(mp_text_t *t, const mp_type_t **out_type);
MP_NODISCARD mp_status_t mp_text_dense_of(mp_text_t *t, mp_text_type_reader_t read_type,
                                          const mp_attr_t **out_attr);

// ---- text_structs.c ----

// An attribute of StableHLO from behind `#stablehlo` (`name` is empty) or `#stablehlo.name`.
// Attributes that are structs become dictionaries of their fields.
MP_NODISCARD mp_status_t mp_text_stablehlo_attr(mp_text_t *t, mp_str_t name,
                                                const mp_attr_t **out_attr);
// A convolution's dimension numbers, [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], as a dictionary of
// fields.
MP_NODISCARD mp_status_t mp_text_conv_numbers(mp_text_t *t, const mp_attr_t **out_fields);
// The algorithm of a dot_general, <lhs_precision_type = tf32, ...>, as a dictionary of fields.
MP_NODISCARD mp_status_t mp_text_dot_algorithm(mp_text_t *t, const mp_attr_t **out_fields);

// ---- text_sdy.c ----

// An attribute of Shardy from behind `#sdy` (`name` is empty) or `#sdy.name`.
MP_NODISCARD mp_status_t mp_text_sdy_attr(mp_text_t *t, mp_str_t name, const mp_attr_t **out_attr);
// What defines a mesh: <["x"=2, "y"=4], device_ids=[...]>.
MP_NODISCARD mp_status_t mp_text_mesh_body(mp_text_t *t, mp_mesh_t *out_mesh);
// @name: the mesh of this name, which may be defined later.
MP_NODISCARD mp_status_t mp_text_mesh_ref(mp_text_t *t, mp_mesh_t **out_mesh);
// A sharding: <@mesh, [{"x"}, {}]>.
MP_NODISCARD mp_status_t mp_text_sharding(mp_text_t *t, const mp_attr_t **out_attr);
// A list of shardings in brackets.
MP_NODISCARD mp_status_t mp_text_shardings(mp_text_t *t, const mp_attr_t **out_attr);
// The same as an attribute.
MP_NODISCARD mp_status_t mp_text_axes_attr(mp_text_t *t, const mp_attr_t **out_attr);
// A list of axes per dimension, [{"x"}, {}].
MP_NODISCARD mp_status_t mp_text_axes_lists(mp_text_t *t, const mp_attr_t **out_attr);
// The parameters of sdy.all_to_all, [{"x"}: 0->1].
MP_NODISCARD mp_status_t mp_text_all_to_all(mp_text_t *t, const mp_attr_t **out_attr);
// At the end of a read: a mesh that was referred to but never defined is an error.
MP_NODISCARD mp_status_t mp_text_check_meshes(mp_text_t *t);

// ---- text_locs.c ----

// loc(...), if there is one; otherwise `*loc` is left as it is.
MP_NODISCARD mp_status_t mp_text_optional_loc(mp_text_t *t, const mp_loc_t **loc);
// loc(...), or else the place of `token` in the text, which is called `file`.
MP_NODISCARD mp_status_t mp_text_loc_or_place(mp_text_t *t, const mp_token_t *token, mp_str_t file,
                                              const mp_loc_t **out_loc);

// ---- text_scope.c ----

// What mp_text_close_scope needs to restore.
typedef struct {
  uint32_t scope_start, visible_start, num_defs;
} mp_text_scope_t;

// Begins a region: the names that it defines end with it. A region sees the names outside unless
// it is isolated. Returns what is to be given to mp_text_close_scope.
mp_text_scope_t mp_text_open_scope(mp_text_t *t, bool isolated);
// Ends the region that began with `scope`.
void mp_text_close_scope(mp_text_t *t, mp_text_scope_t scope);
// Lets a name stand for `values`, an array of `count` pointers, which must stay valid; an error at
// `name` when the innermost region defines it already.
MP_NODISCARD mp_status_t mp_text_define(mp_text_t *t, const mp_token_t *name, const void *values,
                                        uint32_t count);
// Whether a visible definition of this name exists.
bool mp_text_is_defined(const mp_text_t *t, mp_str_t name);
// Takes %name or %name#k: the first or the k-th (counted from 0) of the values of that name, which
// is written to `*out_value`, a pointer of the values' type.
MP_NODISCARD mp_status_t mp_text_use(mp_text_t *t, void *out_value);

// ---- text_results.c ----

// A name that stands for the next `count` results of an op.
typedef struct {
  mp_token_t token;
  uint32_t count;
} mp_text_result_name_t;
typedef MP_ARRAY(mp_text_result_name_t) mp_text_result_names_t;

// %a, %b:2 =, if there are names; appends them.
MP_NODISCARD mp_status_t mp_text_result_names(mp_text_t *t, mp_text_result_names_t *names);
// Lets the names stand for an op's results, `values`, an array of `num_values` pointers as for
// mp_text_define. An error if there are names, but not for exactly these; `op` is the op's name.
MP_NODISCARD mp_status_t mp_text_define_results(mp_text_t *t, mp_str_t op,
                                                const mp_text_result_names_t *names,
                                                const void *values, uint32_t num_values);

// ---- text_ops.c ----

// An op while it is read. The lists are in scratch.
typedef struct mp_text_op_s {
  mp_token_t token;  // its name
  mp_opcode_t code;  // MP_OP_COUNT: a cast, whose results are its operands
  MP_ARRAY(mp_value_t *) operands;
  mp_text_items_t attrs;  // as the text has them, before mp_text_normalize
  MP_ARRAY(mp_block_t *) regions;
  mp_text_signature_t types;  // of the operands and the results, as the text has them
} mp_text_op_t;

// { ops }: reads the ops into a block whose arguments exist. The caller has opened the scope and
// defined the arguments' names.
MP_NODISCARD mp_status_t mp_text_region_of(mp_text_t *t, mp_block_t *block);
// {^bb0(%a: T): ops}, with a scope of its own.
MP_NODISCARD mp_status_t mp_text_generic_region(mp_text_t *t, bool isolated,
                                                mp_block_t **out_block);
// (%a: T, ...): appends the tokens of the names and the types.
MP_NODISCARD mp_status_t mp_text_block_args(mp_text_t *t, mp_text_tokens_t *names,
                                            mp_text_types_t *types);
// Defines the names of the first arguments of a block.
MP_NODISCARD mp_status_t mp_text_define_args(mp_text_t *t, const mp_text_tokens_t *names,
                                             mp_block_t *block);
// Makes a block with arguments of these types and defines their names.
MP_NODISCARD mp_status_t mp_text_make_block(mp_text_t *t, const mp_text_tokens_t *names,
                                            const mp_text_types_t *types, mp_block_t **out_block);
// %a: appends one operand.
MP_NODISCARD mp_status_t mp_text_operand(mp_text_t *t, mp_text_op_t *op);
// %a, %b, ...: appends operands as long as values follow; there may be none.
MP_NODISCARD mp_status_t mp_text_operands(mp_text_t *t, mp_text_op_t *op);
// {name = value, ...}?: appends to op->attrs.
MP_NODISCARD mp_status_t mp_text_op_dict(mp_text_t *t, mp_text_op_t *op);
// Appends an attribute to op->attrs; nothing is read.
MP_NODISCARD mp_status_t mp_text_op_attr(mp_text_t *t, mp_text_op_t *op, mp_attr_name_t name,
                                         const mp_attr_t *value);
// Appends an attribute that is a list of integers to op->attrs; nothing is read.
MP_NODISCARD mp_status_t mp_text_op_ints(mp_text_t *t, mp_text_op_t *op, mp_attr_name_t name,
                                         mp_index_list_t values);
// {name = value, ...}? : FN, into op->attrs and op->types.
MP_NODISCARD mp_status_t mp_text_op_types(mp_text_t *t, mp_text_op_t *op);

// ---- text_pretty.c ----

// Everything of an op from behind its name, in the op's pretty form (sim/ir/forms.h).
MP_NODISCARD mp_status_t mp_text_pretty(mp_text_t *t, mp_text_op_t *op);

// ---- text_normal.c ----

// Converts a dense constant (of rank 1 or 2) or an array of integers to INTS, one of booleans to
// BOOLS; every other attribute is returned as it is. A list too large for the program is an error
// at `token`.
MP_NODISCARD mp_status_t mp_text_to_ints(mp_text_t *t, const mp_token_t *token,
                                         const mp_attr_t *value, const mp_attr_t **out_value);
// Converts an op's attributes from what the text has to what the IR has (sim/ir/schema.h): structs
// are taken apart, values get the kinds that the schema names, defaults are filled in, and the
// op's own attributes come in VHLO's order before all others. Values of a kind that the schema does
// not allow stay as they are, for the verifier to refuse.
MP_NODISCARD mp_status_t mp_text_normalize(mp_text_t *t, const mp_text_op_t *op,
                                           mp_named_attr_t **out_attrs, uint32_t *out_count);

#endif  // MINIPOD_SIM_READERS_TEXT_TEXT_PARSER_H_
