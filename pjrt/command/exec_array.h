// Whole arrays on the host, and NumPy's files of them, for `minipod exec`.
//
// Arrays are dense and row-major, with the usual stored elements (sim/numeric/dtype.h): narrower
// ones take a byte each. NumPy's format (NEP 1) has no name for bf16, the f8 kinds and integers of
// less than a byte; they are written and read as NumPy itself handles those of ml_dtypes, as raw
// bytes of the element's size ("|V2", "|V1").
#ifndef MINIPOD_PJRT_COMMAND_EXEC_ARRAY_H_
#define MINIPOD_PJRT_COMMAND_EXEC_ARRAY_H_

#include "sim/base/status.h"
#include "sim/ir/type.h"

// One dimension more than a program's arrays can have: that of the replicas.
enum { MP_EXEC_MAX_RANK = MP_MAX_RANK + 1 };

typedef struct {
  mp_dtype_t dtype;
  uint32_t rank;
  int64_t dims[MP_EXEC_MAX_RANK];
  int64_t count;  // of elements
  char *data;     // owned; NULL: the shape alone
} mp_exec_array_t;

// Frees the data.
void mp_exec_array_deinit(mp_exec_array_t *array);
// Makes memory for the elements, all zero bytes.
MP_NODISCARD mp_status_t mp_exec_array_allocate(mp_exec_array_t *array);
// Appends "f32[3,8]".
void mp_exec_array_print_type(const mp_exec_array_t *array, mp_strbuf_t *out);

// Reads a file into `array`, whose type and shape the file must have. `what` names the array in
// messages ("argument 0"). NOT_FOUND, DATA_LOSS and INVALID_ARGUMENT name the file.
MP_NODISCARD mp_status_t mp_exec_array_read(const char *path, const char *what,
                                            mp_exec_array_t *array);
// Writes a file. mp_exec_array_is_raw: NumPy's format has no name for the type.
MP_NODISCARD mp_status_t mp_exec_array_write(const char *path, const mp_exec_array_t *array);
bool mp_exec_array_is_raw(mp_dtype_t dtype);

#endif  // MINIPOD_PJRT_COMMAND_EXEC_ARRAY_H_
