// The container: sections, strings, dialects, operation names, properties, and where in the file
// the entries of the attribute and type tables lie.
#include "sim/readers/bytecode/bytecode.h"
#include "sim/readers/bytecode/bytecode_reader.h"

enum { NUM_MAGIC = 4 };
static const uint8_t g_magic[NUM_MAGIC] = {'M', 'L', 0xEF, 'R'};

bool mp_is_bytecode(const void *data, size_t size) {
  return size >= NUM_MAGIC && memcmp(data, g_magic, NUM_MAGIC) == 0;
}

// Strings come late in a file but are needed first, so all sections are found before any is read.
static mp_status_t bytecode_sections_index_sections(mp_bc_reader_t *r) {
  mp_bc_cursor_t c = r->whole;
  if (!mp_is_bytecode(c.at, mp_bc_left(&c))) {
    return mp_bc_fail(&c, "not bytecode: it does not begin with 'ML\\xEFR'");
  }
  c.at += NUM_MAGIC;
  mp_bc_cursor_t before = c;
  MP_RETURN_IF_ERROR(mp_bc_varint(&c, &r->version));
  if (r->version > MP_BC_NEWEST_VERSION) {
    return mp_bc_unknown(&before, "bytecode version %llu is newer than %d, the newest that is read",
                         (unsigned long long)r->version, MP_BC_NEWEST_VERSION);
  }
  mp_str_t producer;
  MP_RETURN_IF_ERROR(mp_bc_cstring(&c, &producer));
  while (c.at != c.end) {
    mp_bc_cursor_t data, header = c;
    uint8_t id = 0;
    MP_RETURN_IF_ERROR(mp_bc_section(&c, &id, &data));
    if (id >= MP_BC_SECTION_COUNT || id == MP_BC_SECTION_DIALECT_VERSION) {
      return mp_bc_fail(&header, "there is no section %u", id);
    }
    if (r->present[id]) return mp_bc_fail(&header, "section %u comes twice", id);
    r->present[id] = true;
    r->sections[id] = data;
  }
  for (int id = MP_BC_SECTION_STRINGS; id <= MP_BC_SECTION_IR; ++id) {
    if (!r->present[id]) return mp_bc_fail(&c, "section %d is missing", id);
  }
  return NULL;
}

// The section begins with the strings' sizes, NUL included, from the last string to the first. Then
// come zeros as padding, and then the characters of the strings in order.
static mp_status_t bytecode_sections_read_strings(mp_bc_reader_t *r) {
  mp_bc_cursor_t c = r->sections[MP_BC_SECTION_STRINGS];
  size_t count = 0;
  MP_RETURN_IF_ERROR(mp_bc_count(&c, "strings", &count));
  r->strings = MP_ARENA_ARRAY(r->scratch, mp_str_t, count);
  MP_RETURN_IF_NULL(r->strings);
  const uint8_t *end = c.end;
  for (size_t i = count; i-- > 0;) {
    uint64_t size = 0;
    MP_RETURN_IF_ERROR(mp_bc_varint(&c, &size));
    if (size == 0 || end < c.at || size > (size_t)(end - c.at)) {
      return mp_bc_fail(&c, "string %zu has %llu bytes", i, (unsigned long long)size);
    }
    end -= size;
    if (end[size - 1] != 0) return mp_bc_fail(&c, "string %zu does not end in NUL", i);
    r->strings[i] = (mp_str_t){(const char *)end, (size_t)size - 1};
  }
  if (end < c.at) return mp_bc_fail(&c, "the strings' sizes and characters overlap");
  for (; c.at != end; ++c.at) {
    if (*c.at != 0) return mp_bc_fail(&c, "bytes that belong to no string");
  }
  // The strings are copied, because the caller frees the bytes. One copy serves every name in the
  // module.
  size_t size = (size_t)(c.end - end);
  const char *copy = mp_arena_copy(r->arena, end, size);
  MP_RETURN_IF_NULL(copy);
  for (size_t i = 0; i < count; ++i)
    r->strings[i].data = copy + (r->strings[i].data - (const char *)end);
  r->num_strings = count;
  return NULL;
}

static mp_status_t bytecode_sections_string_at(mp_bc_reader_t *r, const mp_bc_cursor_t *c,
                                               uint64_t index, mp_str_t *out_text) {
  if (index >= r->num_strings) {
    return mp_bc_fail(c, "string %llu of %zu is referred to", (unsigned long long)index,
                      r->num_strings);
  }
  *out_text = r->strings[index];
  return NULL;
}

mp_status_t mp_bc_string(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_str_t *out_text) {
  mp_bc_cursor_t before = *c;
  uint64_t index = 0;
  MP_RETURN_IF_ERROR(mp_bc_varint(c, &index));
  return bytecode_sections_string_at(r, &before, index, out_text);
}

// The section has sizes but no offsets: each entry starts where the one before ends.
static mp_status_t bytecode_sections_read_properties(mp_bc_reader_t *r) {
  if (!r->present[MP_BC_SECTION_PROPERTIES]) {
    if (r->version < 5) return NULL;
    return mp_bc_fail(&r->whole, "section %d (properties) is missing", MP_BC_SECTION_PROPERTIES);
  }
  mp_bc_cursor_t c = r->sections[MP_BC_SECTION_PROPERTIES];
  size_t count = 0;
  MP_RETURN_IF_ERROR(mp_bc_count(&c, "properties", &count));
  r->properties = MP_ARENA_ARRAY(r->scratch, mp_bc_cursor_t, count);
  MP_RETURN_IF_NULL(r->properties);
  for (size_t i = 0; i < count; ++i) {
    uint64_t size = 0;
    MP_RETURN_IF_ERROR(mp_bc_varint(&c, &size));
    r->properties[i] = c;
    const uint8_t *bytes = NULL;
    MP_RETURN_IF_ERROR(mp_bc_bytes(&c, size, &bytes));
    r->properties[i].end = c.at;
  }
  r->num_properties = count;
  return mp_bc_finish(&c, "the properties section");
}

// An unknown dialect is no error here: its entries and operations are refused when they are used.
static mp_bc_dialect_t bytecode_sections_dialect_from_name(mp_str_t name) {
  static const char *const names[] = {"builtin", "vhlo", "sdy", "stablehlo"};
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    if (mp_str_is(name, names[i])) return (mp_bc_dialect_t)i;
  }
  return MP_BC_OTHER_DIALECT;
}

static mp_status_t bytecode_sections_read_dialect(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                  mp_bc_dialect_entry_t *out_dialect) {
  mp_bc_cursor_t before = *c;
  uint64_t index = 0;
  bool versioned = false;
  if (r->version >= 1) {
    MP_RETURN_IF_ERROR(mp_bc_flagged(c, &index, &versioned));
  } else {
    MP_RETURN_IF_ERROR(mp_bc_varint(c, &index));
  }
  MP_RETURN_IF_ERROR(bytecode_sections_string_at(r, &before, index, &out_dialect->name));
  out_dialect->dialect = bytecode_sections_dialect_from_name(out_dialect->name);
  if (!versioned) return NULL;
  // The version of a dialect is skipped: the dialects that are read give every new form of an entry
  // a code of its own.
  uint8_t id = 0;
  mp_bc_cursor_t version;
  before = *c;
  MP_RETURN_IF_ERROR(mp_bc_section(c, &id, &version));
  if (id == MP_BC_SECTION_DIALECT_VERSION) return NULL;
  return mp_bc_fail(&before, "section %u stands in the place of a dialect's version", id);
}

// Reads the head of a group, which is a dialect and a count, and checks both.
static mp_status_t bytecode_sections_read_group(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                const char *what, uint32_t *out_dialect,
                                                size_t *out_count) {
  mp_bc_cursor_t before = *c;
  uint64_t dialect = 0;
  MP_RETURN_IF_ERROR(mp_bc_varint(c, &dialect));
  if (dialect >= r->num_dialects) {
    return mp_bc_fail(&before, "dialect %llu of %zu is referred to", (unsigned long long)dialect,
                      r->num_dialects);
  }
  *out_dialect = (uint32_t)dialect;
  return mp_bc_count(c, what, out_count);
}

// Names come in groups, one per dialect, and are numbered through all groups.
static mp_status_t bytecode_sections_read_op_names(mp_bc_reader_t *r, mp_bc_cursor_t *c) {
  // A name takes at least a byte, so the bytes that are left bound the number of names.
  r->op_names = MP_ARENA_ARRAY(r->scratch, mp_bc_op_name_t, mp_bc_left(c));
  MP_RETURN_IF_NULL(r->op_names);
  uint64_t hint = 0;
  if (r->version >= 4) MP_RETURN_IF_ERROR(mp_bc_varint(c, &hint));
  while (c->at != c->end) {
    uint32_t dialect = 0;
    size_t count = 0;
    MP_RETURN_IF_ERROR(bytecode_sections_read_group(r, c, "operation names", &dialect, &count));
    for (size_t i = 0; i < count; ++i) {
      mp_bc_cursor_t before = *c;
      mp_bc_op_name_t *name = &r->op_names[r->num_op_names];
      uint64_t index = 0;
      name->registered = true;
      if (r->version >= 5) {
        MP_RETURN_IF_ERROR(mp_bc_flagged(c, &index, &name->registered));
      } else {
        MP_RETURN_IF_ERROR(mp_bc_varint(c, &index));
      }
      name->dialect = dialect;
      MP_RETURN_IF_ERROR(bytecode_sections_string_at(r, &before, index, &name->name));
      name->row = mp_bc_op_find(r->dialects[dialect].dialect, name->name);
      ++r->num_op_names;
    }
  }
  return NULL;
}

static mp_status_t bytecode_sections_read_dialects(mp_bc_reader_t *r) {
  mp_bc_cursor_t c = r->sections[MP_BC_SECTION_DIALECTS];
  size_t count = 0;
  MP_RETURN_IF_ERROR(mp_bc_count(&c, "dialects", &count));
  r->dialects = MP_ARENA_ARRAY(r->scratch, mp_bc_dialect_entry_t, count);
  MP_RETURN_IF_NULL(r->dialects);
  for (size_t i = 0; i < count; ++i)
    MP_RETURN_IF_ERROR(bytecode_sections_read_dialect(r, &c, &r->dialects[i]));
  r->num_dialects = count;
  return bytecode_sections_read_op_names(r, &c);
}

// Reads where the entries of one table are. Their bytes follow each other in the table's order;
// `data` moves over them.
static mp_status_t bytecode_sections_read_extents(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                  mp_bc_cursor_t *data, mp_bc_entry_t *entries,
                                                  size_t count) {
  for (size_t at = 0; at < count;) {
    uint32_t dialect = 0;
    size_t group = 0;
    MP_RETURN_IF_ERROR(bytecode_sections_read_group(r, c, "table entries", &dialect, &group));
    if (group > count - at) return mp_bc_fail(c, "a group of entries passes the table's end");
    for (size_t i = 0; i < group; ++i, ++at) {
      uint64_t size = 0;
      const uint8_t *bytes = NULL;
      mp_bc_entry_t *entry = &entries[at];
      MP_RETURN_IF_ERROR(mp_bc_flagged(c, &size, &entry->custom));
      entry->bytes = *data;
      entry->dialect = r->dialects[dialect].dialect;
      entry->dialect_name = r->dialects[dialect].name;
      MP_RETURN_IF_ERROR(mp_bc_bytes(data, size, &bytes));
      entry->bytes.end = data->at;
    }
  }
  return NULL;
}

// Entries are only found here, not decoded: that happens when something refers to them.
static mp_status_t bytecode_sections_read_tables(mp_bc_reader_t *r) {
  mp_bc_cursor_t c = r->sections[MP_BC_SECTION_OFFSETS];
  mp_bc_cursor_t data = r->sections[MP_BC_SECTION_ENTRIES];
  MP_RETURN_IF_ERROR(mp_bc_count(&c, "attributes", &r->num_attrs));
  MP_RETURN_IF_ERROR(mp_bc_count(&c, "types", &r->num_types));
  r->attrs = MP_ARENA_ARRAY(r->scratch, mp_bc_entry_t, r->num_attrs);
  MP_RETURN_IF_NULL(r->attrs);
  r->types = MP_ARENA_ARRAY(r->scratch, mp_bc_entry_t, r->num_types);
  MP_RETURN_IF_NULL(r->types);
  MP_RETURN_IF_ERROR(bytecode_sections_read_extents(r, &c, &data, r->attrs, r->num_attrs));
  MP_RETURN_IF_ERROR(bytecode_sections_read_extents(r, &c, &data, r->types, r->num_types));
  MP_RETURN_IF_ERROR(mp_bc_finish(&c, "the table of entry sizes"));
  return mp_bc_finish(&data, "the table of entries");
}

mp_status_t mp_bc_read_sections(mp_bc_reader_t *r) {
  MP_RETURN_IF_ERROR(bytecode_sections_index_sections(r));
  MP_RETURN_IF_ERROR(bytecode_sections_read_strings(r));
  MP_RETURN_IF_ERROR(bytecode_sections_read_properties(r));
  MP_RETURN_IF_ERROR(bytecode_sections_read_dialects(r));
  // Resources are not read: no attribute of VHLO, Shardy or StableHLO refers to one, and the
  // builtin attribute that does is refused where it is used.
  return bytecode_sections_read_tables(r);
}
