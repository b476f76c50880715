// The HLO reader on mutated programs; what it accepts goes through verifier, printer, passes,
// partitioner and planner, and is run when it is small.
//
// The mutator takes the message apart into a tree of fields, changes a few of them, and puts it
// together again with the right lengths. It knows which fields are messages, lists and opcodes, and
// takes new values mostly from fields of the same kind elsewhere, so that many inputs are programs,
// if strange ones. Parents that are no programs mostly give way to inputs that were.
#include "sim/base/proto.h"
#include "sim/readers/hlo/hlo.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  return fuzz_set_limits(argc, argv);
}

// The input is a module; a configuration that it decides about says for how many devices.
static mp_status_t read_input(const uint8_t *data, size_t size, mp_module_t **out_module) {
  static const uint8_t grids[][2] = {{1, 1}, {1, 1}, {4, 1}, {1, 4}, {2, 2}};
  const uint64_t hash = mp_hash_bytes(MP_HASH_START, data, size);
  const uint8_t *grid = grids[(hash >> 8) % (sizeof(grids) / sizeof(grids[0]))];
  mp_strbuf_t config, whole;
  mp_strbuf_init(&config);
  mp_strbuf_init(&whole);
  mp_proto_put_varint(&config, 4, grid[0]);
  mp_proto_put_varint(&config, 5, grid[1]);
  mp_proto_put_bytes(&whole, 1, (mp_str_t){(const char *)data, size});
  mp_proto_put_message(&whole, 2, &config);
  mp_status_t status = mp_read_hlo(mp_strbuf_text(&whole), whole.size, true, out_module);
  mp_strbuf_deinit(&config);
  mp_strbuf_deinit(&whole);
  return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  mp_module_t *module = NULL;
  mp_status_t status = read_input(data, size, &module);
  if (status == NULL) fuzz_compile(module, data, size);
  mp_status_release(status);
  return 0;
}

// ---- what is known of messages ----

typedef enum { LEAF, MODULE, COMP, INST, SHAPE, SHAPES, LITERAL, SHARDING, NESTED } kind_t;

static const struct {
  uint8_t parent, number, kind;
} g_messages[] = {
    {MODULE, 3, COMP},      {MODULE, 4, SHAPES},     {MODULE, 8, NESTED},  {MODULE, 12, SHARDING},
    {MODULE, 14, SHARDING}, {MODULE, 18, NESTED},    {MODULE, 19, NESTED}, {COMP, 2, INST},
    {COMP, 4, SHAPES},      {INST, 3, SHAPE},        {INST, 7, LEAF},      {INST, 8, LITERAL},
    {INST, 15, NESTED},     {INST, 16, LEAF},        {INST, 17, LEAF},     {INST, 21, NESTED},
    {INST, 30, LEAF},       {INST, 33, LEAF},        {INST, 40, SHARDING}, {INST, 48, LEAF},
    {INST, 49, LEAF},       {INST, 51, LEAF},        {INST, 52, LEAF},     {INST, 57, SHAPE},
    {INST, 59, LEAF},       {INST, 62, LEAF},        {INST, 68, NESTED},   {INST, 74, LEAF},
    {INST, 87, NESTED},     {INST, 92, LEAF},        {INST, 93, NESTED},   {SHAPE, 4, SHAPE},
    {SHAPE, 5, LEAF},       {SHAPES, 1, SHAPE},      {SHAPES, 2, SHAPE},   {LITERAL, 1, SHAPE},
    {LITERAL, 10, LITERAL}, {SHARDING, 5, SHARDING}, {NESTED, 1, LEAF},    {NESTED, 2, LEAF},
};

static const struct {
  uint8_t parent, number;
} g_lists[] = {{INST, 14},    {INST, 20},    {INST, 32},    {INST, 34},    {INST, 36},
               {INST, 37},    {INST, 38},    {SHAPE, 3},    {SHARDING, 3}, {SHARDING, 4},
               {SHARDING, 8}, {SHARDING, 9}, {SHARDING, 10}};

// Every third opcode or so has a form of its own in which its operands do not matter.
static const char *const g_opcodes[] = {"abs",
                                        "add",
                                        "add-dependency",
                                        "after-all",
                                        "all-gather",
                                        "all-gather-done",
                                        "all-gather-start",
                                        "all-reduce",
                                        "all-reduce-done",
                                        "all-to-all",
                                        "and",
                                        "async-done",
                                        "async-start",
                                        "atan2",
                                        "batch-norm-grad",
                                        "bitcast",
                                        "bitcast-convert",
                                        "broadcast",
                                        "call",
                                        "ceil",
                                        "cholesky",
                                        "clamp",
                                        "collective-broadcast",
                                        "collective-permute",
                                        "compare",
                                        "complex",
                                        "concatenate",
                                        "conditional",
                                        "constant",
                                        "convert",
                                        "convolution",
                                        "copy",
                                        "copy-done",
                                        "copy-start",
                                        "cosine",
                                        "custom-call",
                                        "divide",
                                        "domain",
                                        "dot",
                                        "dynamic-slice",
                                        "dynamic-update-slice",
                                        "erf",
                                        "exponential",
                                        "fft",
                                        "fusion",
                                        "gather",
                                        "get-dimension-size",
                                        "get-tuple-element",
                                        "imag",
                                        "iota",
                                        "is-finite",
                                        "logistic",
                                        "map",
                                        "maximum",
                                        "minimum",
                                        "multiply",
                                        "negate",
                                        "not",
                                        "opt-barrier",
                                        "or",
                                        "pad",
                                        "parameter",
                                        "partition-id",
                                        "popcnt",
                                        "power",
                                        "ragged-all-to-all",
                                        "real",
                                        "recv",
                                        "recv-done",
                                        "reduce",
                                        "reduce-precision",
                                        "reduce-scatter",
                                        "reduce-window",
                                        "remainder",
                                        "replica-id",
                                        "reshape",
                                        "reverse",
                                        "rng",
                                        "rng-bit-generator",
                                        "scatter",
                                        "select",
                                        "select-and-scatter",
                                        "send",
                                        "send-done",
                                        "shift-left",
                                        "sign",
                                        "slice",
                                        "sort",
                                        "sqrt",
                                        "subtract",
                                        "tanh",
                                        "topk",
                                        "transpose",
                                        "triangular-solve",
                                        "tuple",
                                        "while",
                                        "xor"};

static int find_message(uint8_t parent, uint32_t number) {
  for (size_t i = 0; i < sizeof(g_messages) / sizeof(g_messages[0]); ++i) {
    if (g_messages[i].parent == parent && g_messages[i].number == number) return g_messages[i].kind;
  }
  return -1;
}

static bool is_list(uint8_t parent, uint32_t number) {
  for (size_t i = 0; i < sizeof(g_lists) / sizeof(g_lists[0]); ++i) {
    if (g_lists[i].parent == parent && g_lists[i].number == number) return true;
  }
  // Of messages that no others are in, most bytes are lists; the names in them are only names.
  return parent == LEAF;
}

// ---- a message as a tree ----

enum { MAX_NODES = 1 << 15, MAX_DEPTH = 48 };

typedef struct {
  uint8_t parent_kind, kind;
  bool is_message;
  mp_proto_wire_t wire;
  uint32_t number, first, next;  // nodes; 0: none
  uint64_t value;
  mp_str_t bytes;
  size_t size;  // of the payload, while it is put together
} node_t;

static node_t g_nodes[MAX_NODES];
static uint32_t g_num_nodes;
static char g_room[1 << 20];  // for bytes that were made
static size_t g_room_size;

static bool take_apart(mp_str_t bytes, uint8_t kind, int depth, uint32_t *out_first) {
  mp_proto_reader_t reader = mp_proto_reader(bytes, "");
  mp_proto_field_t field;
  uint32_t *link = out_first;
  *link = 0;
  while (mp_proto_next(&reader, &field)) {
    if (g_num_nodes >= MAX_NODES / 2) return false;
    const uint32_t at = g_num_nodes++;
    const int inner = field.wire == MP_PROTO_BYTES ? find_message(kind, field.number) : -1;
    g_nodes[at] = (node_t){.parent_kind = kind,
                           .number = field.number,
                           .wire = field.wire,
                           .value = field.value,
                           .bytes = field.bytes};
    if (inner >= 0 && depth < MAX_DEPTH) {
      uint32_t first = 0;
      if (!take_apart(field.bytes, (uint8_t)inner, depth + 1, &first)) return false;
      g_nodes[at].is_message = true;
      g_nodes[at].kind = (uint8_t)inner;
      g_nodes[at].first = first;
    }
    *link = at;
    link = &g_nodes[at].next;
  }
  return reader.fault == NULL;
}

static size_t varint_size(uint64_t value) {
  size_t size = 1;
  while (value >>= 7) ++size;
  return size;
}

static size_t measure(uint32_t first) {
  size_t total = 0;
  for (uint32_t at = first; at != 0; at = g_nodes[at].next) {
    node_t *node = &g_nodes[at];
    total += varint_size((uint64_t)node->number << 3);
    if (node->wire == MP_PROTO_BYTES) {
      node->size = node->is_message ? measure(node->first) : node->bytes.size;
      total += varint_size(node->size) + node->size;
    } else {
      total += node->wire == MP_PROTO_VARINT    ? varint_size(node->value)
               : node->wire == MP_PROTO_FIXED32 ? 4
                                                : 8;
    }
  }
  return total;
}

static uint8_t *put_varint(uint8_t *out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) *out++ = (uint8_t)(value | 0x80);
  *out++ = (uint8_t)value;
  return out;
}

static uint8_t *put_together(uint32_t first, uint8_t *out) {
  for (uint32_t at = first; at != 0; at = g_nodes[at].next) {
    const node_t *node = &g_nodes[at];
    out = put_varint(out, (uint64_t)node->number << 3 | node->wire);
    if (node->wire == MP_PROTO_VARINT) {
      out = put_varint(out, node->value);
    } else if (node->wire == MP_PROTO_BYTES) {
      out = put_varint(out, node->size);
      if (node->is_message) out = put_together(node->first, out);
      if (!node->is_message && node->size != 0) memcpy(out, node->bytes.data, node->size);
      if (!node->is_message) out += node->size;
    } else {
      const size_t size = node->wire == MP_PROTO_FIXED32 ? 4 : 8;
      memcpy(out, &node->value, size);
      out += size;
    }
  }
  return out;
}

// ---- changes ----

// Another field with the same number in a message of the same kind; 0 if none was found.
static uint32_t find_like(uint64_t *state, uint32_t at) {
  for (int tries = 0; tries < 64; ++tries) {
    const uint32_t other = 1 + (uint32_t)fuzz_below(state, g_num_nodes - 1);
    if (other != at && g_nodes[other].number == g_nodes[at].number &&
        g_nodes[other].parent_kind == g_nodes[at].parent_kind &&
        g_nodes[other].wire == g_nodes[at].wire) {
      return other;
    }
  }
  return 0;
}

static uint64_t change_number(uint64_t *state, uint64_t value) {
  static const uint64_t interesting[] = {
      0, 1, 2, 3, 7, 127, 128, UINT32_MAX, INT64_MAX, UINT64_MAX, UINT64_C(1) << 63, 1 << 20};
  if (fuzz_below(state, 8) == 0) {
    return interesting[fuzz_below(state, sizeof(interesting) / sizeof(interesting[0]))];
  }
  return value + 3 - fuzz_below(state, 7);
}

// Changes, adds or removes one number of a packed list.
static void change_list(uint64_t *state, node_t *node) {
  uint64_t values[64];
  size_t count = 0;
  mp_str_t bytes = node->bytes;
  for (size_t i = 0; i < bytes.size && count < 60;) {
    uint64_t value = 0;
    int shift = 0;
    do {
      value |= (uint64_t)(bytes.data[i] & 0x7F) << (shift < 63 ? shift : 63);
      shift += 7;
    } while ((bytes.data[i++] & 0x80) != 0 && i < bytes.size);
    values[count++] = value;
  }
  const size_t at = fuzz_below(state, count);
  switch (fuzz_below(state, 6)) {
    case 0:
      values[count] = count == 0 ? 0 : values[at];
      ++count;
      break;
    case 1:
      if (count != 0) values[at] = values[--count];
      break;
    case 2:
      if (count != 0) {
        const size_t other = fuzz_below(state, count);
        const uint64_t value = values[at];
        values[at] = values[other];
        values[other] = value;
      }
      break;
    default:
      if (count != 0) values[at] = change_number(state, values[at]);
  }
  if (g_room_size + count * 10 > sizeof(g_room)) return;
  uint8_t *start = (uint8_t *)g_room + g_room_size, *out = start;
  for (size_t i = 0; i < count; ++i) out = put_varint(out, values[i]);
  node->bytes = (mp_str_t){(const char *)start, (size_t)(out - start)};
  g_room_size += node->bytes.size;
}

static void change_bytes(uint64_t *state, node_t *node) {
  if (node->parent_kind == INST && node->number == 2) {
    node->bytes = mp_str(g_opcodes[fuzz_below(state, sizeof(g_opcodes) / sizeof(g_opcodes[0]))]);
  } else if (is_list(node->parent_kind, node->number)) {
    change_list(state, node);
  } else if (g_room_size + 256 <= sizeof(g_room) && node->bytes.size < 128) {
    char *copy = g_room + g_room_size;
    memcpy(copy, node->bytes.data, node->bytes.size);
    const size_t size = LLVMFuzzerMutate((uint8_t *)copy, node->bytes.size, 128);
    node->bytes = (mp_str_t){copy, size};
    g_room_size += size;
  }
}

// The node takes another's value; of messages it becomes a second parent.
static void become_like(uint32_t at, uint32_t other) {
  g_nodes[at].value = g_nodes[other].value;
  g_nodes[at].bytes = g_nodes[other].bytes;
  g_nodes[at].is_message = g_nodes[other].is_message;
  // A message must not become a part of itself: its bytes are taken as they were.
  if (g_nodes[other].is_message) {
    g_nodes[at].is_message = false;
    g_nodes[at].first = 0;
  }
}

static void change_node(uint64_t *state, uint32_t at) {
  node_t *node = &g_nodes[at];
  const uint32_t other = find_like(state, at);
  switch (fuzz_below(state, 8)) {
    case 0:  // removed
      node->number = 1000;
      node->wire = MP_PROTO_VARINT;
      break;
    case 1:  // twice
      if (g_num_nodes < MAX_NODES) {
        g_nodes[g_num_nodes] = *node;
        g_nodes[g_num_nodes].is_message = false;
        node->next = g_num_nodes++;
      }
      break;
    case 2:
    case 3:
    case 4:
      if (other != 0) become_like(at, other);
      break;
    default:
      if (node->wire == MP_PROTO_BYTES && !node->is_message) change_bytes(state, node);
      if (node->wire == MP_PROTO_VARINT) node->value = change_number(state, node->value);
  }
}

static bool is_program(const uint8_t *data, size_t size) {
  mp_module_t *module = NULL;
  mp_status_t status = read_input(data, size, &module);
  const bool accepted = status == NULL;
  mp_status_release(status);
  mp_module_release(module);
  return accepted;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed) {
  static uint8_t copy[1 << 20], result[1 << 20];
  uint64_t state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
  if (fuzz_below(&state, 64) == 0 || size > sizeof(copy)) {
    return LLVMFuzzerMutate(data, size, max_size);
  }
  if (fuzz_below(&state, 16) != 0 && !is_program(data, size)) {
    const size_t picked = fuzz_pool_pick(&state, data, max_size);
    if (picked != 0) size = picked;
  }
  memcpy(copy, data, size);
  uint32_t first = 0;
  g_num_nodes = 1;
  g_room_size = 0;
  if (!take_apart((mp_str_t){(const char *)copy, size}, MODULE, 0, &first) || g_num_nodes < 2) {
    return LLVMFuzzerMutate(data, size, max_size);
  }
  const size_t rounds = 1 + fuzz_below(&state, 4);
  for (size_t i = 0; i < rounds; ++i) {
    change_node(&state, 1 + (uint32_t)fuzz_below(&state, g_num_nodes - 1));
  }
  const size_t total = measure(first);
  if (total > max_size || total > sizeof(result)) return size;
  put_together(first, result);
  memcpy(data, result, total);
  return total;
}
