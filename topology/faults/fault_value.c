#include "topology/faults/fault_value.h"

#include <stddef.h>
#include <stdio.h>

#include "topology/spec_value.h"

// The types of values: enum name, their description in messages.
#define FAULT_TYPES(X)                                          \
  X(NUMBER, "a whole number from 0")                            \
  X(STEP, "a whole number from 1")                              \
  X(FLAG, "true")                                               \
  X(TEXT, "a name")                                             \
  X(FACTOR, "a number from 1 to 1000000 such as 2 or 1.5")      \
  X(PART, "a number above 0 and up to 1 such as 0.5")           \
  X(LOSS, "a number from 0 and below 1 such as 0.01")           \
  X(POSITIVE, "a number above 0 and up to 1000000 such as 0.5") \
  X(TIME, "a time such as 10us")

typedef enum {
#define FAULT_TYPE_ENUM(name, text) FAULT_TYPE_##name,
  FAULT_TYPES(FAULT_TYPE_ENUM)
#undef FAULT_TYPE_ENUM
} fault_type_t;

typedef struct {
  const char *key;
  fault_type_t type;
  size_t offset;
  unsigned kinds;
} fault_key_t;

static const fault_key_t k_keys[MP_POD_FAULT_KEY_COUNT] = {
#define FAULT_KEY_ROW(member, key, type, kinds) \
  {key, FAULT_TYPE_##type, offsetof(mp_pod_fault_t, member), kinds},
    MP_POD_FAULT_KEYS(FAULT_KEY_ROW)
#undef FAULT_KEY_ROW
};

#define FAULT_KIND_TEXT(name, text) text,
static const char *const k_kinds[] = {MP_POD_FAULT_KINDS(FAULT_KIND_TEXT)};
#undef FAULT_KIND_TEXT
#define FAULT_KIND_LISTED(name, text) ", " text
static const char *const k_kinds_listed = MP_POD_FAULT_KINDS(FAULT_KIND_LISTED);
#undef FAULT_KIND_LISTED

const char *mp_pod_fault_kind_name(mp_pod_fault_kind_t kind) {
  return k_kinds[kind];
}

// ---- Errors ----

static mp_spec_place_t fault_value_place(const mp_pod_fault_reading_t *reading) {
  return (mp_spec_place_t){.origin = reading->origin, .line = reading->line};
}

static mp_status_t fault_value_unknown(const mp_pod_fault_reading_t *reading, mp_str_t key) {
  const char *names[MP_POD_FAULT_KEY_COUNT];
  char known[512] = "";
  for (int i = 0; i < MP_POD_FAULT_KEY_COUNT; ++i) {
    names[i] = k_keys[i].key;
    const size_t size = strlen(known);
    snprintf(known + size, sizeof(known) - size, "%s%s", i == 0 ? "" : ", ", names[i]);
  }
  const char *nearest = mp_str_nearest(key, names, MP_POD_FAULT_KEY_COUNT);
  if (nearest != NULL) {
    return mp_spec_error(fault_value_place(reading), key, "unknown, did you mean '%s'?", nearest);
  }
  return mp_spec_error(fault_value_place(reading), key, "unknown; known are %s", known);
}

static int fault_value_find(mp_str_t key) {
  for (int i = 0; i < MP_POD_FAULT_KEY_COUNT; ++i) {
    if (mp_str_is(key, k_keys[i].key)) return i;
  }
  return -1;
}

static bool fault_value_is_prefix(mp_str_t key) {
  for (int i = 0; i < MP_POD_FAULT_KEY_COUNT; ++i) {
    const char *full = k_keys[i].key;
    if (strlen(full) <= key.size || full[key.size] != '.') continue;
    if (memcmp(full, key.data, key.size) == 0) return true;
  }
  return false;
}

mp_status_t mp_pod_fault_refuse(const mp_pod_fault_reading_t *reading, mp_str_t key,
                                const char *got) {
  static const char *const expected[] = {
#define FAULT_TYPE_TEXT(name, text) text,
      FAULT_TYPES(FAULT_TYPE_TEXT)
#undef FAULT_TYPE_TEXT
  };
  const int id = fault_value_find(key);
  if (id >= 0) {
    return mp_spec_error(fault_value_place(reading), key, "expected %s, got %s",
                         expected[k_keys[id].type], got);
  }
  if (!fault_value_is_prefix(key)) return fault_value_unknown(reading, key);
  return mp_spec_error(fault_value_place(reading), key, "expected a mapping, got %s", got);
}

mp_status_t mp_pod_fault_open(const mp_pod_fault_reading_t *reading, mp_str_t key) {
  return fault_value_is_prefix(key) ? NULL : mp_pod_fault_refuse(reading, key, "a mapping");
}

// ---- Values ----

static bool fault_value_parse_number(mp_str_t text, uint64_t least, uint64_t *out_number) {
  long long number = 0;
  if (!mp_str_parse_i64(text, &number) || number < (long long)least) return false;
  *out_number = (uint64_t)number;
  return true;
}

static bool fault_value_parse_real(fault_type_t type, mp_str_t text, double *out_real) {
  double real = 0;
  if (text.size == 0 || mp_str_scan_double(text, &real) != text.size) return false;
  const bool fits = type == FAULT_TYPE_FACTOR ? real >= 1 && real <= 1e6
                    : type == FAULT_TYPE_PART ? real > 0 && real <= 1
                    : type == FAULT_TYPE_LOSS ? real >= 0 && real < 1
                                              : real > 0 && real <= 1e6;
  if (fits) *out_real = real;
  return fits;
}

// Texts are shown in messages.
static bool fault_value_is_text(mp_str_t text) {
  for (size_t i = 0; i < text.size; ++i) {
    if (text.data[i] < ' ' || text.data[i] > '~') return false;
  }
  return text.size != 0 && text.size <= 512;
}

static bool fault_value_parse(fault_type_t type, mp_str_t text, void *member) {
  switch (type) {
    case FAULT_TYPE_NUMBER:
      return fault_value_parse_number(text, 0, member);
    case FAULT_TYPE_STEP:
      return fault_value_parse_number(text, 1, member);
    case FAULT_TYPE_FLAG:
      *(bool *)member = true;
      return mp_str_is(text, "true");
    case FAULT_TYPE_TIME:
      return mp_spec_value_parse(MP_SPEC_TIME, text, member);
    case FAULT_TYPE_FACTOR:
    case FAULT_TYPE_PART:
    case FAULT_TYPE_LOSS:
    case FAULT_TYPE_POSITIVE:
      return fault_value_parse_real(type, text, member);
    case FAULT_TYPE_TEXT:
      break;
  }
  return fault_value_is_text(text);
}

mp_status_t mp_pod_fault_set(mp_pod_fault_reading_t *reading, mp_str_t key, mp_str_t value) {
  char got[96];
  snprintf(got, sizeof(got), "'%.*s'", MP_STR_SHOWN(value, 64));
  const int id = fault_value_find(key);
  if (id < 0) return mp_pod_fault_refuse(reading, key, got);
  if (reading->given[id] != 0) {
    return mp_spec_error(fault_value_place(reading), key, "given twice, first in line %d",
                         reading->given[id]);
  }
  void *member = (char *)reading->fault + k_keys[id].offset;
  if (!fault_value_parse(k_keys[id].type, value, member)) {
    return mp_pod_fault_refuse(reading, key, got);
  }
  long long number = 0;
  if (member == &reading->fault->flip_result && mp_str_parse_i64(value, &number) && number < 0) {
    return mp_spec_error(fault_value_place(reading), key,
                         "expected the number of a result, from 0, or its name, "
                         "got %s",
                         got);
  }
  if (k_keys[id].type == FAULT_TYPE_TEXT) {
    const char *text = mp_arena_strndup(reading->arena, value.data, value.size);
    MP_RETURN_IF_NULL(text);
    *(const char **)member = text;
  }
  reading->given[id] = reading->line;
  return NULL;
}

// ---- The whole ----

void mp_pod_fault_begin(mp_pod_fault_reading_t *reading, mp_arena_t *arena, const char *origin,
                        int line, mp_pod_fault_t *fault) {
  *reading =
      (mp_pod_fault_reading_t){.arena = arena, .origin = origin, .line = line, .fault = fault};
  *fault = (mp_pod_fault_t){
      .line = line, .slow = 1, .bandwidth = 1, .share = 1, .step = 1, .until = UINT64_MAX};
}

static bool fault_value_has(const mp_pod_fault_reading_t *reading, const char *key) {
  return reading->given[fault_value_find(mp_str(key))] != 0;
}

// The first key that belongs to only one kind determines the kind.
static mp_status_t fault_value_find_kind(mp_pod_fault_reading_t *reading) {
  unsigned kinds = MP_POD_FAULT_OF_ALL;
  int by = -1;
  for (int i = 0; i < MP_POD_FAULT_KEY_COUNT; ++i) {
    if (reading->given[i] == 0 || k_keys[i].kinds == MP_POD_FAULT_OF_ALL) continue;
    if ((kinds & k_keys[i].kinds) == 0) {
      reading->line = reading->given[i];
      return mp_spec_error(fault_value_place(reading), mp_str(k_keys[i].key),
                           "does not go with '%s'", k_keys[by].key);
    }
    kinds &= k_keys[i].kinds;
    by = i;
  }
  int kind = 0;
  while (kind < MP_POD_FAULT_KIND_COUNT && kinds != 1u << kind) ++kind;
  if (kind == MP_POD_FAULT_KIND_COUNT) {
    return mp_status_make(MP_INVALID_ARGUMENT, "%s:%d: a fault needs one of the keys %s",
                          reading->origin, reading->line, k_kinds_listed + strlen(", "));
  }
  reading->fault->kind = (mp_pod_fault_kind_t)kind;
  return NULL;
}

static mp_status_t fault_value_need(const mp_pod_fault_reading_t *reading, const char *what) {
  return mp_status_make(MP_INVALID_ARGUMENT, "%s:%d: a fault of '%s' needs %s", reading->origin,
                        reading->line, k_kinds[reading->fault->kind], what);
}

static mp_status_t fault_value_check_flip(const mp_pod_fault_reading_t *reading) {
  if (fault_value_has(reading, "flip.argument") == fault_value_has(reading, "flip.result")) {
    return fault_value_need(reading, "one of argument and result");
  }
  if (!fault_value_has(reading, "flip.device")) return fault_value_need(reading, "a device");
  if (!fault_value_has(reading, "flip.bit")) return fault_value_need(reading, "a bit");
  return reading->fault->program == NULL ? fault_value_need(reading, "a program") : NULL;
}

static mp_status_t fault_value_check_outages(const mp_pod_fault_reading_t *reading) {
  mp_pod_fault_t *fault = reading->fault;
  fault->is_dead = true;
  if (fault->outage_of == NULL) fault->outage_of = "slice";
  const mp_str_t of = mp_str(fault->outage_of);
  if (!mp_str_is(of, "slice") && !mp_str_is(of, "host") && !mp_str_is(of, "device")) {
    return fault_value_need(reading, "outages of slice, host or device");
  }
  if (fault->outage_every == 0) return fault_value_need(reading, "every: a number of launches");
  if (fault->outage_length == 0) return fault_value_need(reading, "length: a number of launches");
  if (fault->outage_length <= fault->outage_every) return NULL;
  return fault_value_need(reading, "a length of at most every");
}

static mp_status_t fault_value_check(const mp_pod_fault_reading_t *reading) {
  const bool is_dead = reading->fault->is_dead;
  switch (reading->fault->kind) {
    case MP_POD_FAULT_DEVICE:
      if (!fault_value_has(reading, "device")) return fault_value_need(reading, "a device");
      if (is_dead != fault_value_has(reading, "slow")) return NULL;
      return fault_value_need(reading, "one of slow and dead");
    case MP_POD_FAULT_HOST:
    case MP_POD_FAULT_SLICE:
      if (!fault_value_has(reading, k_kinds[reading->fault->kind])) {
        return fault_value_need(reading, "a number");
      }
      return is_dead ? NULL : fault_value_need(reading, "dead");
    case MP_POD_FAULT_OUTAGES:
      return fault_value_check_outages(reading);
    case MP_POD_FAULT_LINK:
      if (!fault_value_has(reading, "link")) return fault_value_need(reading, "a link");
      if (is_dead != (fault_value_has(reading, "bandwidth") ||
                      fault_value_has(reading, "latency") || fault_value_has(reading, "loss"))) {
        return NULL;
      }
      return fault_value_need(reading, "dead, or some of bandwidth, latency and loss");
    case MP_POD_FAULT_STRAGGLERS:
      return fault_value_has(reading, "stragglers.spread") ? NULL
                                                           : fault_value_need(reading, "a spread");
    case MP_POD_FAULT_FLIP:
      return fault_value_check_flip(reading);
    case MP_POD_FAULT_KIND_COUNT:
      break;
  }
  return NULL;
}

mp_status_t mp_pod_fault_finish(mp_pod_fault_reading_t *reading) {
  mp_pod_fault_t *fault = reading->fault;
  reading->line = fault->line;
  MP_RETURN_IF_ERROR(fault_value_find_kind(reading));
  reading->line = fault->line;
  MP_RETURN_IF_ERROR(fault_value_check(reading));
  const bool has_until = fault_value_has(reading, "until");
  if (fault->kind == MP_POD_FAULT_FLIP && !has_until) fault->until = fault->step;
  if (fault->until >= fault->step) return NULL;
  return mp_spec_error(fault_value_place(reading), MP_STR("until"), "before step %llu",
                       (unsigned long long)fault->step);
}
