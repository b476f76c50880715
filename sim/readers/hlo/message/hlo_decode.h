// Messages as structs: a table maps the fields of a message to a struct, and one function reads all
// messages. Inner messages stay bytes, which are decoded on demand.
#ifndef MINIPOD_SIM_READERS_HLO_MESSAGE_HLO_DECODE_H_
#define MINIPOD_SIM_READERS_HLO_MESSAGE_HLO_DECODE_H_

#include <stddef.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/containers/array.h"
#include "sim/base/proto.h"

typedef MP_ARRAY(int64_t) mp_hlo_ints_t;
typedef MP_ARRAY(mp_str_t) mp_hlo_texts_t;

typedef enum {
  MP_HLO_INT,    // int64_t: any integer or enumeration
  MP_HLO_FLAG,   // bool
  MP_HLO_FLOAT,  // float
  MP_HLO_TEXT,   // mp_str_t: a string, bytes, or a message
  MP_HLO_INTS,   // mp_hlo_ints_t: repeated integers, packed or not
  MP_HLO_TEXTS,  // mp_hlo_texts_t: repeated strings or messages
} mp_hlo_field_kind_t;

typedef struct {
  uint16_t number;
  uint16_t kind;  // mp_hlo_field_kind_t
  uint32_t offset;
} mp_hlo_field_t;

typedef struct {
  const char *name;  // "WindowDimension"
  const mp_hlo_field_t *fields;
  size_t num_fields;
} mp_hlo_message_t;

// The bytes of the program, which offsets in errors count from, and memory for lists.
typedef struct {
  mp_arena_t *arena;
  const uint8_t *start;
} mp_hlo_source_t;

#define MP_HLO_FIELD(number, kind, type, member) \
  { (number), MP_HLO_##kind, offsetof(type, member) }
// Defines the table of a message.
#define MP_HLO_MESSAGE(variable, name, ...)                          \
  static const mp_hlo_field_t variable##_fields[] = {__VA_ARGS__};   \
  static const mp_hlo_message_t variable = {name, variable##_fields, \
                                            sizeof(variable##_fields) / sizeof(mp_hlo_field_t)}

// Reads the fields in the table into `out_struct`, which starts as zeros; others are skipped. If a
// single field occurs repeatedly, the last one counts. Texts point into `bytes`, which must lie in
// the source; lists are in the source's arena. INVALID_ARGUMENT for malformed bytes.
MP_NODISCARD mp_status_t mp_hlo_decode(const mp_hlo_source_t *source,
                                       const mp_hlo_message_t *message, mp_str_t bytes,
                                       void *out_struct);
// A reader for a message that lies in the source, for those that no table describes.
mp_proto_reader_t mp_hlo_proto_reader(const mp_hlo_source_t *source, mp_str_t bytes,
                                      const char *message);

#endif  // MINIPOD_SIM_READERS_HLO_MESSAGE_HLO_DECODE_H_
