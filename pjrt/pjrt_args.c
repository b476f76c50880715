// Checks and conversions of arguments that several functions share.

#include <string.h>

#include "pjrt/pjrt_objects.h"
#include "sim/base/alloc.h"
#include "sim/numeric/dims.h"

// The name of a function in the interface, without minipod's prefix "mp_".
static const char *pjrt_args_public_name(const char *function) {
  return strncmp(function, "mp_", 3) == 0 ? function + 3 : function;
}

mp_status_t mp_pjrt_null_argument(const char *function, const char *field) {
  return mp_status_make(MP_INVALID_ARGUMENT, "%s: %s is NULL", pjrt_args_public_name(function),
                        field);
}

mp_status_t mp_pjrt_unimplemented(const char *function, const char *reason) {
  return mp_status_make(MP_UNIMPLEMENTED, "minipod does not implement %s: %s",
                        pjrt_args_public_name(function), reason);
}

// The interface has the numbers of MP_DTYPES. Types with another name there, or none:
enum {
  PJRT_Buffer_Type_BOOL = PJRT_Buffer_Type_PRED,
  PJRT_Buffer_Type_TF32 = PJRT_Buffer_Type_INVALID,
  PJRT_Buffer_Type_INDEX = PJRT_Buffer_Type_INVALID
};
#define CHECK_NUMBER(name, text, class, bits, storage, style, exponent, fraction, bias, pjrt, ...) \
  _Static_assert((int)PJRT_Buffer_Type_##name == pjrt, text " has another number in PJRT");
MP_DTYPES(CHECK_NUMBER)
#undef CHECK_NUMBER

mp_status_t mp_pjrt_check_shape(const char *function, PJRT_Buffer_Type type, const int64_t *dims,
                                size_t num_dims, mp_dtype_t *out_dtype) {
  const char *name = pjrt_args_public_name(function);
  mp_dtype_t dtype = mp_dtype_from_number(MP_NUMBERS_PJRT, (uint64_t)type);
  if (dtype == MP_DTYPE_INVALID) {
    return mp_status_make(MP_INVALID_ARGUMENT, "%s: element type %d is not supported", name,
                          (int)type);
  }
  if (num_dims > MP_MAX_RANK) {
    return mp_status_make(MP_INVALID_ARGUMENT, "%s: an array of %zu dimensions (at most %d)", name,
                          num_dims, MP_MAX_RANK);
  }
  if (num_dims > 0 && dims == NULL) return mp_pjrt_null_argument(function, "dims");
  for (size_t i = 0; i < num_dims; ++i) {
    if (dims[i] < 0) {
      return mp_status_make(MP_INVALID_ARGUMENT, "%s: dimension %zu is %lld", name, i,
                            (long long)dims[i]);
    }
  }
  int64_t count = 0, bytes = 0;
  if (!mp_dims_count(dims, 0, (uint32_t)num_dims, &count) ||
      __builtin_mul_overflow(count, (int64_t)mp_dtype_size(dtype), &bytes)) {
    return mp_status_make(MP_INVALID_ARGUMENT, "%s: the array's size overflows 64 bits", name);
  }
  *out_dtype = dtype;
  return NULL;
}

static mp_status_t pjrt_args_read_named_value(const PJRT_NamedValue *in, mp_named_value_t *out) {
  mp_named_value_t value = {.name = {in->name, in->name_size}, .type = (mp_value_type_t)in->type};
  if (in->name == NULL) return mp_status_make(MP_INVALID_ARGUMENT, "an option without name");
  switch (in->type) {
    case PJRT_NamedValue_kString:
      value.string_value = (mp_str_t){in->string_value, in->value_size};
      if (in->string_value == NULL) value.string_value = MP_STR("");
      break;
    case PJRT_NamedValue_kInt64:
      value.int64_value = in->int64_value;
      break;
    case PJRT_NamedValue_kInt64List:
      value.int64_list_data = in->int64_array_value;
      value.int64_list_count = in->int64_array_value == NULL ? 0 : in->value_size;
      break;
    case PJRT_NamedValue_kFloat:
      value.float_value = in->float_value;
      break;
    case PJRT_NamedValue_kBool:
      value.bool_value = in->bool_value;
      break;
    default:
      return mp_status_make(MP_INVALID_ARGUMENT, "option '%.*s' has the unknown value type %d",
                            MP_STR_ARG(value.name), (int)in->type);
  }
  *out = value;
  return NULL;
}

mp_status_t mp_pjrt_read_named_values(const PJRT_NamedValue *values, size_t count,
                                      mp_named_value_t **out_values) {
  if (count > 0 && values == NULL) {
    return mp_status_make(MP_INVALID_ARGUMENT, "%zu options, but no array of them", count);
  }
  mp_named_value_t *result = mp_calloc(count + 1, sizeof(*result));
  MP_RETURN_IF_NULL(result);
  for (size_t i = 0; i < count; ++i) {
    mp_status_t status = pjrt_args_read_named_value(&values[i], &result[i]);
    if (status != NULL) {
      mp_free(result);
      return status;
    }
  }
  *out_values = result;
  return NULL;
}

static PJRT_NamedValue pjrt_args_named(const char *name, PJRT_NamedValue_Type type,
                                       size_t value_size) {
  return (PJRT_NamedValue){
      .struct_size = PJRT_STRUCT_SIZE(PJRT_NamedValue, value_size),
      .name = name,
      .name_size = strlen(name),
      .type = type,
      .value_size = value_size,
  };
}

PJRT_NamedValue mp_pjrt_named_string(const char *name, const char *value) {
  PJRT_NamedValue result = pjrt_args_named(name, PJRT_NamedValue_kString, strlen(value));
  result.string_value = value;
  return result;
}

PJRT_NamedValue mp_pjrt_named_int(const char *name, int64_t value) {
  PJRT_NamedValue result = pjrt_args_named(name, PJRT_NamedValue_kInt64, 1);
  result.int64_value = value;
  return result;
}

PJRT_NamedValue mp_pjrt_named_ints(const char *name, const int64_t *values, size_t count) {
  PJRT_NamedValue result = pjrt_args_named(name, PJRT_NamedValue_kInt64List, count);
  result.int64_array_value = values;
  return result;
}

PJRT_NamedValue mp_pjrt_named_float(const char *name, float value) {
  PJRT_NamedValue result = pjrt_args_named(name, PJRT_NamedValue_kFloat, 1);
  result.float_value = value;
  return result;
}

struct PJRT_Serialized {
  mp_strbuf_t bytes;
};

static void pjrt_args_delete_serialized(PJRT_Serialized *serialized) {
  if (serialized == NULL) return;
  mp_strbuf_deinit(&serialized->bytes);
  mp_free(serialized);
}

mp_status_t mp_pjrt_lend_bytes(mp_status_t status, mp_strbuf_t *bytes, const char **out_data,
                               size_t *out_size, PJRT_Serialized **out_holder,
                               void (**out_deleter)(PJRT_Serialized *)) {
  if (status == NULL) status = mp_strbuf_status(bytes);
  PJRT_Serialized *holder = status == NULL ? mp_malloc(sizeof(*holder)) : NULL;
  if (status == NULL && holder == NULL) status = mp_status_out_of_memory();
  if (status != NULL) {
    mp_strbuf_deinit(bytes);
    return status;
  }
  holder->bytes = *bytes;
  *out_data = mp_strbuf_text(&holder->bytes);
  *out_size = bytes->size;
  *out_holder = holder;
  *out_deleter = pjrt_args_delete_serialized;
  return NULL;
}
