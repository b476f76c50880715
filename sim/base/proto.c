#include "sim/base/proto.h"

#include <string.h>

#include "sim/base/assert.h"

#define WIRE_BITS       3
#define VARINT_MAX_SIZE 10
#define MAX_NUMBER      ((1u << 29) - 1)

mp_proto_reader_t mp_proto_reader(mp_str_t bytes, const char *message) {
  static const uint8_t nothing[1];
  const uint8_t *start = bytes.size == 0 ? nothing : (const uint8_t *)bytes.data;
  return (mp_proto_reader_t){
      .start = start, .cursor = start, .end = start + bytes.size, .message = message};
}

static void proto_latch(mp_proto_reader_t *reader, uint32_t number, const uint8_t *where,
                        const char *fault) {
  if (reader->fault != NULL) return;
  MP_ASSERT(fault != NULL && where >= reader->start && where <= reader->end);
  reader->fault = fault;
  reader->fault_field = number;
  reader->fault_offset = (size_t)(where - reader->start);
}

void mp_proto_fault(mp_proto_reader_t *reader, const mp_proto_field_t *field, const char *fault) {
  proto_latch(reader, field->number, field->origin, fault);
}

mp_status_t mp_proto_reader_status(const mp_proto_reader_t *reader) {
  if (reader->fault == NULL) return NULL;
  if (reader->fault_field == 0) {
    return mp_status_make(MP_INVALID_ARGUMENT, "%s: at byte %zu: %s", reader->message,
                          reader->fault_offset, reader->fault);
  }
  return mp_status_make(MP_INVALID_ARGUMENT, "%s: field %u at byte %zu: %s", reader->message,
                        reader->fault_field, reader->fault_offset, reader->fault);
}

// Decodes a varint at *cursor and moves the cursor behind it; returns the fault or NULL. More than
// 64 bits are a mistake, because no writer of protocol buffers makes them.
static const char *proto_read_varint(const uint8_t **cursor, const uint8_t *end,
                                     uint64_t *out_value) {
  uint64_t value = 0;
  const uint8_t *at = *cursor;
  for (int i = 0; i < VARINT_MAX_SIZE; ++i) {
    if (at == end) return "a number is cut off";
    uint8_t byte = *at++;
    if (i == VARINT_MAX_SIZE - 1 && byte > 1) return "a number has more than 64 bits";
    value |= (uint64_t)(byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      *cursor = at;
      *out_value = value;
      return NULL;
    }
  }
  return "a number has more than 64 bits";
}

// Decodes a little-endian number of `size` bytes (4 or 8).
static const char *proto_read_fixed(const uint8_t **cursor, const uint8_t *end, size_t size,
                                    uint64_t *out_value) {
  if ((size_t)(end - *cursor) < size) return "a fixed-size number is cut off";
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value |= (uint64_t)(*cursor)[i] << (8 * i);
  *cursor += size;
  *out_value = value;
  return NULL;
}

static const char *proto_read_scalar(mp_proto_wire_t wire, const uint8_t **cursor,
                                     const uint8_t *end, uint64_t *out_value) {
  if (wire == MP_PROTO_VARINT) return proto_read_varint(cursor, end, out_value);
  return proto_read_fixed(cursor, end, wire == MP_PROTO_FIXED32 ? 4 : 8, out_value);
}

static const char *proto_read_payload(mp_proto_reader_t *reader, mp_proto_field_t *field) {
  switch (field->wire) {
    case MP_PROTO_VARINT:
    case MP_PROTO_FIXED32:
    case MP_PROTO_FIXED64:
      return proto_read_scalar(field->wire, &reader->cursor, reader->end, &field->value);
    case MP_PROTO_BYTES: {
      uint64_t size = 0;
      const char *fault = proto_read_varint(&reader->cursor, reader->end, &size);
      if (fault != NULL) return fault;
      if (size > (uint64_t)(reader->end - reader->cursor)) return "its length passes the end";
      field->bytes = (mp_str_t){(const char *)reader->cursor, (size_t)size};
      reader->cursor += size;
      return NULL;
    }
  }
  return "it has a wire type that is not read (a group, or unknown)";
}

bool mp_proto_next(mp_proto_reader_t *reader, mp_proto_field_t *out_field) {
  MP_ASSERT(reader->cursor >= reader->start && reader->cursor <= reader->end);
  if (reader->fault != NULL || reader->cursor == reader->end) return false;
  mp_proto_field_t field = {.origin = reader->cursor, .bytes = {"", 0}};
  uint64_t key = 0;
  const char *fault = proto_read_varint(&reader->cursor, reader->end, &key);
  if (fault == NULL && (key >> WIRE_BITS == 0 || key >> WIRE_BITS > MAX_NUMBER)) {
    fault = "not a field number";
  }
  if (fault != NULL) {
    proto_latch(reader, 0, field.origin, fault);
    return false;
  }
  field.number = (uint32_t)(key >> WIRE_BITS);
  field.wire = (mp_proto_wire_t)(key & ((1 << WIRE_BITS) - 1));
  fault = proto_read_payload(reader, &field);
  if (fault != NULL) {
    proto_latch(reader, field.number, field.origin, fault);
    return false;
  }
  *out_field = field;
  return true;
}

static bool proto_has_wire(mp_proto_reader_t *reader, const mp_proto_field_t *field,
                           mp_proto_wire_t wire) {
  if (field->wire == wire) return true;
  mp_proto_fault(reader, field, "its wire type is not the one that this field has");
  return false;
}

uint64_t mp_proto_varint(mp_proto_reader_t *reader, const mp_proto_field_t *field) {
  return proto_has_wire(reader, field, MP_PROTO_VARINT) ? field->value : 0;
}

bool mp_proto_bool(mp_proto_reader_t *reader, const mp_proto_field_t *field) {
  return mp_proto_varint(reader, field) != 0;
}

float mp_proto_float(mp_proto_reader_t *reader, const mp_proto_field_t *field) {
  float value = 0;
  if (!proto_has_wire(reader, field, MP_PROTO_FIXED32)) return value;
  uint32_t bits = (uint32_t)field->value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

double mp_proto_double(mp_proto_reader_t *reader, const mp_proto_field_t *field) {
  double value = 0;
  if (proto_has_wire(reader, field, MP_PROTO_FIXED64)) memcpy(&value, &field->value, sizeof(value));
  return value;
}

mp_str_t mp_proto_bytes(mp_proto_reader_t *reader, const mp_proto_field_t *field) {
  return proto_has_wire(reader, field, MP_PROTO_BYTES) ? field->bytes : MP_STR("");
}

mp_proto_reader_t mp_proto_message(mp_proto_reader_t *reader, const mp_proto_field_t *field,
                                   const char *message) {
  mp_str_t bytes = mp_proto_bytes(reader, field);
  mp_proto_reader_t inner = mp_proto_reader(bytes, message);
  if (bytes.size != 0) inner.start = reader->start;
  return inner;
}

mp_proto_values_t mp_proto_values(mp_proto_reader_t *reader, const mp_proto_field_t *field,
                                  mp_proto_wire_t wire) {
  mp_proto_values_t values = {.reader = reader, .field = *field, .wire = wire};
  if (field->wire == MP_PROTO_BYTES) {
    values.cursor = (const uint8_t *)field->bytes.data;
    values.end = values.cursor + field->bytes.size;
  } else {
    values.single = proto_has_wire(reader, field, wire);
  }
  return values;
}

bool mp_proto_values_next(mp_proto_values_t *values, uint64_t *out_bits) {
  if (values->single) {
    values->single = false;
    *out_bits = values->field.value;
    return true;
  }
  if (values->reader->fault != NULL || values->cursor == values->end) return false;
  const char *fault = proto_read_scalar(values->wire, &values->cursor, values->end, out_bits);
  if (fault == NULL) return true;
  mp_proto_fault(values->reader, &values->field, fault);
  return false;
}

size_t mp_proto_values_count(const mp_proto_values_t *values) {
  if (values->single) return 1;
  if (values->wire != MP_PROTO_VARINT) {
    return (size_t)(values->end - values->cursor) / (values->wire == MP_PROTO_FIXED32 ? 4 : 8);
  }
  size_t count = 0;
  for (const uint8_t *at = values->cursor; at != values->end; ++at) count += *at < 0x80;
  return count;
}

static void proto_put_raw(mp_strbuf_t *buffer, uint64_t value) {
  char bytes[VARINT_MAX_SIZE];
  size_t size = 0;
  for (; value >= 0x80; value >>= 7) bytes[size++] = (char)(value | 0x80);
  bytes[size++] = (char)value;
  mp_strbuf_append(buffer, bytes, size);
}

static void proto_put_key(mp_strbuf_t *buffer, uint32_t number, mp_proto_wire_t wire) {
  proto_put_raw(buffer, (uint64_t)number << WIRE_BITS | (uint64_t)wire);
}

static void proto_put_fixed(mp_strbuf_t *buffer, uint64_t value, size_t size) {
  char bytes[8];
  for (size_t i = 0; i < size; ++i) bytes[i] = (char)(value >> (8 * i));
  mp_strbuf_append(buffer, bytes, size);
}

void mp_proto_put_varint(mp_strbuf_t *buffer, uint32_t number, uint64_t value) {
  proto_put_key(buffer, number, MP_PROTO_VARINT);
  proto_put_raw(buffer, value);
}

void mp_proto_put_float(mp_strbuf_t *buffer, uint32_t number, float value) {
  uint32_t bits = 0;
  memcpy(&bits, &value, sizeof(bits));
  proto_put_key(buffer, number, MP_PROTO_FIXED32);
  proto_put_fixed(buffer, bits, sizeof(bits));
}

void mp_proto_put_double(mp_strbuf_t *buffer, uint32_t number, double value) {
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof(bits));
  proto_put_key(buffer, number, MP_PROTO_FIXED64);
  proto_put_fixed(buffer, bits, sizeof(bits));
}

static void proto_put_sized(mp_strbuf_t *buffer, mp_str_t bytes) {
  proto_put_raw(buffer, bytes.size);
  mp_strbuf_append(buffer, bytes.data, bytes.size);
}

void mp_proto_put_bytes(mp_strbuf_t *buffer, uint32_t number, mp_str_t bytes) {
  proto_put_key(buffer, number, MP_PROTO_BYTES);
  proto_put_sized(buffer, bytes);
}

void mp_proto_put_delimited(mp_strbuf_t *buffer, const mp_strbuf_t *message) {
  if (message->failed) buffer->failed = true;
  proto_put_sized(buffer, (mp_str_t){mp_strbuf_text(message), message->size});
}

void mp_proto_put_message(mp_strbuf_t *buffer, uint32_t number, const mp_strbuf_t *inner) {
  if (inner->failed) buffer->failed = true;  // before the key: nothing half is appended
  proto_put_key(buffer, number, MP_PROTO_BYTES);
  mp_proto_put_delimited(buffer, inner);
}

void mp_proto_put_packed(mp_strbuf_t *buffer, uint32_t number, const int64_t *values,
                         size_t count) {
  if (count == 0) return;
  mp_strbuf_t packed;
  mp_strbuf_init(&packed);
  for (size_t i = 0; i < count; ++i) proto_put_raw(&packed, (uint64_t)values[i]);
  mp_proto_put_message(buffer, number, &packed);
  mp_strbuf_deinit(&packed);
}
