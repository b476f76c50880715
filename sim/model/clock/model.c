// The model and its programs.
#include "sim/model/clock/model.h"

#include <stdlib.h>

#include "sim/base/alloc.h"
#include "sim/base/os/clock.h"
#include "sim/chip/rules/chip_rules.h"
#include "sim/model/clock/model_impl.h"
#include "sim/model/network/algorithms/network_options.h"

// ---- The model ----

static mp_status_t model_make(mp_model_t *model, const mp_options_t *options) {
  const mp_pod_info_t *info = mp_pod_info(model->pod);
  MP_RETURN_IF_ERROR(mp_chip_from_pod(info, &model->chip));
  const char *init_args = getenv("LIBTPU_INIT_ARGS");
  if (init_args != NULL && mp_pod_is_tpu(model->pod)) {
    mp_chip_figures_take_init_args(mp_str(init_args), &model->chip.figures);
  }
  mp_pod_time_t time;
  MP_RETURN_IF_ERROR(mp_pod_read_time(model->pod, options, &time));
  model->has_guesses = time.values == MP_VALUES_MODE_SHAPES;
  model->unknown_branch = time.unknown_branch;
  model->unknown_trip_count = time.unknown_trip_count;
  if (time.calibration[0] != 0) {
    MP_RETURN_IF_ERROR(
        mp_pod_blame_time(model->pod, options, MP_OPTION_ID_calibration,
                          mp_chip_calibrate_by_file(&model->chip, time.calibration)));
  }
  MP_RETURN_IF_ERROR(mp_status_annotate(
      mp_chip_rules_without(mp_str(time.chip_without), &model->chip.figures), "chip_without"));
  mp_network_options_t network = {0};
  MP_RETURN_IF_ERROR(mp_pod_blame_time(model->pod, options, MP_OPTION_ID_algorithms,
                                       mp_network_options_read(mp_str(time.algorithms), &network)));
  MP_RETURN_IF_ERROR(mp_network_create(model->pod, &network, &model->network));
  model->is_virtual = time.clock == MP_CLOCK_VIRTUAL;
  if (time.mode == MP_TIME_PACED || model->is_virtual) {
    model->pace = model->is_virtual ? 1 : time.pace;
    model->offset = model->began = mp_model_clock(model);
    model->dues = mp_calloc(MP_MODEL_KEPT_ENDS, sizeof(*model->dues));
    MP_RETURN_IF_NULL(model->dues);
  }
  const size_t count = (size_t)info->num_devices;
  model->devices = mp_calloc(count, sizeof(*model->devices));
  model->incoming = mp_calloc(count, sizeof(*model->incoming));
  model->outgoing = mp_calloc(count, sizeof(*model->outgoing));
  model->ends = mp_calloc(MP_MODEL_KEPT_ENDS, sizeof(*model->ends));
  MP_RETURN_IF_NULL(model->devices);
  MP_RETURN_IF_NULL(model->incoming);
  MP_RETURN_IF_NULL(model->outgoing);
  MP_RETURN_IF_NULL(model->ends);
  // A description of launches that take next to no time includes the host's part.
  const double no_time = 100e-9;
  if (model->chip.launch_latency > no_time) {
    model->dispatch = mp_moment_of(mp_figure_or(model->chip.figures.host_dispatch, 0));
  }
  MP_RETURN_IF_ERROR(mp_model_make_callers(model));
  return mp_model_make_hosts(model);
}

mp_status_t mp_model_create(mp_pod_t *pod, const mp_options_t *options, mp_model_t **out_model) {
  mp_model_t *model = mp_calloc(1, sizeof(*model));
  MP_RETURN_IF_NULL(model);
  mp_lock_init(&model->lock, MP_LOCK_MODEL);
  mp_clock_cond_init(&model->ended);
  model->pod = mp_pod_retain(pod);
  mp_status_t status = model_make(model, options);
  if (status != NULL) {
    mp_model_release(model);
    return status;
  }
  *out_model = model;
  return NULL;
}

static void model_free_entries(mp_entry_t *first) {
  while (first != NULL) {
    mp_entry_t *entry = first;
    first = entry->next;
    mp_model_free_entry(entry);
  }
}

void mp_model_release(mp_model_t *model) {
  if (model == NULL) return;
  model_free_entries(model->first);
  model_free_entries(model->aside);
  mp_model_forget_beside(model, NULL);
  MP_ASSERT(model->programs.first == NULL && model->dead == NULL);
  mp_model_free_health(model);
  mp_model_free_hosts(model);
  mp_model_free_callers(model);
  mp_network_release(model->network);
  mp_pod_release(model->pod);
  mp_free(model->devices);
  mp_free(model->incoming);
  mp_free(model->outgoing);
  mp_free(model->ends);
  mp_free(model->dues);
  pthread_cond_destroy(&model->ended);
  mp_lock_deinit(&model->lock);
  mp_free(model);
}

void mp_model_write_libtpu_flags(mp_strbuf_t *out) {
  const char *init_args = getenv("LIBTPU_INIT_ARGS");
  if (init_args != NULL) mp_chip_flags_write(mp_str(init_args), out);
}

bool mp_model_takes_libtpu_flag(mp_str_t flag) {
  mp_chip_figures_t ignored = {0};
  return mp_chip_figures_take_flag(flag, &ignored);
}

mp_network_t *mp_model_network(const mp_model_t *model) {
  return model->network;
}

const mp_pod_t *mp_model_pod(const mp_model_t *model) {
  return model->pod;
}

const mp_chip_t *mp_model_chip(const mp_model_t *model) {
  return &model->chip;
}

void mp_model_set_rules(mp_model_t *model, const mp_chip_switches_t *rules) {
  mp_lock(&model->lock);
  MP_ASSERT(model->programs.first == NULL);
  model->chip.figures.rules = *rules;
  mp_unlock(&model->lock);
}

// ---- Programs ----

// The chip as this program's compile options want it.
static mp_chip_t model_chip_for(const mp_model_t *model, const mp_program_t *program) {
  mp_chip_t chip = model->chip;
  for (uint32_t i = 0; i < program->num_libtpu_flags; ++i) {
    (void)mp_chip_figures_take_flag(program->libtpu_flags[i], &chip.figures);
  }
  return chip;
}

static mp_status_t model_make_program(mp_model_program_t *program,
                                      const mp_program_t *device_program, const uint32_t *ids) {
  const mp_pod_info_t *info = mp_pod_info(program->model->pod);
  MP_RETURN_IF_ERROR(mp_arena_create(&program->arena));
  mp_arena_t *arena = program->arena;
  const uint32_t count = program->num_devices;
  program->ids = MP_ARENA_ARRAY(arena, int32_t, count);
  program->starts = MP_ARENA_ARRAY(arena, mp_moment_t, count);
  program->ends = MP_ARENA_ARRAY(arena, mp_moment_t, count);
  program->paths = MP_ARENA_ARRAY(arena, const mp_path_t *, count);
  program->slowness = MP_ARENA_ARRAY(arena, double, count);
  MP_RETURN_IF_NULL(program->slowness);
  MP_RETURN_IF_NULL(program->ids);
  MP_RETURN_IF_NULL(program->starts);
  MP_RETURN_IF_NULL(program->ends);
  MP_RETURN_IF_NULL(program->paths);
  for (uint32_t i = 0; i < count; ++i) {
    program->ids[i] = (int32_t)ids[i];
    const int32_t local = program->ids[i] - info->first_local_device;
    program->num_local += local >= 0 && local < info->num_local_devices;
  }
  program->name = device_program->name;
  mp_chip_links_t links = {.seconds = mp_model_collective_seconds,
                           .spread = mp_model_collective_spread,
                           .context = program,
                           .bandwidth = info->dims[0].link.bandwidth};
  MP_RETURN_IF_ERROR(mp_model_host_link(program, &links));
  const mp_chip_t chip = model_chip_for(program->model, device_program);
  MP_RETURN_IF_ERROR(
      mp_chip_program_create(&chip, device_program, &links, arena, &program->chip_program));
  MP_RETURN_IF_ERROR(mp_model_read_kernels(program));
  MP_RETURN_IF_ERROR(mp_books_create(arena, program->model->network, program->chip_program, count,
                                     &program->books));
  MP_RETURN_IF_ERROR(mp_replay_create(program->model->network, program->chip_program, count,
                                      program->ids, &program->replay));
  program->current = program->replay;
  mp_model_set_kin(program);
  if (program->model->has_guesses) MP_RETURN_IF_ERROR(mp_model_guess_branches(program));
  return NULL;
}

mp_status_t mp_model_program_create(mp_model_t *model, const mp_program_t *program,
                                    uint32_t num_devices, const uint32_t *ids,
                                    mp_model_program_t **out_program) {
  mp_model_program_t *made = mp_calloc(1, sizeof(*made));
  MP_RETURN_IF_NULL(made);
  made->model = model;
  made->references = 1;
  made->num_devices = num_devices;
  mp_lock(&model->lock);
  mp_status_t status = model_make_program(made, program, ids);
  if (status == NULL) {
    made->serial = ++model->num_made;
    MP_LIST_APPEND(&model->programs, made, prev, next);
  }
  mp_unlock(&model->lock);
  if (status != NULL) {
    mp_model_free_program(made);
    return status;
  }
  *out_program = made;
  return NULL;
}

void mp_model_program_release(mp_model_program_t *program, mp_program_t *device_program) {
  if (program == NULL) {
    mp_program_release(device_program);
    return;
  }
  mp_model_t *model = program->model;
  mp_lock(&model->lock);
  program->adopted = device_program;
  mp_model_settle(model, true);
  mp_model_forget_beside(model, program);
  mp_model_unref_program(program);
  mp_model_unlock(model);
}

mp_str_t mp_model_program_name(const mp_model_program_t *program) {
  return program->name;
}

const mp_chip_program_t *mp_model_program_chip(const mp_model_program_t *program) {
  return program->chip_program;
}

uint32_t mp_model_program_num_devices(const mp_model_program_t *program) {
  return program->num_devices;
}

const int32_t *mp_model_program_ids(const mp_model_program_t *program) {
  return program->ids;
}

mp_algorithm_t mp_model_program_algorithm(const mp_model_program_t *program, uint32_t collective) {
  return mp_replay_books(program->current)->meetings[collective].algorithm;
}

// ---- Reading ----

void mp_model_read(mp_model_t *model, mp_model_books_t *out_books, mp_model_visitor_t visit,
                   void *context) {
  const int32_t count = mp_pod_info(model->pod)->num_devices;
  mp_lock(&model->lock);
  mp_model_settle(model, true);
  *out_books = (mp_model_books_t){.now = model->host,
                                  .host = model->host,
                                  .devices = model->devices,
                                  .launches = model->launches,
                                  .transfers = model->transfers,
                                  .pending = model->num_waiting,
                                  .lost = model->lost,
                                  .late = model->late,
                                  .pace = model->is_virtual ? 0 : model->pace};
  for (int32_t i = 0; i < count; ++i) {
    if (model->devices[i] > out_books->now) out_books->now = model->devices[i];
  }
  for (mp_model_program_t *p = model->programs.first; p != NULL && visit != NULL; p = p->next) {
    const mp_model_program_books_t books = mp_model_books_of(p);
    visit(&books, context);
  }
  mp_model_unlock(model);
}

void mp_model_on_retire(mp_model_t *model, mp_model_visitor_t visit, void *context) {
  mp_lock(&model->lock);
  model->on_retire = visit;
  model->retire_context = context;
  mp_unlock(&model->lock);
}

void mp_model_observe(mp_model_t *model, const mp_model_observer_t *observer) {
  mp_lock(&model->lock);
  mp_model_settle(model, false);
  model->is_observed = observer != NULL;
  if (observer != NULL) model->observer = *observer;
  mp_model_unlock(model);
}
