// Prints a chip program as text.
#include "sim/base/assert.h"
#include "sim/chip/basis/kernel_basis.h"
#include "sim/chip/print/chip_print_impl.h"

// Prints ", 12.5 us", unless times are left out.
static void chip_print_text_seconds(const mp_chip_print_t *p, const char *before, double seconds) {
  if (!p->request->is_structure) mp_strbuf_printf(p->out, "%s%.4g us", before, seconds * 1e6);
}

// ---- kernels ----

static void chip_print_text_kernel(const mp_chip_print_t *p, const mp_chip_kernel_t *kernel) {
  const mp_chip_fusion_t *fusion = mp_chip_print_fusion(&p->fusions, kernel);
  mp_strbuf_printf(p->out, "    %s (%s)", kernel->name, mp_work_class_name(kernel->work_class));
  chip_print_text_seconds(p, " ", kernel->seconds);
  mp_strbuf_printf(p->out, ", HBM %.4g MiB", kernel->bytes / MP_CHIP_PRINT_MIB);
  if (kernel->flops > 0) mp_strbuf_printf(p->out, ", %.4g GFLOP", kernel->flops * 1e-9);
  mp_strbuf_putc(p->out, '\n');
  if (fusion != NULL) mp_chip_print_members(p, fusion);
}

// ---- steps ----

static void chip_print_text_collective(const mp_chip_print_t *p, const mp_chip_step_t *step,
                                       const char *what) {
  MP_ASSERT(step->collective < p->chip_program->num_collectives);
  const mp_chip_collective_t *collective = &p->chip_program->collectives[step->collective];
  mp_strbuf_printf(p->out, "%s %u: %s", what, step->collective, collective->name);
  for (uint32_t i = 0; i < collective->op->num_operands && i < 4; ++i) {
    mp_strbuf_putc(p->out, ' ');
    mp_chip_print_value(collective->op->operands[i], p->out);
    mp_strbuf_putc(p->out, ' ');
    mp_type_print(collective->op->operands[i]->type, p->out);
  }
  mp_strbuf_putc(p->out, '\n');
}

static void chip_print_text_targets(const mp_chip_print_t *p, const mp_chip_step_t *step,
                                    const char *what) {
  mp_strbuf_puts(p->out, what);
  for (uint32_t i = 0; i < step->num_targets; ++i) {
    MP_ASSERT(step->targets[i] < p->chip_program->num_steps);
    mp_strbuf_printf(p->out, " %u", step->targets[i]);
  }
  if (step->rounds >= 0) mp_strbuf_printf(p->out, ", %lld rounds", (long long)step->rounds);
  mp_strbuf_putc(p->out, '\n');
}

static void chip_print_text_flow(const mp_chip_print_t *p, const mp_chip_step_t *step) {
  const mp_chip_flow_t *flow = step->flow;
  mp_strbuf_puts(p->out, flow->is_loop ? "loop of steps" : "branches of steps");
  for (uint32_t i = 0; i < flow->num_blocks; ++i) {
    if (flow->blocks[i].step == UINT32_MAX) {
      mp_strbuf_puts(p->out, " -");
    } else {
      mp_strbuf_printf(p->out, " %u", flow->blocks[i].step);
    }
  }
  if (flow->rounds >= 0) mp_strbuf_printf(p->out, ", %lld rounds", (long long)flow->rounds);
  mp_strbuf_printf(p->out, ", then step %u\n", step->targets[0]);
}

static void chip_print_text_copy(const mp_chip_print_t *p, const mp_chip_step_t *step,
                                 const char *what) {
  MP_ASSERT(step->copy < p->chip_program->num_copies);
  const mp_chip_copy_t *copy = &p->chip_program->copies[step->copy];
  mp_strbuf_printf(p->out, "%s %u: copy %s host, %.4g MiB", what, step->copy,
                   copy->is_to_host ? "to" : "from", copy->bytes / MP_CHIP_PRINT_MIB);
  chip_print_text_seconds(p, ", ", copy->seconds);
  mp_strbuf_putc(p->out, '\n');
}

static void chip_print_text_work(const mp_chip_print_t *p, const mp_chip_step_t *step) {
  MP_ASSERT(step->first < step->end && step->end <= p->chip_program->num_kernels);
  mp_strbuf_printf(p->out, "%u kernels", step->end - step->first);
  chip_print_text_seconds(p, ", ", mp_moment_seconds(step->time));
  mp_strbuf_putc(p->out, '\n');
  for (uint32_t k = step->first; k < step->end; ++k) {
    chip_print_text_kernel(p, &p->chip_program->kernels[k]);
  }
}

static void chip_print_text_step(const mp_chip_print_t *p, uint32_t number) {
  const mp_chip_step_t *step = &p->chip_program->steps[number];
  mp_strbuf_printf(p->out, "  step %u: ", number);
  switch (step->kind) {
    case MP_CHIP_STEP_WORK:
      chip_print_text_work(p, step);
      break;
    case MP_CHIP_STEP_PART:
      if (step->flow != NULL) {
        chip_print_text_flow(p, step);
      } else {
        chip_print_text_work(p, step);
      }
      break;
    case MP_CHIP_STEP_LOCAL:
      chip_print_text_flow(p, step);
      break;
    case MP_CHIP_STEP_MEET:
      chip_print_text_collective(p, step, "collective");
      break;
    case MP_CHIP_STEP_START:
      chip_print_text_collective(p, step, "start of collective");
      break;
    case MP_CHIP_STEP_DONE:
      chip_print_text_collective(p, step, "end of collective");
      break;
    case MP_CHIP_STEP_SEND:
    case MP_CHIP_STEP_RECV:
      chip_print_text_collective(p, step, "message");
      break;
    case MP_CHIP_STEP_COPY:
      chip_print_text_copy(p, step, "start of copy");
      break;
    case MP_CHIP_STEP_AWAIT:
      chip_print_text_copy(p, step, "end of copy");
      break;
    case MP_CHIP_STEP_JUMP:
      chip_print_text_targets(p, step, "jump to step");
      break;
    case MP_CHIP_STEP_BRANCH:
      chip_print_text_targets(p, step, "leave the loop for step");
      break;
    case MP_CHIP_STEP_SWITCH:
      chip_print_text_targets(p, step, "branch to one of the steps");
      break;
    case MP_CHIP_STEP_END:
      mp_strbuf_puts(p->out, "end\n");
      break;
  }
}

// ---- the program ----

static void chip_print_text_head(const mp_chip_print_t *p) {
  const mp_chip_print_request_t *request = p->request;
  const mp_str_t name = p->chip_program->program->name;
  mp_strbuf_printf(p->out, "chip program %.*s on %s, %u device%s", (int)name.size, name.data,
                   request->target, request->num_devices, request->num_devices == 1 ? "" : "s");
  if (request->stage == MP_CHIP_STAGE_SCHEDULE) {
    chip_print_text_seconds(p, ": ", request->seconds);
  } else {
    mp_strbuf_printf(p->out, ", after %s", mp_chip_stage_name(request->stage));
  }
  if (request->stage >= MP_CHIP_STAGE_COST) {
    mp_strbuf_printf(p->out, ", %u kernels, %u collectives", p->chip_program->num_kernels,
                     p->chip_program->num_collectives);
  }
  mp_strbuf_putc(p->out, '\n');
  if (request->stage >= MP_CHIP_STAGE_MEMORY) mp_chip_print_memory(p);
  if (request->stage == MP_CHIP_STAGE_SCHEDULE && !request->is_structure) {
    mp_kernel_basis_print(&request->chip->figures, request->by_figure, p->out);
  }
}

// Compiles without links: no collective overlaps, so kernels are in the order of the program.
static mp_status_t chip_print_text_unordered(mp_chip_print_t *p) {
  return mp_chip_program_create(p->request->chip, p->request->chip_program->program, NULL,
                                p->fusions.arena, &p->chip_program);
}

static mp_status_t chip_print_text_program(mp_chip_print_t *p) {
  const mp_chip_stage_t stage = p->request->stage;
  if (stage == MP_CHIP_STAGE_COST) MP_RETURN_IF_ERROR(chip_print_text_unordered(p));
  chip_print_text_head(p);
  if (stage < MP_CHIP_STAGE_COST) {
    mp_chip_print_blocks(p);
  } else {
    for (uint32_t s = 0; s < p->chip_program->num_steps; ++s) chip_print_text_step(p, s);
  }
  if (stage >= MP_CHIP_STAGE_LAYOUT) mp_chip_print_layout_copies(p);
  return mp_strbuf_status(p->out);
}

mp_status_t mp_chip_print_text(const mp_chip_print_request_t *request, mp_strbuf_t *out) {
  mp_chip_print_t p = {.request = request, .chip_program = request->chip_program, .out = out};
  mp_status_t status = mp_chip_print_find(request, &p.fusions);
  if (status == NULL) status = chip_print_text_program(&p);
  mp_chip_print_forget(&p.fusions);
  return status;
}
