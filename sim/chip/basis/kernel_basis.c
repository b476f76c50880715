#include "sim/chip/basis/kernel_basis.h"

#include "sim/chip/cost/vector_cost.h"
#include "sim/chip/rules/chip_policy.h"

// ---- parts ----

// Parameters of ops with their own access patterns.
static mp_chip_figure_t kernel_basis_irregular(const mp_chip_t *chip, const mp_op_t *op) {
  static const uint8_t by_class[MP_WORK_CLASS_COUNT] = {
      [MP_WORK_GATHER] = MP_CHIP_FIGURE_gather_slice,
      [MP_WORK_SCATTER] = MP_CHIP_FIGURE_scatter_slice,
      [MP_WORK_SORT] = MP_CHIP_FIGURE_sort_stage,
      [MP_WORK_WINDOW] = MP_CHIP_FIGURE_window_share,
      [MP_WORK_FFT] = MP_CHIP_FIGURE_fft_element,
      [MP_WORK_LINALG] = MP_CHIP_FIGURE_linalg_column,
      [MP_WORK_FOREIGN] = MP_CHIP_FIGURE_attention_splash_forward,
  };
  if (op->code == MP_OP_REVERSE) return MP_CHIP_FIGURE_reverse_element;
  if (op->code == MP_OP_SLICE || op->code == MP_OP_PAD) return MP_CHIP_FIGURE_tiles_element;
  mp_work_t work;
  mp_work_of_op(op, &work);
  const bool is_library = mp_chip_policy(&chip->figures)->calls_libraries;
  if (is_library && work.work_class == MP_WORK_FOREIGN) return MP_CHIP_FIGURE_attention_forward;
  const mp_chip_figure_t figure = (mp_chip_figure_t)by_class[work.work_class];
  return mp_chip_figure_is_given(&chip->figures, figure) ? figure : MP_CHIP_FIGURE_memory_share;
}

static mp_chip_figure_t kernel_basis_matmul(const mp_chip_t *chip, const mp_work_matmul_t *matmul) {
  if (!mp_chip_policy(&chip->figures)->calls_libraries) return MP_CHIP_FIGURE_matmul_step;
  const mp_flop_kind_t kind = mp_chip_flop_kind(matmul->dtype);
  return kind == MP_FLOP_F8                           ? MP_CHIP_FIGURE_matmul_f8
         : kind == MP_FLOP_F32 || kind == MP_FLOP_F64 ? MP_CHIP_FIGURE_matmul_f32
                                                      : MP_CHIP_FIGURE_matmul_bf16;
}

mp_chip_figure_t mp_kernel_figure(const mp_chip_t *chip, const mp_work_t *work,
                                  const mp_kernel_time_t *time) {
  static const uint8_t figures[] = {
      [MP_KERNEL_SCALARS] = MP_CHIP_FIGURE_scalar_latency,
      [MP_KERNEL_LATENCY] = MP_CHIP_FIGURE_kernel_latency,
      [MP_KERNEL_VMEM_LATENCY] = MP_CHIP_FIGURE_vmem_latency,
      [MP_KERNEL_MEMORY_LATENCY] = MP_CHIP_FIGURE_memory_latency,
      [MP_KERNEL_BYTES] = MP_CHIP_FIGURE_memory_share,
      [MP_KERNEL_VMEM] = MP_CHIP_FIGURE_vmem_store,
  };
  switch (time->longest) {
    case MP_KERNEL_VECTOR:
      return mp_vector_figure(chip, time->op);
    case MP_KERNEL_IRREGULAR:
      return kernel_basis_irregular(chip, time->op);
    case MP_KERNEL_MATMUL:
      return kernel_basis_matmul(chip, &work->matmul);
    default:
      return (mp_chip_figure_t)figures[time->longest];
  }
}

mp_chip_figure_t mp_kernel_copy_figure(const mp_chip_t *chip, mp_work_class_t work_class,
                                       double bytes) {
  if (work_class == MP_WORK_SCALAR) return MP_CHIP_FIGURE_scalar_latency;
  const mp_kernel_time_t time = mp_kernel_copy_time(chip, bytes);
  return mp_kernel_figure(chip, &(mp_work_t){.work_class = work_class}, &time);
}

// ---- sums ----

double mp_kernel_basis_unsure(const mp_chip_figures_t *figures,
                              const double times[MP_FIGURE_COUNT]) {
  double all = 0, unsure = 0;
  for (int i = 0; i < MP_FIGURE_COUNT; ++i) {
    all += times[i];
    if (mp_chip_figure_is_unsure(figures, (mp_chip_figure_t)i)) unsure += times[i];
  }
  return all > 0 ? unsure / all : 0;
}

// The parameter that is not sure and has the longest time of those that are not done; NONE: there
// is none.
static mp_chip_figure_t kernel_basis_next(const mp_chip_figures_t *figures, const double *times,
                                          const bool *is_done) {
  mp_chip_figure_t best = MP_CHIP_FIGURE_NONE;
  double most = 0;
  for (int i = 0; i < MP_FIGURE_COUNT; ++i) {
    const mp_chip_figure_t figure = (mp_chip_figure_t)i;
    if (is_done[i] || times[i] <= most || !mp_chip_figure_is_unsure(figures, figure)) continue;
    best = figure;
    most = times[i];
  }
  return best;
}

void mp_kernel_basis_print(const mp_chip_figures_t *figures, const double times[MP_FIGURE_COUNT],
                           mp_strbuf_t *out) {
  enum { COLUMNS = 100, REST = 5 };  // ", ..." needs five
  const double percent = 100 * mp_kernel_basis_unsure(figures, times);
  const size_t begin = out->size;
  bool is_done[MP_FIGURE_COUNT] = {false};
  if (percent < 0.5) return;
  mp_strbuf_printf(out, "  %.0f %% of this time rests on estimated or copied parameters:", percent);
  for (bool is_first = true;; is_first = false) {
    const mp_chip_figure_t figure = kernel_basis_next(figures, times, is_done);
    if (figure == MP_CHIP_FIGURE_NONE) break;
    const mp_str_t key = mp_str(mp_chip_figure_key(figure));
    const bool is_full = out->size - begin + 2 + key.size > COLUMNS - REST;
    mp_strbuf_printf(out, "%s %s", is_first ? "" : ",", is_full ? "..." : key.data);
    if (is_full) break;
    is_done[figure] = true;
  }
  mp_strbuf_putc(out, '\n');
}
