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

static void chip_print_json_access(const mp_chip_print_request_t *request,
                                   const mp_chip_fusion_access_t *access, bool is_first,
                                   mp_strbuf_t *out) {
  mp_strbuf_puts(out, is_first ? "{\"value\": \"" : ", {\"value\": \"");
  mp_chip_print_value(access->value, out);
  mp_strbuf_puts(out, "\", \"type\": \"");
  mp_type_print(access->value->type, out);
  mp_strbuf_puts(out, "\"");
  chip_print_json_number("bytes", access->bytes, out);
  chip_print_json_key("space", false, out);
  mp_strbuf_put_json(out, mp_str(mp_chip_print_space(request, access)));
  mp_strbuf_putc(out, '}');
}

static void chip_print_json_fusion(const mp_chip_print_request_t *request,
                                   const mp_chip_print_fusions_t *fusions,
                                   const mp_chip_fusion_t *fusion, mp_strbuf_t *out) {
  mp_strbuf_puts(out, ", \"ops\": [");
  for (uint32_t at = fusion->first_member; at != MP_CHIP_FUSION_NONE;) {
    const mp_chip_fusion_member_t *member = &fusions->fusions.members.items[at];
    if (at != fusion->first_member) mp_strbuf_puts(out, ", ");
    mp_strbuf_put_json(out, mp_str(mp_op_short_name(member->op)));
    at = member->next;
  }
  const mp_chip_fusion_access_t *access = mp_chip_fusion_accesses(&fusions->fusions, fusion);
  mp_strbuf_puts(out, "], \"reads\": [");
  for (uint32_t i = 0; i < fusion->num_reads; ++i) {
    chip_print_json_access(request, &access[i], i == 0, out);
  }
  mp_strbuf_puts(out, "], \"writes\": [");
  for (uint32_t i = 0; i < fusion->num_writes; ++i) {
    chip_print_json_access(request, &access[fusion->num_reads + i], i == 0, out);
  }
  mp_strbuf_putc(out, ']');
}

static void chip_print_json_kernel(const mp_chip_print_request_t *request,
                                   const mp_chip_print_fusions_t *fusions, uint32_t number,
                                   mp_strbuf_t *out) {
  const mp_chip_kernel_t *kernel = &request->chip_program->kernels[number];
  const mp_chip_fusion_t *fusion = mp_chip_print_fusion(fusions, kernel);
  mp_strbuf_puts(out, number == 0 ? "{\"name\": " : ", {\"name\": ");
  mp_strbuf_put_json(out, mp_str(kernel->name));
  chip_print_json_key("class", false, out);
  mp_strbuf_put_json(out, mp_str(mp_work_class_name(kernel->work_class)));
  chip_print_json_number("seconds", kernel->seconds, out);
  chip_print_json_number("bytes", kernel->bytes, out);
  chip_print_json_number("flops", kernel->flops, out);
  if (fusion != NULL) chip_print_json_fusion(request, fusions, fusion, out);
  mp_strbuf_putc(out, '}');
}

static mp_status_t chip_print_json_kernels(const mp_chip_print_request_t *request,
                                           mp_strbuf_t *out) {
  mp_chip_print_fusions_t fusions;
  mp_status_t status = mp_chip_print_find(request, &fusions);
  if (status == NULL) {
    mp_strbuf_puts(out, ", \"kernels\": [");
    for (uint32_t k = 0; k < request->chip_program->num_kernels; ++k) {
      chip_print_json_kernel(request, &fusions, k, out);
    }
    mp_strbuf_putc(out, ']');
  }
  mp_chip_print_forget(&fusions);
  return status;
}

mp_status_t mp_chip_print_json(const mp_chip_print_request_t *request, bool has_kernels,
                               mp_strbuf_t *out) {
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
  mp_status_t status = NULL;
  if (has_kernels) status = chip_print_json_kernels(request, out);
  mp_strbuf_putc(out, '}');
  return status == NULL ? mp_strbuf_status(out) : status;
}
