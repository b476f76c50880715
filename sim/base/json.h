// A strict reader of JSON (RFC 8259) for configurations that programs carry.
//
// The one thing that it accepts beyond JSON is a comma after the last item of a list or object,
// which TorchTPU writes. Input is hostile: nesting is bounded, and memory is at most a constant
// times the size of the text. The values lie in an arena and live as long as that.
#ifndef MINIPOD_SIM_BASE_JSON_H_
#define MINIPOD_SIM_BASE_JSON_H_

#include "sim/base/arena.h"
#include "sim/base/str.h"

typedef enum {
  MP_JSON_NULL,
  MP_JSON_BOOL,    // i64 is 0 or 1
  MP_JSON_INT,     // i64, and f64
  MP_JSON_DOUBLE,  // f64: numbers with fraction or exponent, and those that i64 cannot hold
  MP_JSON_STRING,  // str, UTF-8
  MP_JSON_LIST,    // items
  MP_JSON_OBJECT,  // items, with names, in the order of the text
} mp_json_kind_t;

typedef struct mp_json_s mp_json_t;
struct mp_json_s {
  mp_json_kind_t kind;
  mp_str_t name;  // in its object; "" elsewhere
  long long i64;
  double f64;
  mp_str_t str;
  const mp_json_t *first;  // the first item; NULL: none
  const mp_json_t *next;   // the next item of the list or object that this is in
};

// Reads a text. INVALID_ARGUMENT with line and column: it is not JSON, an object has a name twice,
// or it is nested more than 64 deep.
MP_NODISCARD mp_status_t mp_json_read(mp_arena_t *arena, mp_str_t text,
                                      const mp_json_t **out_value);
// The item of this name; NULL: there is none, or it is not an object.
const mp_json_t *mp_json_item(const mp_json_t *object, const char *name);

#endif  // MINIPOD_SIM_BASE_JSON_H_
