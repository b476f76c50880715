// From the log to virtual times.
#include "sim/base/alloc.h"
#include "sim/base/hash.h"
#include "sim/model/clock/model_impl.h"

static mp_moment_t model_settle_later(mp_moment_t a, mp_moment_t b) {
  return a > b ? a : b;
}

// Whether the end of an entry is still kept.
static bool model_settle_is_kept(const mp_model_t *model, uint64_t number) {
  return number != 0 && model->num_entries - number < MP_MODEL_KEPT_ENDS;
}

// When the entry that a stamp names was done.
static mp_moment_t model_settle_end_of(const mp_model_t *model, mp_stamp_t stamp) {
  const uint64_t number = stamp >> 1;
  return model_settle_is_kept(model, number) ? model->ends[number % MP_MODEL_KEPT_ENDS] : 0;
}

double mp_model_due_of(const mp_model_t *model, uint64_t number) {
  return model_settle_is_kept(model, number) ? model->dues[number % MP_MODEL_KEPT_ENDS] : 0;
}

// The host's virtual moment is `begin` at the latest when it asks for this, and so it is not to be
// seen before the real moment of asking. So a host that is late (it compiles, say) moves all that
// comes after.
static void model_settle_begin(mp_model_t *model, const mp_entry_t *entry, mp_moment_t begin) {
  if (model->pace == 0) return;
  const double offset = entry->asked - model->pace * mp_moment_seconds(begin);
  if (offset > model->offset) model->offset = offset;
}

static void model_settle_end(mp_model_t *model, const mp_entry_t *entry, mp_moment_t end) {
  model->ends[entry->number % MP_MODEL_KEPT_ENDS] = end;
  if (model->pace == 0) return;
  model->dues[entry->number % MP_MODEL_KEPT_ENDS] =
      model->offset + model->pace * mp_moment_seconds(end);
}

// ---- Books ----

// Most programs come to one memo or two: the others are not made.
static mp_status_t model_settle_make_memo(mp_model_program_t *program, mp_memo_t *memo) {
  const uint32_t count = program->num_devices;
  MP_RETURN_IF_ERROR(
      mp_books_create(program->arena, program->model->network, program->twin, count, &memo->books));
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
  observer->on_meeting(observer->context, w->program, (uint32_t)w->program->ids[logical],
                       collective, w->base + arrival, w->base + begin, w->base + end);
}

static void model_settle_on_message(void *context, uint32_t logical, uint32_t collective,
                                    bool is_send, uint32_t other, mp_moment_t begin,
                                    mp_moment_t end) {
  const watched_t *w = context;
  const mp_model_observer_t *observer = &w->program->model->observer;
  observer->on_message(observer->context, w->program, (uint32_t)w->program->ids[logical],
                       collective, is_send, (uint32_t)w->program->ids[other], w->base + begin,
                       w->base + end);
}

static void model_settle_on_transfer(void *context, uint32_t collective,
                                     const mp_transfer_t *transfer, mp_moment_t begin,
                                     mp_moment_t end) {
  const watched_t *w = context;
  const mp_model_observer_t *observer = &w->program->model->observer;
  for (uint32_t u = 0; u < transfer->num_uses; ++u) {
    observer->on_link(observer->context, w->program, transfer->uses[u].link,
                      transfer->bytes * transfer->uses[u].times, collective, w->base + begin,
                      w->base + end);
  }
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
    mp_moment_t start = model_settle_later(host, model->devices[program->ids[i]]);
    start = model_settle_later(start, model_settle_end_of(model, entry->inputs[i]));
    program->starts[i] = start;
    if (start < base && model_settle_takes_part(entry, i)) base = start;
  }
  for (uint32_t i = 0; i < program->num_devices; ++i) {
    program->starts[i] = model_settle_takes_part(entry, i) ? program->starts[i] - base : 0;
  }
  return base;
}

// Writes program->ends.
static mp_status_t model_settle_replay(const mp_entry_t *entry, uint64_t path_hash,
                                       mp_moment_t base) {
  mp_model_program_t *program = entry->program;
  mp_model_t *model = program->model;
  const double *slowness;
  MP_RETURN_IF_ERROR(mp_model_apply_health(program, &slowness, &path_hash));
  mp_memo_t *memo = model->is_observed ? NULL : model_settle_recall(program, path_hash);
  if (memo != NULL) {
    memo->hits += 1;
    memcpy(program->ends, memo->ends, program->num_devices * sizeof(mp_moment_t));
    return NULL;
  }
  watched_t watched = {program, base};
  const mp_replay_observer_t observer = {.on_work = model_settle_on_work,
                                         .on_meeting = model_settle_on_meeting,
                                         .on_message = model_settle_on_message,
                                         .on_transfer = model_settle_on_transfer,
                                         .context = &watched};
  const mp_replay_launch_t launch = {.starts = program->starts,
                                     .paths = program->paths,
                                     .slowness = slowness,
                                     .takes_part = entry->is_partial ? entry->is_here : NULL,
                                     .observer = model->is_observed ? &observer : NULL};
  MP_RETURN_IF_ERROR(mp_replay_run(program->current, &launch, program->ends));
  return model_settle_keep(program, path_hash);
}

static mp_moment_t model_settle_launch(mp_model_t *model, const mp_entry_t *entry) {
  mp_model_program_t *program = entry->program;
  const uint64_t path_hash = model_settle_set_paths(program, entry);
  const mp_moment_t base = model_settle_set_starts(program, entry);
  model_settle_begin(model, entry, base - mp_moment_of(model->chip.launch_latency));
  if (model->is_observed) {
    model->observer.on_enqueue(model->observer.context, program, model->host);
  }
  mp_status_t status = model_settle_replay(entry, path_hash, base);
  if (status != NULL) {  // memory was short
    mp_status_release(status);
    model->lost += 1;
    return base;
  }
  mp_moment_t last = 0;
  uint32_t num_taking_part = 0;
  for (uint32_t i = 0; i < program->num_devices; ++i) {
    if (!model_settle_takes_part(entry, i)) continue;
    num_taking_part += 1;
    const mp_moment_t end = base + program->ends[i];
    if (model->is_observed) {
      model->observer.on_launch(model->observer.context, program, (uint32_t)program->ids[i],
                                base + program->starts[i], end);
    }
    model->devices[program->ids[i]] = end;
    last = model_settle_later(last, end);
  }
  program->launches += 1;
  program->time += last - base;
  program->available += (last - base) * num_taking_part;
  return last;
}

// ---- Transfers ----

static mp_moment_t model_settle_message(mp_model_t *model, mp_network_end_t from,
                                        mp_network_end_t to, uint64_t bytes,
                                        mp_transfer_t *out_transfer) {
  mp_network_t *network = NULL;
  mp_status_t status = mp_model_network_now(model, &network);
  if (status == NULL) status = mp_network_message(network, from, to, (double)bytes, out_transfer);
  if (status != NULL) {
    mp_status_release(status);
    *out_transfer = (mp_transfer_t){0};
    model->lost += 1;
    return 0;
  }
  return mp_moment_of(mp_flows_transfer_alone(network, out_transfer));
}

static mp_network_end_t model_settle_host_of(const mp_model_t *model, uint32_t device) {
  return mp_network_host(mp_pod_device(model->pod, (int32_t)device)->host_index);
}

// Transfers to one device come in one after the other.
static mp_moment_t model_settle_incoming(mp_model_t *model, uint32_t device, mp_moment_t ready,
                                         mp_moment_t takes) {
  const mp_moment_t end = model_settle_later(ready, model->incoming[device]) + takes;
  model->incoming[device] = end;
  return end;
}

// The host reads from a device. Reads that come after each other go on at the same time: all of
// them begin when the first could.
static mp_moment_t model_settle_read(mp_model_t *model, uint32_t device, mp_moment_t source,
                                     mp_moment_t takes) {
  mp_moment_t begin = model_settle_later(model->reading_since, source);
  begin = model_settle_later(begin, model->outgoing[device]);
  model->outgoing[device] = begin + takes;
  model->host = model_settle_later(model->host, begin + takes);
  return begin + takes;
}

static void model_settle_tell(const mp_model_t *model, mp_model_transfer_kind_t kind,
                              uint32_t device, uint64_t bytes, const mp_transfer_t *transfer,
                              mp_moment_t begin, mp_moment_t end) {
  if (!model->is_observed || bytes == 0) return;
  const mp_model_transfer_t told = {.kind = kind,
                                    .device = device,
                                    .bytes = bytes,
                                    .num_uses = transfer->num_uses,
                                    .uses = transfer->uses};
  model->observer.on_transfer(model->observer.context, &told, begin, end);
}

static mp_moment_t model_settle_put(mp_model_t *model, const mp_entry_t *entry) {
  mp_transfer_t transfer;
  const mp_moment_t takes =
      model_settle_message(model, model_settle_host_of(model, entry->to),
                           mp_network_device((int32_t)entry->to), entry->bytes, &transfer);
  const mp_moment_t end = model_settle_incoming(model, entry->to, model->host, takes);
  model_settle_begin(model, entry, end - takes);
  model_settle_tell(model, MP_TRANSFER_PUT, entry->to, entry->bytes, &transfer, end - takes, end);
  return end;
}

static mp_moment_t model_settle_copy(mp_model_t *model, const mp_entry_t *entry,
                                     mp_moment_t source) {
  mp_transfer_t transfer;
  const mp_moment_t takes =
      model_settle_message(model, mp_network_device((int32_t)entry->from),
                           mp_network_device((int32_t)entry->to), entry->bytes, &transfer);
  const mp_moment_t end =
      model_settle_incoming(model, entry->to, model_settle_later(source, model->host), takes);
  model_settle_begin(model, entry, end - takes);
  model_settle_tell(model, MP_TRANSFER_COPY, entry->to, entry->bytes, &transfer, end - takes, end);
  return end;
}

static mp_moment_t model_settle_get(mp_model_t *model, const mp_entry_t *entry,
                                    mp_moment_t source) {
  mp_transfer_t transfer = {0};
  mp_moment_t takes = 0;
  if (entry->bytes != 0) {
    takes = model_settle_message(model, mp_network_device((int32_t)entry->from),
                                 model_settle_host_of(model, entry->from), entry->bytes, &transfer);
  }
  const mp_moment_t host = model->host;
  const mp_moment_t end = model_settle_read(model, entry->from, source, takes);
  model_settle_begin(model, entry, model_settle_later(end - takes, host));
  model_settle_tell(model, MP_TRANSFER_GET, entry->from, entry->bytes, &transfer, end - takes, end);
  return end;
}

static mp_moment_t model_settle_transfer(mp_model_t *model, const mp_entry_t *entry) {
  const mp_moment_t source = model_settle_end_of(model, entry->source);
  switch (entry->kind) {
    case MP_ENTRY_PUT:
      return model_settle_put(model, entry);
    case MP_ENTRY_COPY:
      return model_settle_copy(model, entry, source);
    case MP_ENTRY_GET:
      return model_settle_get(model, entry, source);
    case MP_ENTRY_LAUNCH:
    case MP_ENTRY_HEALTH:
      break;
  }
  return source;
}

// ---- In the order of the log ----

void mp_model_settle(mp_model_t *model, bool is_last) {
  for (mp_entry_t *entry = model->first; entry != NULL; entry = model->first) {
    if (entry->num_running != 0 || (entry->num_missing != 0 && !is_last)) return;
    MP_QUEUE_POP(model, next);
    model->num_waiting -= 1;
    if (entry->kind == MP_ENTRY_HEALTH) {
      mp_model_take_health(model, entry);
    } else if (entry->kind != MP_ENTRY_GET) {
      model->reading_since = model->host;
    }
    const mp_moment_t end = entry->kind == MP_ENTRY_LAUNCH ? model_settle_launch(model, entry)
                                                           : model_settle_transfer(model, entry);
    model_settle_end(model, entry, end);
    if (entry->num_missing != 0) {
      mp_model_set_aside(model, entry);
    } else {
      mp_model_free_entry(entry);
    }
  }
}
