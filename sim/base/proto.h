// Protocol buffers' wire format: a bounds-checked pull reader and a writer.
//
// The reader goes through the fields of one message in memory that the caller keeps alive; nothing
// is allocated or copied. It remembers the first mistake in the message: from then on mp_proto_next
// returns false, accessors return zeros, and mp_proto_reader_status gives the cause with its offset
// in the outermost message. So the usual loop needs one check at its end:
//
//   mp_proto_field_t field;
//   while (mp_proto_next(&reader, &field)) {
//     if (field.number == 4) count = mp_proto_varint(&reader, &field);
//     if (field.number == 7) MP_RETURN_IF_ERROR(read_inner(mp_proto_message(&reader, &field)));
//   }
//   return mp_proto_reader_status(&reader);
//
// Fields that the caller does not ask for are skipped. Groups (wire types 3 and 4) are refused. The
// caller limits how deep messages nest. Not thread-safe.
#ifndef MINIPOD_SIM_BASE_PROTO_H_
#define MINIPOD_SIM_BASE_PROTO_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/base/str.h"

// The wire types, by their numbers on the wire.
typedef enum {
  MP_PROTO_VARINT = 0,
  MP_PROTO_FIXED64 = 1,
  MP_PROTO_BYTES = 2,
  MP_PROTO_FIXED32 = 5,
} mp_proto_wire_t;

typedef struct {
  const uint8_t *start;   // of the outermost message: what offsets are counted from
  const uint8_t *cursor;  // next byte
  const uint8_t *end;
  const char *message;  // what is being read, for errors: "CompileOptionsProto"; static text
  const char *fault;    // static text of the first mistake, NULL while all is well
  size_t fault_offset;
  uint32_t fault_field;  // its field number, 0 when it lies outside of a field
} mp_proto_reader_t;

typedef struct {
  uint32_t number;
  mp_proto_wire_t wire;
  uint64_t value;         // VARINT, FIXED32, FIXED64: the raw bits
  mp_str_t bytes;         // BYTES: borrowed from the message
  const uint8_t *origin;  // where its key starts
} mp_proto_field_t;

// A reader at the beginning of a message. `message` is its name for errors, a static text.
mp_proto_reader_t mp_proto_reader(mp_str_t bytes, const char *message);
// OK, or INVALID_ARGUMENT with message name, field number, offset and reason.
MP_NODISCARD mp_status_t mp_proto_reader_status(const mp_proto_reader_t *reader);

// The next field; false at the end of the message or after a mistake.
bool mp_proto_next(mp_proto_reader_t *reader, mp_proto_field_t *out_field);

// The value of a field as the type that the schema gives it. A field of another wire type is a
// mistake, which `reader` remembers; the result is then zero or empty. int32, int64, uint64 and
// enumerations are varints: cast the result. Zig-zag types do not occur in what minipod reads.
uint64_t mp_proto_varint(mp_proto_reader_t *reader, const mp_proto_field_t *field);
bool mp_proto_bool(mp_proto_reader_t *reader, const mp_proto_field_t *field);
float mp_proto_float(mp_proto_reader_t *reader, const mp_proto_field_t *field);
double mp_proto_double(mp_proto_reader_t *reader, const mp_proto_field_t *field);
mp_str_t mp_proto_bytes(mp_proto_reader_t *reader, const mp_proto_field_t *field);
// A reader for an inner message. Offsets in its errors count from the outermost message. It keeps
// its own mistakes, so it must be asked for its own status.
mp_proto_reader_t mp_proto_message(mp_proto_reader_t *reader, const mp_proto_field_t *field,
                                   const char *message);
// Records a mistake that the caller found in a value, unless there was one before; `fault` is a
// static text.
void mp_proto_fault(mp_proto_reader_t *reader, const mp_proto_field_t *field, const char *fault);

// The values of one occurrence of a repeated scalar field, which may be packed.
typedef struct {
  mp_proto_reader_t *reader;
  mp_proto_field_t field;
  const uint8_t *cursor, *end;  // of a packed field
  mp_proto_wire_t wire;
  bool single;  // the field is not packed, and its one value was not given yet
} mp_proto_values_t;

// Begins with the values of a field. `wire` is the elements' type (VARINT, FIXED32 or FIXED64);
// `reader` remembers mistakes.
mp_proto_values_t mp_proto_values(mp_proto_reader_t *reader, const mp_proto_field_t *field,
                                  mp_proto_wire_t wire);
// The raw bits of the next value; false at the end or after a mistake.
bool mp_proto_values_next(mp_proto_values_t *values, uint64_t *out_bits);
// How many values are left. It is never more than the input has bytes, so that it may be used as
// the size of an allocation.
size_t mp_proto_values_count(const mp_proto_values_t *values);

// Writing: each call appends one field to the buffer, which remembers failed allocations (ask
// mp_strbuf_status once at the end). Zero is written like any other value; where a default shall be
// absent, leave the call out.
void mp_proto_put_varint(mp_strbuf_t *buffer, uint32_t number, uint64_t value);
// Only tests write floats.
void mp_proto_put_float(mp_strbuf_t *buffer, uint32_t number, float value);
void mp_proto_put_double(mp_strbuf_t *buffer, uint32_t number, double value);
void mp_proto_put_bytes(mp_strbuf_t *buffer, uint32_t number, mp_str_t bytes);
// Appends an inner message that was built in a buffer of its own. If a write to `inner` failed,
// `buffer` counts as failed too.
void mp_proto_put_message(mp_strbuf_t *buffer, uint32_t number, const mp_strbuf_t *inner);
// Appends a whole message behind its size, as files of several messages have them.
void mp_proto_put_delimited(mp_strbuf_t *buffer, const mp_strbuf_t *message);
// Appends a packed repeated field of varints; appends nothing when `count` is 0.
void mp_proto_put_packed(mp_strbuf_t *buffer, uint32_t number, const int64_t *values, size_t count);

#endif  // MINIPOD_SIM_BASE_PROTO_H_
