#include "pjrt/command/exec_array.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pjrt/command/command.h"
#include "sim/base/alloc.h"
#include "sim/base/os/system.h"

static const char g_magic[] = "\x93NUMPY";
enum { MAGIC_SIZE = 6, ALIGNMENT = 64 };

void mp_exec_array_deinit(mp_exec_array_t *array) {
  mp_free(array->data);
  array->data = NULL;
}

mp_status_t mp_exec_array_allocate(mp_exec_array_t *array) {
  array->data = mp_calloc((size_t)array->count, mp_dtype_size(array->dtype));
  MP_RETURN_IF_NULL(array->data);
  return NULL;
}

void mp_exec_array_print_type(const mp_exec_array_t *array, mp_strbuf_t *out) {
  mp_strbuf_printf(out, "%s[", mp_dtype_name(array->dtype));
  for (uint32_t d = 0; d < array->rank; ++d) {
    mp_strbuf_printf(out, d == 0 ? "%lld" : ",%lld", (long long)array->dims[d]);
  }
  mp_strbuf_putc(out, ']');
}

// ---- the header ----

// NumPy's letter for the kind of a type; 'V' is raw bytes.
static char exec_array_kind(mp_dtype_t dtype) {
  const bool is_whole = mp_dtype_bits(dtype) >= 8;
  switch (mp_dtype_class(dtype)) {
    case MP_CLASS_BOOL:
      return 'b';
    case MP_CLASS_SIGNED:
      return is_whole ? 'i' : 'V';
    case MP_CLASS_UNSIGNED:
      return is_whole ? 'u' : 'V';
    case MP_CLASS_FLOAT:
      return dtype == MP_DTYPE_F16 || dtype == MP_DTYPE_F32 || dtype == MP_DTYPE_F64 ? 'f' : 'V';
    case MP_CLASS_COMPLEX:
      return 'c';
    case MP_CLASS_NONE:
      break;
  }
  return 'V';
}

bool mp_exec_array_is_raw(mp_dtype_t dtype) {
  return exec_array_kind(dtype) == 'V';
}

static void exec_array_print_descr(mp_dtype_t dtype, mp_strbuf_t *out) {
  const char kind = exec_array_kind(dtype);
  const size_t size = mp_dtype_size(dtype);
  mp_strbuf_printf(out, "'%c%c%zu'", size == 1 || kind == 'V' ? '|' : '<', kind, size);
}

static void exec_array_print_header(const mp_exec_array_t *array, mp_strbuf_t *out) {
  mp_strbuf_puts(out, "{'descr': ");
  exec_array_print_descr(array->dtype, out);
  mp_strbuf_puts(out, ", 'fortran_order': False, 'shape': (");
  for (uint32_t d = 0; d < array->rank; ++d) {
    mp_strbuf_printf(out, d == 0 ? "%lld," : " %lld,", (long long)array->dims[d]);
  }
  mp_strbuf_puts(out, "), }");
  while ((MAGIC_SIZE + 4 + out->size + 1) % ALIGNMENT != 0) mp_strbuf_putc(out, ' ');
  mp_strbuf_putc(out, '\n');
}

// The text after a key of the header, up to the header's end; empty: the key is missing.
static mp_str_t exec_array_find(mp_str_t header, const char *key) {
  const size_t size = strlen(key);
  for (size_t i = 0; i + size <= header.size; ++i) {
    if (memcmp(header.data + i, key, size) != 0) continue;
    mp_str_t rest = {header.data + i + size, header.size - i - size};
    mp_str_cut(&rest, ':');
    return mp_str_trim(rest);
  }
  return mp_str("");
}

// Reads "(3, 8)"; false: it is malformed, or has too many dimensions.
static bool exec_array_read_shape(mp_str_t text, int64_t *out_dims, uint32_t *out_rank) {
  if (!mp_str_starts_with(text, "(")) return false;
  mp_str_t list = {text.data + 1, text.size - 1};
  list = mp_str_cut(&list, ')');
  uint32_t rank = 0;
  for (list = mp_str_trim(list); list.size > 0; list = mp_str_trim(list)) {
    long long dim;
    const mp_str_t word = mp_str_trim(mp_str_cut(&list, ','));
    if (rank == MP_EXEC_MAX_RANK || !mp_str_parse_i64(word, &dim) || dim < 0) return false;
    out_dims[rank++] = dim;
  }
  *out_rank = rank;
  return true;
}

typedef struct {
  mp_str_t descr;  // "<f4"
  bool is_fortran;
  uint32_t rank;
  int64_t dims[MP_EXEC_MAX_RANK];
  mp_str_t data;
} exec_array_file_t;

// Splits a file; false: it is not NumPy's.
static bool exec_array_parse(mp_str_t file, exec_array_file_t *out) {
  if (file.size < MAGIC_SIZE + 6 || memcmp(file.data, g_magic, MAGIC_SIZE) != 0) return false;
  const unsigned char *bytes = (const unsigned char *)file.data + MAGIC_SIZE;
  size_t size = bytes[2] | (size_t)bytes[3] << 8, begin = MAGIC_SIZE + 4;
  if (bytes[0] != 1) {
    size |= (size_t)bytes[4] << 16 | (size_t)bytes[5] << 24;
    begin += 2;
  }
  if (bytes[0] < 1 || bytes[0] > 3 || size > file.size - begin) return false;
  const mp_str_t header = {file.data + begin, size};
  mp_str_t descr = exec_array_find(header, "'descr'");
  if (!mp_str_starts_with(descr, "'")) return false;  // a list of fields
  descr = (mp_str_t){descr.data + 1, descr.size - 1};
  out->descr = mp_str_cut(&descr, '\'');
  const mp_str_t order = exec_array_find(header, "'fortran_order'");
  out->is_fortran = mp_str_starts_with(order, "True");
  out->data = (mp_str_t){header.data + size, file.size - begin - size};
  return (out->is_fortran || mp_str_starts_with(order, "False")) && out->descr.size >= 3 &&
         exec_array_read_shape(exec_array_find(header, "'shape'"), out->dims, &out->rank);
}

// ---- reading and writing ----

static bool exec_array_has_type(const exec_array_file_t *file, mp_dtype_t dtype) {
  long long size;
  const mp_str_t digits = {file->descr.data + 2, file->descr.size - 2};
  if (!mp_str_parse_i64(digits, &size) || (size_t)size != mp_dtype_size(dtype)) return false;
  if (file->descr.data[1] != exec_array_kind(dtype)) return false;
  return file->descr.data[0] != '>' || size == 1 || mp_exec_array_is_raw(dtype);
}

static mp_status_t exec_array_check(const exec_array_file_t *file, const char *path,
                                    const char *what, const mp_exec_array_t *array) {
  const bool is_same = exec_array_has_type(file, array->dtype) && file->rank == array->rank &&
                       memcmp(file->dims, array->dims, sizeof(file->dims[0]) * array->rank) == 0;
  const size_t bytes = (size_t)array->count * mp_dtype_size(array->dtype);
  if (is_same && file->data.size == bytes) return NULL;
  if (is_same) {
    return mp_status_make(MP_DATA_LOSS, "'%s' has %zu bytes of elements, not %zu", path,
                          file->data.size, bytes);
  }
  mp_strbuf_t wanted, found;
  mp_strbuf_init(&wanted);
  mp_strbuf_init(&found);
  mp_exec_array_print_type(array, &wanted);
  mp_strbuf_puts(&wanted, ", in a file ");
  exec_array_print_descr(array->dtype, &wanted);
  mp_strbuf_printf(&found, "'%.*s' and the shape (", MP_STR_ARG(file->descr));
  for (uint32_t d = 0; d < file->rank; ++d) {
    mp_strbuf_printf(&found, d == 0 ? "%lld" : ", %lld", (long long)file->dims[d]);
  }
  mp_status_t status = mp_status_make(MP_INVALID_ARGUMENT, "%s is %s; '%s' has %s)", what,
                                      mp_strbuf_text(&wanted), path, mp_strbuf_text(&found));
  mp_strbuf_deinit(&wanted);
  mp_strbuf_deinit(&found);
  return status;
}

// Converts the elements from column-major order (in the file) to row-major order.
static void exec_array_transpose(const char *from, mp_exec_array_t *array) {
  const size_t size = mp_dtype_size(array->dtype);
  int64_t index[MP_EXEC_MAX_RANK] = {0};
  for (int64_t i = 0; i < array->count; ++i) {
    int64_t place = 0;
    for (uint32_t d = 0; d < array->rank; ++d) place = place * array->dims[d] + index[d];
    memcpy(array->data + (size_t)place * size, from + (size_t)i * size, size);
    for (uint32_t d = 0; d < array->rank && ++index[d] == array->dims[d]; ++d) index[d] = 0;
  }
}

// Elements narrower than a byte are in its low bits, and the others are 0; NumPy extends signs.
static void exec_array_mask(mp_exec_array_t *array) {
  const int bits = mp_dtype_bits(array->dtype);
  for (int64_t i = 0; bits < 8 && i < array->count; ++i) {
    array->data[i] = (char)(array->data[i] & ((1 << bits) - 1));
  }
}

static mp_status_t exec_array_take(mp_str_t bytes, const char *path, const char *what,
                                   mp_exec_array_t *array) {
  exec_array_file_t file;
  if (!exec_array_parse(bytes, &file)) {
    return mp_status_make(MP_INVALID_ARGUMENT, "'%s' is not an .npy file of a plain array", path);
  }
  MP_RETURN_IF_ERROR(exec_array_check(&file, path, what, array));
  MP_RETURN_IF_ERROR(mp_exec_array_allocate(array));
  if (file.is_fortran) {
    exec_array_transpose(file.data.data, array);
  } else if (file.data.size > 0) {
    memcpy(array->data, file.data.data, file.data.size);
  }
  exec_array_mask(array);
  return NULL;
}

mp_status_t mp_exec_array_read(const char *path, const char *what, mp_exec_array_t *array) {
  mp_strbuf_t bytes;
  mp_strbuf_init(&bytes);
  mp_status_t status = mp_command_read(path, &bytes);
  if (status == NULL) {
    status = exec_array_take((mp_str_t){mp_strbuf_text(&bytes), bytes.size}, path, what, array);
  }
  mp_strbuf_deinit(&bytes);
  return status;
}

mp_status_t mp_exec_array_write(const char *path, const mp_exec_array_t *array) {
  mp_strbuf_t header;
  mp_strbuf_init(&header);
  exec_array_print_header(array, &header);
  mp_status_t status = mp_strbuf_status(&header);
  FILE *file = status == NULL ? mp_fopen_out(path, "wb") : NULL;
  if (file != NULL) {
    const char sizes[] = {1, 0, (char)(header.size & 255), (char)(header.size >> 8)};
    const size_t count = (size_t)array->count;
    fwrite(g_magic, 1, MAGIC_SIZE, file);
    fwrite(sizes, 1, sizeof(sizes), file);
    fwrite(mp_strbuf_text(&header), 1, header.size, file);
    fwrite(array->data, mp_dtype_size(array->dtype), count, file);
  }
  if (status == NULL && (file == NULL || ferror(file) != 0)) {
    status =
        mp_status_make(MP_PERMISSION_DENIED, "cannot write '%s': %s", path, mp_system_text(errno));
  }
  if (file != NULL && fclose(file) != 0 && status == NULL) {
    status = mp_status_make(MP_DATA_LOSS, "cannot write '%s': %s", path, mp_system_text(errno));
  }
  mp_strbuf_deinit(&header);
  return status;
}
