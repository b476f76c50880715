// Arrays of two devices, element by element: by their bits, so that equal NaNs are equal.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/hash.h"
#include "sim/runtime/replicas/replicas.h"

// The part of an array that a device holds, in contiguous rows.
typedef struct {
  const mp_replicated_t *array;
  const int64_t *sizes;   // [rank]
  const int64_t *starts;  // [rank]; NULL: it begins at 0
  uint64_t num_rows, row_elements;
} part_t;

static part_t replicas_compare_part(const mp_replicas_t *replicas, const mp_replicated_t *array,
                                    uint32_t d) {
  const size_t at = (size_t)(d % replicas->num_partitions) * array->rank;
  part_t part = {.array = array, .sizes = array->dims, .num_rows = 1, .row_elements = 1};
  if (array->sizes != NULL) {
    part.sizes = array->sizes + at;
    part.starts = array->starts + at;
  }
  // From the last dimension on, as long as the elements are contiguous.
  uint32_t i = array->rank;
  while (i > 0) {
    part.row_elements *= (uint64_t)part.sizes[--i];
    if (part.sizes[i] != array->dims[i]) break;
  }
  while (i > 0) part.num_rows *= (uint64_t)part.sizes[--i];
  return part;
}

// The coordinates, in the part, of the element with this number.
static void replicas_compare_coordinates(const part_t *part, uint64_t number, int64_t *out) {
  for (uint32_t i = part->array->rank; i-- > 0;) {
    out[i] = (int64_t)(number % (uint64_t)part->sizes[i]);
    number /= (uint64_t)part->sizes[i];
  }
}

// The byte offset, in the array on a device, of the part's element with this number.
static size_t replicas_compare_offset(const part_t *part, uint64_t number) {
  int64_t at[MP_MAX_RANK];
  replicas_compare_coordinates(part, number, at);
  uint64_t offset = 0;
  for (uint32_t i = 0; i < part->array->rank; ++i) {
    offset = offset * (uint64_t)part->array->dims[i] + (uint64_t)at[i];
  }
  return (size_t)offset * mp_dtype_size(part->array->dtype);
}

static void replicas_compare_row(const part_t *part, uint64_t row, const char *a, const char *b,
                                 mp_replicas_difference_t *difference) {
  const size_t size = mp_dtype_size(part->array->dtype);
  const size_t offset = replicas_compare_offset(part, row * part->row_elements);
  a += offset;
  b += offset;
  if (memcmp(a, b, part->row_elements * size) == 0) return;
  for (uint64_t i = 0; i < part->row_elements; ++i) {
    if (memcmp(a + i * size, b + i * size, size) == 0) continue;
    if (difference->num_different == 0) difference->first = row * part->row_elements + i;
    difference->num_different += 1;
  }
}

mp_replicas_difference_t mp_replicas_compare(const mp_replicas_t *replicas,
                                             const mp_replicated_t *array, uint32_t d,
                                             const void *data, const void *data_of_first) {
  const part_t part = replicas_compare_part(replicas, array, d);
  mp_replicas_difference_t difference = {.num_elements = part.num_rows * part.row_elements};
  if (difference.num_elements == 0) return difference;
  for (uint64_t row = 0; row < part.num_rows; ++row) {
    replicas_compare_row(&part, row, data, data_of_first, &difference);
  }
  return difference;
}

uint64_t mp_replicas_digest(const mp_replicas_t *replicas, const mp_replicated_t *array, uint32_t d,
                            const void *data) {
  const part_t part = replicas_compare_part(replicas, array, d);
  uint64_t digest = MP_HASH_START;
  if (part.num_rows * part.row_elements == 0) return digest;
  const size_t bytes = part.row_elements * mp_dtype_size(array->dtype);
  for (uint64_t row = 0; row < part.num_rows; ++row) {
    const size_t offset = replicas_compare_offset(&part, row * part.row_elements);
    digest = mp_hash_bytes(digest, (const char *)data + offset, bytes);
  }
  return digest;
}

// ---- Messages ----

// The shortest decimal form that reads back to the same element.
static void replicas_compare_put_float(mp_dtype_t dtype, const void *element, mp_strbuf_t *out) {
  enum { MOST_DIGITS = 17 };
  const double value = mp_float_decode(dtype, element);
  if (isinf(value)) {
    mp_strbuf_puts(out, value < 0 ? "-inf" : "inf");
    return;
  }
  if (isnan(value)) {  // with its bits, because two NaNs may differ
    uint64_t bits = 0;
    memcpy(&bits, element, mp_dtype_size(dtype));
    mp_strbuf_printf(out, "nan (0x%" PRIx64 ")", bits);
    return;
  }
  for (int digits = 1; digits <= MOST_DIGITS; ++digits) {
    char text[48];
    double read = 0;
    unsigned char again[sizeof(double)] = {0};
    (void)snprintf(text, sizeof(text), "%.*g", digits, value);
    if (mp_str_scan_double(mp_str(text), &read) != strlen(text)) continue;
    mp_float_encode(dtype, read, again);
    if (memcmp(again, element, mp_dtype_size(dtype)) != 0) continue;
    mp_strbuf_puts(out, text);
    return;
  }
  mp_strbuf_put_double(out, value);
}

static void replicas_compare_put_integer(mp_dtype_t dtype, const void *element, mp_strbuf_t *out) {
  uint64_t bits = 0;
  memcpy(&bits, element, mp_dtype_size(dtype));
  const int unused = 64 - mp_dtype_bits(dtype);
  if (mp_dtype_class(dtype) == MP_CLASS_UNSIGNED) {
    mp_strbuf_printf(out, "%" PRIu64, bits << unused >> unused);
  } else {
    mp_strbuf_printf(out, "%" PRId64, (int64_t)(bits << unused) >> unused);
  }
}

static void replicas_compare_put_element(mp_dtype_t dtype, const void *element, mp_strbuf_t *out) {
  const mp_dtype_t part = mp_dtype_real_part(dtype);
  switch (mp_dtype_class(dtype)) {
    case MP_CLASS_BOOL:
      mp_strbuf_puts(out, *(const unsigned char *)element != 0 ? "true" : "false");
      break;
    case MP_CLASS_FLOAT:
      replicas_compare_put_float(dtype, element, out);
      break;
    case MP_CLASS_COMPLEX:
      mp_strbuf_putc(out, '(');
      replicas_compare_put_float(part, element, out);
      mp_strbuf_puts(out, ", ");
      replicas_compare_put_float(part, (const char *)element + mp_dtype_size(part), out);
      mp_strbuf_putc(out, ')');
      break;
    default:
      replicas_compare_put_integer(dtype, element, out);
  }
}

void mp_replicas_print(const mp_replicas_t *replicas, const mp_replicated_t *array, uint32_t d,
                       const mp_replicas_difference_t *difference, const void *data,
                       const void *data_of_first, mp_strbuf_t *out) {
  const part_t part = replicas_compare_part(replicas, array, d);
  int64_t at[MP_MAX_RANK], whole[MP_MAX_RANK];
  replicas_compare_coordinates(&part, difference->first, at);
  for (uint32_t i = 0; i < array->rank; ++i) {
    const int64_t start = part.starts == NULL ? 0 : part.starts[i];
    whole[array->order == NULL ? i : array->order[i]] = start + at[i];
  }
  mp_strbuf_printf(out, "%" PRIu64 " of %" PRIu64 " elements (first at [",
                   difference->num_different, difference->num_elements);
  for (uint32_t i = 0; i < array->rank; ++i) {
    mp_strbuf_printf(out, "%s%" PRId64, i == 0 ? "" : ", ", whole[i]);
  }
  mp_strbuf_puts(out, "]: ");
  const size_t offset = replicas_compare_offset(&part, difference->first);
  replicas_compare_put_element(array->dtype, (const char *)data + offset, out);
  mp_strbuf_puts(out, " instead of ");
  replicas_compare_put_element(array->dtype, (const char *)data_of_first + offset, out);
  mp_strbuf_putc(out, ')');
}
