// Locations.
#include "sim/readers/text/text_parser.h"

static mp_status_t text_locs_read_loc(mp_text_t *t, const mp_loc_t **out_loc);

static mp_status_t text_locs_read_u32(mp_text_t *t, uint32_t *out_value) {
  int64_t value;
  MP_RETURN_IF_ERROR(mp_text_i64(t, &value));
  if (value < 0 || value > UINT32_MAX)
    return mp_text_error(t, &t->last, MP_INVALID_ARGUMENT, "a line or column is too large");
  *out_value = (uint32_t)value;
  return NULL;
}

// :3:4, :3:4 to :5, :3:4 to 5:6
static mp_status_t text_locs_read_position(mp_text_t *t, mp_loc_t *loc) {
  loc->kind = MP_LOC_FILE;
  MP_RETURN_IF_ERROR(mp_text_expect(t, ':'));
  MP_RETURN_IF_ERROR(text_locs_read_u32(t, &loc->line));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ':'));
  MP_RETURN_IF_ERROR(text_locs_read_u32(t, &loc->column));
  if (!mp_text_accept_word(t, "to")) return NULL;
  loc->end_line = loc->line;
  if (!mp_text_is(t, ':')) MP_RETURN_IF_ERROR(text_locs_read_u32(t, &loc->end_line));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ':'));
  return text_locs_read_u32(t, &loc->end_column);
}

static mp_status_t text_locs_set_children(mp_text_t *t, mp_loc_t *loc,
                                          const mp_loc_t *const *children, uint32_t count) {
  loc->children = mp_arena_copy(t->arena, children, count * sizeof(children[0]));
  MP_RETURN_IF_NULL(loc->children);
  loc->num_children = count;
  return NULL;
}

static mp_status_t text_locs_read_string_loc(mp_text_t *t, mp_loc_t *loc) {
  MP_RETURN_IF_ERROR(mp_text_string(t, &loc->text));
  if (mp_text_is(t, ':')) return text_locs_read_position(t, loc);
  loc->kind = MP_LOC_NAME;
  if (!mp_text_accept(t, '(')) return NULL;
  const mp_loc_t *child = NULL;
  MP_RETURN_IF_ERROR(text_locs_read_loc(t, &child));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ')'));
  return text_locs_set_children(t, loc, &child, 1);
}

static mp_status_t text_locs_read_call_site(mp_text_t *t, mp_loc_t *loc) {
  const mp_loc_t *children[2];
  loc->kind = MP_LOC_CALL_SITE;
  MP_RETURN_IF_ERROR(mp_text_expect(t, '('));
  MP_RETURN_IF_ERROR(text_locs_read_loc(t, &children[0]));
  MP_RETURN_IF_ERROR(mp_text_expect_word(t, "at"));
  MP_RETURN_IF_ERROR(text_locs_read_loc(t, &children[1]));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ')'));
  return text_locs_set_children(t, loc, children, 2);
}

// fused["a", "b"] or fused<metadata>["a", "b"]; the metadata are read and dropped.
static mp_status_t text_locs_read_fused(mp_text_t *t, mp_loc_t *loc) {
  loc->kind = MP_LOC_FUSED;
  if (mp_text_accept(t, '<')) {
    const mp_attr_t *metadata = NULL;
    MP_RETURN_IF_ERROR(mp_text_attr(t, &metadata));
    MP_RETURN_IF_ERROR(mp_text_expect(t, '>'));
  }
  MP_ARRAY(const mp_loc_t *) children = {0};
  MP_TEXT_LIST(t, '[', ']', const mp_loc_t *, &children, text_locs_read_loc);
  return text_locs_set_children(t, loc, children.items, children.count);
}

static mp_status_t text_locs_read_loc_alias(mp_text_t *t, const mp_loc_t **out_loc) {
  mp_text_alias_t *alias = mp_text_find_alias(t, t->tok.text, false);
  if (alias == NULL)
    return mp_text_error(t, &t->tok, MP_INVALID_ARGUMENT, "the location '#%.*s' is not defined",
                         MP_STR_ARG(t->tok.text));
  MP_RETURN_IF_ERROR(mp_text_read_alias(t, alias, mp_text_alias_value));
  if (alias->loc == NULL) return mp_text_expected(t, "a location");
  mp_text_advance(t);
  *out_loc = alias->loc;
  return NULL;
}

static mp_status_t text_locs_read_new_loc(mp_text_t *t, const mp_loc_t **out_loc) {
  mp_loc_t *loc = MP_ARENA_NEW(t->arena, mp_loc_t);
  MP_RETURN_IF_NULL(loc);
  if (t->tok.kind == MP_TOKEN_STRING)
    MP_RETURN_IF_ERROR(text_locs_read_string_loc(t, loc));
  else if (mp_text_accept_word(t, "callsite"))
    MP_RETURN_IF_ERROR(text_locs_read_call_site(t, loc));
  else if (mp_text_accept_word(t, "fused"))
    MP_RETURN_IF_ERROR(text_locs_read_fused(t, loc));
  else if (!mp_text_accept_word(t, "unknown"))
    return mp_text_expected(t, "a location");
  *out_loc = loc;
  return NULL;
}

static mp_status_t text_locs_read_loc(mp_text_t *t, const mp_loc_t **out_loc) {
  MP_RETURN_IF_ERROR(mp_text_enter(t));
  if (t->tok.kind == MP_TOKEN_HASH)
    MP_RETURN_IF_ERROR(text_locs_read_loc_alias(t, out_loc));
  else
    MP_RETURN_IF_ERROR(text_locs_read_new_loc(t, out_loc));
  mp_text_leave(t);
  return NULL;
}

mp_status_t mp_text_optional_loc(mp_text_t *t, const mp_loc_t **loc) {
  if (!mp_text_is_word(t, "loc")) return NULL;
  mp_text_advance(t);
  MP_RETURN_IF_ERROR(mp_text_expect(t, '('));
  MP_RETURN_IF_ERROR(text_locs_read_loc(t, loc));
  return mp_text_expect(t, ')');
}

mp_status_t mp_text_loc_or_place(mp_text_t *t, const mp_token_t *token, mp_str_t file,
                                 const mp_loc_t **out_loc) {
  *out_loc = NULL;
  MP_RETURN_IF_ERROR(mp_text_optional_loc(t, out_loc));
  if (*out_loc != NULL) return NULL;
  mp_loc_t *loc = MP_ARENA_NEW(t->arena, mp_loc_t);
  MP_RETURN_IF_NULL(loc);
  *loc =
      (mp_loc_t){.kind = MP_LOC_FILE, .text = file, .line = token->line, .column = token->column};
  *out_loc = loc;
  return NULL;
}
