#include "sim/model/report/report_fold.h"

#include "collectives/mailbox.h"
#include "sim/base/hash.h"
#include "sim/model/clock/replay/books.h"
#include "sim/model/report/events/watching.h"

// ---- Places ----

// Programs choose their texts, and so must not know where the hashes begin.
static uint64_t report_fold_start(const mp_arena_t *arena) {
  return mp_hash_pointer(arena);
}

mp_status_t mp_report_intern(mp_report_places_t *places, mp_str_t text, const char **out_text) {
  const uint64_t hash = mp_hash_bytes(report_fold_start(places->arena), text.data, text.size);
  const mp_report_known_place_t *known;
  MP_HASH_MAP_EACH(&places->known, hash, known) {
    if (!mp_str_is(text, known->text)) continue;
    *out_text = known->text;
    return NULL;
  }
  const char *copy = mp_arena_strndup(places->arena, text.data, text.size);
  MP_RETURN_IF_NULL(copy);
  MP_RETURN_IF_ERROR(
      MP_HASH_MAP_ADD(places->arena, &places->known, &(mp_report_known_place_t){hash, copy}));
  *out_text = copy;
  return NULL;
}

// The one copy of a name that a program has chosen, without control characters.
static mp_status_t report_fold_visible(mp_report_places_t *places, mp_str_t name,
                                       const char **out_text) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_put_visible(&text, name);
  mp_status_t status = mp_strbuf_status(&text);
  if (status == NULL) {
    status = mp_report_intern(places, (mp_str_t){mp_strbuf_text(&text), text.size}, out_text);
  }
  mp_strbuf_deinit(&text);
  return status;
}

mp_status_t mp_report_place(mp_report_places_t *places, const mp_loc_t *loc,
                            const char **out_text) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_loc_describe(loc, &text);
  mp_status_t status = mp_strbuf_status(&text);
  if (status == NULL) {
    status = mp_report_intern(places, (mp_str_t){mp_strbuf_text(&text), text.size}, out_text);
  }
  mp_strbuf_deinit(&text);
  return status;
}

// ---- Ops ----

static bool report_fold_same_op(const mp_report_op_t *a, const mp_report_op_t *b) {
  return a->place == b->place && a->bytes == b->bytes && a->flops == b->flops &&
         a->work_class == b->work_class && a->bound == b->bound && strcmp(a->name, b->name) == 0;
}

mp_status_t mp_report_ops_add(mp_arena_t *arena, mp_report_ops_t *ops, const mp_report_op_t *op) {
  const double sizes[] = {op->bytes, op->flops};
  const uint64_t hash = mp_hash_bytes(mp_hash_pointer(op->place), sizes, sizeof(sizes));
  const mp_report_known_row_t *known;
  MP_HASH_MAP_EACH(&ops->known, hash, known) {
    mp_report_op_t *row = &ops->rows.items[known->row];
    if (!report_fold_same_op(row, op)) continue;
    row->count += op->count;
    row->time += op->time;
    return NULL;
  }
  const mp_report_known_row_t entry = {hash, ops->rows.count};
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(arena, &ops->rows, *op));
  return MP_HASH_MAP_ADD(arena, &ops->known, &entry);
}

// ---- Layers ----

mp_status_t mp_report_layers_add(mp_report_places_t *places, mp_report_layers_t *layers,
                                 const mp_loc_t *loc, mp_moment_t work, mp_moment_t traffic) {
  mp_str_t path = mp_op_path(loc);
  while (path.size > 0 && path.data[path.size - 1] != '/') path.size -= 1;
  if (path.size > 0) path.size -= 1;
  const char *name;
  MP_RETURN_IF_ERROR(report_fold_visible(places, path, &name));
  const uint64_t hash = mp_hash_pointer(name);
  const mp_report_known_row_t *known;
  MP_HASH_MAP_EACH(&layers->known, hash, known) {
    mp_report_layer_t *row = &layers->rows.items[known->row];
    if (row->name != name) continue;
    row->work += work;
    row->traffic += traffic;
    return NULL;
  }
  const mp_report_known_row_t entry = {hash, layers->rows.count};
  const mp_report_layer_t layer = {.name = name, .work = work, .traffic = traffic};
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(places->arena, &layers->rows, layer));
  return MP_HASH_MAP_ADD(places->arena, &layers->known, &entry);
}

// ---- Collectives ----

static bool report_fold_same_groups(const mp_groups_t *a, const mp_groups_t *b) {
  if (a == b) return true;
  if (a == NULL || b == NULL) return false;
  if (a->num_groups != b->num_groups || a->num_devices != b->num_devices) return false;
  const size_t count = a->offsets[a->num_groups];
  return memcmp(a->offsets, b->offsets, (a->num_groups + 1) * sizeof(*a->offsets)) == 0 &&
         (count == 0 || memcmp(a->members, b->members, count * sizeof(*a->members)) == 0);
}

static bool report_fold_same_pairs(const mp_collective_t *a, const mp_collective_t *b) {
  return a->num_pairs == b->num_pairs &&
         (a->num_pairs == 0 ||
          memcmp(a->pairs, b->pairs, 2 * (size_t)a->num_pairs * sizeof(*a->pairs)) == 0);
}

// The same links, and the same bytes over them.
static bool report_fold_same_meetings(const mp_report_meetings_t *a,
                                      const mp_report_meetings_t *b) {
  const mp_collective_t *x = a->first->collective, *y = b->first->collective;
  return a->place == b->place && a->first->overlap == b->first->overlap && x->kind == y->kind &&
         a->met.algorithm == b->met.algorithm && mp_message_bytes(x) == mp_message_bytes(y) &&
         report_fold_same_pairs(x, y) && report_fold_same_groups(x->groups, y->groups);
}

mp_status_t mp_report_meetings_add(mp_arena_t *arena, mp_report_all_meetings_t *all,
                                   const mp_report_meetings_t *one) {
  const uint64_t hash =
      mp_hash_u64(mp_hash_pointer(one->place), (uint64_t)mp_message_bytes(one->first->collective));
  const mp_report_known_row_t *known;
  MP_HASH_MAP_EACH(&all->known, hash, known) {
    mp_report_meetings_t *row = &all->rows.items[known->row];
    if (!report_fold_same_meetings(row, one)) continue;
    mp_meetings_add(&row->met, &one->met, 1);
    return NULL;
  }
  const mp_report_known_row_t entry = {hash, all->rows.count};
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(arena, &all->rows, *one));
  return MP_HASH_MAP_ADD(arena, &all->known, &entry);
}
