// Kernels of others: what they say of themselves.
#include <math.h>
#include <string.h>

#include "sim/chip/cost/irregular_cost.h"
#include "sim/chip/cost/vector_cost.h"

// The text behind the first occurrence of `word`; empty if there is none.
static mp_str_t foreign_cost_behind(mp_str_t text, const char *word) {
  const size_t size = strlen(word);
  for (size_t i = 0; i + size <= text.size; ++i) {
    if (memcmp(text.data + i, word, size) != 0) continue;
    return (mp_str_t){text.data + i + size, text.size - i - size};
  }
  return MP_STR("");
}

// A number behind its key, which may be written as a text; 0 if there is none.
static double foreign_cost_number(mp_str_t estimate, const char *key) {
  mp_str_t text = foreign_cost_behind(estimate, key);
  while (text.size != 0 && (text.data[0] == ' ' || text.data[0] == ':' || text.data[0] == '"')) {
    ++text.data;
    --text.size;
  }
  double number = 0;
  return mp_str_scan_double(text, &number) != 0 && number > 0 ? number : 0;
}

static mp_str_t foreign_cost_estimate(const mp_op_t *op) {
  const mp_str_t text =
      foreign_cost_behind(mp_op_str(op, MP_ATTR_BACKEND_CONFIG), "\"cost_estimate\"");
  mp_str_t rest = text;
  return mp_str_cut(&rest, '}');
}

double mp_foreign_seconds(const mp_chip_t *chip, const mp_op_t *op) {
  if (op->code != MP_OP_CUSTOM_CALL) return 0;
  const mp_str_t estimate = foreign_cost_estimate(op);
  const double flops = foreign_cost_number(estimate, "\"flops\"");
  const double functions = foreign_cost_number(estimate, "\"transcendentals\"");
  const double bytes = foreign_cost_number(estimate, "\"bytes_accessed\"");
  const double each = mp_figure_or(chip->figures.vector_exponential, chip->transcendental_flops);
  const double seconds =
      fmax(flops / chip->flops[MP_FLOP_BF16], functions * each / mp_vector_rate(chip));
  return fmax(seconds, bytes / chip->memory_bandwidth);
}
