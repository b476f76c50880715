#include "sim/readers/reader.h"

#include "sim/readers/bytecode/bytecode.h"
#include "sim/readers/text/text.h"

mp_status_t mp_read_program(const void *data, size_t size, mp_module_t **out_module) {
  if (mp_is_bytecode(data, size)) return mp_read_bytecode(data, size, out_module);
  return mp_status_annotate(mp_read_text(data, size, out_module), "text");
}
