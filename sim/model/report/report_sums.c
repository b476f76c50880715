// Where collectives come from that were made of several.
#include <inttypes.h>

#include "sim/model/report/report_fold.h"

// One of those that a collective was made of.
typedef struct {
  const mp_loc_t *loc;
  double bytes;
} part_t;

typedef struct {
  uint32_t count;
  part_t *items;
} parts_t;

// ---- parts ----

// How many sums the partitioner has made an op of: there is a location for each operand.
static uint32_t report_sums_count(const mp_op_t *op) {
  const mp_loc_t *loc = op->loc;
  const bool is_combined = loc != NULL && loc->kind == MP_LOC_FUSED && op->num_operands > 1 &&
                           loc->num_children == op->num_operands;
  return is_combined ? op->num_operands : 1;
}

static double report_sums_bytes(const mp_op_t *op, uint32_t first, uint32_t end) {
  double sum = 0;
  for (uint32_t i = first; i < end; ++i) {
    int64_t bytes = 0;
    if (mp_type_num_bytes(op->operands[i]->type, &bytes)) sum += (double)bytes;
  }
  return sum;
}

static void report_sums_add_op(parts_t *parts, const mp_op_t *op) {
  const uint32_t count = report_sums_count(op);
  for (uint32_t i = 0; i < count; ++i) {
    parts->items[parts->count++] =
        count == 1 ? (part_t){op->loc, report_sums_bytes(op, 0, op->num_operands)}
                   : (part_t){op->loc->children[i], report_sums_bytes(op, i, i + 1)};
  }
}

static mp_status_t report_sums_parts(mp_arena_t *arena, const mp_chip_collective_t *collective,
                                     parts_t *out_parts) {
  const uint32_t num_ops = collective->num_ops == 0 ? 1 : collective->num_ops;
  const mp_op_t *const *ops = collective->num_ops == 0 ? &collective->op : collective->ops;
  uint32_t count = 0;
  for (uint32_t i = 0; i < num_ops; ++i) count += report_sums_count(ops[i]);
  *out_parts = (parts_t){.items = MP_ARENA_ARRAY(arena, part_t, count)};
  MP_RETURN_IF_NULL(out_parts->items);
  for (uint32_t i = 0; i < num_ops; ++i) report_sums_add_op(out_parts, ops[i]);
  return NULL;
}

// ---- places ----

static mp_status_t report_sums_name(mp_report_places_t *places, const char *first, uint32_t others,
                                    const char **out_text) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_printf(&text, "%s and %" PRIu32 " more", first, others);
  mp_status_t status = mp_strbuf_status(&text);
  if (status == NULL) {
    status = mp_report_intern(places, (mp_str_t){mp_strbuf_text(&text), text.size}, out_text);
  }
  mp_strbuf_deinit(&text);
  return status;
}

static bool report_sums_has(const char *const *known, uint32_t count, const char *text) {
  for (uint32_t i = 0; i < count; ++i) {
    if (known[i] == text) return true;
  }
  return false;
}

mp_status_t mp_report_sums_place(mp_report_places_t *places, const mp_chip_collective_t *collective,
                                 const char **out_text) {
  parts_t parts;
  MP_RETURN_IF_ERROR(report_sums_parts(places->arena, collective, &parts));
  const char **known = MP_ARENA_ARRAY(places->arena, const char *, parts.count);
  MP_RETURN_IF_NULL(known);
  uint32_t count = 0;
  for (uint32_t i = 0; i < parts.count; ++i) {
    const char *text;
    MP_RETURN_IF_ERROR(mp_report_place(places, parts.items[i].loc, &text));
    if (!report_sums_has(known, count, text)) known[count++] = text;
  }
  *out_text = known[0];
  return count == 1 ? NULL : report_sums_name(places, known[0], count - 1, out_text);
}

// ---- layers ----

mp_status_t mp_report_sums_add_layers(mp_report_places_t *places, mp_report_layers_t *layers,
                                      const mp_chip_collective_t *collective, mp_moment_t traffic) {
  parts_t parts;
  MP_RETURN_IF_ERROR(report_sums_parts(places->arena, collective, &parts));
  double all = 0, done = 0;
  for (uint32_t i = 0; i < parts.count; ++i) all += parts.items[i].bytes;
  mp_moment_t given = 0;
  for (uint32_t i = 0; i < parts.count; ++i) {
    done += parts.items[i].bytes;
    // The last one gets what is left, to the picosecond.
    const bool is_last = i + 1 == parts.count || all == 0;
    const mp_moment_t until = is_last ? traffic : (mp_moment_t)((double)traffic * (done / all));
    MP_RETURN_IF_ERROR(mp_report_layers_add(places, layers, parts.items[i].loc, 0, until - given));
    given = until;
  }
  return NULL;
}
