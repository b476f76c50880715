// The text reader's state and the parts that its files share; private to sim/readers/text*.
//
// Recursive descent with one token of look-ahead (`tok`). Every function leaves `tok` at the first
// token that it did not take. Nesting is bounded by MP_TEXT_MAX_DEPTH, what aliases expand to by
// `max_weight`, memory by the arenas' limits.
#ifndef MINIPOD_SIM_READERS_TEXT_TEXT_PARSER_H_
#define MINIPOD_SIM_READERS_TEXT_TEXT_PARSER_H_

#include "sim/base/arena.h"
#include "sim/base/containers/array.h"
#include "sim/base/containers/hash_map.h"
#include "sim/ir/module.h"
#include "sim/ir/schema.h"
#include "sim/readers/text/text_lexer.h"

enum { MP_TEXT_MAX_DEPTH = 256 };

// `#name = ...` or `!name = ...`; read when first used.
typedef struct {
  mp_str_t name;
  bool is_type;
  mp_lexer_t value;  // behind the '='
  mp_token_t value_token;
  enum { MP_ALIAS_UNREAD, MP_ALIAS_READING, MP_ALIAS_READ } state;
  uint64_t weight;
  const mp_attr_t *attr;  // one of these three
  const mp_type_t *type;
  const mp_loc_t *loc;
} mp_text_alias_t;

// A name that was defined once or more; in inner regions it may stand for other values.
typedef struct {
  mp_str_t text;
  uint32_t newest;  // its newest definition, plus one; 0: none at present
} mp_text_name_t;

typedef struct {
  uint64_t hash;  // of the text
  uint32_t name;
} mp_text_name_entry_t;

// What a name stands for: an op's results or a block argument.
typedef struct {
  uint32_t name;
  mp_value_t **values;  // [count]
  uint32_t count;
  uint32_t older;  // the definition of the same name that this one hides, plus one; 0: none
} mp_text_def_t;

// A mesh that was defined or referred to; in the latter case it is defined later.
typedef struct mp_text_mesh_s {
  mp_mesh_t *mesh;
  bool defined;
  mp_token_t first_use;
  struct mp_text_mesh_s *next;
} mp_text_mesh_t;

typedef struct {
  mp_lexer_t lex;
  mp_token_t tok;
  mp_token_t last;  // the token before

  mp_module_t *module;
  mp_arena_t *arena;    // the module's
  mp_arena_t *scratch;  // dies with the read
  int depth;
  uint64_t weight, max_weight;

  mp_text_alias_t *aliases;
  uint32_t num_aliases;

  MP_ARRAY(mp_text_name_t) names;
  MP_HASH_MAP(mp_text_name_entry_t) names_by_text;
  MP_ARRAY(mp_text_def_t) defs;  // innermost scope last
  uint32_t scope_start;          // first definition of the innermost region
  uint32_t visible_start;        // first definition that an isolated region sees

  mp_text_mesh_t *meshes;
} mp_text_t;

// What is read one by one is kept in scratch.
typedef MP_ARRAY(int64_t) mp_text_ints_t;
typedef MP_ARRAY(mp_token_t) mp_text_tokens_t;
typedef MP_ARRAY(const mp_type_t *) mp_text_types_t;
typedef MP_ARRAY(const mp_attr_t *) mp_text_attrs_t;
typedef MP_ARRAY(mp_named_attr_t) mp_text_items_t;

// ---- text_parser.c: tokens, errors ----

// "12:7: expected <what>, found ','" at the current token.
MP_NODISCARD mp_status_t mp_text_expected(const mp_text_t *t, const char *what);
// An error at `token`.
MP_NODISCARD MP_PRINTF(4, 5) mp_status_t
    mp_text_error(const mp_text_t *t, const mp_token_t *token, mp_status_code_t code,
                  const char *format, ...);

void mp_text_advance(mp_text_t *t);
bool mp_text_is(const mp_text_t *t, char c);
bool mp_text_is_word(const mp_text_t *t, const char *word);
// Takes the token if it is this one.
bool mp_text_accept(mp_text_t *t, char c);
bool mp_text_accept_word(mp_text_t *t, const char *word);
MP_NODISCARD mp_status_t mp_text_expect(mp_text_t *t, char c);
MP_NODISCARD mp_status_t mp_text_expect_word(mp_text_t *t, const char *word);
MP_NODISCARD mp_status_t mp_text_expect_arrow(mp_text_t *t);
// What follows the current token, without taking anything.
mp_token_t mp_text_peek(const mp_text_t *t);

// Nesting: enter before descending, leave after. Errors when it is too deep.
MP_NODISCARD mp_status_t mp_text_enter(mp_text_t *t);
static inline void mp_text_leave(mp_text_t *t) {
  --t->depth;
}
// Counts what an alias expands to.
MP_NODISCARD mp_status_t mp_text_add_weight(mp_text_t *t, uint64_t weight);

// ---- scalars ----

// 0 to 15, or -1.
int mp_text_hex_digit(char c);
// The value of an INTEGER or HEX token; false when it takes more than 64 bits.
bool mp_text_scan_u64(const mp_token_t *token, uint64_t *out_value);
// The contents of a STRING token (or quoted SYMBOL), unescaped, in the module's arena.
MP_NODISCARD mp_status_t mp_text_string(mp_text_t *t, mp_str_t *out_text);
MP_NODISCARD mp_status_t mp_text_symbol(mp_text_t *t, mp_str_t *out_name);
// A word or a quoted string.
MP_NODISCARD mp_status_t mp_text_name(mp_text_t *t, mp_str_t *out_name);
// A signed decimal integer.
MP_NODISCARD mp_status_t mp_text_i64(mp_text_t *t, int64_t *out_value);
MP_NODISCARD mp_status_t mp_text_bool(mp_text_t *t, bool *out_value);
// [1, 2]; the values are in the module's arena.
MP_NODISCARD mp_status_t mp_text_index_list(mp_text_t *t, mp_index_list_t *out_list);

// ---- text_types.c ----

MP_NODISCARD mp_status_t mp_text_type(mp_text_t *t, const mp_type_t **out_type);
bool mp_text_is_type(const mp_text_t *t);
// A scalar: f32, complex<f32>.
MP_NODISCARD mp_status_t mp_text_dtype(mp_text_t *t, mp_dtype_t *out_dtype);
// (T, T) -> T or (T, T) -> (T, T); the lists are in scratch.
typedef struct {
  const mp_type_t **inputs;
  uint32_t num_inputs;
  const mp_type_t **results;
  uint32_t num_results;
} mp_text_signature_t;
MP_NODISCARD mp_status_t mp_text_signature(mp_text_t *t, mp_text_signature_t *out_signature);

// ---- text_attrs.c, text_dense.c, text_structs.c, text_sdy.c ----

MP_NODISCARD mp_status_t mp_text_attr(mp_text_t *t, const mp_attr_t **out_attr);
// {name = value, ...}, the items in scratch in the order of the text.
MP_NODISCARD mp_status_t mp_text_dict_items(mp_text_t *t, mp_text_items_t *items);
// The same as an attribute, items by name.
MP_NODISCARD mp_status_t mp_text_dict(mp_text_t *t, const mp_attr_t **out_dict);
// Sorts by name and copies into the module's arena; `what` duplicates are errors at `token`.
MP_NODISCARD mp_status_t mp_text_make_dict(mp_text_t *t, const mp_token_t *token,
                                           const mp_named_attr_t *items, uint32_t count,
                                           const mp_attr_t **out_dict);
MP_NODISCARD mp_status_t mp_text_new_attr(mp_text_t *t, mp_attr_kind_t kind, mp_attr_t **out_attr);
MP_NODISCARD mp_status_t mp_text_named_attr(mp_text_t *t, mp_str_t name, const mp_attr_t *value,
                                            mp_named_attr_t *out_attr);
// Behind `dense`.
MP_NODISCARD mp_status_t mp_text_dense(mp_text_t *t, const mp_attr_t **out_attr);
// Behind `#stablehlo` or `#stablehlo.name`; struct attributes become dictionaries of their fields.
MP_NODISCARD mp_status_t mp_text_stablehlo_attr(mp_text_t *t, mp_str_t name,
                                                const mp_attr_t **out_attr);
// [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f] as a dictionary of fields.
MP_NODISCARD mp_status_t mp_text_conv_numbers(mp_text_t *t, const mp_attr_t **out_fields);
// <lhs_precision_type = tf32, ...> likewise.
MP_NODISCARD mp_status_t mp_text_dot_algorithm(mp_text_t *t, const mp_attr_t **out_fields);
// Behind `#sdy` or `#sdy.name`.
MP_NODISCARD mp_status_t mp_text_sdy_attr(mp_text_t *t, mp_str_t name, const mp_attr_t **out_attr);
MP_NODISCARD mp_status_t mp_text_mesh_body(mp_text_t *t, mp_mesh_t *out_mesh);
MP_NODISCARD mp_status_t mp_text_mesh_ref(mp_text_t *t, mp_mesh_t **out_mesh);
MP_NODISCARD mp_status_t mp_text_sharding(mp_text_t *t, const mp_attr_t **out_attr);
MP_NODISCARD mp_status_t mp_text_shardings(mp_text_t *t, const mp_attr_t **out_attr);
MP_NODISCARD mp_status_t mp_text_axes(mp_text_t *t, mp_axis_list_t *out_axes);
MP_NODISCARD mp_status_t mp_text_axes_attr(mp_text_t *t, const mp_attr_t **out_attr);
MP_NODISCARD mp_status_t mp_text_axes_lists(mp_text_t *t, const mp_attr_t **out_attr);
MP_NODISCARD mp_status_t mp_text_all_to_all(mp_text_t *t, const mp_attr_t **out_attr);
// An error when a mesh was referred to but not defined.
MP_NODISCARD mp_status_t mp_text_check_meshes(mp_text_t *t);

// ---- text_locs.c ----

// loc(...), if there is one; `*loc` stays otherwise.
MP_NODISCARD mp_status_t mp_text_optional_loc(mp_text_t *t, const mp_loc_t **loc);
// The alias of that name; NULL when there is none.
mp_text_alias_t *mp_text_find_alias(mp_text_t *t, mp_str_t name, bool is_type);
// Reads an alias's value, once.
MP_NODISCARD mp_status_t mp_text_read_alias(mp_text_t *t, mp_text_alias_t *alias);
MP_NODISCARD mp_status_t mp_text_find_aliases(mp_text_t *t, const char *text, size_t size);

// ---- text_scope.c ----

typedef struct {
  uint32_t scope_start, visible_start, num_defs;
} mp_text_scope_t;

// A region's names end with it; an isolated one does not see those outside.
mp_text_scope_t mp_text_open_scope(mp_text_t *t, bool isolated);
void mp_text_close_scope(mp_text_t *t, mp_text_scope_t scope);
MP_NODISCARD mp_status_t mp_text_define(mp_text_t *t, const mp_token_t *name, mp_value_t **values,
                                        uint32_t count);
bool mp_text_is_defined(const mp_text_t *t, mp_str_t name);
// %name or %name#k
MP_NODISCARD mp_status_t mp_text_use(mp_text_t *t, mp_value_t **out_value);

// ---- text_ops.c, text_forms.c ----

// An op while it is read.
typedef struct {
  mp_token_t token;  // its name
  mp_opcode_t code;
  MP_ARRAY(mp_value_t *) operands;
  mp_text_items_t attrs;  // as written
  MP_ARRAY(mp_block_t *) regions;
  mp_text_signature_t types;
} mp_text_op_t;

// The ops of a block up to its '}'.
MP_NODISCARD mp_status_t mp_text_ops(mp_text_t *t, mp_block_t *block);
// { ops } of a block whose arguments exist; names are the caller's to define inside the scope.
MP_NODISCARD mp_status_t mp_text_region_of(mp_text_t *t, mp_block_t *block);
// {^bb0(%a: T): ops}
MP_NODISCARD mp_status_t mp_text_generic_region(mp_text_t *t, bool isolated,
                                                mp_block_t **out_block);
// (%a: T, ...): tokens of the names, types; both in scratch.
MP_NODISCARD mp_status_t mp_text_block_args(mp_text_t *t, mp_text_tokens_t *names,
                                            mp_text_types_t *types);
// A block with these arguments; defines the names.
MP_NODISCARD mp_status_t mp_text_make_block(mp_text_t *t, const mp_text_tokens_t *names,
                                            const mp_text_types_t *types, mp_block_t **out_block);
MP_NODISCARD mp_status_t mp_text_operand(mp_text_t *t, mp_text_op_t *op);
// %a, %b, ... up to what is no value; none is allowed.
MP_NODISCARD mp_status_t mp_text_operands(mp_text_t *t, mp_text_op_t *op);
// {…}, if there is one, into op->attrs.
MP_NODISCARD mp_status_t mp_text_op_dict(mp_text_t *t, mp_text_op_t *op);
MP_NODISCARD mp_status_t mp_text_op_attr(mp_text_t *t, mp_text_op_t *op, mp_attr_name_t name,
                                         const mp_attr_t *value);
MP_NODISCARD mp_status_t mp_text_op_ints(mp_text_t *t, mp_text_op_t *op, mp_attr_name_t name,
                                         mp_index_list_t values);
// {…}? : (T) -> T
MP_NODISCARD mp_status_t mp_text_op_types(mp_text_t *t, mp_text_op_t *op);
// The op behind its name, in its pretty form.
MP_NODISCARD mp_status_t mp_text_pretty(mp_text_t *t, mp_text_op_t *op);

// ---- text_normal.c ----

// A dense constant or a list of integers (booleans) as INTS (BOOLS); others stay what they are.
MP_NODISCARD mp_status_t mp_text_to_ints(mp_text_t *t, const mp_token_t *token,
                                         const mp_attr_t *value, const mp_attr_t **out_value);
// From attributes as written to the IR's: structs taken apart, kinds by schema, defaults, order.
MP_NODISCARD mp_status_t mp_text_normalize(mp_text_t *t, const mp_text_op_t *op,
                                           mp_named_attr_t **out_attrs, uint32_t *out_count);

#endif  // MINIPOD_SIM_READERS_TEXT_TEXT_PARSER_H_
