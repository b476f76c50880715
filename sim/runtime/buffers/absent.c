#include "sim/runtime/buffers/absent.h"

#include <math.h>
#include <string.h>

#include "sim/base/alloc.h"
#include "sim/kernels/strided.h"
#include "sim/runtime/devices/device_impl.h"

enum { ABSENT_ELEMENT = 16 };  // bytes of the largest element

// ---- Numbers ----

static double absent_number(mp_absent_mode_t mode, mp_dtype_t real) {
  char element[ABSENT_ELEMENT];
  if (mode != MP_ABSENT_MODE_NAN) return mode == MP_ABSENT_MODE_ONE ? 1 : 0;
  mp_float_encode(real, (double)NAN, element);
  return isnan(mp_float_decode(real, element)) ? (double)NAN : 0;  // types without NaN have none
}

// One element: NaN for floating-point numbers, else 0 and false; or zero, or one and true.
static void absent_put_element(mp_absent_mode_t mode, mp_dtype_t dtype, char *element) {
  const size_t size = mp_dtype_size(dtype);
  const mp_dtype_t real = mp_dtype_real_part(dtype);
  if (mp_dtype_is_float(dtype) || mp_dtype_is_complex(dtype)) {
    const double number = absent_number(mode, real);
    mp_float_encode(real, number, element);
    if (!mp_dtype_is_complex(dtype)) return;
    mp_float_encode(real, isnan(number) ? number : 0, element + size / 2);  // 1 is 1 + 0j
  } else {
    element[0] = mode == MP_ABSENT_MODE_ONE;  // little-endian
  }
}

// Zeroed memory. Small blocks are aligned like arrays; the pages of large ones stay untouched.
static char *absent_allocate(uint64_t bytes) {
  if (bytes > MP_SMALL_BYTES) return mp_calloc(1, bytes);
  char *made = mp_aligned_malloc(64, bytes);
  if (made != NULL) memset(made, 0, bytes);
  return made;
}

// An array of equal elements from byte `offset` on.
static mp_status_t absent_make(mp_absent_mode_t mode, mp_dtype_t dtype, uint64_t offset,
                               uint64_t bytes, void **out_bytes) {
  char element[ABSENT_ELEMENT] = {0};
  _Alignas(ABSENT_ELEMENT) char
      turned[ABSENT_ELEMENT];  // one element, rotated to begin where the array does
  const size_t size = mp_dtype_size(dtype);
  char *made = absent_allocate(bytes + size);
  MP_RETURN_IF_NULL(made);
  *out_bytes = made;
  if (size == 0) return NULL;
  absent_put_element(mode, dtype, element);
  bool is_zero = true;
  for (size_t i = 0; i < size; ++i) {
    turned[i] = element[(offset + i) % size];
    is_zero &= turned[i] == 0;
  }
  if (!is_zero) mp_fill(made, turned, size, (int64_t)((bytes + size - 1) / size));
  return NULL;
}

// ---- Messages ----

// Appends "f32[], result 0 of jit_loss (reduce_sum at train.py:12:8)".
static void absent_describe(const mp_storage_t *storage, mp_strbuf_t *out) {
  mp_lock(&storage->memory->lock);
  mp_label_print(storage->label, out);
  mp_unlock(&storage->memory->lock);
  const mp_name_t *maker = storage->values->maker;
  if (maker != NULL) mp_strbuf_printf(out, " (%s)", maker->text);
}

static mp_status_t absent_error(const char *what) {
  return mp_status_make(
      MP_FAILED_PRECONDITION,
      "this array has no values: %s. With the option values: shapes minipod computes no array of "
      "more than 64 KiB, and nothing that depends on one. To read other numbers instead, set the "
      "option absent (MINIPOD_ABSENT) to nan, zero or one",
      what);
}

static void absent_tell(mp_client_t *client, const char *what) {
  if (atomic_exchange(&client->has_told_absent, true)) return;
  mp_log(
      MP_LOG_WARNING,
      "%s was not computed (option values: shapes); reads of such values give %s (option absent)",
      what, mp_absent_mode_name(client->absent));
}

mp_status_t mp_absent_read_as(mp_client_t *client, const char *what, mp_dtype_t dtype,
                              uint64_t bytes, void **out_bytes) {
  if (client->absent == MP_ABSENT_MODE_ERROR) return absent_error(what);
  absent_tell(client, what);
  return absent_make(client->absent, dtype, 0, bytes, out_bytes);
}

mp_status_t mp_absent_read(const mp_storage_t *storage, mp_dtype_t dtype, uint64_t offset,
                           uint64_t bytes, void **out_bytes) {
  mp_client_t *client = mp_device_client(storage->memory->device);
  const bool is_error = client->absent == MP_ABSENT_MODE_ERROR;
  if (is_error || !atomic_load(&client->has_told_absent)) {
    mp_strbuf_t what;
    mp_strbuf_init(&what);
    absent_describe(storage, &what);
    mp_status_t status = is_error ? absent_error(mp_strbuf_text(&what)) : NULL;
    if (!is_error) absent_tell(client, mp_strbuf_text(&what));
    mp_strbuf_deinit(&what);
    MP_RETURN_IF_ERROR(status);
  }
  return absent_make(client->absent, dtype, offset, bytes, out_bytes);
}
