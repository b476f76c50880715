// The log: what the host and the devices did, in order.
#include "sim/base/alloc.h"
#include "sim/base/os/clock.h"
#include "sim/model/clock/model_impl.h"

// The log is computed when it has grown to so many entries.
enum { MODEL_LOG_LONG = 256 };

// A stamp is the number of an entry, times two, and one if the entry is a transfer.
static mp_stamp_t model_log_stamp(const mp_entry_t *entry) {
  return entry->number << 1 | (entry->kind != MP_ENTRY_LAUNCH);
}

mp_stamp_t mp_stamp_newer_transfer(mp_stamp_t a, mp_stamp_t b) {
  if ((a & 1) == 0) a = 0;
  if ((b & 1) == 0) b = 0;
  return a > b ? a : b;
}

// Appends an entry to the log. The caller holds the lock.
static void model_log_push(mp_model_t *model, mp_entry_t *entry) {
  entry->number = ++model->num_entries;
  if (model->pace != 0) entry->asked = mp_model_clock(model);
  model->num_waiting += 1;
  MP_QUEUE_PUSH(model, entry, next);
}

// ---- Launches ----

static mp_entry_t *model_log_make_launch(mp_model_program_t *program, uint64_t launch) {
  const size_t count = program->num_devices;
  const bool has_shares = program->chip_program->has_choices;
  const size_t inputs = count * sizeof(mp_stamp_t);
  const size_t shares = has_shares ? count * sizeof(mp_model_share_t) : 0;
  char *memory = mp_calloc(1, sizeof(mp_entry_t) + inputs + shares + count);
  if (memory == NULL) return NULL;
  mp_entry_t *entry = (mp_entry_t *)(void *)memory;
  memory += sizeof(mp_entry_t);
  entry->inputs = (mp_stamp_t *)(void *)memory;
  memory += inputs;
  if (has_shares) entry->shares = (mp_model_share_t *)(void *)memory;
  entry->is_here = (bool *)(memory + shares);
  entry->kind = MP_ENTRY_LAUNCH;
  entry->program = program;
  entry->kin = program->kin;
  entry->launch = launch;
  entry->num_missing = program->num_local;
  program->references += 1;
  return entry;
}

// Among entries: the launch with this number, if it has not come on the device yet.
static mp_entry_t *model_log_find(mp_entry_t *first, const mp_model_program_t *program,
                                  uint64_t launch, uint32_t logical) {
  for (mp_entry_t *e = first; e != NULL; e = e->next) {
    if (e->kind != MP_ENTRY_LAUNCH || e->launch != launch) continue;
    if (e->kin.key != program->kin.key || e->kin.devices != program->kin.devices) continue;
    if (!e->is_here[logical]) return e;
  }
  return NULL;
}

// What was set aside is waited for on no device that has come so far: it came, or failed there.
static void model_log_forget(const mp_model_program_t *program, uint64_t launch,
                             uint32_t num_shares, const uint32_t *logical) {
  const bool is_counted = program->chip_program->num_collectives != 0;  // other numbers say nothing
  mp_entry_t **link = &program->model->aside;
  while (*link != NULL && is_counted) {
    mp_entry_t *e = *link;
    const bool is_past = e->kin.devices == program->kin.devices && e->launch <= launch;
    for (uint32_t i = 0; i < num_shares && is_past; ++i) {
      if (e->is_here[logical[i]]) continue;
      e->is_here[logical[i]] = true;
      e->num_missing -= 1;
    }
    if (e->num_missing != 0) {
      link = &e->next;
    } else {
      *link = e->next;
      mp_model_free_entry(e);
    }
  }
}

// The entry that a launch on these devices belongs to, made when it is the first.
static mp_entry_t *model_log_find_launch(mp_model_program_t *program, uint64_t launch,
                                         uint32_t num_shares, const uint32_t *logical) {
  mp_model_t *model = program->model;
  const bool is_whole = num_shares == program->num_local;
  // Devices that meet belong together. Those that do not are launched on for themselves.
  const bool is_partial = !is_whole && program->chip_program->num_collectives == 0;
  mp_entry_t *entry = NULL;
  if (!is_whole && !is_partial) {
    entry = model_log_find(model->first, program, launch, logical[0]);
    if (entry == NULL) entry = model_log_find(model->aside, program, launch, logical[0]);
  }
  if (entry != NULL) return entry;
  entry = model_log_make_launch(program, launch);
  if (entry == NULL) {
    model->lost += 1;
    return NULL;
  }
  entry->is_partial = is_partial;
  if (is_partial) entry->num_missing = num_shares;
  model->launches += 1;
  model_log_push(model, entry);
  return entry;
}

mp_stamp_t mp_model_launch(mp_model_program_t *program, const mp_model_call_t *call,
                           uint32_t num_shares, const uint32_t *logical, const mp_stamp_t *inputs,
                           mp_model_share_t **out_shares) {
  mp_model_t *model = program->model;
  mp_lock(&model->lock);
  mp_entry_t *entry = model_log_find_launch(program, call->number, num_shares, logical);
  if (entry != NULL && entry->traced == 0) entry->traced = call->traced;
  if (entry != NULL && entry->caller == NULL) {
    entry->caller = mp_model_intern_caller(model, call->caller);
  }
  for (uint32_t i = 0; i < num_shares; ++i) {
    out_shares[i] = NULL;
    if (entry == NULL || entry->is_here[logical[i]]) continue;
    entry->is_here[logical[i]] = true;
    entry->inputs[logical[i]] = inputs[i];
    entry->num_missing -= 1;
    if (entry->shares == NULL) continue;
    entry->shares[logical[i]].entry = entry;
    entry->num_running += 1;
    out_shares[i] = &entry->shares[logical[i]];
  }
  const mp_stamp_t stamp = entry == NULL ? 0 : model_log_stamp(entry);
  model_log_forget(program, call->number, num_shares, logical);
  if (model->num_waiting >= MODEL_LOG_LONG) mp_model_settle(model, false);
  mp_model_unlock(model);
  return stamp;
}

mp_path_t *mp_model_share_path(mp_model_share_t *share) {
  return &share->path;
}

void mp_model_share_end(mp_model_share_t *share) {
  mp_entry_t *entry = share->entry;
  mp_model_t *model = entry->program->model;
  mp_lock(&model->lock);
  // The lock hands the path over: the log reads it only of entries that no device runs any more.
  MP_ASSERT(!share->is_over && entry->num_running != 0);
  share->is_over = true;
  entry->num_running -= 1;
  if (entry->num_running == 0 && model->num_awaiting != 0) pthread_cond_broadcast(&model->ended);
  mp_unlock(&model->lock);
}

// Whether runs go on, of launches up to this number that can be waited for.
static bool model_log_is_going_on(const mp_model_t *model, uint64_t number) {
  for (const mp_entry_t *e = model->first; e != NULL && e->number <= number; e = e->next) {
    if (e->num_missing != 0) return false;
    if (e->num_running != 0) return true;
  }
  return false;
}

bool mp_model_await(mp_model_t *model, double seconds) {
  const struct timespec deadline = mp_clock_after(seconds);
  mp_lock(&model->lock);
  const uint64_t number = model->num_entries;
  bool has_time = true;
  model->num_awaiting += 1;
  while (has_time && model_log_is_going_on(model, number)) {
    has_time = mp_lock_wait_until(&model->lock, &model->ended, &deadline);
  }
  model->num_awaiting -= 1;
  mp_unlock(&model->lock);
  return has_time;
}

// ---- Other entries ----

static bool model_log_is_transfer(const mp_entry_t *entry) {
  return entry->kind == MP_ENTRY_PUT || entry->kind == MP_ENTRY_COPY || entry->kind == MP_ENTRY_GET;
}

// Appends a copy of an entry, which is no launch.
static mp_stamp_t model_log_add(mp_model_t *model, const mp_entry_t *what) {
  mp_entry_t *entry = mp_calloc(1, sizeof(*entry));
  mp_lock(&model->lock);
  mp_stamp_t stamp = 0;
  if (entry == NULL) {
    model->lost += 1;
    mp_health_release(what->health);
  } else {
    *entry = *what;
    model_log_push(model, entry);
    stamp = model_log_stamp(entry);
    if (model_log_is_transfer(entry)) model->transfers += 1;
    if (model->num_waiting >= MODEL_LOG_LONG) mp_model_settle(model, false);
  }
  mp_model_unlock(model);
  return stamp;
}

// The host's side of what the host itself puts and gets: memory of the process, which is not
// pinned.
static mp_model_place_t model_log_host_of(uint32_t device) {
  return (mp_model_place_t){.device = device, .space = MP_MEMORY_UNPINNED_HOST};
}

static mp_model_place_t model_log_device(uint32_t device) {
  return (mp_model_place_t){.device = device, .space = MP_MEMORY_DEVICE};
}

mp_stamp_t mp_model_put(mp_model_t *model, uint32_t device, uint64_t bytes) {
  return model_log_add(model, &(mp_entry_t){.kind = MP_ENTRY_PUT,
                                            .from = model_log_host_of(device),
                                            .to = model_log_device(device),
                                            .bytes = bytes});
}

mp_stamp_t mp_model_copy(mp_model_t *model, mp_model_place_t from, mp_model_place_t to,
                         uint64_t bytes, mp_stamp_t source) {
  return model_log_add(
      model, &(mp_entry_t){
                 .kind = MP_ENTRY_COPY, .from = from, .to = to, .bytes = bytes, .source = source});
}

mp_stamp_t mp_model_get(mp_model_t *model, uint32_t device, uint64_t bytes, mp_stamp_t source) {
  return model_log_add(model, &(mp_entry_t){.kind = MP_ENTRY_GET,
                                            .from = model_log_device(device),
                                            .to = model_log_host_of(device),
                                            .bytes = bytes,
                                            .source = source});
}

void mp_model_wait(mp_model_t *model) {
  (void)model_log_add(model, &(mp_entry_t){.kind = MP_ENTRY_WAIT});
}

void mp_model_set_health(mp_model_t *model, mp_health_t *health) {
  (void)model_log_add(model, &(mp_entry_t){.kind = MP_ENTRY_HEALTH, .health = health});
}

// ---- Pace ----

bool mp_model_is_paced(const mp_model_t *model) {
  return model->pace != 0;
}

bool mp_model_is_virtual(const mp_model_t *model) {
  return model->is_virtual;
}

bool mp_model_due(mp_model_t *model, mp_stamp_t stamp, double *out_moment) {
  const uint64_t number = stamp >> 1;
  mp_lock(&model->lock);
  mp_model_settle(model, false);
  const bool is_known = model->first == NULL || number < model->first->number;
  if (is_known) *out_moment = mp_model_due_of(model, number);
  mp_model_unlock(model);
  return is_known;
}
