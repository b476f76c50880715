// Prints a chip program as text.
#include "sim/base/assert.h"
#include "sim/chip/basis/kernel_basis.h"
#include "sim/chip/print/chip_print_impl.h"

static const char *const g_chip_stage_names[] = {
    [MP_CHIP_STAGE_FUSE] = "fuse",         [MP_CHIP_STAGE_LAYOUT] = "layout",
    [MP_CHIP_STAGE_MEMORY] = "memory",     [MP_CHIP_STAGE_COST] = "cost",
    [MP_CHIP_STAGE_SCHEDULE] = "schedule",
};

bool mp_chip_stage_from_name(mp_str_t name, mp_chip_stage_t *out_stage) {
  for (int i = 0; i < MP_CHIP_STAGE_COUNT; ++i) {
    if (!mp_str_equal(name, mp_str(g_chip_stage_names[i]))) continue;
    *out_stage = (mp_chip_stage_t)i;
    return true;
  }
  return false;
}

// Prints ", 12.5 us", unless times are left out.
static void chip_print_text_seconds(const mp_chip_print_t *p, const char *before, double seconds) {
  if (!p->request->is_structure) mp_strbuf_printf(p->out, "%s%.4g us", before, seconds * 1e6);
}

// ---- steps ----

static void chip_print_text_kernel(const mp_chip_print_t *p, const mp_chip_kernel_t *kernel) {
  mp_strbuf_printf(p->out, "    %s (%s)", kernel->name, mp_work_class_name(kernel->work_class));
  chip_print_text_seconds(p, " ", kernel->seconds);
  mp_strbuf_printf(p->out, ", HBM %.4g MiB", kernel->bytes / MP_CHIP_PRINT_MIB);
  if (kernel->flops > 0) mp_strbuf_printf(p->out, ", %.4g GFLOP", kernel->flops * 1e-9);
  mp_strbuf_putc(p->out, '\n');
  if (kernel->fusion == 0) return;
  mp_chip_print_members(p, &p->fusions->fusions.items[kernel->fusion - 1]);
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

static void chip_print_text_collective(const mp_chip_print_t *p, const mp_chip_step_t *step) {
  MP_ASSERT(step->collective < p->chip_program->num_collectives);
  const mp_chip_collective_t *collective = &p->chip_program->collectives[step->collective];
  mp_strbuf_printf(p->out, " %u: %s", step->collective, collective->name);
  for (uint32_t i = 0; i < collective->op->num_operands && i < 4; ++i) {
    mp_strbuf_putc(p->out, ' ');
    mp_chip_print_value(collective->op->operands[i], p->out);
    mp_strbuf_putc(p->out, ' ');
    mp_type_print(collective->op->operands[i]->type, p->out);
  }
  mp_strbuf_putc(p->out, '\n');
}

static void chip_print_text_copy(const mp_chip_print_t *p, const mp_chip_step_t *step) {
  MP_ASSERT(step->copy < p->chip_program->num_copies);
  const mp_chip_copy_t *copy = &p->chip_program->copies[step->copy];
  mp_strbuf_printf(p->out, " %u: copy %s host, %.4g MiB", step->copy,
                   copy->is_to_host ? "to" : "from", copy->bytes / MP_CHIP_PRINT_MIB);
  chip_print_text_seconds(p, ", ", copy->seconds);
  mp_strbuf_putc(p->out, '\n');
}

// Prints the steps to which one jumps, or those of a local loop or branch.
static void chip_print_text_targets(const mp_chip_print_t *p, const mp_chip_step_t *step) {
  const mp_chip_flow_t *flow = step->flow;
  const uint32_t count = flow == NULL ? step->num_targets : flow->num_blocks;
  if (flow != NULL) mp_strbuf_puts(p->out, flow->is_loop ? "loop of steps" : "branches of steps");
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t target = flow == NULL ? step->targets[i] : flow->blocks[i].step;
    MP_ASSERT(target < p->chip_program->num_steps || target == UINT32_MAX);
    if (target == UINT32_MAX) {
      mp_strbuf_puts(p->out, " -");
    } else {
      mp_strbuf_printf(p->out, " %u", target);
    }
  }
  if (step->rounds >= 0) mp_strbuf_printf(p->out, ", %lld rounds", (long long)step->rounds);
  if (flow != NULL) mp_strbuf_printf(p->out, ", then step %u", step->targets[0]);
  mp_strbuf_putc(p->out, '\n');
}

static void chip_print_text_step(const mp_chip_print_t *p, uint32_t number) {
  static const char *const names[] = {
      [MP_CHIP_STEP_WORK] = "",
      [MP_CHIP_STEP_PART] = "",
      [MP_CHIP_STEP_LOCAL] = "",
      [MP_CHIP_STEP_MEET] = "collective",
      [MP_CHIP_STEP_START] = "start of collective",
      [MP_CHIP_STEP_DONE] = "end of collective",
      [MP_CHIP_STEP_SEND] = "message",
      [MP_CHIP_STEP_RECV] = "message",
      [MP_CHIP_STEP_COPY] = "start of copy",
      [MP_CHIP_STEP_AWAIT] = "end of copy",
      [MP_CHIP_STEP_JUMP] = "jump to step",
      [MP_CHIP_STEP_BRANCH] = "leave the loop for step",
      [MP_CHIP_STEP_SWITCH] = "branch to one of the steps",
      [MP_CHIP_STEP_END] = "end\n",
  };
  const mp_chip_step_t *step = &p->chip_program->steps[number];
  mp_strbuf_printf(p->out, "  step %u: %s", number, names[step->kind]);
  if (step->num_targets > 0) {
    chip_print_text_targets(p, step);
  } else if (step->kind == MP_CHIP_STEP_WORK || step->kind == MP_CHIP_STEP_PART) {
    chip_print_text_work(p, step);
  } else if (step->kind == MP_CHIP_STEP_COPY || step->kind == MP_CHIP_STEP_AWAIT) {
    chip_print_text_copy(p, step);
  } else if (step->kind != MP_CHIP_STEP_END) {
    chip_print_text_collective(p, step);
  }
}

// ---- the program ----

static void chip_print_text_memory(const mp_chip_print_t *p) {
  const mp_chip_space_t *space = &p->chip_program->memory.device;
  mp_strbuf_printf(
      p->out,
      "  memory per device: arguments %.4g MiB, results %.4g MiB "
      "(%.4g MiB in place "
      "of arguments), temporaries %.4g MiB\n",
      (double)space->arguments / MP_CHIP_PRINT_MIB, (double)space->results / MP_CHIP_PRINT_MIB,
      (double)space->aliased / MP_CHIP_PRINT_MIB, (double)space->temporaries / MP_CHIP_PRINT_MIB);
}

static void chip_print_text_head(const mp_chip_print_t *p) {
  const mp_chip_print_request_t *request = p->request;
  const mp_str_t name = p->chip_program->program->name;
  mp_strbuf_printf(p->out, "chip program %.*s on %s, %u device%s", (int)name.size, name.data,
                   request->target, request->num_devices, request->num_devices == 1 ? "" : "s");
  if (request->stage == MP_CHIP_STAGE_SCHEDULE) {
    chip_print_text_seconds(p, ": ", request->seconds);
  } else {
    mp_strbuf_printf(p->out, ", after %s", g_chip_stage_names[request->stage]);
  }
  if (request->stage >= MP_CHIP_STAGE_COST) {
    mp_strbuf_printf(p->out, ", %u kernels, %u collectives", p->chip_program->num_kernels,
                     p->chip_program->num_collectives);
  }
  mp_strbuf_putc(p->out, '\n');
  if (request->stage >= MP_CHIP_STAGE_MEMORY) chip_print_text_memory(p);
  if (request->stage == MP_CHIP_STAGE_SCHEDULE && !request->is_structure) {
    mp_kernel_basis_print(&request->chip->figures, request->by_figure, p->out);
  }
}

void mp_chip_print_text(const mp_chip_print_request_t *request, mp_strbuf_t *out) {
  const mp_chip_print_t p = {request, request->chip_program, request->fusions, out};
  const mp_chip_stage_t stage = request->stage;
  chip_print_text_head(&p);
  if (stage < MP_CHIP_STAGE_COST) {
    mp_chip_print_blocks(&p);
  } else {
    for (uint32_t s = 0; s < p.chip_program->num_steps; ++s) chip_print_text_step(&p, s);
  }
  if (stage >= MP_CHIP_STAGE_LAYOUT) mp_chip_print_layout_copies(&p);
}
