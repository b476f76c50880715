// Flags of compilers that change what figures say.
#include "topology/figures/figures.h"

// Without it gathers that are no rings are waited for; with it products carry them.
static void compiler_flags_carry_gathers(bool value, mp_chip_figures_t *figures) {
  figures->overlap_no_ring = value;
  figures->overlap_carried = value;
  if (value) figures->overlap_whole_gathers = 0;
}

typedef struct {
  const char *name;
  mp_chip_compiler_t compiler;
  void (*take)(bool value, mp_chip_figures_t *figures);
} compiler_flag_t;

#define COMPILER_FLAGS_GATHERS "xla_tpu_enable_async_collective_fusion_fuse_all_gather"

static const compiler_flag_t g_flags[] = {
    {COMPILER_FLAGS_GATHERS, MP_CHIP_COMPILER_TPU, compiler_flags_carry_gathers},
};

static mp_status_t compiler_flags_take(mp_str_t flag, mp_chip_figures_t *figures) {
  mp_str_t value = flag;
  const mp_str_t name = mp_str_cut(&value, '=');
  const bool is_true = mp_str_is(value, "true");
  for (size_t i = 0; i < sizeof(g_flags) / sizeof(g_flags[0]); ++i) {
    const bool is_one = mp_str_is(name, g_flags[i].name) && (is_true || mp_str_is(value, "false"));
    if (!is_one) continue;
    if (figures->compiler == g_flags[i].compiler) g_flags[i].take(is_true, figures);
    return NULL;
  }
  return mp_status_make(MP_INVALID_ARGUMENT,
                        "key 'flags': expected " COMPILER_FLAGS_GATHERS
                        "=true or =false, the only flag of a compiler on which times depend here, "
                        "got '%.*s'",
                        MP_STR_ARG(flag));
}

mp_status_t mp_chip_figures_take_flags(mp_str_t flags, mp_chip_figures_t *in_out_figures) {
  while (flags.size != 0) {
    MP_RETURN_IF_ERROR(compiler_flags_take(mp_str_cut(&flags, ','), in_out_figures));
  }
  return NULL;
}
