// HLO protos from a small text, whose fields stand under their numbers:
//
//   add {
//     a = f32[] parameter() 9=0
//     b = f32[] parameter() 9=1
//     c = f32[] add(a b)
//   }
//   main {
//     x = f32[4,2]{0,1} parameter() 9=0
//     t = (f32[4,2],token[]) tuple(x x)
//     r = f32[2] reduce(x z) calls(add) 14=[0] 7={2='sum' 4=3}
//   }
//   module 12={1=0}
//
// A computation's last instruction is its root, the last computation is the entry. A field's value
// is a number, a packed list, a text, a float (8=f1.5), hexadecimal bytes (5=x00ff) or a message.
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_HLO_TEXT_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_HLO_TEXT_H_

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/proto.h"
#include "tests/unit/support/unit.h"

enum { HLO_MAX_NAMES = 64 };

typedef struct {
  const char *at;
  char comps[HLO_MAX_NAMES][32];
  char insts[HLO_MAX_NAMES][32];  // of the current computation
  int num_comps, num_insts;
} hlo_text_t;

static inline void hlo_skip(hlo_text_t *t) {
  while (isspace((unsigned char)*t->at)) ++t->at;
}

static inline bool hlo_accept(hlo_text_t *t, char c) {
  hlo_skip(t);
  if (*t->at != c) return false;
  ++t->at;
  return true;
}

static inline void hlo_expect(hlo_text_t *t, char c) {
  if (!hlo_accept(t, c)) fail_msg("expected '%c' at: %.40s", c, t->at);
}

static inline void hlo_word(hlo_text_t *t, char *word) {
  size_t size = 0;
  hlo_skip(t);
  while ((isalnum((unsigned char)*t->at) || strchr("-_.", *t->at) != NULL) && *t->at != '\0') {
    assert_true(size < 31);
    word[size++] = *t->at++;
  }
  word[size] = '\0';
}

static inline int hlo_find(char (*names)[32], int count, const char *name) {
  for (int i = 0; i < count; ++i) {
    if (strcmp(names[i], name) == 0) return i + 1;
  }
  return 1000;  // an id that nothing has
}

static inline int64_t hlo_number(hlo_text_t *t) {
  char *end = NULL;
  const long long value = strtoll(t->at, &end, 10);
  if (end == t->at) fail_msg("expected a number at: %.40s", t->at);
  t->at = end;
  return value;
}

// [1,2,3] or {1,2,3}, from behind the bracket.
static inline size_t hlo_numbers(hlo_text_t *t, char close, int64_t *values) {
  size_t count = 0;
  while (!hlo_accept(t, close)) {
    if (count != 0) hlo_expect(t, ',');
    hlo_skip(t);
    values[count++] = hlo_number(t);
  }
  return count;
}

static inline void hlo_fields(hlo_text_t *t, mp_strbuf_t *out);

static inline void hlo_value(hlo_text_t *t, uint32_t number, mp_strbuf_t *out) {
  int64_t values[HLO_MAX_NAMES];
  if (hlo_accept(t, '[')) {
    const size_t count = hlo_numbers(t, ']', values);
    mp_proto_put_packed(out, number, values, count);
  } else if (hlo_accept(t, '\'')) {
    const char *start = t->at;
    while (*t->at != '\'') ++t->at;
    mp_proto_put_bytes(out, number, (mp_str_t){start, (size_t)(t->at++ - start)});
  } else if (hlo_accept(t, 'x')) {
    char bytes[256];
    size_t size = 0;
    for (unsigned byte = 0; sscanf(t->at, "%2x", &byte) == 1; t->at += 2) {
      bytes[size++] = (char)byte;
      if (!isxdigit((unsigned char)t->at[2])) {
        t->at += 2;
        break;
      }
    }
    mp_proto_put_bytes(out, number, (mp_str_t){bytes, size});
  } else if (hlo_accept(t, 'f')) {
    char *end = NULL;
    mp_proto_put_float(out, number, strtof(t->at, &end));
    t->at = end;
  } else if (hlo_accept(t, '{')) {
    mp_strbuf_t inner;
    mp_strbuf_init(&inner);
    hlo_fields(t, &inner);
    hlo_expect(t, '}');
    mp_proto_put_message(out, number, &inner);
    mp_strbuf_deinit(&inner);
  } else {
    mp_proto_put_varint(out, number, (uint64_t)hlo_number(t));
  }
}

static inline void hlo_fields(hlo_text_t *t, mp_strbuf_t *out) {
  for (;;) {
    int used = 0;
    uint32_t number = 0;
    hlo_skip(t);
    if (sscanf(t->at, "%u=%n", &number, &used) != 1 || used == 0) return;
    t->at += used;
    hlo_value(t, number, out);
  }
}

static inline uint64_t hlo_type(const char *name) {
  static const char *const names[] = {"",     "pred",   "s8",       "s16", "s32",  "s64",
                                      "u8",   "u16",    "u32",      "u64", "f16",  "f32",
                                      "f64",  "",       "opaque",   "c64", "bf16", "token",
                                      "c128", "f8e5m2", "f8e4m3fn", "s4",  "u4"};
  for (size_t i = 1; i < sizeof(names) / sizeof(names[0]); ++i) {
    if (strcmp(names[i], name) == 0) return i;
  }
  fail_msg("no type '%s'", name);
  return 0;
}

static inline void hlo_shape(hlo_text_t *t, uint32_t number, mp_strbuf_t *out) {
  enum { TUPLE = 13 };
  int64_t values[HLO_MAX_NAMES];
  mp_strbuf_t shape;
  char name[32];
  mp_strbuf_init(&shape);
  if (hlo_accept(t, '(')) {
    mp_proto_put_varint(&shape, 2, TUPLE);
    while (!hlo_accept(t, ')')) {
      hlo_shape(t, 4, &shape);
      hlo_accept(t, ',');
    }
  } else {
    hlo_word(t, name);
    mp_proto_put_varint(&shape, 2, hlo_type(name));
    hlo_expect(t, '[');
    size_t count = hlo_numbers(t, ']', values);
    mp_proto_put_packed(&shape, 3, values, count);
    if (*t->at == '{' && hlo_accept(t, '{')) {
      mp_strbuf_t layout;
      mp_strbuf_init(&layout);
      count = hlo_numbers(t, '}', values);
      mp_proto_put_packed(&layout, 1, values, count);
      mp_proto_put_message(&shape, 5, &layout);
      mp_strbuf_deinit(&layout);
    }
  }
  mp_proto_put_message(out, number, &shape);
  mp_strbuf_deinit(&shape);
}

// (a b c): the ids of these names, as a packed field.
static inline void hlo_ids(hlo_text_t *t, char (*names)[32], int num_names, uint32_t number,
                           mp_strbuf_t *out) {
  int64_t ids[HLO_MAX_NAMES];
  char name[32];
  size_t count = 0;
  hlo_expect(t, '(');
  while (!hlo_accept(t, ')')) {
    hlo_word(t, name);
    ids[count++] = hlo_find(names, num_names, name);
  }
  mp_proto_put_packed(out, number, ids, count);
}

// Instructions may name ones that stand behind them.
static inline void hlo_list_names(hlo_text_t *t) {
  t->num_insts = 0;
  for (const char *at = t->at; *at != '\0';) {
    const char *end = at + strcspn(at, "\n");
    char name[32], equal[2];
    if (sscanf(at, " %31s %1[=]", name, equal) == 2) {
      assert_true(t->num_insts < HLO_MAX_NAMES);
      strcpy(t->insts[t->num_insts++], name);
    }
    if (strchr(" \t", *at) == NULL && *at == '}') return;
    at = *end == '\0' ? end : end + 1;
  }
}

static inline void hlo_inst(hlo_text_t *t, const char *name, mp_strbuf_t *comp) {
  char word[32];
  mp_strbuf_t inst;
  mp_strbuf_init(&inst);
  mp_proto_put_bytes(&inst, 1, mp_str(name));
  mp_proto_put_varint(&inst, 35, (uint64_t)hlo_find(t->insts, t->num_insts, name));
  hlo_shape(t, 3, &inst);
  hlo_word(t, word);
  mp_proto_put_bytes(&inst, 2, mp_str(word));
  hlo_ids(t, t->insts, t->num_insts, 36, &inst);
  hlo_skip(t);
  if (strncmp(t->at, "calls", 5) == 0) {
    t->at += 5;
    hlo_ids(t, t->comps, t->num_comps, 38, &inst);
  }
  hlo_fields(t, &inst);
  mp_proto_put_message(comp, 2, &inst);
  mp_strbuf_deinit(&inst);
}

static inline void hlo_comp(hlo_text_t *t, const char *name, mp_strbuf_t *module) {
  char inst[32];
  mp_strbuf_t comp;
  mp_strbuf_init(&comp);
  strcpy(t->comps[t->num_comps++], name);
  mp_proto_put_bytes(&comp, 1, mp_str(name));
  mp_proto_put_varint(&comp, 5, (uint64_t)t->num_comps);
  hlo_list_names(t);
  while (!hlo_accept(t, '}')) {
    hlo_word(t, inst);
    hlo_expect(t, '=');
    hlo_inst(t, inst, &comp);
  }
  mp_proto_put_varint(&comp, 6, (uint64_t)hlo_find(t->insts, t->num_insts, inst));
  mp_proto_put_message(module, 3, &comp);
  mp_strbuf_deinit(&comp);
}

// Appends the HloModuleProto of the text.
static inline void hlo_assemble(const char *text, mp_strbuf_t *module) {
  hlo_text_t *t = calloc(1, sizeof(*t));
  char name[32];
  assert_non_null(t);
  t->at = text;
  mp_proto_put_bytes(module, 1, MP_STR("test"));
  for (hlo_skip(t); *t->at != '\0'; hlo_skip(t)) {
    hlo_word(t, name);
    if (strcmp(name, "module") == 0) {
      hlo_fields(t, module);
    } else {
      hlo_expect(t, '{');
      hlo_comp(t, name, module);
    }
  }
  mp_proto_put_varint(module, 6, (uint64_t)t->num_comps);
  free(t);
  assert_ok(mp_strbuf_status(module));
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_HLO_TEXT_H_
