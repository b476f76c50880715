#include "sim/mosaic/read/mosaic_reader.h"

#include "sim/mosaic/read/mosaic_bytecode.h"
#include "sim/mosaic/read/mosaic_text.h"
#include "sim/readers/bytecode/bytecode.h"

mp_status_t mp_mosaic_read(const void *bytes, size_t size, mp_mosaic_module_t **out_module) {
  const char *text = bytes;
  if (mp_is_bytecode(bytes, size)) return mp_mosaic_read_bytecode(bytes, size, out_module);
  // A caller may have counted the NUL that ends its string.
  while (size > 0 && text[size - 1] == '\0') --size;
  return mp_mosaic_read_text(text, size, out_module);
}
