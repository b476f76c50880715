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

// A flag without a value is switched on.
static void compiler_flags_take_init_arg(mp_str_t argument, mp_chip_figures_t *figures) {
  while (argument.size > 0 && argument.data[0] == '-') ++argument.data, --argument.size;
  if (argument.size == 0) return;
  const bool has_value = memchr(argument.data, '=', argument.size) != NULL;
  mp_str_t value = argument;
  const mp_str_t name = mp_str_cut(&value, '=');
  if (compiler_flags_take_one(name, has_value ? value : MP_STR("true"), figures)) return;
  mp_log(MP_LOG_INFO, "LIBTPU_INIT_ARGS: %.*s has no effect here", MP_STR_ARG(argument));
}

void mp_chip_figures_take_init_args(mp_str_t args, mp_chip_figures_t *in_out_figures) {
  while (args.size != 0) {
    compiler_flags_take_init_arg(mp_str_cut(&args, ' '), in_out_figures);
  }
}
