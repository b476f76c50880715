// Messages of checks.
#include "sim/base/str.h"
#include "sim/mosaic/check/mosaic_check_impl.h"

void mp_mosaic_check_now(const mp_mosaic_check_t *check, const mp_mosaic_instruction_t *in,
                         mp_mosaic_moment_t *out) {
  *out = (mp_mosaic_moment_t){.in = in};
  for (uint32_t d = 0; d < check->rank; ++d) {
    out->step[d] = check->step[d];
  }
}

void mp_mosaic_check_print(const mp_mosaic_check_t *check, const mp_mosaic_moment_t *moment,
                           mp_strbuf_t *text) {
  mp_strbuf_puts(text, moment->in->where == NULL ? "" : moment->in->where);
  mp_strbuf_puts(text, ", grid step (");
  for (uint32_t d = 0; d < check->rank; ++d) {
    mp_strbuf_printf(text, d == 0 ? "%lld" : ", %lld", (long long)moment->step[d]);
  }
  mp_strbuf_puts(text, ")");
}

void mp_mosaic_check_print_arg(const mp_mosaic_check_t *check, uint32_t arg, mp_strbuf_t *text) {
  if (arg == MP_MOSAIC_BARRIER) {
    mp_strbuf_puts(text, "the semaphore for barriers");
    return;
  }
  if (arg >= check->num_names) {
    mp_strbuf_puts(text, "memory that the kernel allocates");
    return;
  }
  const mp_mosaic_check_name_t *name = &check->names[arg];
  mp_strbuf_printf(text, "%s %u (argument %u of the kernel)", name->what, name->number, arg);
}

mp_status_t mp_mosaic_check_error(mp_strbuf_t *text) {
  mp_status_t status = mp_strbuf_status(text);
  if (status == NULL) status = mp_status_make(MP_FAILED_PRECONDITION, "%s", mp_strbuf_text(text));
  mp_strbuf_deinit(text);
  return status;
}
