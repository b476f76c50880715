// From the log to virtual times.
#include "sim/base/alloc.h"
#include "sim/base/hash.h"
#include "sim/model/clock/model_impl.h"

// ---- Books ----

// Most programs come to one memo or two: the others are not made.
static mp_status_t model_settle_make_memo(mp_model_program_t *program, mp_memo_t *memo) {
  const uint32_t count = program->num_devices;
  MP_RETURN_IF_ERROR(mp_books_create(program->arena, program->model->network, program->chip_program,
                                     count, &memo->books));
  memo->ends = MP_ARENA_ARRAY(program->arena, mp_moment_t, count);
  MP_RETURN_IF_NULL(memo->ends);
  memo->starts = MP_ARENA_ARRAY(program->arena, mp_moment_t, count);
  MP_RETURN_IF_NULL(memo->starts);
  return NULL;
}

// Keeps what the last launch came to, and counts it.
static mp_status_t model_settle_keep(mp_model_program_t *program, uint64_t path_hash) {
  mp_memo_t *memo = &program->memos[program->next_memo++ % MP_MODEL_MEMOS];
  if (memo->starts == NULL) MP_RETURN_IF_ERROR(model_settle_make_memo(program, memo));
  mp_model_fold_memo(program, memo);
  const size_t bytes = program->num_devices * sizeof(mp_moment_t);
  memcpy(memo->starts, program->starts, bytes);
  memcpy(memo->ends, program->ends, bytes);
  memo->path_hash = path_hash;
  memo->hits = 1;
  mp_books_clear(&memo->books);
  mp_books_add(&memo->books, mp_replay_books(program->current), 1);
  return NULL;
}

static mp_memo_t *model_settle_recall(mp_model_program_t *program, uint64_t path_hash) {
  const size_t bytes = program->num_devices * sizeof(mp_moment_t);
  for (uint32_t i = 0; i < MP_MODEL_MEMOS; ++i) {
    mp_memo_t *memo = &program->memos[i];
    if (memo->starts == NULL || memo->path_hash != path_hash) continue;
    if (memcmp(memo->starts, program->starts, bytes) == 0) return memo;
  }
  return NULL;
}

// ---- Timelines ----

typedef struct {
  mp_model_program_t *program;
  mp_moment_t base;
} watched_t;

static void model_settle_on_work(void *context, uint32_t logical, uint32_t step, mp_moment_t begin,
                                 mp_moment_t end) {
  const watched_t *w = context;
  const mp_model_observer_t *observer = &w->program->model->observer;
  observer->on_work(observer->context, w->program, (uint32_t)w->program->ids[logical], step,
                    w->base + begin, w->base + end);
}

static void model_settle_on_meeting(void *context, uint32_t logical, uint32_t collective,
                                    mp_moment_t arrival, mp_moment_t begin, mp_moment_t end) {
  const watched_t *w = context;
  const mp_model_observer_t *observer = &w->program->model->observer;
  const mp_model_meeting_t meeting = {.device = (uint32_t)w->program->ids[logical],
                                      .collective = collective,
                                      .arrival = w->base + arrival,
                                      .begin = w->base + begin,
                                      .end = w->base + end};
  observer->on_meeting(observer->context, w->program, &meeting);
}

static void model_settle_on_stream(void *context, uint32_t logical, uint32_t collective,
                                   mp_moment_t begin, mp_moment_t end) {
  const watched_t *w = context;
  const mp_model_observer_t *observer = &w->program->model->observer;
  observer->on_stream(observer->context, w->program, (uint32_t)w->program->ids[logical], collective,
                      w->base + begin, w->base + end);
}

static void model_settle_on_message(void *context, const mp_replay_message_t *message) {
  const watched_t *w = context;
  const mp_model_observer_t *observer = &w->program->model->observer;
  const mp_model_message_t told = {.device = (uint32_t)w->program->ids[message->logical],
                                   .other = (uint32_t)w->program->ids[message->other],
                                   .collective = message->collective,
                                   .is_send = message->is_send,
                                   .begin = w->base + message->begin,
                                   .end = w->base + message->end};
  observer->on_message(observer->context, w->program, &told);
}

static void model_settle_on_transfer(void *context, uint32_t collective,
                                     const mp_transfer_t *transfer, mp_moment_t begin,
                                     mp_moment_t end) {
  const watched_t *w = context;
  const mp_model_observer_t *observer = &w->program->model->observer;
  for (uint32_t u = 0; u < transfer->num_uses; ++u) {
    const mp_model_carried_t carried = {.link = transfer->uses[u].link,
                                        .collective = collective,
                                        .bytes = transfer->bytes * transfer->uses[u].times,
                                        .begin = w->base + begin,
                                        .end = w->base + end};
    observer->on_link(observer->context, w->program, &carried);
  }
}

static void model_settle_on_copy(void *context, uint32_t logical, uint32_t copy, mp_moment_t begin,
                                 mp_moment_t end) {
  const watched_t *w = context;
  const mp_model_observer_t *observer = &w->program->model->observer;
  const mp_chip_copy_t *one = &w->program->chip_program->copies[copy];
  const mp_model_transfer_t told = {.kind = one->is_to_host ? MP_TRANSFER_GET : MP_TRANSFER_PUT,
                                    .device = (uint32_t)w->program->ids[logical],
                                    .bytes = (uint64_t)one->bytes};
  observer->on_transfer(observer->context, &told, w->base + begin, w->base + end);
}

// ---- Launches ----

static const mp_path_t k_no_path;

// Sets the paths. Devices of other processes are taken to go the way of the first one here.
static uint64_t model_settle_set_paths(mp_model_program_t *program, const mp_entry_t *entry) {
  uint64_t hash = MP_HASH_START;
  const mp_path_t *first = &k_no_path;
  for (uint32_t i = program->num_devices; i-- > 0;) {
    if (entry->shares != NULL && entry->is_here[i]) first = &entry->shares[i].path;
  }
  for (uint32_t i = 0; i < program->num_devices; ++i) {
    const bool has_own = entry->shares != NULL && entry->is_here[i];
    program->paths[i] = has_own ? &entry->shares[i].path : first;
    if (entry->is_partial) hash = mp_hash_u64(hash, entry->is_here[i]);
    if (entry->shares != NULL) hash = mp_hash_u64(hash, mp_path_hash(program->paths[i]));
  }
  return hash;
}

static bool model_settle_takes_part(const mp_entry_t *entry, uint32_t device) {
  return !entry->is_partial || entry->is_here[device];
}

// Sets when each device may begin, relative to the first; the result is that moment.
static mp_moment_t model_settle_set_starts(mp_model_program_t *program, const mp_entry_t *entry) {
  mp_model_t *model = program->model;
  const mp_moment_t host = model->host + mp_moment_of(model->chip.launch_latency);
  mp_moment_t base = UINT64_MAX;
  for (uint32_t i = 0; i < program->num_devices; ++i) {
    const mp_moment_t ready = mp_moment_later(host, model->devices[program->ids[i]]);
    const mp_moment_t start = mp_moment_later(ready, mp_model_end_of(model, entry->inputs[i]));
    program->starts[i] = start;
    if (!model_settle_takes_part(entry, i)) continue;
    program->transfers += start - ready;
    base = start < base ? start : base;
  }
  for (uint32_t i = 0; i < program->num_devices; ++i) {
    program->starts[i] = model_settle_takes_part(entry, i) ? program->starts[i] - base : 0;
  }
  return base;
}

// When the last device that takes part is done, relative to the first one's beginning.
static mp_moment_t model_settle_last(const mp_entry_t *entry) {
  mp_moment_t last = 0;
  for (uint32_t i = 0; i < entry->program->num_devices; ++i) {
    if (!model_settle_takes_part(entry, i)) continue;
    last = entry->program->ends[i] > last ? entry->program->ends[i] : last;
  }
  return last;
}

// Writes program->ends. The launch's traffic shares links with that of its company; what it sends
// goes to the log, if there is one.
static mp_status_t model_settle_run(const mp_entry_t *entry, uint64_t path_hash, mp_moment_t base,
                                    const double *slowness, const mp_company_t *company,
                                    mp_flows_log_t *log) {
  mp_model_program_t *program = entry->program;
  const mp_model_t *model = program->model;
  watched_t watched = {program, company->base};
  const mp_replay_observer_t observer = {.on_work = model_settle_on_work,
                                         .on_meeting = model_settle_on_meeting,
                                         .on_stream = model_settle_on_stream,
                                         .on_copy = model_settle_on_copy,
                                         .on_message = model_settle_on_message,
                                         .on_transfer = model_settle_on_transfer,
                                         .context = &watched};
  const mp_replay_launch_t launch = {.starts = program->starts,
                                     .paths = program->paths,
                                     .slowness = slowness,
                                     .takes_part = entry->is_partial ? entry->is_here : NULL,
                                     .observer = model->is_observed ? &observer : NULL,
                                     .log = log,
                                     .num_others = company->others.count,
                                     .others = company->others.items};
  MP_RETURN_IF_ERROR(mp_model_run_beside(program, company, base, &launch));
  MP_RETURN_IF_ERROR(model_settle_keep(program, path_hash));
  return log != NULL && log->is_short ? mp_status_out_of_memory() : NULL;
}

// The same, or what a launch with the same circumstances came to.
static mp_status_t model_settle_recall_or_run(mp_entry_t *entry, uint64_t path_hash,
                                              mp_moment_t base, const double *slowness,
                                              const mp_company_t *company) {
  mp_model_program_t *program = entry->program;
  mp_model_t *model = program->model;
  const bool is_beside = mp_model_is_beside(program);
  mp_model_fold_memo(program, &program->again);
  // Nothing else has the same company.
  if (company->others.count + company->num_mates != 0) {
    path_hash = mp_hash_u64(path_hash, entry->number);
  }
  mp_memo_t *memo = model->is_observed ? NULL : model_settle_recall(program, path_hash);
  mp_flows_log_t log = {0};
  if (memo != NULL) {
    memo->hits += 1;
    memcpy(program->ends, memo->ends, program->num_devices * sizeof(mp_moment_t));
  } else {
    mp_status_t status =
        model_settle_run(entry, path_hash, base, slowness, company, is_beside ? &log : NULL);
    if (status != NULL) {
      MP_ARRAY_FREE(&log.spans);
      return status;
    }
    memo = &program->memos[(program->next_memo - 1) % MP_MODEL_MEMOS];
    MP_ARRAY_FREE(&memo->spans);
    memo->spans = log.spans;
  }
  if (!is_beside) return NULL;
  return mp_model_keep_beside(entry, base, base + model_settle_last(entry), memo, slowness == NULL);
}

static mp_status_t model_settle_replay(mp_entry_t *entry, uint64_t path_hash, mp_moment_t base) {
  mp_model_program_t *program = entry->program;
  const double *slowness;
  mp_company_t company = {.base = base};
  MP_RETURN_IF_ERROR(mp_model_apply_health(program, &slowness, &path_hash));
  mp_status_t status = NULL;
  if (mp_model_is_beside(program)) {
    status = mp_model_find_company(program, base, slowness == NULL, &company);
  }
  if (status == NULL) {
    status = model_settle_recall_or_run(entry, path_hash, base, slowness, &company);
  }
  MP_ARRAY_FREE(&company.others);
  return status;
}

static mp_moment_t model_settle_launch(mp_model_t *model, mp_entry_t *entry) {
  mp_model_program_t *program = entry->program;
  const uint64_t path_hash = model_settle_set_paths(program, entry);
  model->host += model->dispatch;
  const mp_moment_t base = model_settle_set_starts(program, entry);
  const mp_moment_t before = model->dispatch + mp_moment_of(model->chip.launch_latency);
  mp_model_begin_entry(model, entry, base - before);
  mp_model_beat(program, base);
  if (model->is_observed) {
    model->observer.on_enqueue(model->observer.context, program, model->host);
  }
  mp_status_t status = model_settle_replay(entry, path_hash, base);
  if (status != NULL) {  // memory was short
    mp_status_release(status);
    model->lost += 1;
    return base;
  }
  mp_model_caller_books_t call = {.text = entry->caller, .launches = 1};
  mp_moment_t last = 0;
  for (uint32_t i = 0; i < program->num_devices; ++i) {
    if (!model_settle_takes_part(entry, i)) continue;
    const mp_moment_t end = base + program->ends[i];
    const mp_moment_t taken = program->ends[i] - program->starts[i];
    call.time = mp_moment_later(call.time, taken);
    call.available += taken;
    call.runs += 1;
    if (model->is_observed) {
      model->observer.on_launch(model->observer.context, program, (uint32_t)program->ids[i],
                                entry->traced, base + program->starts[i], end);
    }
    model->devices[program->ids[i]] = end;
    last = mp_moment_later(last, end);
  }
  program->launches += 1;
  program->runs += call.runs;
  program->time += call.time;
  program->available += call.available;
  mp_model_add_call(program, &call);
  return last;
}

// ---- In the order of the log ----

static mp_moment_t model_settle_wait(mp_model_t *model, const mp_entry_t *entry) {
  const mp_pod_info_t *info = mp_pod_info(model->pod);
  mp_model_begin_entry(model, entry, model->host);
  for (int32_t i = 0; i < info->num_local_devices; ++i) {
    model->host = mp_moment_later(model->host, model->devices[info->first_local_device + i]);
  }
  return model->host;
}

void mp_model_settle(mp_model_t *model, bool is_last) {
  for (mp_entry_t *entry = model->first; entry != NULL; entry = model->first) {
    if (entry->num_running != 0 || (entry->num_missing != 0 && !is_last)) return;
    MP_QUEUE_POP(model, next);
    model->num_waiting -= 1;
    mp_moment_t end = 0;
    switch (entry->kind) {
      case MP_ENTRY_LAUNCH:
        end = model_settle_launch(model, entry);
        break;
      case MP_ENTRY_PUT:
      case MP_ENTRY_COPY:
      case MP_ENTRY_GET:
        end = mp_model_transfer(model, entry);
        break;
      case MP_ENTRY_WAIT:
        end = model_settle_wait(model, entry);
        break;
      case MP_ENTRY_HEALTH:
        mp_model_take_health(model, entry);
        break;
    }
    // Reads that come after each other go on at the same time. One that comes after a wait for
    // something else does not.
    const bool is_read = entry->kind == MP_ENTRY_GET && entry->bytes != 0;
    if (!is_read && entry->kind != MP_ENTRY_HEALTH) model->reading_since = model->host;
    mp_model_end_entry(model, entry->number, end);
    if (entry->num_missing != 0) {
      mp_model_set_aside(model, entry);
    } else if (!entry->is_kept) {
      mp_model_free_entry(entry);
    }
  }
}
