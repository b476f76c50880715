// Launches that go on at the same time on different devices, and share links.
//
// A launch that comes later in the log is replayed together with those beside which it goes on,
// from the beginning of the first of them: all share the links, and are done when one program that
// does all of them would be. What those came to before is forgotten, unless something began at an
// end of theirs: then what they put on links stays as it is, and the later one gets what they
// leave. So the links carry no more than they can, and times depend on the order of the log alone.
#include "sim/base/alloc.h"
#include "sim/model/clock/model_impl.h"
#include "sim/model/network/traffic/traffic.h"

// So many launches are looked back at.
enum { BESIDE_MOST = 64 };

bool mp_model_is_beside(const mp_model_program_t *program) {
  const mp_model_t *model = program->model;
  // The links that a fault has changed are of networks that come and go.
  return program->chip_program->num_collectives != 0 &&
         program->num_devices < (uint32_t)mp_pod_info(model->pod)->num_devices &&
         program->current == program->replay;
}

// ---- Links ----

static void model_beside_mark(void *context, const mp_transfer_t *transfer) {
  bool *links = context;
  for (uint32_t i = 0; i < transfer->num_uses; ++i) links[transfer->uses[i].link] = true;
}

// Finds out over which links a program sends.
static mp_status_t model_beside_make_links(mp_model_program_t *program) {
  mp_network_t *network = program->model->network;
  const mp_chip_program_t *chip_program = program->chip_program;
  if (program->links != NULL) return NULL;
  bool *links = MP_ARENA_ARRAY(program->arena, bool, mp_network_num_links(network));
  MP_RETURN_IF_NULL(links);
  for (uint32_t i = 0; i < chip_program->num_collectives; ++i) {
    MP_RETURN_IF_ERROR(mp_network_visit_round(network, chip_program->collectives[i].collective,
                                              program->ids, model_beside_mark, links));
  }
  program->links = links;
  return NULL;
}

static bool model_beside_is_met(const mp_model_program_t *program, const mp_flows_span_t *span) {
  for (uint32_t i = 0; i < span->num_uses; ++i) {
    if (program->links[span->uses[i].link]) return true;
  }
  return false;
}

// Seconds from one moment to another, which may be earlier.
static double model_beside_seconds(mp_moment_t from, mp_moment_t to) {
  return to >= from ? mp_moment_seconds(to - from) : -mp_moment_seconds(from - to);
}

// ---- Company ----

// Whether the launch is the last one on its devices, none of which is the program's.
static bool model_beside_is_last(const mp_model_program_t *program, const mp_beside_t *beside) {
  const mp_model_program_t *other = beside->entry->program;
  const mp_model_t *model = program->model;
  for (uint32_t i = 0; i < other->num_devices; ++i) {
    if (model->devices[other->ids[i]] != beside->base + other->ends[i]) return false;
    for (uint32_t d = 0; d < program->num_devices; ++d) {
      if (program->ids[d] == other->ids[i]) return false;
    }
  }
  return true;
}

// Whether it puts something on links of the program from `base` on.
static bool model_beside_is_beside(const mp_model_program_t *program, const mp_beside_t *beside,
                                   mp_moment_t base) {
  const double begin = model_beside_seconds(beside->base, base);
  for (uint32_t i = 0; i < beside->num_spans; ++i) {
    const mp_flows_span_t *span = &beside->spans[i];
    if (span->end > begin && model_beside_is_met(program, span)) return true;
  }
  return false;
}

static bool model_beside_is_mate(const mp_company_t *company, const mp_beside_t *beside) {
  for (uint32_t i = 0; i < company->num_mates; ++i) {
    if (company->mates[i] == beside) return true;
  }
  return false;
}

// Adds what the program, or a mate, meets of it.
static mp_status_t model_beside_add(const mp_model_program_t *program, const mp_beside_t *beside,
                                    mp_company_t *company) {
  const double later = model_beside_seconds(company->base, beside->base);
  for (uint32_t i = 0; i < beside->num_spans; ++i) {
    mp_flows_span_t span = beside->spans[i];
    span.begin += later;
    span.end += later;
    if (span.end <= 0) continue;
    bool is_met = model_beside_is_met(program, &span);
    for (uint32_t m = 0; m < company->num_mates && !is_met; ++m) {
      is_met = model_beside_is_met(company->mates[m]->entry->program, &span);
    }
    if (is_met) MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(NULL, &company->others, span));
  }
  return NULL;
}

mp_status_t mp_model_find_company(mp_model_program_t *program, mp_moment_t base, bool can_share,
                                  mp_company_t *out_company) {
  mp_model_t *model = program->model;
  mp_company_t *company = out_company;
  for (uint32_t i = 0; i < model->beside.count; ++i) {
    mp_beside_t *beside = &model->beside.items[i];
    if (beside->end <= base) continue;
    MP_RETURN_IF_ERROR(model_beside_make_links(program));
    const bool is_mate = can_share && company->num_mates < MP_MODEL_MATES &&
                         beside->entry != NULL && !beside->is_used &&
                         model_beside_is_last(program, beside) &&
                         model_beside_is_beside(program, beside, base);
    if (!is_mate) continue;
    MP_RETURN_IF_ERROR(model_beside_make_links(beside->entry->program));
    company->mates[company->num_mates++] = beside;
    if (beside->base < company->base) company->base = beside->base;
  }
  for (uint32_t i = 0; i < model->beside.count; ++i) {
    const mp_beside_t *beside = &model->beside.items[i];
    if (beside->end <= company->base || model_beside_is_mate(company, beside)) continue;
    MP_RETURN_IF_ERROR(model_beside_add(program, beside, company));
  }
  return NULL;
}

// ---- Together ----

// By how much longer a launch takes now, as programs count it. May be less than 0: these are sums,
// which may wrap around.
typedef struct {
  mp_moment_t time, available;
} beside_change_t;

// The books have what the last launch of a mate's program came to now, unless they were read.
static mp_status_t model_beside_count(const mp_beside_t *mate, const beside_change_t *change) {
  mp_model_program_t *program = mate->entry->program;
  mp_memo_t *again = &program->again;
  if (again->books.devices == NULL) {
    MP_RETURN_IF_ERROR(mp_books_create(program->arena, program->model->network,
                                       program->chip_program, program->num_devices, &again->books));
  }
  if (again->hits == 0) {
    if (mate->memo->hits == 0) return NULL;
    mate->memo->hits -= 1;
  }
  again->hits = 1;
  mp_books_clear(&again->books);
  mp_books_add(&again->books, mp_replay_books(program->replay), 1);
  program->time += change->time;
  program->available += change->available;
  mp_model_add_call(program, &(mp_model_caller_books_t){.text = mate->entry->caller,
                                                        .time = change->time,
                                                        .available = change->available});
  return NULL;
}

// Takes over what a mate came to. The log's spans are given away.
static mp_status_t model_beside_take(mp_beside_t *mate, mp_flows_log_t *log) {
  mp_model_program_t *program = mate->entry->program;
  mp_model_t *model = program->model;
  mp_moment_t last = 0, longest = 0, longest_before = 0;
  beside_change_t change = {0};
  for (uint32_t i = 0; i < program->num_devices; ++i) {
    const mp_moment_t start = mate->base + program->starts[i], end = mate->base + program->ends[i];
    mp_moment_t *device = &model->devices[program->ids[i]];
    longest = mp_moment_later(longest, end - start);
    longest_before = mp_moment_later(longest_before, *device - start);
    change.available += end - *device;
    *device = end;
    last = mp_moment_later(last, end);
  }
  change.time = longest - longest_before;
  MP_RETURN_IF_ERROR(model_beside_count(mate, &change));
  mp_model_end_entry(model, mate->entry->number, last);
  mate->end = last;
  mp_free(mate->spans);
  mate->spans = log->spans.items;
  mate->num_spans = log->spans.count;
  log->spans = (mp_flows_spans_t){0};
  return NULL;
}

// A launch of a company: the program, and by how much later than the company it begins.
typedef struct {
  mp_model_program_t *program;
  mp_moment_t later;
} beside_member_t;

static void model_beside_shift(const beside_member_t *member, mp_flows_log_t *log) {
  const double later = mp_moment_seconds(member->later);
  for (uint32_t i = 0; i < member->program->num_devices; ++i) {
    member->program->starts[i] -= member->later;
    member->program->ends[i] -= member->later;
  }
  for (uint32_t i = 0; log != NULL && i < log->spans.count; ++i) {
    log->spans.items[i].begin -= later;
    log->spans.items[i].end -= later;
  }
}

mp_status_t mp_model_run_beside(mp_model_program_t *program, const mp_company_t *company,
                                mp_moment_t base, const mp_replay_launch_t *launch) {
  const uint32_t count = company->num_mates + 1;
  beside_member_t members[MP_MODEL_MATES + 1];
  mp_flows_log_t logs[MP_MODEL_MATES + 1] = {0};
  mp_replay_t *replays[MP_MODEL_MATES + 1] = {0};
  mp_replay_launch_t launches[MP_MODEL_MATES + 1] = {0};
  mp_moment_t *ends[MP_MODEL_MATES + 1] = {0};
  for (uint32_t i = 0; i < count; ++i) {
    const mp_beside_t *mate = i == 0 ? NULL : company->mates[i - 1];
    mp_model_program_t *one = i == 0 ? program : mate->entry->program;
    members[i] = (beside_member_t){one, (i == 0 ? base : mate->base) - company->base};
    launches[i] = (mp_replay_launch_t){.starts = one->starts, .paths = one->paths, .log = &logs[i]};
    replays[i] = one->current;
    ends[i] = one->ends;
    for (uint32_t d = 0; d < one->num_devices; ++d) one->starts[d] += members[i].later;
  }
  launches[0] = *launch;
  mp_status_t status = mp_replay_run_beside(count, replays, launches, ends);
  for (uint32_t i = 0; i < count; ++i) {
    model_beside_shift(&members[i], i == 0 ? launch->log : &logs[i]);
    if (i != 0 && status == NULL) status = model_beside_take(company->mates[i - 1], &logs[i]);
    MP_ARRAY_FREE(&logs[i].spans);
  }
  return status;
}

// ---- Keeping ----

static void model_beside_let_go(mp_beside_t *beside) {
  if (beside->entry != NULL) mp_model_free_entry(beside->entry);
  beside->entry = NULL;
}

// The moment before which nothing is looked back at: no launch begins before the host's moment, but
// one that is replayed again does.
static mp_moment_t model_beside_horizon(mp_model_t *model) {
  mp_moment_t horizon = model->host;
  for (uint32_t i = 0; i < model->beside.count; ++i) {
    mp_beside_t *beside = &model->beside.items[i];
    if (beside->end <= model->host) model_beside_let_go(beside);
    if (beside->entry != NULL && beside->base < horizon) horizon = beside->base;
  }
  return horizon;
}

// Forgets launches that nothing can meet any more.
static void model_beside_prune(mp_model_t *model) {
  const mp_moment_t horizon = model_beside_horizon(model);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < model->beside.count; ++i) {
    mp_beside_t *beside = &model->beside.items[i];
    if (beside->end <= horizon || model->beside.count - i >= BESIDE_MOST) {
      model_beside_let_go(beside);
      mp_free(beside->spans);
    } else {
      model->beside.items[kept++] = *beside;
    }
  }
  model->beside.count = kept;
}

mp_status_t mp_model_keep_beside(mp_entry_t *entry, mp_moment_t base, mp_moment_t end,
                                 mp_memo_t *memo, bool can_share) {
  mp_model_t *model = entry->program->model;
  const mp_flows_spans_t *spans = &memo->spans;
  model_beside_prune(model);
  if (spans->count == 0) return NULL;
  MP_RETURN_IF_ERROR(MP_ARRAY_RESERVE(NULL, &model->beside, 1));
  const size_t bytes = spans->count * sizeof(*spans->items);
  mp_flows_span_t *copy = mp_malloc(bytes);
  MP_RETURN_IF_NULL(copy);
  memcpy(copy, spans->items, bytes);
  // A program that its owner has given back goes with its last entry.
  entry->is_kept = can_share && entry->num_missing == 0 && entry->program->adopted == NULL;
  return MP_ARRAY_PUSH(NULL, &model->beside,
                       (mp_beside_t){.base = base,
                                     .end = end,
                                     .num_spans = spans->count,
                                     .spans = copy,
                                     .entry = entry->is_kept ? entry : NULL,
                                     .memo = memo});
}

void mp_model_forget_beside(mp_model_t *model, const mp_model_program_t *program) {
  for (uint32_t i = 0; i < model->beside.count; ++i) {
    mp_beside_t *beside = &model->beside.items[i];
    const bool is_of = beside->entry != NULL && beside->entry->program == program;
    if (program == NULL || is_of) model_beside_let_go(beside);
    if (program == NULL) mp_free(beside->spans);
  }
  if (program == NULL) MP_ARRAY_FREE(&model->beside);
}
