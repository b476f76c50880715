#include "sim/readers/bytecode/bytecode_cursor.h"
#include "sim/base/assert.h"

#include <string.h>

enum { PADDING_BYTE = 0xCB, SECTION_ALIGNED = 0x80 };

static mp_status_t bytecode_cursor_fail(const mp_bc_cursor_t *c, mp_status_code_t code,
                                        const char *format, va_list args) {
  return mp_status_annotate(mp_status_vmake(code, format, args), "bytecode: offset %zu",
                            (size_t)(c->at - c->start));
}

mp_status_t mp_bc_fail(const mp_bc_cursor_t *c, const char *format, ...) {
  va_list args;
  va_start(args, format);
  mp_status_t status = bytecode_cursor_fail(c, MP_INVALID_ARGUMENT, format, args);
  va_end(args);
  return status;
}

mp_status_t mp_bc_unknown(const mp_bc_cursor_t *c, const char *format, ...) {
  va_list args;
  va_start(args, format);
  mp_status_t status = bytecode_cursor_fail(c, MP_UNIMPLEMENTED, format, args);
  va_end(args);
  return status;
}

mp_status_t mp_bc_byte(mp_bc_cursor_t *c, uint8_t *out_value) {
  if (c->at == c->end) return mp_bc_fail(c, "the data end where a byte is expected");
  *out_value = *c->at++;
  return NULL;
}

// The zero bits below the lowest set bit of the first byte count the bytes that follow it; a zero
// first byte is followed by eight.
mp_status_t mp_bc_varint(mp_bc_cursor_t *c, uint64_t *out_value) {
  if (c->at == c->end) return mp_bc_fail(c, "the data end where a number is expected");
  int extra = *c->at == 0 ? 8 : __builtin_ctz(*c->at);
  if (mp_bc_left(c) < (size_t)extra + 1) return mp_bc_fail(c, "a number is cut off");
  uint64_t value = 0;
  if (extra == 8) {
    for (int i = 0; i < 8; ++i) value |= (uint64_t)c->at[1 + i] << (8 * i);
  } else {
    for (int i = 0; i <= extra; ++i) value |= (uint64_t)c->at[i] << (8 * i);
    value >>= extra + 1;
  }
  c->at += extra + 1;
  MP_ASSERT(c->at <= c->end);
  *out_value = value;
  return NULL;
}

// Errors name the offset where the number begins, not where it ends.
mp_status_t mp_bc_bounded(mp_bc_cursor_t *c, uint64_t max, const char *what, uint64_t *out_value) {
  mp_bc_cursor_t before = *c;
  uint64_t value = 0;
  MP_RETURN_IF_ERROR(mp_bc_varint(c, &value));
  if (value > max) {
    return mp_bc_fail(&before, "%s is %llu; at most %llu is possible", what,
                      (unsigned long long)value, (unsigned long long)max);
  }
  *out_value = value;
  return NULL;
}

mp_status_t mp_bc_svarint(mp_bc_cursor_t *c, int64_t *out_value) {
  uint64_t value = 0;
  MP_RETURN_IF_ERROR(mp_bc_varint(c, &value));
  *out_value = (int64_t)((value >> 1) ^ (0 - (value & 1)));
  return NULL;
}

mp_status_t mp_bc_flagged(mp_bc_cursor_t *c, uint64_t *out_value, bool *out_flag) {
  uint64_t value = 0;
  MP_RETURN_IF_ERROR(mp_bc_varint(c, &value));
  *out_value = value >> 1;
  *out_flag = (value & 1) != 0;
  return NULL;
}

mp_status_t mp_bc_bool(mp_bc_cursor_t *c, bool *out_value) {
  mp_bc_cursor_t before = *c;
  uint8_t value = 0;
  MP_RETURN_IF_ERROR(mp_bc_byte(c, &value));
  if (value > 1) return mp_bc_fail(&before, "a boolean is %u", value);
  *out_value = value == 1;
  return NULL;
}

// Every element takes at least a byte, so this check bounds what is allocated by the file's size.
// The module's own counts have 32 bits, which a file of some gigabytes could exceed.
mp_status_t mp_bc_check_count(const mp_bc_cursor_t *c, uint64_t count, const char *what) {
  if (count > mp_bc_left(c)) {
    return mp_bc_fail(c, "%llu %s do not fit into the %zu bytes left", (unsigned long long)count,
                      what, mp_bc_left(c));
  }
  if (count <= MP_BC_MAX_COUNT) return NULL;
  return mp_bc_fail(c, "%llu %s are more than the %d that are possible", (unsigned long long)count,
                    what, MP_BC_MAX_COUNT);
}

mp_status_t mp_bc_count(mp_bc_cursor_t *c, const char *what, size_t *out_count) {
  uint64_t count = 0;
  MP_RETURN_IF_ERROR(mp_bc_varint(c, &count));
  MP_RETURN_IF_ERROR(mp_bc_check_count(c, count, what));
  *out_count = (size_t)count;
  return NULL;
}

mp_status_t mp_bc_bytes(mp_bc_cursor_t *c, uint64_t size, const uint8_t **out_bytes) {
  if (size > mp_bc_left(c)) {
    return mp_bc_fail(c, "%llu bytes are announced, %zu are left", (unsigned long long)size,
                      mp_bc_left(c));
  }
  *out_bytes = c->at;
  c->at += size;
  MP_ASSERT(c->at <= c->end);
  return NULL;
}

mp_status_t mp_bc_cstring(mp_bc_cursor_t *c, mp_str_t *out_text) {
  const uint8_t *nul = memchr(c->at, 0, mp_bc_left(c));
  if (nul == NULL) return mp_bc_fail(c, "a text has no end");
  *out_text = (mp_str_t){(const char *)c->at, (size_t)(nul - c->at)};
  c->at = nul + 1;
  return NULL;
}

mp_status_t mp_bc_blob(mp_bc_cursor_t *c, const uint8_t **out_bytes, size_t *out_size) {
  uint64_t size = 0;
  MP_RETURN_IF_ERROR(mp_bc_varint(c, &size));
  MP_RETURN_IF_ERROR(mp_bc_bytes(c, size, out_bytes));
  *out_size = (size_t)size;
  return NULL;
}

mp_status_t mp_bc_bits(mp_bc_cursor_t *c, int width, uint64_t *out_bits) {
  uint64_t bits = 0;
  MP_ASSERT(width >= 1 && width <= 64);
  if (width <= 8) {
    uint8_t byte = 0;
    MP_RETURN_IF_ERROR(mp_bc_byte(c, &byte));
    bits = byte;
  } else {
    int64_t value = 0;
    MP_RETURN_IF_ERROR(mp_bc_svarint(c, &value));
    bits = (uint64_t)value;
  }
  // Writers differ in the bits above the type's bits.
  *out_bits = width >= 64 ? bits : bits & ((UINT64_C(1) << width) - 1);
  return NULL;
}

// The format aligns addresses, in a buffer that is itself aligned; so offsets can be used instead.
static mp_status_t bytecode_cursor_skip_padding(mp_bc_cursor_t *c) {
  uint64_t align = 0;
  MP_RETURN_IF_ERROR(mp_bc_varint(c, &align));
  if (align == 0 || (align & (align - 1)) != 0) {
    return mp_bc_fail(c, "an alignment of %llu is not a power of two", (unsigned long long)align);
  }
  while ((size_t)(c->at - c->start) % align != 0) {
    if (c->at == c->end) return mp_bc_fail(c, "the data end within padding");
    if (*c->at != PADDING_BYTE) return mp_bc_fail(c, "padding holds byte %#x", *c->at);
    ++c->at;
  }
  return NULL;
}

// Padding is between the header and the data, and belongs to neither.
mp_status_t mp_bc_section(mp_bc_cursor_t *c, uint8_t *out_id, mp_bc_cursor_t *out_data) {
  uint8_t id = 0;
  uint64_t size = 0;
  MP_RETURN_IF_ERROR(mp_bc_byte(c, &id));
  MP_RETURN_IF_ERROR(mp_bc_varint(c, &size));
  if (id & SECTION_ALIGNED) MP_RETURN_IF_ERROR(bytecode_cursor_skip_padding(c));
  mp_bc_cursor_t data = *c;
  const uint8_t *bytes = NULL;
  MP_RETURN_IF_ERROR(mp_bc_bytes(c, size, &bytes));
  MP_ASSERT(data.at == bytes);
  data.end = c->at;
  *out_id = id & (SECTION_ALIGNED - 1);
  *out_data = data;
  return NULL;
}

// Remaining bytes mean that the reader and the writer disagree on the form.
mp_status_t mp_bc_finish(const mp_bc_cursor_t *c, const char *what) {
  if (c->at == c->end) return NULL;
  return mp_bc_fail(c, "%zu bytes are left over in %s", mp_bc_left(c), what);
}
