#include "sim/readers/reader.h"

#include "sim/readers/bytecode/bytecode.h"
#include "sim/readers/hlo/hlo.h"
#include "sim/readers/text/text.h"

static const struct {
  const char *name;
  mp_program_form_t form;
} g_forms[] = {
    {"mlir", MP_PROGRAM_MLIR},
    {"hlo", MP_PROGRAM_HLO},
    {"hlo_with_config", MP_PROGRAM_HLO_WITH_CONFIG},
};

bool mp_program_form_from_name(mp_str_t name, mp_program_form_t *out_form) {
  for (size_t i = 0; i < sizeof(g_forms) / sizeof(g_forms[0]); ++i) {
    if (!mp_str_is(name, g_forms[i].name)) continue;
    *out_form = g_forms[i].form;
    return true;
  }
  return false;
}

mp_status_t mp_read_program(const void *data, size_t size, mp_program_form_t form,
                            mp_module_t **out_module) {
  if (form != MP_PROGRAM_MLIR) {
    return mp_read_hlo(data, size, form == MP_PROGRAM_HLO_WITH_CONFIG, out_module);
  }
  if (mp_is_bytecode(data, size)) return mp_read_bytecode(data, size, out_module);
  return mp_status_annotate(mp_read_text(data, size, out_module), "text");
}
