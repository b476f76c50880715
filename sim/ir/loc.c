#include "sim/ir/loc.h"

#include <ctype.h>
#include <stddef.h>

// Locations share parts, so that a small program can spell a tree of any size. A search therefore
// visits no more nodes than this; JAX's locations have three for each of up to 100 frames.
enum { MAX_VISITS = 1024 };

typedef struct {
  mp_loc_found_t found;
  const mp_loc_t *innermost;
  bool wants_any;  // any file will do
  int visits;
} search_t;

// ---- Installed packages ----

// How much of a path is the folder of packages in it, up to its end: ".../site-packages/".
static size_t loc_packages(mp_str_t path) {
  static const char *const folders[] = {"/site-packages/", "/dist-packages/"};
  for (size_t end = path.size; end > 0; --end) {
    for (uint32_t i = 0; i < sizeof(folders) / sizeof(*folders); ++i) {
      if (mp_str_ends_with((mp_str_t){path.data, end}, folders[i])) return end;
    }
  }
  return 0;
}

// The same of Python's standard library: ".../lib/python3.12/".
static size_t loc_standard_library(mp_str_t path) {
  static const char *const folders[] = {"/lib/python", "/lib64/python"};
  for (size_t begin = 0; begin < path.size; ++begin) {
    const mp_str_t rest = {path.data + begin, path.size - begin};
    for (uint32_t i = 0; i < sizeof(folders) / sizeof(*folders); ++i) {
      if (!mp_str_starts_with(rest, folders[i])) continue;
      size_t at = strlen(folders[i]);
      while (at < rest.size && (isdigit((unsigned char)rest.data[at]) || rest.data[at] == '.'))
        ++at;
      if (at < rest.size && at > strlen(folders[i]) && rest.data[at] == '/') return begin + at + 1;
    }
  }
  return 0;
}

// Scripts that installers write for packages: "/usr/bin/pytest".
static bool loc_is_entry_point(mp_str_t path) {
  size_t name = path.size;
  while (name > 0 && path.data[name - 1] != '/') --name;
  if (!mp_str_ends_with((mp_str_t){path.data, name}, "/bin/")) return false;
  return name == path.size || memchr(path.data + name, '.', path.size - name) == NULL;
}

static bool loc_is_installed(mp_str_t path) {
  return mp_str_starts_with(path, "<frozen ") || loc_packages(path) != 0 ||
         loc_standard_library(path) != 0 || loc_is_entry_point(path);
}

// ---- Searching ----

static bool loc_is_done(const search_t *s) {
  if (s->visits >= MAX_VISITS) return true;
  if (s->wants_any) return s->innermost != NULL;
  return s->found.name != NULL && s->found.file != NULL;
}

static bool loc_is_marked(mp_str_t name) {
  const mp_str_t mark = MP_STR(MP_LOC_PATH_MARK);
  return name.size > mark.size && memcmp(name.data, mark.data, mark.size) == 0;
}

static void loc_visit(search_t *s, const mp_loc_t *loc) {
  s->visits += 1;
  if (loc->kind == MP_LOC_NAME && loc->text.size > 0 &&
      (s->found.name == NULL || loc_is_marked(loc->text))) {
    s->found.name = loc;
  }
  if (loc->kind != MP_LOC_FILE) return;
  if (s->innermost == NULL) s->innermost = loc;
  if (s->found.file == NULL && !s->wants_any && !loc_is_installed(loc->text)) s->found.file = loc;
}

// Call stacks, which are nested in their last children, may be deep; else the readers bound the
// depth of locations, and so the recursion here.
static void loc_search(search_t *s, const mp_loc_t *loc) {
  while (loc != NULL && !loc_is_done(s)) {
    loc_visit(s, loc);
    if (loc->num_children == 0) return;
    const uint32_t last = loc->num_children - 1;
    for (uint32_t i = 0; i < last; ++i) {
      loc_search(s, loc->children[i]);
      // Of several stacks, the first that has a frame is the one that is shown.
      if (loc->kind == MP_LOC_FUSED && s->innermost != NULL) return;
    }
    loc = loc->children[last];
  }
}

mp_loc_found_t mp_loc_find(const mp_loc_t *loc) {
  search_t s = {0};
  loc_search(&s, loc);
  if (s.found.file == NULL) {
    s.found.file = s.innermost;
  } else if (s.found.file != s.innermost) {
    s.found.library = s.innermost;
  }
  return s.found;
}

mp_str_t mp_loc_path(const mp_loc_t *loc) {
  const mp_loc_t *name = mp_loc_find(loc).name;
  if (name == NULL) return MP_STR("");
  const size_t mark = loc_is_marked(name->text) ? strlen(MP_LOC_PATH_MARK) : 0;
  return (mp_str_t){name->text.data + mark, name->text.size - mark};
}

bool mp_loc_has_file(const mp_loc_t *loc) {
  search_t s = {.wants_any = true};
  loc_search(&s, loc);
  return s.innermost != NULL;
}

// ---- Describing ----

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

static void loc_put_file(const mp_loc_t *file, mp_strbuf_t *out) {
  size_t folder = loc_packages(file->text);
  if (folder == 0) folder = loc_standard_library(file->text);
  mp_strbuf_put_visible(out, (mp_str_t){file->text.data + folder, file->text.size - folder});
  if (file->line > 0) mp_strbuf_printf(out, ":%u", file->line);
  if (file->line > 0 && file->column > 0) mp_strbuf_printf(out, ":%u", file->column);
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
  const mp_loc_found_t found = mp_loc_find(loc);
  if (found.name != NULL) mp_strbuf_put_visible(out, loc_last_part(mp_loc_path(loc)));
  if (found.file != NULL) {
    if (found.name != NULL) mp_strbuf_puts(out, " at ");
    loc_put_file(found.file, out);
  }
  if (found.library != NULL) {
    mp_strbuf_puts(out, ", in ");
    loc_put_file(found.library, out);
  }
  if (found.name == NULL && found.file == NULL) mp_strbuf_puts(out, "unknown location");
}

mp_status_t mp_loc_verror(mp_status_code_t code, const char *op, const mp_loc_t *loc,
                          mp_str_t within, const char *format, va_list args) {
  mp_status_t plain = mp_status_vmake(code, format, args);
  if (plain == mp_status_out_of_memory()) return plain;  // must keep its own code
  mp_strbuf_t where;
  mp_strbuf_init(&where);
  if (loc != NULL && loc->kind != MP_LOC_UNKNOWN) {
    mp_strbuf_puts(&where, ", ");
    mp_loc_describe(loc, &where);
  }
  if (within.size != 0) {
    mp_strbuf_puts(&where, " (");
    mp_strbuf_put_visible(&where, within);
    mp_strbuf_putc(&where, ')');
  }
  mp_status_t full =
      mp_status_make(code, "%s [%s%s]", mp_status_message(plain), op, mp_strbuf_text(&where));
  mp_strbuf_deinit(&where);
  mp_status_release(plain);
  return full;
}
