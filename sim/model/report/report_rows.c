#include "sim/model/report/report_rows.h"

#include "collectives/mailbox.h"
#include "sim/base/hash.h"
#include "sim/chip/cost/kernel_cost.h"
#include "sim/model/report/events/watching.h"
#include "sim/model/report/report_copies.h"
#include "sim/model/report/report_links.h"

const char *mp_bound_name(mp_bound_t bound) {
  static const char *const names[] = {"compute", "memory", "latency"};
  return names[bound];
}

uint32_t mp_report_partners(const mp_report_program_t *row) {
  if (row->launches == 0) return row->num_devices;
  const uint64_t mean = (row->runs + row->launches / 2) / row->launches;
  return mean == 0 ? 1 : (uint32_t)mean;
}

// What bounds a kernel on a chip. Its bytes come after the latency of the memory, beside its work.
static mp_bound_t report_rows_bound_of(const mp_chip_t *chip, const mp_chip_kernel_t *kernel) {
  const double memory =
      kernel->bytes / chip->memory_bandwidth / chip->efficiency[kernel->work_class];
  double latency = kernel->work_class == MP_WORK_SCALAR ? chip->scalar_latency : chip->op_latency;
  latency += mp_chip_memory_latency(chip, kernel->bytes);
  const double busy = kernel->seconds - latency;
  if (busy <= latency) return MP_BOUND_LATENCY;
  return memory >= 0.999 * busy ? MP_BOUND_MEMORY : MP_BOUND_COMPUTE;
}

// A row in the making, and what it is made of.
typedef struct {
  mp_arena_t *arena;
  const mp_model_t *model;
  const mp_model_program_books_t *books;
  mp_report_places_t *places;
  mp_report_program_t *row;
} maker_t;

// Keeps an item among the `most` that weigh most, the heaviest first; of equals those that came
// first.
#define REPORT_ROWS_KEEP(kept, count, most, item, weight)                  \
  do {                                                                     \
    uint32_t at_ = (count) < (most) ? (count)++ : (count);                 \
    for (; at_ > 0 && weight(&(kept)[at_ - 1]) < weight(&(item)); --at_) { \
      if (at_ < (most)) (kept)[at_] = (kept)[at_ - 1];                     \
    }                                                                      \
    if (at_ < (most)) (kept)[at_] = (item);                                \
  } while (0)

static uint64_t report_rows_met_weight(const mp_report_meetings_t *const *one) {
  return (*one)->met.members + (*one)->met.waiting + (*one)->met.traffic;
}

static uint64_t report_rows_op_weight(const mp_report_op_t *op) {
  return op->time;
}

static uint64_t report_rows_layer_weight(const mp_report_layer_t *layer) {
  return layer->work + layer->traffic;
}

// ---- Collectives ----

static mp_status_t report_rows_load_links(const maker_t *m, const mp_collective_t *collective,
                                          double *scratch, mp_report_collective_t *row) {
  mp_busiest_t busiest;
  MP_RETURN_IF_ERROR(mp_busiest_of_collective(mp_model_network(m->model), collective, m->books->ids,
                                              scratch, &busiest));
  const double rounds = row->round == 0 ? 0 : (double)row->met.count / row->round;
  row->link = busiest.link;
  row->link_bytes = busiest.bytes * rounds;
  row->link_seconds = busiest.seconds * rounds;
  return NULL;
}

// The largest group says along which axis of a mesh a collective is: by its size and its first two
// members.
static void report_rows_name_group(const maker_t *m, const mp_collective_t *collective,
                                   mp_report_collective_t *row) {
  const mp_groups_t *groups = collective->groups;
  uint32_t largest = 0;
  for (uint32_t g = 0; groups != NULL && g < groups->num_groups; ++g) {
    const uint32_t size = groups->offsets[g + 1] - groups->offsets[g];
    if (size <= row->members) continue;
    row->members = size;
    largest = g;
  }
  for (uint32_t i = 0; i < 2 && i < row->members; ++i) {
    const uint32_t member = groups->members[groups->offsets[largest] + i];
    row->first[i] = member < m->books->num_devices ? (uint32_t)m->books->ids[member] : member;
  }
}

static mp_status_t report_rows_name_axes(const maker_t *m, const mp_collective_t *collective,
                                         mp_report_collective_t *row) {
  const mp_program_t *program = m->books->program;
  mp_strbuf_t axes;
  mp_strbuf_init(&axes);
  mp_status_t status = mp_report_axes(
      program->module, program->num_replicas * program->num_partitions, collective, &axes);
  if (status == NULL) status = mp_strbuf_status(&axes);
  if (status == NULL) row->axes = mp_arena_strndup(m->arena, mp_strbuf_text(&axes), axes.size);
  if (status == NULL && row->axes == NULL) status = mp_status_out_of_memory();
  mp_strbuf_deinit(&axes);
  return status;
}

// Puts the collectives on which most time was spent first; the result is how many they are.
static uint32_t report_rows_choose(const mp_report_meetings_t *met, uint32_t count,
                                   const mp_report_meetings_t **out_chosen) {
  uint32_t chosen = 0;
  for (uint32_t c = 0; c < count; ++c) {
    const mp_report_meetings_t *one = &met[c];
    REPORT_ROWS_KEEP(out_chosen, chosen, MP_REPORT_COLLECTIVES, one, report_rows_met_weight);
  }
  return chosen;
}

// Those that have met, with the sums over all.
static mp_status_t report_rows_fold_collectives(const maker_t *m, mp_report_all_meetings_t *all) {
  const mp_replay_meetings_t *met = m->books->books.meetings;
  for (uint32_t c = 0; c < m->books->chip_program->num_collectives; ++c) {
    if (met[c].count == 0) continue;
    mp_report_meetings_t one = {.first = &m->books->chip_program->collectives[c], .met = met[c]};
    m->row->collectives += met[c].count;
    m->row->collective_bytes +=
        (double)met[c].count * (double)mp_message_bytes(one.first->collective);
    MP_RETURN_IF_ERROR(mp_report_sums_place(m->places, one.first, &one.place));
    MP_RETURN_IF_ERROR(mp_report_meetings_add(m->arena, all, &one));
  }
  return NULL;
}

static mp_status_t report_rows_make_collectives(const maker_t *m) {
  mp_report_program_t *row = m->row;
  mp_report_all_meetings_t all = {0};
  MP_RETURN_IF_ERROR(report_rows_fold_collectives(m, &all));
  const mp_report_meetings_t *chosen[MP_REPORT_COLLECTIVES];
  const uint32_t count = report_rows_choose(all.rows.items, all.rows.count, chosen);
  row->collective = MP_ARENA_ARRAY(m->arena, mp_report_collective_t, count + 1);
  double *scratch = MP_ARENA_ARRAY(m->arena, double,
                                   (size_t)mp_network_num_links(mp_model_network(m->model)) + 1);
  MP_RETURN_IF_NULL(row->collective);
  MP_RETURN_IF_NULL(scratch);
  for (uint32_t i = 0; i < count; ++i) {
    const mp_collective_t *collective = chosen[i]->first->collective;
    row->collective[i] = (mp_report_collective_t){.kind = mp_collective_kind_name(collective->kind),
                                                  .place = chosen[i]->place,
                                                  .bytes = (double)mp_message_bytes(collective),
                                                  .round = mp_report_collective_round(collective),
                                                  .overlap = chosen[i]->first->overlap,
                                                  .met = chosen[i]->met};
    report_rows_name_group(m, collective, &row->collective[i]);
    MP_RETURN_IF_ERROR(report_rows_name_axes(m, collective, &row->collective[i]));
    MP_RETURN_IF_ERROR(report_rows_load_links(m, collective, scratch, &row->collective[i]));
  }
  row->num_collectives = count;
  return NULL;
}

// ---- Ops ----

// A step of which kernels are added up.
typedef struct {
  const maker_t *maker;
  uint64_t count;  // how often it was done
  mp_report_ops_t *ops;
  mp_status_t status;
} added_step_t;

// JAX names what jax.checkpoint computes again in the backward pass.
static bool report_rows_is_recomputed(const mp_op_t *op) {
  static const char name[] = "rematted_computation";
  mp_str_t path = mp_op_path(op->loc);
  while (path.size > 0) {
    if (mp_str_is(mp_str_cut(&path, '/'), name)) return true;
  }
  return false;
}

// What bounds a TPU kernel: DMAs that it waits for, a unit that is busy for most of the rest, or
// the latencies of its instructions.
static const char *report_rows_kernel_bound(const mp_price_t *price) {
  const double most = 0.6;
  mp_price_unit_t busiest = MP_PRICE_ARITHMETIC;
  for (int u = 0; u < MP_PRICE_UNIT_COUNT; ++u) {
    if (price->units[u] > price->units[busiest]) busiest = (mp_price_unit_t)u;
  }
  if (price->fill + price->wait > price->compute) return "DMA";
  return price->units[busiest] >= most * price->compute ? mp_price_unit_name(busiest) : "latencies";
}

// If the kernel's time depends on values, its parts are those of the chip program, scaled to it.
static mp_report_kernel_t report_rows_kernel(const mp_chip_kernel_t *kernel, uint64_t count,
                                             mp_moment_t time) {
  const mp_price_t *price = kernel->price;
  if (price == NULL || count == 0 || kernel->seconds <= 0) return (mp_report_kernel_t){0};
  const double scale = mp_moment_seconds(time) / (double)count / kernel->seconds;
  return (mp_report_kernel_t){.bound = report_rows_kernel_bound(price),
                              .fill = mp_moment_of(price->fill * scale),
                              .compute = mp_moment_of(price->compute * scale),
                              .wait = mp_moment_of(price->wait * scale),
                              .vmem = price->vmem,
                              .is_guessed = price->is_guessed};
}

static void report_rows_add_part(void *context, const mp_step_part_t *part) {
  added_step_t *step = context;
  const maker_t *m = step->maker;
  mp_report_op_t op = {
      .name = part->kernel->name,
      .work_class = part->kernel->work_class,
      .bound = report_rows_bound_of(mp_model_chip(m->model), part->kernel),
      .count = step->count,
      .flops = part->kernel->flops,
      .bytes = part->kernel->bytes,
      .time = part->end - part->begin,
      .kernel = report_rows_kernel(part->kernel, step->count, part->end - part->begin),
  };
  m->row->by_figure[part->kernel->figure] += (double)op.time;
  if (step->status == NULL) {
    step->status = mp_report_place(m->places, part->kernel->op->loc, &op.place);
  }
  if (step->status == NULL) step->status = mp_report_ops_add(m->arena, step->ops, &op);
  if (report_rows_is_recomputed(part->kernel->op)) {
    m->row->classes[op.work_class].recomputed += (double)step->count * op.flops;
  }
}

static mp_status_t report_rows_make_ops(const maker_t *m) {
  const mp_chip_program_t *chip_program = m->books->chip_program;
  mp_report_ops_t ops = {0};
  m->row->op = MP_ARENA_ARRAY(m->arena, mp_report_op_t, MP_REPORT_OPS);
  MP_RETURN_IF_NULL(m->row->op);
  for (uint32_t s = 0; s < chip_program->num_steps; ++s) {
    const mp_moment_t time = m->books->books.times[s];
    if (time == 0) continue;
    added_step_t step = {.maker = m, .count = m->books->books.counts[s], .ops = &ops};
    mp_step_parts(chip_program, &(mp_step_span_t){.step = s, .end = time}, report_rows_add_part,
                  &step);
    MP_RETURN_IF_ERROR(step.status);
  }
  for (uint32_t i = 0; i < ops.rows.count; ++i) {
    const mp_report_op_t *op = &ops.rows.items[i];
    mp_report_class_t *sum = &m->row->classes[op->work_class];
    sum->time += op->time;
    sum->flops += (double)op->count * op->flops;
    REPORT_ROWS_KEEP(m->row->op, m->row->num_ops, MP_REPORT_OPS, ops.rows.items[i],
                     report_rows_op_weight);
  }
  return NULL;
}

// ---- Layers ----

typedef struct {
  mp_report_places_t *places;
  mp_report_layers_t *layers;
  mp_status_t status;
} added_layers_t;

static void report_rows_add_layer(void *context, const mp_step_part_t *part) {
  added_layers_t *to = context;
  if (to->status != NULL) return;
  to->status = mp_report_layers_add(to->places, to->layers, part->kernel->op->loc,
                                    part->end - part->begin, 0);
}

static mp_status_t report_rows_add_layers(const maker_t *m, mp_report_layers_t *layers) {
  const mp_chip_program_t *chip_program = m->books->chip_program;
  added_layers_t to = {.places = m->places, .layers = layers};
  for (uint32_t s = 0; s < chip_program->num_steps && to.status == NULL; ++s) {
    const mp_moment_t time = m->books->books.times[s];
    const mp_step_span_t span = {.step = s, .end = time};
    if (time != 0) mp_step_parts(chip_program, &span, report_rows_add_layer, &to);
  }
  const mp_replay_meetings_t *met = m->books->books.meetings;
  for (uint32_t c = 0; c < chip_program->num_collectives && to.status == NULL; ++c) {
    if (met[c].count == 0) continue;
    to.status = mp_report_sums_add_layers(m->places, layers, &chip_program->collectives[c],
                                          met[c].members - met[c].hidden);
  }
  return to.status;
}

static mp_status_t report_rows_make_layers(const maker_t *m) {
  mp_report_layers_t layers = {0};
  MP_RETURN_IF_ERROR(report_rows_add_layers(m, &layers));
  mp_report_layer_t *kept = MP_ARENA_ARRAY(m->arena, mp_report_layer_t, MP_REPORT_LAYERS);
  MP_RETURN_IF_NULL(kept);
  m->row->layer = kept;
  for (uint32_t i = 0; i < layers.rows.count; ++i) {
    REPORT_ROWS_KEEP(kept, m->row->num_layers, MP_REPORT_LAYERS, layers.rows.items[i],
                     report_rows_layer_weight);
  }
  return NULL;
}

// ---- Guesses ----

static mp_status_t report_rows_make_guesses(const maker_t *m) {
  const mp_chip_program_t *chip_program = m->books->chip_program;
  const uint64_t *counts = m->books->books.guesses;
  m->row->guess = MP_ARENA_ARRAY(m->arena, mp_report_guess_t, MP_REPORT_GUESSES);
  MP_RETURN_IF_NULL(m->row->guess);
  for (uint32_t s = 0; s < chip_program->num_steps && counts != NULL; ++s) {
    m->row->guessed += counts[s];
    if (counts[s] == 0 || m->row->num_guesses == MP_REPORT_GUESSES) continue;
    const mp_chip_step_t *step = &chip_program->steps[s];
    mp_report_guess_t *guess = &m->row->guess[m->row->num_guesses++];
    MP_RETURN_IF_ERROR(mp_report_place(m->places, step->op->loc, &guess->place));
    guess->branches = step->op->code == MP_OP_WHILE ? 0 : step->op->num_regions;
    guess->taken = (uint64_t)m->books->unknown_trip_count;
    if (guess->branches != 0) {
      const uint32_t *branches = m->books->branches;
      const uint32_t branch = branches == NULL ? 0 : branches[step->op->control];
      guess->taken = branch < guess->branches ? branch : guess->branches - 1;
    }
    guess->why = m->books->unknown_branch;
    guess->count = counts[s];
  }
  return NULL;
}

// ---- Programs ----

// Of what a program is made, so that two of one name and size are told apart: what its kernels do,
// which devices meet in its collectives, and where it begins.
static uint64_t report_rows_key(const mp_model_program_books_t *books) {
  const mp_chip_program_t *chip_program = books->chip_program;
  uint64_t key = books->key;
  for (uint32_t k = 0; k < chip_program->num_kernels; ++k) {
    const mp_chip_kernel_t *kernel = &chip_program->kernels[k];
    const double sizes[] = {kernel->flops, kernel->bytes};
    key = mp_hash_bytes(key, kernel->name, strlen(kernel->name));
    key = mp_hash_bytes(key, sizes, sizeof(sizes));
  }
  for (uint32_t c = 0; c < chip_program->num_collectives; ++c) {
    const mp_collective_t *one = chip_program->collectives[c].collective;
    key = mp_hash_u64(key, mp_collective_digest(one));
    if (one->num_pairs != 0) {
      key = mp_hash_bytes(key, one->pairs, 2 * (size_t)one->num_pairs * sizeof(*one->pairs));
    } else if (one->groups != NULL) {
      const mp_groups_t *groups = one->groups;
      key = mp_hash_bytes(key, groups->members,
                          groups->offsets[groups->num_groups] * sizeof(*groups->members));
      key = mp_hash_bytes(key, groups->offsets, groups->num_groups * sizeof(*groups->offsets));
    }
  }
  const mp_op_t *first = chip_program->num_kernels != 0       ? chip_program->kernels[0].op
                         : chip_program->num_collectives != 0 ? chip_program->collectives[0].op
                                                              : NULL;
  const mp_loc_t *file = first == NULL ? NULL : mp_loc_find(first->loc).file;
  if (file == NULL) return key;
  return mp_hash_u64(mp_hash_bytes(key, file->text.data, file->text.size), file->line);
}

static const char *report_rows_name(mp_arena_t *arena, mp_str_t name) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_put_visible(&text, name);
  const char *copy = text.failed ? NULL : mp_arena_strndup(arena, mp_strbuf_text(&text), text.size);
  mp_strbuf_deinit(&text);
  return copy;
}

static mp_status_t report_rows_make_callers(const maker_t *m) {
  const mp_model_program_books_t *books = m->books;
  for (uint32_t i = 0; i < books->num_callers; ++i) {
    mp_model_caller_books_t row = books->callers[i];
    row.text = report_rows_name(m->arena, mp_str(row.text));
    MP_RETURN_IF_NULL(row.text);
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(m->arena, &m->row->callers, row));
  }
  return NULL;
}

static mp_status_t report_rows_make(const maker_t *m) {
  const mp_model_program_books_t *books = m->books;
  const mp_replay_device_books_t total = mp_books_total(&books->books);
  const mp_busiest_t busiest =
      mp_busiest_of(mp_model_network(m->model), books->books.link_bytes, books->books.num_links);
  *m->row = (mp_report_program_t){
      .name = report_rows_name(m->arena, books->name),
      .key = report_rows_key(books),
      .serial = books->serial,
      .num_devices = books->num_devices,
      .launches = books->launches,
      .runs = books->runs,
      .time = books->time,
      .available = books->available,
      .transfers = books->transfers,
      .rhythm = books->rhythm,
      .work = total.work,
      .waiting = total.waiting,
      .traffic = total.traffic,
      .hidden = total.hidden,
      .memory = books->chip_program->memory,
      .is_cut = books->books.is_cut,
      .link = busiest.link,
      .link_bytes = busiest.bytes,
      .link_seconds = busiest.seconds,
  };
  MP_RETURN_IF_NULL(m->row->name);
  MP_RETURN_IF_ERROR(report_rows_make_collectives(m));
  MP_RETURN_IF_ERROR(mp_report_copies_make(m->arena, m->places, books, m->row));
  MP_RETURN_IF_ERROR(report_rows_make_guesses(m));
  MP_RETURN_IF_ERROR(report_rows_make_callers(m));
  MP_RETURN_IF_ERROR(report_rows_make_layers(m));
  MP_RETURN_IF_ERROR(mp_report_findings_make(m->arena, m->places, books, m->row));
  return report_rows_make_ops(m);
}

mp_status_t mp_report_rows_init(mp_arena_t *arena, uint32_t num_devices,
                                mp_report_rows_t *out_rows) {
  *out_rows = (mp_report_rows_t){
      .arena = arena,
      .num_devices = num_devices,
      .devices = MP_ARENA_ARRAY(arena, mp_replay_device_books_t, num_devices),
  };
  MP_RETURN_IF_NULL(out_rows->devices);
  return NULL;
}

mp_status_t mp_report_rows_merge(mp_report_rows_t *rows, const mp_report_rows_t *other) {
  for (uint32_t i = 0; i < other->programs.count; ++i) {
    MP_RETURN_IF_ERROR(mp_report_rows_merge_one(rows, &other->programs.items[i]));
  }
  for (uint32_t i = 0; i < rows->num_devices; ++i) {
    mp_device_books_add(&rows->devices[i], &other->devices[i], 1);
  }
  return NULL;
}

mp_status_t mp_report_rows_add(mp_report_rows_t *rows, const mp_model_t *model,
                               const mp_model_program_books_t *books) {
  if (books->launches == 0) return NULL;
  mp_arena_t *arena = NULL;
  MP_RETURN_IF_ERROR(mp_arena_create(&arena));
  mp_report_program_t row;
  mp_report_places_t places = {.arena = arena};
  const maker_t maker = {
      .arena = arena, .model = model, .books = books, .places = &places, .row = &row};
  mp_status_t status = report_rows_make(&maker);
  if (status == NULL) status = mp_report_rows_merge_one(rows, &row);
  for (uint32_t i = 0; i < books->num_devices && status == NULL; ++i) {
    mp_device_books_add(&rows->devices[books->ids[i]], &books->books.devices[i], 1);
  }
  mp_arena_release(arena);
  return status;
}
