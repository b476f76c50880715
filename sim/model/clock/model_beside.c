// Launches that go on at the same time on different devices, and share links.
//
// What a launch has put on links stays as it is, and later launches of the log get what it leaves:
// so the links carry no more than they can, times depend on the order of the log alone, and when
// all are done is when one program that does all of them would be. Which of them waits for the
// other is another matter: here it is the later one.
#include "sim/base/alloc.h"
#include "sim/model/clock/model_impl.h"

// So many launches are looked back at.
enum { BESIDE_MOST = 64 };

bool mp_model_is_beside(const mp_model_program_t *program) {
  const mp_model_t *model = program->model;
  // The links that a fault has changed are of networks that come and go.
  return program->twin->num_collectives != 0 &&
         program->num_devices < (uint32_t)mp_pod_info(model->pod)->num_devices &&
         program->current == program->replay;
}

static void model_beside_mark(void *context, const mp_transfer_t *transfer) {
  bool *links = context;
  for (uint32_t i = 0; i < transfer->num_uses; ++i) links[transfer->uses[i].link] = true;
}

// Finds out over which links a program sends.
static mp_status_t model_beside_make_links(mp_model_program_t *program) {
  mp_network_t *network = program->model->network;
  const mp_twin_t *twin = program->twin;
  if (program->links != NULL) return NULL;
  bool *links = MP_ARENA_ARRAY(program->arena, bool, mp_network_num_links(network));
  MP_RETURN_IF_NULL(links);
  for (uint32_t i = 0; i < twin->num_collectives; ++i) {
    MP_RETURN_IF_ERROR(mp_network_visit_round(network, twin->collectives[i].collective,
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

static mp_status_t model_beside_add(const mp_model_program_t *program, const mp_beside_t *beside,
                                    mp_moment_t base, mp_flows_spans_t *others) {
  const double later = beside->base >= base ? mp_moment_seconds(beside->base - base)
                                            : -mp_moment_seconds(base - beside->base);
  for (uint32_t i = 0; i < beside->num_spans; ++i) {
    mp_flows_span_t span = beside->spans[i];
    span.begin += later;
    span.end += later;
    if (span.end <= 0 || !model_beside_is_met(program, &span)) continue;
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(NULL, others, span));
  }
  return NULL;
}

mp_status_t mp_model_find_others(mp_model_program_t *program, mp_moment_t base,
                                 mp_flows_spans_t *out_others) {
  const mp_model_t *model = program->model;
  for (uint32_t i = 0; i < model->beside.count; ++i) {
    const mp_beside_t *beside = &model->beside.items[i];
    if (beside->end <= base) continue;
    MP_RETURN_IF_ERROR(model_beside_make_links(program));
    MP_RETURN_IF_ERROR(model_beside_add(program, beside, base, out_others));
  }
  return NULL;
}

// Forgets launches that nothing can meet any more: no launch begins before the host's moment.
static void model_beside_prune(mp_model_t *model) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < model->beside.count; ++i) {
    mp_beside_t *beside = &model->beside.items[i];
    if (beside->end <= model->host || model->beside.count - i >= BESIDE_MOST) {
      mp_free(beside->spans);
    } else {
      model->beside.items[kept++] = *beside;
    }
  }
  model->beside.count = kept;
}

mp_status_t mp_model_keep_beside(mp_model_t *model, mp_moment_t base, mp_moment_t end,
                                 const mp_flows_spans_t *spans) {
  model_beside_prune(model);
  if (spans->count == 0) return NULL;
  MP_RETURN_IF_ERROR(MP_ARRAY_RESERVE(NULL, &model->beside, 1));
  const size_t bytes = spans->count * sizeof(*spans->items);
  mp_flows_span_t *copy = mp_malloc(bytes);
  MP_RETURN_IF_NULL(copy);
  memcpy(copy, spans->items, bytes);
  return MP_ARRAY_PUSH(NULL, &model->beside, (mp_beside_t){base, end, spans->count, copy});
}

void mp_model_forget_beside(mp_model_t *model) {
  for (uint32_t i = 0; i < model->beside.count; ++i) mp_free(model->beside.items[i].spans);
  MP_ARRAY_FREE(&model->beside);
}
