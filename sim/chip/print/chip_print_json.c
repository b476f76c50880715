// Prints a chip program as JSON.
#include "sim/base/assert.h"
#include "sim/chip/basis/kernel_basis.h"
#include "sim/chip/print/chip_print_impl.h"

static void chip_print_json_key(const char *key, bool is_first, mp_strbuf_t *out) {
  mp_strbuf_printf(out, "%s\"%s\": ", is_first ? "" : ", ", key);
}

static void chip_print_json_number(const char *key, double number, mp_strbuf_t *out) {
  chip_print_json_key(key, false, out);
  mp_strbuf_put_double(out, number);
}

// ---- collectives ----

// Prints for each kind how many collectives are sync, async and decomposed.
static void chip_print_json_collectives(const mp_chip_program_t *chip_program, mp_strbuf_t *out) {
  bool is_first = true;
  mp_strbuf_puts(out, ", \"collectives\": {");
  for (int kind = 0; kind < MP_COLLECTIVE_KINDS; ++kind) {
    uint32_t counts[MP_OVERLAP_COUNT] = {0}, total = 0;
    for (uint32_t i = 0; i < chip_program->num_collectives; ++i) {
      if ((int)chip_program->collectives[i].collective->kind != kind) continue;
      MP_ASSERT(chip_program->collectives[i].overlap < MP_OVERLAP_COUNT);
      ++counts[chip_program->collectives[i].overlap];
      ++total;
    }
    if (total == 0) continue;
    chip_print_json_key(mp_collective_kind_name((mp_collective_kind_t)kind), is_first, out);
    is_first = false;
    for (int o = 0; o < MP_OVERLAP_COUNT; ++o) {
      mp_strbuf_printf(out, "%s\"%s\": %u", o == 0 ? "{" : ", ", mp_overlap_name((mp_overlap_t)o),
                       counts[o]);
    }
    mp_strbuf_putc(out, '}');
  }
  mp_strbuf_putc(out, '}');
}

// ---- kernels ----

static void chip_print_json_access(const mp_chip_print_t *p, const mp_chip_fusion_access_t *access,
                                   bool is_first) {
  mp_strbuf_puts(p->out, is_first ? "{\"value\": \"" : ", {\"value\": \"");
  mp_chip_print_value(access->value, p->out);
  mp_strbuf_puts(p->out, "\", \"type\": \"");
  mp_type_print(access->value->type, p->out);
  mp_strbuf_puts(p->out, "\"");
  chip_print_json_number("bytes", access->bytes, p->out);
  chip_print_json_key("space", false, p->out);
  mp_strbuf_put_json(p->out, mp_str(mp_chip_print_space(access->space)));
  mp_strbuf_putc(p->out, '}');
}

static void chip_print_json_fusion(const mp_chip_print_t *p, const mp_chip_fusion_t *fusion) {
  mp_strbuf_puts(p->out, ", \"ops\": [");
  for (const mp_chip_fusion_member_t *m = NULL; mp_chip_fusion_visit(p->fusions, fusion, &m);) {
    mp_strbuf_put_json(p->out, mp_str(mp_op_short_name(m->op)));
    if (m->next != MP_CHIP_FUSION_NONE) mp_strbuf_puts(p->out, ", ");
  }
  const mp_chip_fusion_access_t *access = mp_chip_fusion_accesses(p->fusions, fusion);
  mp_strbuf_puts(p->out, "], \"reads\": [");
  for (uint32_t i = 0; i < fusion->num_reads; ++i) chip_print_json_access(p, access++, i == 0);
  mp_strbuf_puts(p->out, "], \"writes\": [");
  for (uint32_t i = 0; i < fusion->num_writes; ++i) chip_print_json_access(p, access++, i == 0);
  mp_strbuf_putc(p->out, ']');
}

// The parts of the time of a TPU kernel.
static void chip_print_json_price(const mp_price_t *price, mp_strbuf_t *out) {
  chip_print_json_key("price", false, out);
  mp_strbuf_puts(out, "{\"fill\": ");
  mp_strbuf_put_double(out, price->fill);
  chip_print_json_number("compute", price->compute, out);
  chip_print_json_number("wait", price->wait, out);
  chip_print_json_number("steps", price->steps, out);
  chip_print_json_number("copies", price->copies, out);
  chip_print_json_number("vmem", price->vmem, out);
  for (int u = 0; u < MP_PRICE_UNIT_COUNT; ++u)
    chip_print_json_number(mp_price_unit_name((mp_price_unit_t)u), price->units[u], out);
  mp_strbuf_printf(out, ", \"guessed\": %s, \"sampled\": %s}", price->is_guessed ? "true" : "false",
                   price->is_sampled ? "true" : "false");
}

static void chip_print_json_kernels(const mp_chip_print_t *p) {
  mp_strbuf_t *out = p->out;
  mp_strbuf_puts(out, ", \"kernels\": [");
  for (uint32_t k = 0; k < p->chip_program->num_kernels; ++k) {
    const mp_chip_kernel_t *kernel = &p->chip_program->kernels[k];
    mp_strbuf_puts(out, k == 0 ? "{\"name\": " : ", {\"name\": ");
    mp_strbuf_put_json(out, mp_str(kernel->name));
    chip_print_json_key("class", false, out);
    mp_strbuf_put_json(out, mp_str(mp_work_class_name(kernel->work_class)));
    chip_print_json_number("seconds", kernel->seconds, out);
    chip_print_json_number("bytes", kernel->bytes, out);
    chip_print_json_number("flops", kernel->flops, out);
    if (kernel->price != NULL) chip_print_json_price(kernel->price, out);
    if (kernel->fusion != 0) {
      chip_print_json_fusion(p, &p->fusions->fusions.items[kernel->fusion - 1]);
    }
    mp_strbuf_putc(out, '}');
  }
  mp_strbuf_putc(out, ']');
}

void mp_chip_print_json(const mp_chip_print_request_t *request, mp_strbuf_t *out) {
  const mp_chip_program_t *chip_program = request->chip_program;
  const mp_chip_space_t *space = &chip_program->memory.device;
  mp_strbuf_puts(out, "{\"file\": ");
  mp_strbuf_put_json(out, mp_str(request->file));
  chip_print_json_key("program", false, out);
  mp_strbuf_put_json(out, chip_program->program->name);
  chip_print_json_key("target", false, out);
  mp_strbuf_put_json(out, mp_str(request->target));
  chip_print_json_number("devices", request->num_devices, out);
  chip_print_json_number("seconds", request->seconds, out);
  chip_print_json_number("work_seconds", request->work_seconds, out);
  chip_print_json_number(
      "unsure_seconds",
      mp_kernel_basis_unsure(&request->chip->figures, request->by_figure) * request->work_seconds,
      out);
  chip_print_json_number("num_kernels", chip_program->num_kernels, out);
  chip_print_json_number("arguments", (double)space->arguments, out);
  chip_print_json_number("results", (double)space->results, out);
  chip_print_json_number("aliased", (double)space->aliased, out);
  chip_print_json_number("temporaries", (double)space->temporaries, out);
  chip_print_json_collectives(chip_program, out);
  const mp_chip_print_t p = {request, chip_program, request->fusions, out};
  if (p.fusions != NULL) chip_print_json_kernels(&p);
  mp_strbuf_putc(out, '}');
}
