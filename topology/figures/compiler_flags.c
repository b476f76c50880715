// Compiler flags that change parameters.
#include <math.h>
#include <string.h>

#include "sim/base/log.h"
#include "topology/figures/figures.h"

// Without it gathers that are no rings block; with it matmuls overlap with them.
static void compiler_flags_carry_gathers(bool value, mp_chip_figures_t *figures) {
  figures->overlap_no_ring = value;
  figures->overlap_carried = value;
  if (value) figures->overlap_whole_gathers = 0;
}

// MiB from which a matmul becomes a collective matmul: with a large number no matmul does.
static void compiler_flags_make_no_rings(mp_chip_figures_t *figures) {
  figures->overlap_ring_work = INFINITY;
}

#define COMPILER_FLAGS_GATHERS  "xla_tpu_enable_async_collective_fusion_fuse_all_gather"
#define COMPILER_FLAGS_RINGS    "xla_jf_spmd_threshold_for_windowed_einsum_mib"
#define COMPILER_FLAGS_NO_RINGS "1000000"
// It counts when kernels are compiled (sim/readers/options/libtpu_options.h).
#define COMPILER_FLAGS_VMEM "xla_tpu_scoped_vmem_limit_kib"

static bool compiler_flags_take_one(mp_str_t name, mp_str_t value, mp_chip_figures_t *figures) {
  const bool is_tpu = figures->compiler == MP_CHIP_COMPILER_TPU;
  const bool is_true = mp_str_is(value, "true");
  if (mp_str_is(name, COMPILER_FLAGS_GATHERS) && (is_true || mp_str_is(value, "false"))) {
    if (is_tpu) compiler_flags_carry_gathers(is_true, figures);
    return true;
  }
  if (!mp_str_is(name, COMPILER_FLAGS_RINGS) || !mp_str_is(value, COMPILER_FLAGS_NO_RINGS)) {
    return false;
  }
  if (is_tpu) compiler_flags_make_no_rings(figures);
  return true;
}

static mp_status_t compiler_flags_take(mp_str_t flag, mp_chip_figures_t *figures) {
  mp_str_t value = flag;
  const mp_str_t name = mp_str_cut(&value, '=');
  if (compiler_flags_take_one(name, value, figures)) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT,
                        "key 'flags': expected " COMPILER_FLAGS_GATHERS
                        "=true or =false, or " COMPILER_FLAGS_RINGS "=" COMPILER_FLAGS_NO_RINGS
                        ", the only flags of a compiler on which times depend here, got '%.*s'",
                        MP_STR_ARG(flag));
}

mp_status_t mp_chip_figures_take_flags(mp_str_t flags, mp_chip_figures_t *in_out_figures) {
  while (flags.size != 0) {
    MP_RETURN_IF_ERROR(compiler_flags_take(mp_str_cut(&flags, ','), in_out_figures));
  }
  return NULL;
}

bool mp_chip_figures_take_flag(mp_str_t flag, mp_chip_figures_t *in_out_figures) {
  mp_str_t value = flag;
  const mp_str_t name = mp_str_cut(&value, '=');
  return compiler_flags_take_one(name, value, in_out_figures);
}

// ---- LIBTPU_INIT_ARGS ----

void mp_chip_figures_take_init_args(mp_str_t args, mp_chip_figures_t *in_out_figures) {
  while (args.size != 0) {
    const mp_flag_t arg = mp_str_cut_flag(&args);
    if (arg.text.size == 0) continue;
    if (compiler_flags_take_one(arg.name, arg.value, in_out_figures)) continue;
    if (mp_str_is(arg.name, COMPILER_FLAGS_VMEM)) continue;
    mp_log(MP_LOG_INFO, "LIBTPU_INIT_ARGS: %.*s has no effect here", MP_STR_ARG(arg.text));
  }
}

void mp_chip_flags_write(mp_str_t args, mp_strbuf_t *out) {
  mp_str_t gathers = {0}, rings = {0};
  while (args.size != 0) {
    mp_chip_figures_t none = {0};
    const mp_flag_t arg = mp_str_cut_flag(&args);
    if (!compiler_flags_take_one(arg.name, arg.value, &none)) continue;
    *(mp_str_is(arg.name, COMPILER_FLAGS_GATHERS) ? &gathers : &rings) = arg.value;
  }
  if (gathers.size != 0) {
    mp_strbuf_printf(out, COMPILER_FLAGS_GATHERS "=%.*s", MP_STR_ARG(gathers));
  }
  if (rings.size == 0) return;
  mp_strbuf_printf(out, "%s" COMPILER_FLAGS_RINGS "=%.*s", gathers.size == 0 ? "" : " ",
                   MP_STR_ARG(rings));
}
