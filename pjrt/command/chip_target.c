#include "pjrt/command/chip_target.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/alloc.h"
#include "sim/chip/chip_compile.h"
#include "sim/chip/rules/chip_rules.h"

// ---- pods ----

// The grid of one device has as many dimensions as the chip's network.
static mp_status_t chip_target_make_pod(const char *name, mp_pod_t **out_pod) {
  static const char *const grids[] = {":1", ":1x1", ":1x1x1"};
  char text[256];
  mp_status_t status = mp_pod_create_from_name(mp_str(name), "--target", out_pod);
  if (status == NULL || strpbrk(name, ": ./") != NULL) return status;
  for (size_t i = 0; i < sizeof(grids) / sizeof(grids[0]) && status != NULL; ++i) {
    const int size = snprintf(text, sizeof(text), "%s%s", name, grids[i]);
    if (size < 0 || (size_t)size >= sizeof(text)) break;
    mp_status_t again = mp_pod_create_from_name(mp_str(text), "--target", out_pod);
    mp_status_release(again == NULL ? status : again);
    if (again == NULL) status = NULL;
  }
  return status;
}

mp_status_t mp_chip_target_make(const mp_options_t *options, const char *name,
                                mp_chip_target_t *out) {
  *out = (mp_chip_target_t){.name = name};
  if (name != NULL) {
    MP_RETURN_IF_ERROR(chip_target_make_pod(name, &out->pod));
  } else {
    MP_RETURN_IF_ERROR(mp_pod_create(options, &out->pod));
    out->name = mp_pod_info(out->pod)->name;
  }
  return mp_model_create(out->pod, options, &out->model);
}

void mp_chip_target_release(mp_chip_target_t *target) {
  mp_model_release(target->model);
  mp_pod_release(target->pod);
}

// ---- programs ----

static mp_status_t chip_target_make_program(const mp_chip_target_t *target,
                                            const mp_program_t *program,
                                            mp_model_program_t **out_program) {
  const uint32_t count = program->num_replicas * program->num_partitions;
  const uint32_t most = (uint32_t)mp_pod_info(target->pod)->num_devices;
  if (count > most) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "the program is for %u devices, and %s has %u: name a larger pod with "
                          "--target",
                          count, target->name, most);
  }
  uint32_t *ids = mp_calloc(count, sizeof(*ids));
  MP_RETURN_IF_NULL(ids);
  for (uint32_t i = 0; i < count; ++i) ids[i] = i;
  mp_status_t status = mp_model_program_create(target->model, program, count, ids, out_program);
  mp_free(ids);
  return status;
}

// Adds to the request what a text of kernels needs, in `arena`.
static mp_status_t chip_target_add_kernels(mp_chip_print_request_t *request, mp_arena_t *arena) {
  const mp_chip_t *chip = request->chip;
  const mp_program_t *program = request->chip_program->program;
  mp_chip_fusions_t *fusions = MP_ARENA_NEW(arena, mp_chip_fusions_t);
  MP_RETURN_IF_NULL(fusions);
  // A chip program keeps only what replays need, so they are found again.
  MP_RETURN_IF_ERROR(mp_chip_make_fusions(program->partitioned, &chip->figures, arena, fusions));
  request->fusions = fusions;
  if (request->stage != MP_CHIP_STAGE_COST) return NULL;
  // Without links no collective overlaps, so kernels are in the order of the program.
  return mp_chip_program_create(chip, program, NULL, arena, &request->chip_program);
}

static mp_status_t chip_target_print(const mp_chip_target_t *target, const mp_chip_look_t *look,
                                     const char *file, mp_model_program_t *timed,
                                     mp_strbuf_t *out) {
  mp_model_estimate_t estimate;
  MP_RETURN_IF_ERROR(mp_model_program_estimate(timed, &estimate));
  mp_chip_print_request_t request = {
      .chip = mp_model_chip(target->model),
      .chip_program = mp_model_program_chip(timed),
      .file = file,
      .target = target->name,
      .num_devices = mp_model_program_num_devices(timed),
      .seconds = estimate.seconds,
      .work_seconds = estimate.work_seconds,
      .by_figure = estimate.by_figure,
      .stage = look->stage,
      .is_structure = look->is_structure,
  };
  mp_arena_t *arena;
  MP_RETURN_IF_ERROR(mp_arena_create(&arena));
  const bool has_kernels = look->form == MP_CHIP_TEXT || look->form == MP_CHIP_JSON;
  mp_status_t status = has_kernels ? chip_target_add_kernels(&request, arena) : NULL;
  if (status == NULL) {
    (look->form == MP_CHIP_TEXT ? mp_chip_print_text : mp_chip_print_json)(&request, out);
    status = mp_strbuf_status(out);
  }
  mp_arena_release(arena);
  return status;
}

static mp_status_t chip_target_run(const mp_chip_target_t *target, const mp_chip_look_t *look,
                                   const char *file, const mp_program_t *program,
                                   mp_strbuf_t *out) {
  mp_model_program_t *timed = NULL;
  MP_RETURN_IF_ERROR(chip_target_make_program(target, program, &timed));
  const mp_status_t status = chip_target_print(target, look, file, timed, out);
  mp_model_program_release(timed, NULL);
  return status;
}

// ---- without rules ----

static const mp_chip_look_t g_summary = {.form = MP_CHIP_SUMMARY, .stage = MP_CHIP_STAGE_SCHEDULE};

// Appends `, "without": {rule: {...}}`: what the program comes to without each rule that it used.
static mp_status_t chip_target_ablate(const mp_chip_target_t *target, const char *file,
                                      const mp_program_t *program, const uint64_t *used,
                                      mp_strbuf_t *out) {
  mp_status_t status = NULL;
  const mp_chip_switches_t before = mp_model_chip(target->model)->figures.rules;
  bool is_first = true;
  mp_strbuf_puts(out, ", \"without\": {");
  for (uint32_t rule = 0; rule < MP_CHIP_RULE_COUNT && status == NULL; ++rule) {
    if ((used[rule / 64] >> (rule % 64) & 1) == 0) continue;
    mp_chip_switches_t without = before;
    without.off[rule / 64] |= (uint64_t)1 << (rule % 64);
    mp_model_set_rules(target->model, &without);
    mp_strbuf_printf(out, "%s\"%s\": ", is_first ? "" : ", ",
                     mp_chip_rule_name((mp_chip_rule_t)rule));
    is_first = false;
    status = chip_target_run(target, &g_summary, file, program, out);
  }
  mp_model_set_rules(target->model, &before);
  mp_strbuf_puts(out, "}}");
  return status;
}

mp_status_t mp_chip_target_print(const mp_chip_target_t *target, const mp_chip_look_t *look,
                                 const char *file, const mp_program_t *program, mp_strbuf_t *out) {
  if (look->form != MP_CHIP_ABLATE) return chip_target_run(target, look, file, program, out);
  uint64_t used[MP_CHIP_RULE_WORDS] = {0};
  const mp_chip_switches_t before = mp_model_chip(target->model)->figures.rules;
  mp_chip_switches_t noted = before;
  noted.used = used;
  mp_model_set_rules(target->model, &noted);
  mp_strbuf_puts(out, "{\"base\": ");
  const mp_status_t status = chip_target_run(target, &g_summary, file, program, out);
  mp_model_set_rules(target->model, &before);
  if (status != NULL) return status;
  return chip_target_ablate(target, file, program, used, out);
}
