// What could be done otherwise in a program, found in what its devices run and what that took.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/model/report/events/watching.h"
#include "sim/model/report/report_fold.h"
#include "sim/model/report/report_same.h"

// Looking back from a value ends after so many ops.
enum { FINDINGS_VISITS = 64 };

// What has fewer scores than that is not worth a kernel; a program has few kinds of attention.
enum { FINDINGS_SCORES = 4096, FINDINGS_ATTENTIONS = 8 };

const char *mp_finding_name(mp_finding_t finding) {
  static const char *const names[] = {"repeated",       "batch",   "attention",
                                      "reduce_scatter", "exposed", "blocks"};
  return names[finding];
}

// Two products with a softmax between them: `scores` is what the first one makes.
typedef struct {
  const mp_op_t *op;  // the first product
  const mp_type_t *scores;
  mp_moment_t time;
} attention_t;

typedef struct {
  mp_arena_t *arena;
  mp_report_places_t *places;
  const mp_model_program_books_t *books;
  mp_report_program_t *row;
  mp_report_same_t *same;
  MP_ARRAY(mp_report_finding_t) all;
  attention_t attentions[FINDINGS_ATTENTIONS];
  uint32_t num_attentions;
} finder_t;

// ---- Adding ----

static mp_status_t report_findings_add(finder_t *f, const mp_report_finding_t *finding) {
  if (finding->time == 0) return NULL;
  for (uint32_t i = 0; i < f->all.count; ++i) {
    mp_report_finding_t *known = &f->all.items[i];
    if (known->finding != finding->finding || strcmp(known->what, finding->what) != 0) continue;
    // An argument is one finding, wherever it is used.
    const bool is_same = known->place == finding->place || finding->finding == MP_FINDING_BATCH;
    if (!is_same || known->devices != finding->devices) continue;
    known->time += finding->time;
    return NULL;
  }
  return MP_ARRAY_PUSH(f->arena, &f->all, *finding);
}

static mp_status_t report_findings_text(finder_t *f, mp_strbuf_t *text, const char **out_text) {
  mp_status_t status = mp_strbuf_status(text);
  if (status == NULL) {
    status = mp_report_intern(f->places, (mp_str_t){mp_strbuf_text(text), text->size}, out_text);
  }
  mp_strbuf_deinit(text);
  return status;
}

// "256x1024xbf16"
static void report_findings_put_type(const mp_type_t *type, mp_strbuf_t *out) {
  for (uint32_t d = 0; d < type->rank; ++d) mp_strbuf_printf(out, "%" PRId64 "x", type->dims[d]);
  mp_strbuf_puts(out, mp_dtype_name(type->dtype));
}

// ---- Looking back ----

static bool report_findings_is_product(const mp_op_t *op) {
  return op->code == MP_OP_DOT_GENERAL || op->code == MP_OP_CONVOLUTION;
}

// What a block's argument holds at first: the operand of the loop; NULL for main's.
static const mp_value_t *report_findings_outside(const mp_value_t *value) {
  const mp_op_t *loop = value->block->parent_op;
  const bool is_loop = loop != NULL && loop->code == MP_OP_WHILE;
  return is_loop && value->index < loop->num_operands ? loop->operands[value->index] : NULL;
}

// What a value is computed from without a product in between.
typedef struct {
  int visits;
  bool has_collective;
  const mp_value_t *argument;  // the first argument of main with two dimensions; NULL: none
} origin_t;

static void report_findings_trace(const finder_t *f, const mp_value_t *value, origin_t *origin) {
  if (value == NULL || origin->visits++ >= FINDINGS_VISITS) return;
  if (value->op == NULL) {
    const bool is_main = value->block == f->books->program->partitioned->main->body;
    const bool is_it = is_main && value->type->rank >= 2 && origin->argument == NULL;
    if (is_it) origin->argument = value;
    if (!is_main) report_findings_trace(f, report_findings_outside(value), origin);
    return;
  }
  const mp_op_t *op = value->op;
  origin->has_collective |= mp_op_has(op, MP_OP_TRAIT_COLLECTIVE);
  if (report_findings_is_product(op) || mp_op_has(op, MP_OP_TRAIT_COLLECTIVE)) return;
  for (uint32_t i = 0; i < op->num_operands && op->num_regions == 0; ++i) {
    report_findings_trace(f, op->operands[i], origin);
  }
}

// ---- Work that devices repeat ----

// The argument that makes devices repeat a product: what it is multiplied by was brought together
// for that from what is cut, and it is not cut itself. NULL: there is none.
static const mp_value_t *report_findings_batch(const finder_t *f, const mp_op_t *op) {
  if (!report_findings_is_product(op)) return NULL;
  origin_t origins[2] = {{0}, {0}};
  for (uint32_t i = 0; i < 2; ++i) report_findings_trace(f, op->operands[i], &origins[i]);
  for (uint32_t i = 0; i < 2; ++i) {
    const origin_t *own = &origins[i], *other = &origins[1 - i];
    const bool is_it = own->argument != NULL && !own->has_collective && other->has_collective;
    if (!is_it) continue;
    const uint32_t kinds = mp_report_same_kinds(f->same, own->argument);
    return kinds != 0 && kinds < f->books->program->num_partitions ? own->argument : NULL;
  }
  return NULL;
}

static mp_status_t report_findings_name_batch(finder_t *f, const mp_op_t *op,
                                              mp_report_finding_t *finding) {
  const mp_value_t *argument = report_findings_batch(f, op);
  if (argument == NULL) return NULL;
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_printf(&text, "argument %" PRIu32 " (", (uint32_t)argument->index);
  const mp_type_t *global = f->books->program->params[argument->index].global_type;
  report_findings_put_type(global == NULL ? argument->type : global, &text);
  mp_strbuf_putc(&text, ')');
  finding->finding = MP_FINDING_BATCH;
  return report_findings_text(f, &text, &finding->what);
}

static mp_status_t report_findings_repeated(finder_t *f, const mp_op_t *op, mp_moment_t time) {
  if (op->num_results == 0) return NULL;
  const uint32_t all = f->books->program->num_partitions;
  const uint32_t kinds = mp_report_same_kinds(f->same, &op->results[0]);
  if (kinds == 0 || kinds >= all) return NULL;
  mp_report_finding_t finding = {
      .finding = MP_FINDING_REPEATED,
      .what = "",
      .devices = all / kinds,
      .time = (mp_moment_t)((double)time * (1 - (double)kinds / all)),
  };
  MP_RETURN_IF_ERROR(mp_report_place(f->places, op->loc, &finding.place));
  MP_RETURN_IF_ERROR(report_findings_name_batch(f, op, &finding));
  return report_findings_add(f, &finding);
}

// ---- Attention ----

static int report_findings_compare(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

// Whether a type has the dimensions of scores, in any order.
static bool report_findings_has_scores(const mp_type_t *type, const mp_type_t *scores) {
  int64_t a[MP_MAX_RANK], b[MP_MAX_RANK];
  if (!mp_type_is_tensor(type) || type->rank != scores->rank) return false;
  memcpy(a, type->dims, type->rank * sizeof(*a));
  memcpy(b, scores->dims, type->rank * sizeof(*b));
  qsort(a, type->rank, sizeof(*a), report_findings_compare);
  qsort(b, type->rank, sizeof(*b), report_findings_compare);
  return memcmp(a, b, type->rank * sizeof(*a)) == 0;
}

// The op of this kind that a value of scores is computed from, through ops that keep them scores.
static const mp_op_t *report_findings_back(const mp_value_t *value, const mp_type_t *scores,
                                           mp_opcode_t code, int *visits) {
  const mp_op_t *op = value->op;
  if (op == NULL || (*visits)++ >= FINDINGS_VISITS) return NULL;
  if (!report_findings_has_scores(op->results[0].type, scores)) return NULL;
  if (op->code == code) return op;
  const bool is_passed = mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE) || mp_op_has(op, MP_OP_TRAIT_MOVES);
  if (!is_passed) return NULL;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_op_t *found = report_findings_back(op->operands[i], scores, code, visits);
    if (found != NULL) return found;
  }
  return NULL;
}

static bool report_findings_is_known(const finder_t *f, const mp_type_t *scores) {
  for (uint32_t i = 0; i < f->num_attentions; ++i) {
    if (report_findings_has_scores(scores, f->attentions[i].scores)) return true;
  }
  return false;
}

// Whether a value is this exponential, perhaps converted, masked or moved.
static bool report_findings_is_exponential(const mp_value_t *value, const mp_op_t *exponential) {
  for (int visits = 0; visits < FINDINGS_VISITS; ++visits) {
    const mp_op_t *op = value->op;
    if (op == exponential) return true;
    if (op == NULL || op->num_operands == 0) return false;
    const bool is_mask = op->code == MP_OP_SELECT;
    if (!is_mask && op->code != MP_OP_CONVERT && !mp_op_has(op, MP_OP_TRAIT_MOVES)) return false;
    value = op->operands[is_mask ? 1 : 0];
  }
  return false;
}

// Whether exponentials are summed along one dimension. This is what tells a softmax from a gate
// between two products: silu(x) has the exponential of its logistic function, which no op sums.
static bool report_findings_is_summed(const mp_op_t *exponential) {
  for (const mp_op_t *op = exponential->next; op != NULL; op = op->next) {
    if (op->code != MP_OP_REDUCE || op->num_operands != 2) continue;
    if (op->operands[0]->type->rank != op->results[0].type->rank + 1) continue;
    if (report_findings_is_exponential(op->operands[0], exponential)) return true;
  }
  return false;
}

// Looks whether an operand of a product is the softmax of another product.
static void report_findings_note_attention(finder_t *f, const mp_op_t *op) {
  for (uint32_t i = 0; i < 2 && f->num_attentions < FINDINGS_ATTENTIONS; ++i) {
    const mp_type_t *scores = op->operands[i]->type;
    int64_t elements = 0;
    if (scores->rank < 3 || !mp_type_num_elements(scores, &elements)) continue;
    if (elements < FINDINGS_SCORES || report_findings_is_known(f, scores)) continue;
    int visits = 0;
    const mp_op_t *softmax =
        report_findings_back(op->operands[i], scores, MP_OP_EXPONENTIAL, &visits);
    if (softmax == NULL || !report_findings_is_summed(softmax)) continue;
    visits = 0;
    const mp_op_t *first =
        report_findings_back(softmax->operands[0], scores, MP_OP_DOT_GENERAL, &visits);
    if (first == NULL) continue;
    f->attentions[f->num_attentions++] = (attention_t){.op = first, .scores = scores};
  }
}

static void report_findings_look_for_attention(finder_t *f, const mp_block_t *block) {
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    if (op->code == MP_OP_DOT_GENERAL) report_findings_note_attention(f, op);
    if (!mp_op_has(op, MP_OP_TRAIT_FLOW)) continue;
    for (uint32_t r = 0; r < op->num_regions; ++r) {
      report_findings_look_for_attention(f, op->regions[r]);
    }
  }
}

static void report_findings_count_attention(finder_t *f, const mp_op_t *op, mp_moment_t time) {
  for (uint32_t a = 0; a < f->num_attentions; ++a) {
    const mp_type_t *scores = f->attentions[a].scores;
    bool is_part = op->num_results != 0 && report_findings_has_scores(op->results[0].type, scores);
    for (uint32_t i = 0; i < op->num_operands && !is_part; ++i) {
      is_part = report_findings_has_scores(op->operands[i]->type, scores);
    }
    if (!is_part) continue;
    f->attentions[a].time += time;
    return;
  }
}

static mp_status_t report_findings_add_attentions(finder_t *f) {
  for (uint32_t a = 0; a < f->num_attentions; ++a) {
    mp_report_finding_t finding = {.finding = MP_FINDING_ATTENTION, .time = f->attentions[a].time};
    mp_strbuf_t text;
    mp_strbuf_init(&text);
    mp_strbuf_puts(&text, "scores of ");
    report_findings_put_type(f->attentions[a].scores, &text);
    MP_RETURN_IF_ERROR(report_findings_text(f, &text, &finding.what));
    MP_RETURN_IF_ERROR(mp_report_place(f->places, f->attentions[a].op->loc, &finding.place));
    MP_RETURN_IF_ERROR(report_findings_add(f, &finding));
  }
  return NULL;
}

// ---- Kernels with small blocks ----

// The least part of a kernel's time that the overhead of its steps is.
static const double g_overhead = 0.5;

// "64x128"
static void report_findings_put_shape(const mp_price_shape_t *shape, mp_strbuf_t *out) {
  for (uint32_t d = 0; d < shape->rank; ++d) {
    mp_strbuf_printf(out, "%s%" PRId64, d == 0 ? "" : "x", shape->dims[d]);
  }
}

static mp_status_t report_findings_blocks(finder_t *f, const mp_chip_kernel_t *kernel,
                                          mp_moment_t time) {
  const mp_price_t *price = kernel->price;
  if (price == NULL || price->grid.rank == 0 || price->block.rank == 0) return NULL;
  const double overhead = price->overhead / price->seconds;
  if (!(overhead >= g_overhead)) return NULL;
  double steps = 1;
  for (uint32_t d = 0; d < price->grid.rank; ++d) steps *= (double)price->grid.dims[d];
  mp_report_finding_t finding = {.finding = MP_FINDING_BLOCKS,
                                 .time = (mp_moment_t)(overhead * (double)time)};
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_printf(&text, "%.0f steps (grid ", steps);
  report_findings_put_shape(&price->grid, &text);
  mp_strbuf_puts(&text, ", blocks of ");
  report_findings_put_shape(&price->block, &text);
  mp_strbuf_putc(&text, ')');
  MP_RETURN_IF_ERROR(report_findings_text(f, &text, &finding.what));
  MP_RETURN_IF_ERROR(mp_report_place(f->places, kernel->op->loc, &finding.place));
  return report_findings_add(f, &finding);
}

// ---- Sums of which parts are used ----

static int64_t report_findings_members(const mp_op_t *op) {
  const mp_attr_t *groups = mp_op_attr(op, MP_ATTR_REPLICA_GROUPS);
  const bool is_table = groups != NULL && groups->kind == MP_KIND_INTS && groups->u.ints.rank == 2;
  return is_table ? groups->u.ints.dims[1] : 0;
}

// Whether an op takes of a value the part that belongs to its device: one of as many as the sum
// has members, and another one on each.
static bool report_findings_takes_part(const finder_t *f, const mp_op_t *op, int64_t members) {
  int64_t whole = 0, part = 0;
  if (op->code != MP_OP_DYNAMIC_SLICE || members < 2) return false;
  if (!mp_type_num_elements(op->operands[0]->type, &whole)) return false;
  if (!mp_type_num_elements(op->results[0].type, &part) || part * members != whole) return false;
  for (uint32_t i = 1; i < op->num_operands; ++i) {
    if ((int64_t)mp_report_same_kinds(f->same, op->operands[i]) >= members) return true;
  }
  return false;
}

// Whether every use of a sum's results, in its block, takes a part.
static bool report_findings_is_cut_up(const finder_t *f, const mp_op_t *sum) {
  const int64_t members = report_findings_members(sum);
  uint32_t parts = 0;
  for (const mp_op_t *op = sum->next; op != NULL; op = op->next) {
    // An op with regions may use it inside of them.
    if (op->num_regions != 0 && mp_op_has(op, MP_OP_TRAIT_FLOW)) return false;
    for (uint32_t i = 0; i < op->num_operands; ++i) {
      if (op->operands[i]->op != sum) continue;
      if (i != 0 || !report_findings_takes_part(f, op, members)) return false;
      parts += 1;
    }
  }
  return parts != 0;
}

static mp_status_t report_findings_sums(finder_t *f) {
  const mp_replay_meetings_t *met = f->books->books.meetings;
  const mp_chip_program_t *chip_program = f->books->chip_program;
  for (uint32_t c = 0; c < chip_program->num_collectives; ++c) {
    const mp_chip_collective_t *one = &chip_program->collectives[c];
    if (met[c].count == 0 || one->num_ops > 1 || one->op->code != MP_OP_ALL_REDUCE) continue;
    if (!report_findings_is_cut_up(f, one->op)) continue;
    mp_report_finding_t finding = {
        .finding = MP_FINDING_SCATTER, .what = "", .time = met[c].members - met[c].hidden};
    MP_RETURN_IF_ERROR(mp_report_place(f->places, one->op->loc, &finding.place));
    MP_RETURN_IF_ERROR(report_findings_add(f, &finding));
  }
  return NULL;
}

// ---- All of a program ----

typedef struct {
  finder_t *finder;
  mp_status_t status;
} looked_at_t;

static void report_findings_look(void *context, const mp_step_part_t *part) {
  looked_at_t *looked = context;
  if (looked->status != NULL) return;
  const mp_moment_t time = part->end - part->begin;
  report_findings_count_attention(looked->finder, part->kernel->op, time);
  looked->status = report_findings_repeated(looked->finder, part->kernel->op, time);
  if (looked->status != NULL) return;
  looked->status = report_findings_blocks(looked->finder, part->kernel, time);
}

static int report_findings_heavier(const void *a, const void *b) {
  const mp_report_finding_t *x = a, *y = b;
  if (x->time != y->time) return x->time > y->time ? -1 : 1;
  return strcmp(x->place, y->place);
}

static mp_status_t report_findings_keep(finder_t *f) {
  mp_report_program_t *row = f->row;
  row->findings = MP_ARENA_ARRAY(f->arena, mp_report_finding_t, MP_REPORT_FINDINGS);
  MP_RETURN_IF_NULL(row->findings);
  if (f->all.count > 1) {
    qsort(f->all.items, f->all.count, sizeof(*f->all.items), report_findings_heavier);
  }
  for (uint32_t i = 0; i < f->all.count && i < MP_REPORT_FINDINGS; ++i) {
    row->findings[row->num_findings++] = f->all.items[i];
  }
  return NULL;
}

mp_status_t mp_report_findings_make(mp_arena_t *arena, mp_report_places_t *places,
                                    const mp_model_program_books_t *books,
                                    mp_report_program_t *row) {
  finder_t f = {.arena = arena, .places = places, .books = books, .row = row};
  const mp_program_t *program = books->program;
  if (program == NULL || program->partitioned == NULL) return report_findings_keep(&f);
  MP_RETURN_IF_ERROR(mp_report_same_create(arena, program, &f.same));
  report_findings_look_for_attention(&f, program->partitioned->main->body);
  looked_at_t looked = {.finder = &f};
  for (uint32_t s = 0; s < books->chip_program->num_steps && looked.status == NULL; ++s) {
    const mp_moment_t time = books->books.times[s];
    const mp_step_span_t span = {.step = s, .end = time};
    if (time != 0) mp_step_parts(books->chip_program, &span, report_findings_look, &looked);
  }
  MP_RETURN_IF_ERROR(looked.status);
  MP_RETURN_IF_ERROR(report_findings_add_attentions(&f));
  MP_RETURN_IF_ERROR(report_findings_sums(&f));
  for (uint32_t c = 0; c < row->num_collectives; ++c) {
    mp_report_finding_t exposed;
    MP_RETURN_IF_ERROR(mp_report_exposed(places, row, c, &exposed));
    MP_RETURN_IF_ERROR(report_findings_add(&f, &exposed));
  }
  return report_findings_keep(&f);
}

// ---- Rows that are added up ----

mp_status_t mp_report_findings_own(mp_arena_t *arena, mp_report_program_t *row) {
  mp_report_finding_t *own = MP_ARENA_ARRAY(arena, mp_report_finding_t, MP_REPORT_FINDINGS);
  MP_RETURN_IF_NULL(own);
  for (uint32_t i = 0; i < row->num_findings; ++i) {
    own[i] = row->findings[i];
    own[i].what = mp_arena_strndup(arena, own[i].what, strlen(own[i].what));
    own[i].place = mp_arena_strndup(arena, own[i].place, strlen(own[i].place));
    if (own[i].what == NULL || own[i].place == NULL) return mp_status_out_of_memory();
  }
  row->findings = own;
  return NULL;
}

void mp_report_findings_merge(mp_report_program_t *to, const mp_report_program_t *from) {
  for (uint32_t i = 0; i < from->num_findings; ++i) {
    const mp_report_finding_t *more = &from->findings[i];
    for (uint32_t k = 0; k < to->num_findings; ++k) {
      mp_report_finding_t *row = &to->findings[k];
      const bool is_same = row->finding == more->finding && row->devices == more->devices &&
                           strcmp(row->what, more->what) == 0 &&
                           strcmp(row->place, more->place) == 0;
      if (is_same) row->time += more->time;
    }
  }
}
