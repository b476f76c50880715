#include "sim/ir/loc.h"

#include <stddef.h>

// Locations share parts, so that a small program can spell a tree of any size. A search therefore
// visits no more nodes than this.
enum { MAX_VISITS = 256 };

typedef struct {
  const mp_loc_t *name;
  const mp_loc_t *file;
  int visits;
} search_t;

// The readers bound the depth of locations, and so the recursion here.
static void loc_search(search_t *s, const mp_loc_t *loc) {
  if (loc == NULL || (s->name != NULL && s->file != NULL) || s->visits++ >= MAX_VISITS) return;
  if (loc->kind == MP_LOC_NAME && s->name == NULL && loc->text.size > 0) s->name = loc;
  if (loc->kind == MP_LOC_FILE && s->file == NULL) s->file = loc;
  for (uint32_t i = 0; i < loc->num_children; ++i) loc_search(s, loc->children[i]);
}

// The last part of a path, such as "psum" of "jit(f)/transpose(a/b)/psum". Slashes in parentheses
// do not count.
static mp_str_t loc_last_part(mp_str_t path) {
  int depth = 0;
  for (size_t i = path.size; i-- > 0;) {
    char c = path.data[i];
    if (c == ')' || c == ']' || c == '}') ++depth;
    if (c == '(' || c == '[' || c == '{') --depth;
    if (c == '/' && depth == 0 && i + 1 < path.size)
      return (mp_str_t){path.data + i + 1, path.size - i - 1};
  }
  return path;
}

void mp_loc_find(const mp_loc_t *loc, const mp_loc_t **out_name, const mp_loc_t **out_file) {
  search_t s = {0};
  loc_search(&s, loc);
  *out_name = s.name;
  *out_file = s.file;
}

static bool loc_take(const mp_loc_t *loc, uint64_t *room) {
  for (;; loc = loc->children[loc->num_children - 1]) {
    if (*room == 0) return false;
    --*room;
    if (loc->num_children == 0) return true;
    for (uint32_t i = 0; i + 1 < loc->num_children; ++i)
      if (!loc_take(loc->children[i], room)) return false;
  }
}

bool mp_loc_count(const mp_loc_t *loc, uint64_t *room) {
  const bool has_room = loc_take(loc, room);
  if (!has_room) *room = 0;
  return has_room;
}

void mp_loc_describe(const mp_loc_t *loc, mp_strbuf_t *out) {
  search_t s = {0};
  loc_search(&s, loc);
  if (s.name != NULL) {
    mp_str_t part = loc_last_part(s.name->text);
    mp_strbuf_append(out, part.data, part.size);
  }
  if (s.file != NULL) {
    if (s.name != NULL) mp_strbuf_puts(out, " at ");
    mp_strbuf_append(out, s.file->text.data, s.file->text.size);
    if (s.file->line > 0) mp_strbuf_printf(out, ":%u", s.file->line);
    if (s.file->line > 0 && s.file->column > 0) mp_strbuf_printf(out, ":%u", s.file->column);
  }
  if (s.name == NULL && s.file == NULL) mp_strbuf_puts(out, "unknown location");
}
