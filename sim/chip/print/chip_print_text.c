// The chip's program as text.
#include "sim/chip/layout/layout_assign.h"
#include "sim/chip/print/chip_print_impl.h"

#define CHIP_PRINT_MIB (1024.0 * 1024)

typedef struct {
  const mp_chip_print_request_t *request;
  mp_chip_print_fusions_t fusions;
  mp_strbuf_t *out;
} chip_print_text_t;

static void chip_print_text_number(double number, const char *unit, mp_strbuf_t *out) {
  mp_strbuf_printf(out, "%.4g %s", number, unit);
}

static void chip_print_text_seconds(double seconds, mp_strbuf_t *out) {
  chip_print_text_number(seconds * 1e6, "us", out);
}

// ---- kernels ----

static void chip_print_text_access(const chip_print_text_t *p,
                                   const mp_chip_fusion_access_t *access, const char *what) {
  mp_strbuf_printf(p->out, "      %s ", what);
  mp_chip_print_value(access->value, p->out);
  mp_strbuf_putc(p->out, ' ');
  mp_type_print(access->value->type, p->out);
  mp_strbuf_printf(p->out, ", %.4g MiB, %s%s\n", access->bytes / CHIP_PRINT_MIB,
                   mp_chip_print_space(p->request, access), access->is_again ? ", again" : "");
}

static void chip_print_text_ops(const chip_print_text_t *p, const mp_chip_fusion_t *fusion) {
  mp_strbuf_puts(p->out, "      ops");
  for (uint32_t at = fusion->first_member; at != MP_CHIP_FUSION_NONE;) {
    const mp_chip_fusion_member_t *member = &p->fusions.fusions.members.items[at];
    mp_strbuf_putc(p->out, ' ');
    if (member->op->num_results > 0) {
      mp_chip_print_value(&member->op->results[0], p->out);
      mp_strbuf_putc(p->out, ':');
    }
    mp_strbuf_puts(p->out, mp_chip_print_op(member->op));
    at = member->next;
  }
  mp_strbuf_putc(p->out, '\n');
}

static void chip_print_text_kernel(const chip_print_text_t *p, const mp_chip_kernel_t *kernel) {
  const mp_chip_fusion_t *fusion = mp_chip_print_fusion(&p->fusions, kernel);
  mp_strbuf_printf(p->out, "    %s (%s) ", kernel->name, mp_work_class_name(kernel->work_class));
  chip_print_text_seconds(kernel->seconds, p->out);
  mp_strbuf_printf(p->out, ", HBM %.4g MiB", kernel->bytes / CHIP_PRINT_MIB);
  if (kernel->flops > 0) mp_strbuf_printf(p->out, ", %.4g GFLOP", kernel->flops * 1e-9);
  mp_strbuf_putc(p->out, '\n');
  if (fusion == NULL) return;
  chip_print_text_ops(p, fusion);
  const mp_chip_fusion_access_t *access = mp_chip_fusion_accesses(&p->fusions.fusions, fusion);
  for (uint32_t i = 0; i < fusion->num_reads + fusion->num_writes; ++i) {
    chip_print_text_access(p, &access[i], i < fusion->num_reads ? "reads" : "writes");
  }
}

// ---- steps ----

static void chip_print_text_collective(const chip_print_text_t *p, const mp_chip_step_t *step,
                                       const char *what) {
  const mp_chip_collective_t *collective = &p->request->chip_program->collectives[step->collective];
  mp_strbuf_printf(p->out, "%s %u: %s", what, step->collective, collective->name);
  for (uint32_t i = 0; i < collective->op->num_operands && i < 4; ++i) {
    mp_strbuf_putc(p->out, ' ');
    mp_chip_print_value(collective->op->operands[i], p->out);
    mp_strbuf_putc(p->out, ' ');
    mp_type_print(collective->op->operands[i]->type, p->out);
  }
  mp_strbuf_putc(p->out, '\n');
}

static void chip_print_text_targets(const chip_print_text_t *p, const mp_chip_step_t *step,
                                    const char *what) {
  mp_strbuf_puts(p->out, what);
  for (uint32_t i = 0; i < step->num_targets; ++i) {
    mp_strbuf_printf(p->out, " %u", step->targets[i]);
  }
  if (step->rounds >= 0) mp_strbuf_printf(p->out, ", %lld rounds", (long long)step->rounds);
  mp_strbuf_putc(p->out, '\n');
}

static void chip_print_text_flow(const chip_print_text_t *p, const mp_chip_step_t *step) {
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

static void chip_print_text_copy(const chip_print_text_t *p, const mp_chip_step_t *step,
                                 const char *what) {
  const mp_chip_copy_t *copy = &p->request->chip_program->copies[step->copy];
  mp_strbuf_printf(p->out, "%s %u: copy %s host, %.4g MiB, ", what, step->copy,
                   copy->is_to_host ? "to" : "from", copy->bytes / CHIP_PRINT_MIB);
  chip_print_text_seconds(copy->seconds, p->out);
  mp_strbuf_putc(p->out, '\n');
}

static void chip_print_text_work(const chip_print_text_t *p, const mp_chip_step_t *step) {
  mp_strbuf_printf(p->out, "%u kernels, ", step->end - step->first);
  chip_print_text_seconds(mp_moment_seconds(step->time), p->out);
  mp_strbuf_putc(p->out, '\n');
  for (uint32_t k = step->first; k < step->end; ++k) {
    chip_print_text_kernel(p, &p->request->chip_program->kernels[k]);
  }
}

static void chip_print_text_step(const chip_print_text_t *p, uint32_t number) {
  const mp_chip_step_t *step = &p->request->chip_program->steps[number];
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

// ---- layouts ----

static void chip_print_text_layout(mp_tile_layout_t layout, mp_strbuf_t *out) {
  mp_strbuf_printf(out, "{%d,%d}", layout.lane, layout.sublane);
}

static void chip_print_text_layouts(const chip_print_text_t *p) {
  const mp_layouts_t *layouts = &p->fusions.fusions.layouts;
  for (uint32_t i = 0; i < layouts->copies.count; ++i) {
    const mp_layout_copy_t *copy = &layouts->copies.items[i];
    mp_strbuf_puts(p->out, "  layout copy ");
    mp_chip_print_value(copy->value, p->out);
    mp_strbuf_putc(p->out, ' ');
    mp_type_print(copy->value->type, p->out);
    mp_strbuf_putc(p->out, ' ');
    chip_print_text_layout(copy->from, p->out);
    mp_strbuf_puts(p->out, " -> ");
    chip_print_text_layout(copy->to, p->out);
    mp_strbuf_printf(p->out, " for %s%s, %s to %s\n", mp_chip_print_op(copy->op),
                     copy->is_reshape ? " (reshape)" : "", copy->reads_vmem ? "VMEM" : "HBM",
                     copy->writes_vmem ? "VMEM" : "HBM");
  }
}

// ---- the program ----

static void chip_print_text_head(const chip_print_text_t *p) {
  const mp_chip_print_request_t *request = p->request;
  const mp_chip_space_t *space = &request->chip_program->memory.device;
  const mp_str_t name = request->chip_program->program->name;
  mp_strbuf_printf(p->out, "chip program %.*s on %s, %u device%s: ", (int)name.size, name.data,
                   request->target, request->num_devices, request->num_devices == 1 ? "" : "s");
  chip_print_text_seconds(request->seconds, p->out);
  mp_strbuf_printf(p->out, ", %u kernels, %u collectives\n", request->chip_program->num_kernels,
                   request->chip_program->num_collectives);
  mp_strbuf_printf(p->out,
                   "  memory per device: arguments %.4g MiB, results %.4g MiB (%.4g MiB in place "
                   "of arguments), temporaries %.4g MiB\n",
                   (double)space->arguments / CHIP_PRINT_MIB,
                   (double)space->results / CHIP_PRINT_MIB, (double)space->aliased / CHIP_PRINT_MIB,
                   (double)space->temporaries / CHIP_PRINT_MIB);
}

mp_status_t mp_chip_print_text(const mp_chip_print_request_t *request, mp_strbuf_t *out) {
  chip_print_text_t p = {.request = request, .out = out};
  mp_status_t status = mp_chip_print_find(request, &p.fusions);
  if (status == NULL) {
    chip_print_text_head(&p);
    for (uint32_t s = 0; s < request->chip_program->num_steps; ++s) chip_print_text_step(&p, s);
    chip_print_text_layouts(&p);
    status = mp_strbuf_status(out);
  }
  mp_chip_print_forget(&p.fusions);
  return status;
}
