// The bytecode reader on mutated programs; what it accepts goes through verifier, printer, passes,
// partitioner and planner, and is run when it is small.
//
// Random bytes die in the container. The mutator takes the container apart, changes one thing
// inside of a section (an attribute entry, a property list, a field of an operation, a string) and
// puts it together again with the right lengths. Fields of operations are found by walking them and
// replaced by others of their kind, so that many inputs are programs, if strange ones. Parents that
// are no programs mostly give way to inputs that were.
#include "sim/readers/bytecode/bytecode.h"
#include "tests/fuzz/fuzz.h"

enum { STRINGS, DIALECTS, ENTRIES, SIZES, IR, PROPERTIES = 8, NUM_SECTIONS = 9, MAX_ITEMS = 4096 };

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  return fuzz_set_limits(argc, argv);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  mp_module_t *module = NULL;
  mp_status_t status = mp_read_bytecode(data, size, &module);
  if (status == NULL) fuzz_compile(module, data, size);
  mp_status_release(status);
  return 0;
}

// ---- the format's numbers ----

// Bytes of the number at `at`, 0 if it is cut off.
static size_t read_varint(const uint8_t *at, const uint8_t *end, uint64_t *out_value) {
  if (at == end) return 0;
  size_t size = *at == 0 ? 9 : (size_t)__builtin_ctz(*at) + 1;
  if ((size_t)(end - at) < size) return 0;
  uint64_t value = 0;
  size_t skip = size == 9 ? 1 : 0;
  for (size_t i = skip; i < size; ++i) value |= (uint64_t)at[i] << (8 * (i - skip));
  *out_value = size == 9 ? value : value >> size;
  return size;
}

// Writes the number in at least `width` bytes.
static size_t write_varint(uint8_t *out, uint64_t value, size_t width) {
  size_t size = 1;
  while (size < 8 && value >> (7 * size) != 0) ++size;
  if (size == 8 && value >> 56 != 0) size = 9;
  if (size < width) size = width;
  if (size > 8) {
    out[0] = 0;
    for (size_t i = 0; i < 8; ++i) out[1 + i] = (uint8_t)(value >> (8 * i));
    return 9;
  }
  value = (value << 1 | 1) << (size - 1);
  for (size_t i = 0; i < size; ++i) out[i] = (uint8_t)(value >> (8 * i));
  return size;
}

// ---- a program taken apart ----

typedef struct {
  uint8_t *data;
  size_t size, capacity;
} mp_bytes_t;

static void put(mp_bytes_t *bytes, const void *data, size_t size) {
  if (size > bytes->capacity - bytes->size) size = bytes->capacity - bytes->size;
  memcpy(bytes->data + bytes->size, data, size);
  bytes->size += size;
}

static void put_varint(mp_bytes_t *bytes, uint64_t value) {
  uint8_t text[9];
  put(bytes, text, write_varint(text, value, 1));
}

typedef struct {
  const uint8_t *head;  // magic, version, producer
  size_t head_size;
  uint8_t order[16];  // section ids as they come
  size_t num_sections;
  const uint8_t *data[NUM_SECTIONS];
  size_t size[NUM_SECTIONS];
} mp_container_t;

static bool take_apart(const uint8_t *data, size_t size, mp_container_t *c) {
  const uint8_t *at = data, *end = data + size;
  uint64_t value = 0;
  memset(c, 0, sizeof(*c));
  if (!mp_is_bytecode(data, size)) return false;
  at += 4;
  at += read_varint(at, end, &value);
  at = memchr(at, 0, (size_t)(end - at));
  if (at == NULL) return false;
  ++at;
  c->head = data;
  c->head_size = (size_t)(at - data);
  while (at != end) {
    uint8_t id = *at++;
    size_t width = read_varint(at, end, &value);
    if (width == 0 || id >= NUM_SECTIONS || c->num_sections == sizeof(c->order)) return false;
    at += width;
    if (value > (size_t)(end - at)) return false;
    c->order[c->num_sections++] = id;
    c->data[id] = at;
    c->size[id] = (size_t)value;
    at += value;
  }
  return true;
}

static size_t put_together(const mp_container_t *c, uint8_t *out, size_t max_size) {
  mp_bytes_t bytes = {out, 0, max_size};
  put(&bytes, c->head, c->head_size);
  for (size_t i = 0; i < c->num_sections; ++i) {
    uint8_t id = c->order[i];
    put(&bytes, &id, 1);
    put_varint(&bytes, c->size[id]);
    put(&bytes, c->data[id], c->size[id]);
  }
  return bytes.size;
}

// ---- changes ----

static uint64_t new_number(uint64_t *state, uint64_t old) {
  static const uint64_t special[] = {0,
                                     1,
                                     2,
                                     3,
                                     6,
                                     63,
                                     64,
                                     127,
                                     128,
                                     255,
                                     65535,
                                     1u << 20,
                                     1u << 31,
                                     UINT64_MAX,
                                     UINT64_MAX - 1,
                                     UINT64_C(1) << 63,
                                     UINT64_C(1) << 62};
  switch (fuzz_below(state, 6)) {
    case 0:
      return old + 1;
    case 1:
      return old - 1;
    case 2:
      return special[fuzz_below(state, sizeof(special) / sizeof(special[0]))];
    case 3:
      return old ^ UINT64_C(1) << fuzz_below(state, 64);
    default:
      return fuzz_below(state, 64);
  }
}

// Changes one number, byte or run of bytes; `out` has room for `size` + 16 bytes. With `keep` the
// size stays.
static size_t change(uint64_t *state, const uint8_t *data, size_t size, bool keep, uint8_t *out) {
  memcpy(out, data, size);
  if (size == 0) return 0;
  size_t at = fuzz_below(state, size);
  // Entries begin with a code that says how the rest is to be read.
  if (at == 0 && fuzz_below(state, 4) != 0) at = size - 1;
  uint64_t value = 0;
  size_t width = read_varint(data + at, data + size, &value);
  switch (fuzz_below(state, keep || fuzz_below(state, 4) != 0 ? 3 : 6)) {
    case 0:
      out[at] = (uint8_t)hostile_random(state);
      return size;
    case 1: {  // a small number in one byte: most fields are one
      out[at] = (uint8_t)(fuzz_below(state, 64) << 1 | 1);
      return size;
    }
    case 2: {  // another place's bytes
      size_t from = fuzz_below(state, size), count = 1 + fuzz_below(state, 4);
      if (from + count > size || at + count > size) count = 1;
      memmove(out + at, data + from, count);
      return size;
    }
    case 3: {  // a number of any size
      uint8_t text[9];
      size_t written = write_varint(text, new_number(state, value), 1);
      if (width == 0) width = 1;
      memcpy(out + at, text, written);
      memcpy(out + at + written, data + at + width, size - at - width);
      return size + written - width;
    }
    case 4:
      memmove(out + at, data + at + 1, size - at - 1);
      return size - 1;
    default:
      out[at] = (uint8_t)(fuzz_below(state, 64) << 1 | 1);
      memcpy(out + at + 1, data + at, size - at);
      return size + 1;
  }
}

// The sizes of the attribute and type entries, in table order; each number with its flag.
static size_t entry_sizes(const mp_container_t *c, uint64_t *sizes) {
  const uint8_t *at = c->data[SIZES], *end = at + c->size[SIZES];
  uint64_t counts[2] = {0, 0}, value = 0;
  size_t total = 0, offset = 0;
  for (int i = 0; i < 2; ++i) at += read_varint(at, end, &counts[i]);
  for (int table = 0; table < 2; ++table) {
    for (uint64_t done = 0; done < counts[table];) {
      uint64_t group = 0;
      at += read_varint(at, end, &value);
      at += read_varint(at, end, &group);
      if (group == 0 || group > MAX_ITEMS - total || at == end) return 0;
      for (uint64_t i = 0; i < group; ++i, ++done) {
        size_t width = read_varint(at, end, &value);
        if (width == 0 || value >> 1 > c->size[ENTRIES] - offset) return 0;
        at += width;
        offset += (size_t)(value >> 1);
        sizes[total++] = value >> 1;
      }
    }
  }
  return total;
}

// Writes the table of sizes again with another size of entry `index`.
static size_t rewrite_sizes(const mp_container_t *c, size_t index, uint64_t size, uint8_t *out) {
  const uint8_t *at = c->data[SIZES], *end = at + c->size[SIZES];
  mp_bytes_t bytes = {out, 0, c->size[SIZES] + 16};
  uint64_t counts[2] = {0, 0}, value = 0;
  size_t total = 0;
  for (int i = 0; i < 2; ++i) {
    at += read_varint(at, end, &counts[i]);
    put_varint(&bytes, counts[i]);
  }
  for (int table = 0; table < 2; ++table) {
    for (uint64_t done = 0; done < counts[table];) {
      uint64_t group = 0;
      at += read_varint(at, end, &value);
      put_varint(&bytes, value);
      at += read_varint(at, end, &group);
      put_varint(&bytes, group);
      for (uint64_t i = 0; i < group; ++i, ++done, ++total) {
        at += read_varint(at, end, &value);
        put_varint(&bytes, total == index ? size << 1 | (value & 1) : value);
      }
    }
  }
  return bytes.size;
}

// Changes one attribute or type entry.
static bool change_entry(uint64_t *state, mp_container_t *c, uint8_t *entries, uint8_t *table) {
  static uint64_t sizes[MAX_ITEMS];
  if (c->data[SIZES] == NULL || c->data[ENTRIES] == NULL) return false;
  size_t count = entry_sizes(c, sizes), offset = 0;
  if (count == 0) return false;
  size_t index = fuzz_below(state, count);
  for (size_t i = 0; i < index; ++i) offset += (size_t)sizes[i];
  size_t size = (size_t)sizes[index], rest = c->size[ENTRIES] - offset - size;
  const uint8_t *data = c->data[ENTRIES];
  memcpy(entries, data, offset);
  size_t changed = change(state, data + offset, size, false, entries + offset);
  memcpy(entries + offset + changed, data + offset + size, rest);
  c->size[SIZES] = rewrite_sizes(c, index, changed, table);
  c->data[SIZES] = table;
  c->data[ENTRIES] = entries;
  c->size[ENTRIES] = offset + changed + rest;
  return true;
}

// Changes one list of properties; sizes and bytes alternate.
static bool change_property(uint64_t *state, mp_container_t *c, uint8_t *out) {
  if (c->data[PROPERTIES] == NULL) return false;
  const uint8_t *at = c->data[PROPERTIES], *end = at + c->size[PROPERTIES];
  mp_bytes_t bytes = {out, 0, c->size[PROPERTIES] + 32};
  uint64_t count = 0, size = 0;
  size_t width = read_varint(at, end, &count);
  if (width == 0 || count == 0) return false;
  at += width;
  put_varint(&bytes, count);
  uint64_t index = fuzz_below(state, (size_t)(count < MAX_ITEMS ? count : MAX_ITEMS));
  for (uint64_t i = 0; i < count; ++i) {
    width = read_varint(at, end, &size);
    if (width == 0 || size > (size_t)(end - at) - width) return false;
    at += width;
    uint8_t changed[256 + 16];
    size_t changed_size = (size_t)size;
    bool hit = i == index && size <= 256;
    if (hit) changed_size = change(state, at, (size_t)size, false, changed);
    put_varint(&bytes, changed_size);
    put(&bytes, hit ? changed : at, changed_size);
    at += size;
  }
  c->data[PROPERTIES] = out;
  c->size[PROPERTIES] = bytes.size;
  return true;
}

// ---- fields of operations ----

typedef enum { NAME, LOCATION, DICTIONARY, PROPERTY, TYPE, OPERAND, NUM_KINDS } mp_field_kind_t;

typedef struct {
  size_t offset, width;
  uint64_t value;
  mp_field_kind_t kind;
} mp_field_t;

enum { MAX_FIELDS = 1 << 16 };
static mp_field_t g_fields[MAX_FIELDS];

typedef struct {
  const uint8_t *start, *at, *end;
  size_t count;
  bool failed;
} mp_walk_t;

static uint64_t walk_number(mp_walk_t *w) {
  uint64_t value = 0;
  size_t width = read_varint(w->at, w->end, &value);
  if (width == 0) w->failed = true;
  w->at += width;
  return value;
}

static uint8_t walk_byte(mp_walk_t *w) {
  if (w->at == w->end) w->failed = true;
  return w->failed ? 0 : *w->at++;
}

static void walk_field(mp_walk_t *w, mp_field_kind_t kind) {
  const uint8_t *at = w->at;
  uint64_t value = walk_number(w);
  if (w->failed || w->count == MAX_FIELDS) return;
  g_fields[w->count++] = (mp_field_t){(size_t)(at - w->start), (size_t)(w->at - at), value, kind};
}

static void walk_list(mp_walk_t *w, mp_field_kind_t kind) {
  for (uint64_t n = walk_number(w); n > 0 && !w->failed; --n) walk_field(w, kind);
}

static void walk_use_lists(mp_walk_t *w, uint64_t num_values) {
  uint64_t lists = num_values > 1 ? walk_number(w) : 1;
  for (; lists > 0 && !w->failed; --lists) {
    if (num_values > 1) walk_number(w);
    for (uint64_t uses = walk_number(w) >> 1; uses > 0 && !w->failed; --uses) walk_number(w);
  }
}

static void walk_block(mp_walk_t *w, int depth);

static void walk_regions(mp_walk_t *w, int depth) {
  uint64_t head = walk_number(w);
  if ((head & 1) != 0) {  // isolated: in a section of their own
    if (walk_byte(w) != IR) w->failed = true;
    walk_number(w);
  }
  for (uint64_t n = head >> 1; n > 0 && !w->failed; --n) {
    if (walk_number(w) != 1) continue;
    walk_number(w);
    walk_block(w, depth + 1);
  }
}

static void walk_op(mp_walk_t *w, int depth) {
  walk_field(w, NAME);
  uint8_t mask = walk_byte(w);
  uint64_t num_results = 0;
  walk_field(w, LOCATION);
  if (mask & 0x01) walk_field(w, DICTIONARY);
  if (mask & 0x40) walk_field(w, PROPERTY);
  if (mask & 0x02) {
    size_t before = w->count;
    walk_list(w, TYPE);
    num_results = w->count - before;
  }
  if (mask & 0x04) walk_list(w, OPERAND);
  if (mask & 0x20) walk_use_lists(w, num_results);
  if (mask & 0x10) walk_regions(w, depth);
}

// Only what versions 5 and 6 look like; others fail somewhere and are changed blindly.
static void walk_block(mp_walk_t *w, int depth) {
  if (depth > 64) w->failed = true;
  uint64_t head = walk_number(w);
  if ((head & 1) != 0) {
    uint64_t num_args = walk_number(w);
    for (uint64_t i = 0; i < num_args && !w->failed; ++i) {
      if ((walk_number(w) & 1) != 0) walk_number(w);
    }
    if (walk_byte(w) != 0) walk_use_lists(w, num_args);
  }
  for (uint64_t n = head >> 1; n > 0 && !w->failed; --n) walk_op(w, depth);
}

// Replaces one field by the value of another of its kind, or by a number near to it; it keeps its
// width, as lengths of regions depend on it.
static bool change_field(uint64_t *state, mp_container_t *c, uint8_t *out) {
  if (c->data[IR] == NULL) return false;
  mp_walk_t w = {c->data[IR], c->data[IR], c->data[IR] + c->size[IR], 0, false};
  walk_block(&w, 0);
  if (w.failed || w.count == 0) return false;
  const mp_field_t *field = &g_fields[fuzz_below(state, w.count)];
  uint64_t value = field->value;
  if (fuzz_below(state, 4) != 0) {
    for (int tries = 0; tries < 32; ++tries) {
      const mp_field_t *other = &g_fields[fuzz_below(state, w.count)];
      if (other->kind != field->kind || other->value == field->value) continue;
      value = other->value;
      break;
    }
  } else {
    value += 4 - fuzz_below(state, 9);
  }
  uint8_t text[9];
  if (write_varint(text, value, field->width) != field->width) return false;
  memcpy(out, c->data[IR], c->size[IR]);
  memcpy(out + field->offset, text, field->width);
  c->data[IR] = out;
  return true;
}

// Changes a section as a whole. The operations keep their size: regions have lengths of their own.
static bool change_section(uint64_t *state, mp_container_t *c, uint8_t id, uint8_t *out) {
  if (c->data[id] == NULL) return false;
  c->size[id] = change(state, c->data[id], c->size[id], id == IR || id == STRINGS, out);
  c->data[id] = out;
  return true;
}

static bool change_container(uint64_t *state, mp_container_t *c, uint8_t *room, uint8_t *room2) {
  static const uint8_t sections[] = {DIALECTS, STRINGS, SIZES, IR};
  size_t what = fuzz_below(state, 32);
  if (what < 2) return change_section(state, c, sections[fuzz_below(state, 4)], room);
  if (what < 8) return change_property(state, c, room);
  if (what < 18) return change_entry(state, c, room, room2);
  return change_field(state, c, room);
}

static bool is_program(const uint8_t *data, size_t size) {
  mp_module_t *module = NULL;
  mp_status_t status = mp_read_bytecode(data, size, &module);
  bool accepted = status == NULL;
  mp_status_release(status);
  mp_module_release(module);
  return accepted;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed) {
  static uint8_t room[1 << 20], room2[1 << 20], result[1 << 20];
  uint64_t state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
  // Some inputs are mutated blindly, so that the container's own checks are reached too.
  bool blind = fuzz_below(&state, 64) == 0 || size > sizeof(room) / 4 || max_size > sizeof(result);
  if (blind) return LLVMFuzzerMutate(data, size, max_size);
  if (fuzz_below(&state, 16) != 0 && !is_program(data, size)) {
    size_t picked = fuzz_pool_pick(&state, data, max_size);
    if (picked != 0) size = picked;
  }
  size_t rounds = 1 + fuzz_below(&state, 4);
  for (size_t i = 0; i < rounds; ++i) {
    mp_container_t container;
    if (!take_apart(data, size, &container)) return LLVMFuzzerMutate(data, size, max_size);
    if (!change_container(&state, &container, room, room2)) continue;
    size = put_together(&container, result, max_size);
    memcpy(data, result, size);
  }
  return size;
}
