#include "sim/chip/basis/kernel_basis.h"

#include <math.h>

#include "sim/base/str.h"
#include "sim/chip/cost/irregular_cost.h"
#include "sim/chip/cost/kernel_cost.h"
#include "sim/chip/cost/matmul_cost.h"
#include "sim/chip/cost/vector_cost.h"

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
  const bool is_gpu = chip->figures.compiler == MP_CHIP_COMPILER_GPU;
  if (is_gpu && work.work_class == MP_WORK_FOREIGN) return MP_CHIP_FIGURE_attention_forward;
  const mp_chip_figure_t figure = (mp_chip_figure_t)by_class[work.work_class];
  return mp_chip_figure_is_given(&chip->figures, figure) ? figure : MP_CHIP_FIGURE_memory_share;
}

static mp_chip_figure_t kernel_basis_matmul(const mp_chip_t *chip, const mp_work_matmul_t *matmul) {
  if (chip->figures.compiler != MP_CHIP_COMPILER_GPU) return MP_CHIP_FIGURE_matmul_step;
  const mp_flop_kind_t kind = mp_chip_flop_kind(matmul->dtype);
  return kind == MP_FLOP_F8                           ? MP_CHIP_FIGURE_matmul_f8
         : kind == MP_FLOP_F32 || kind == MP_FLOP_F64 ? MP_CHIP_FIGURE_matmul_f32
                                                      : MP_CHIP_FIGURE_matmul_bf16;
}

// The parts of a kernel that were looked at, and the one that takes longest.
typedef struct {
  double seconds;
  mp_chip_figure_t figure;
} kernel_basis_part_t;

static void kernel_basis_take(kernel_basis_part_t *longest, double seconds,
                              mp_chip_figure_t figure) {
  if (seconds > longest->seconds) *longest = (kernel_basis_part_t){seconds, figure};
}

// Vector work as a whole, under the parameter of its longest op; irregular ops likewise.
static void kernel_basis_take_ops(const mp_chip_t *chip, const mp_chip_fusions_t *fusions,
                                  const mp_chip_fusion_t *fusion, kernel_basis_part_t *longest) {
  kernel_basis_part_t vector = {0}, irregular = {0};
  double all_vector = 0, all_irregular = 0;
  for (uint32_t at = fusion->first_member; at != MP_CHIP_FUSION_NONE;) {
    const mp_chip_fusion_member_t *member = &fusions->members.items[at];
    double seconds = 0;
    at = member->next;
    if (mp_irregular_seconds(chip, member->op, &seconds)) {
      all_irregular += seconds;
      if (seconds > irregular.seconds) {
        kernel_basis_take(&irregular, seconds, kernel_basis_irregular(chip, member->op));
      }
      continue;
    }
    seconds = mp_vector_seconds(chip, member->op);
    all_vector += seconds;
    if (seconds > vector.seconds) {
      kernel_basis_take(&vector, seconds, mp_vector_figure(chip, member->op));
    }
  }
  kernel_basis_take(longest, all_vector, vector.figure);
  kernel_basis_take(longest, all_irregular, irregular.figure);
}

// ---- kernels ----

static kernel_basis_part_t kernel_basis_stream(const mp_chip_t *chip, double bytes) {
  kernel_basis_part_t longest = {chip->op_latency, MP_CHIP_FIGURE_kernel_latency};
  if (bytes == 0 && !isnan(chip->figures.vmem_latency)) {
    longest = (kernel_basis_part_t){chip->figures.vmem_latency, MP_CHIP_FIGURE_vmem_latency};
  }
  kernel_basis_take(&longest, mp_kernel_memory_latency(chip, bytes), MP_CHIP_FIGURE_memory_latency);
  kernel_basis_take(&longest, bytes / chip->memory_bandwidth, MP_CHIP_FIGURE_memory_share);
  return longest;
}

mp_chip_figure_t mp_kernel_copy_figure(const mp_chip_t *chip, mp_work_class_t work_class,
                                       double bytes) {
  if (work_class == MP_WORK_SCALAR) return MP_CHIP_FIGURE_scalar_latency;
  return kernel_basis_stream(chip, bytes).figure;
}

mp_chip_figure_t mp_kernel_figure(const mp_chip_t *chip, const mp_chip_fusions_t *fusions,
                                  const mp_chip_fusion_t *fusion, double bytes) {
  const mp_work_t *work = &fusion->work;
  if (work->work_class == MP_WORK_SCALAR) return MP_CHIP_FIGURE_scalar_latency;
  if (work->matmul.batch > 0) return kernel_basis_matmul(chip, &work->matmul);
  kernel_basis_part_t longest = kernel_basis_stream(chip, bytes);
  kernel_basis_take_ops(chip, fusions, fusion, &longest);
  kernel_basis_take(&longest, mp_vmem_seconds(chip, fusions, fusion).others,
                    MP_CHIP_FIGURE_vmem_store);
  return longest.figure;
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
