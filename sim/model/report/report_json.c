// The table of virtual times as JSON: the same figures, and what does not stand in rows, so that
// all adds up.
#include <inttypes.h>

#include "sim/chip/basis/kernel_basis.h"
#include "sim/model/report/report_table.h"

// A member of an object; the first one has no comma before it.
static void report_json_key(const char *between, const char *key, mp_strbuf_t *out) {
  mp_strbuf_printf(out, "%s\"%s\": ", between, key);
}

static void report_json_put_text(const char *key, const char *text, mp_strbuf_t *out) {
  report_json_key(", ", key, out);
  mp_strbuf_put_json(out, mp_str(text));
}

static void report_json_put_number(const char *key, double value, mp_strbuf_t *out) {
  report_json_key(", ", key, out);
  mp_strbuf_put_double(out, value);
}

static void report_json_put_count(const char *key, uint64_t value, mp_strbuf_t *out) {
  report_json_key(", ", key, out);
  mp_strbuf_printf(out, "%" PRIu64, value);
}

static void report_json_put_time(const char *key, mp_moment_t moment, mp_strbuf_t *out) {
  report_json_put_number(key, mp_moment_seconds(moment), out);
}

static void report_json_begin_list(const char *key, mp_strbuf_t *out) {
  report_json_key(",\n   ", key, out);
  mp_strbuf_putc(out, '[');
}

// ---- One program ----

static void report_json_put_link(const mp_report_table_t *table, int64_t link, double bytes,
                                 double seconds, mp_strbuf_t *out) {
  if (link < 0) return;
  report_json_put_text("busiest_link", mp_network_link(table->network, (uint32_t)link)->name, out);
  report_json_put_number("link_bytes", bytes, out);
  report_json_put_number("link_seconds", seconds, out);
}

static void report_json_put_first(const mp_report_collective_t *c, mp_strbuf_t *out) {
  report_json_key(", ", "first_members", out);
  mp_strbuf_putc(out, '[');
  for (uint32_t i = 0; i < 2 && i < c->members; ++i) {
    mp_strbuf_printf(out, "%s%" PRIu32, i == 0 ? "" : ", ", c->first[i]);
  }
  mp_strbuf_putc(out, ']');
}

static void report_json_put_collectives(const mp_report_table_t *table,
                                        const mp_report_program_t *row, mp_strbuf_t *out) {
  mp_moment_t exposed = 0;
  report_json_begin_list("collectives", out);
  for (uint32_t i = 0; i < row->num_collectives; ++i) {
    const mp_report_collective_t *c = &row->collective[i];
    const bool is_messages = c->met.algorithm == MP_ALGORITHM_AUTO;
    report_json_key(i == 0 ? "\n    {" : ",\n    {", "kind", out);
    mp_strbuf_put_json(out, mp_str(c->kind));
    report_json_put_text("at", c->place, out);
    report_json_put_text("how", mp_overlap_name(c->overlap), out);
    report_json_put_count("members", c->members, out);
    report_json_put_first(c, out);
    if (c->axes[0] != '\0') report_json_put_text("axes", c->axes, out);
    report_json_put_text("algorithm",
                         is_messages ? "messages" : mp_algorithm_name(c->met.algorithm), out);
    report_json_put_count("count", c->met.count, out);
    report_json_put_number("bytes", c->bytes, out);
    report_json_put_time("each", c->met.count == 0 ? 0 : c->met.traffic / c->met.count, out);
    report_json_put_time("longest", c->met.longest, out);
    report_json_put_time("exposed", c->met.members - c->met.hidden, out);
    report_json_put_time("hidden", c->met.hidden, out);
    report_json_put_time("waiting", c->met.waiting, out);
    report_json_put_link(table, c->link, c->link_bytes, c->link_seconds * c->round, out);
    mp_strbuf_putc(out, '}');
    exposed += c->met.members - c->met.hidden;
  }
  mp_strbuf_putc(out, ']');
  report_json_put_time("other_collective", row->traffic > exposed ? row->traffic - exposed : 0,
                       out);
}

static void report_json_put_kernel(const mp_report_kernel_t *kernel, mp_strbuf_t *out) {
  if (kernel->bound == NULL) return;
  mp_strbuf_puts(out, ", \"kernel\": {\"bound_by\": ");
  mp_strbuf_put_json(out, mp_str(kernel->bound));
  report_json_put_time("fill", kernel->fill, out);
  report_json_put_time("compute", kernel->compute, out);
  report_json_put_time("wait", kernel->wait, out);
  report_json_put_number("vmem", kernel->vmem, out);
  mp_strbuf_printf(out, ", \"by_values\": %s}", kernel->is_guessed ? "true" : "false");
}

static void report_json_put_ops(const mp_report_program_t *row, mp_strbuf_t *out) {
  mp_moment_t work = 0;
  report_json_begin_list("ops", out);
  for (uint32_t i = 0; i < row->num_ops; ++i) {
    const mp_report_op_t *op = &row->op[i];
    report_json_key(i == 0 ? "\n    {" : ",\n    {", "name", out);
    mp_strbuf_put_json(out, mp_str(op->name));
    report_json_put_text("at", op->place, out);
    report_json_put_text("class", mp_work_class_name(op->work_class), out);
    report_json_put_text("bound_by", mp_bound_name(op->bound), out);
    report_json_put_count("count", op->count, out);
    report_json_put_number("flops", op->flops, out);
    report_json_put_number("bytes", op->bytes, out);
    report_json_put_time("time", op->time, out);
    report_json_put_kernel(&op->kernel, out);
    mp_strbuf_putc(out, '}');
    work += op->time;
  }
  mp_strbuf_putc(out, ']');
  report_json_put_time("other_work", row->work > work ? row->work - work : 0, out);
}

static void report_json_put_classes(const mp_report_program_t *row, mp_strbuf_t *out) {
  bool is_first = true;
  report_json_begin_list("classes", out);
  for (int c = 0; c < MP_WORK_CLASS_COUNT; ++c) {
    if (row->classes[c].time == 0) continue;
    report_json_key(is_first ? "\n    {" : ",\n    {", "class", out);
    mp_strbuf_put_json(out, mp_str(mp_work_class_name((mp_work_class_t)c)));
    report_json_put_number("flops", row->classes[c].flops, out);
    if (row->classes[c].recomputed > 0) {
      report_json_put_number("recomputed", row->classes[c].recomputed, out);
    }
    report_json_put_time("time", row->classes[c].time, out);
    mp_strbuf_putc(out, '}');
    is_first = false;
  }
  mp_strbuf_putc(out, ']');
}

static void report_json_put_layers(const mp_report_program_t *row, mp_strbuf_t *out) {
  report_json_begin_list("layers", out);
  for (uint32_t i = 0; i < row->num_layers; ++i) {
    const mp_report_layer_t *layer = &row->layer[i];
    report_json_key(i == 0 ? "\n    {" : ",\n    {", "name", out);
    mp_strbuf_put_json(out, mp_str(layer->name));
    report_json_put_time("work", layer->work, out);
    report_json_put_time("collective", layer->traffic, out);
    mp_strbuf_putc(out, '}');
  }
  mp_strbuf_putc(out, ']');
}

static void report_json_put_callers(const mp_report_program_t *row, mp_strbuf_t *out) {
  report_json_begin_list("callers", out);
  for (uint32_t i = 0; i < row->callers.count; ++i) {
    const mp_model_caller_books_t *caller = &row->callers.items[i];
    report_json_key(i == 0 ? "\n    {" : ",\n    {", "at", out);
    mp_strbuf_put_json(out, mp_str(caller->text));
    report_json_put_count("launches", caller->launches, out);
    report_json_put_count("runs", caller->runs, out);
    report_json_put_time("seconds", caller->time, out);
    report_json_put_time("available", caller->available, out);
    mp_strbuf_putc(out, '}');
  }
  mp_strbuf_putc(out, ']');
}

static void report_json_put_copies(const mp_report_program_t *row, mp_strbuf_t *out) {
  report_json_begin_list("host_copies", out);
  for (uint32_t i = 0; i < row->num_copies; ++i) {
    const mp_report_copy_t *c = &row->copy[i];
    report_json_key(i == 0 ? "\n    {" : ",\n    {", "to_host", out);
    mp_strbuf_puts(out, c->is_to_host ? "true" : "false");
    report_json_put_text("at", c->place, out);
    report_json_put_text("how", mp_overlap_name(c->is_async ? MP_OVERLAP_ASYNC : MP_OVERLAP_SYNC),
                         out);
    report_json_put_count("count", c->did.count, out);
    report_json_put_number("bytes", c->bytes, out);
    report_json_put_time("time", c->did.time, out);
    report_json_put_time("exposed", c->did.exposed, out);
    mp_strbuf_putc(out, '}');
  }
  mp_strbuf_putc(out, ']');
}

static void report_json_put_guesses(const mp_report_program_t *row, mp_strbuf_t *out) {
  report_json_begin_list("guessed", out);
  for (uint32_t i = 0; i < row->num_guesses; ++i) {
    const mp_report_guess_t *guess = &row->guess[i];
    report_json_key(i == 0 ? "\n    {" : ",\n    {", "at", out);
    mp_strbuf_put_json(out, mp_str(guess->place));
    report_json_put_count("count", guess->count, out);
    report_json_put_count("taken", guess->taken, out);
    report_json_put_count("branches", guess->branches, out);
    mp_strbuf_putc(out, '}');
  }
  mp_strbuf_putc(out, ']');
}

static void report_json_put_findings(const mp_report_program_t *row, mp_strbuf_t *out) {
  report_json_begin_list("findings", out);
  for (uint32_t i = 0; i < row->num_findings; ++i) {
    const mp_report_finding_t *finding = &row->findings[i];
    report_json_key(i == 0 ? "\n    {" : ",\n    {", "finding", out);
    mp_strbuf_put_json(out, mp_str(mp_finding_name(finding->finding)));
    report_json_put_text("what", finding->what, out);
    report_json_put_text("at", finding->place, out);
    report_json_put_count("devices", finding->devices, out);
    report_json_put_time("time", finding->time, out);
    mp_strbuf_putc(out, '}');
  }
  mp_strbuf_putc(out, ']');
}

static void report_json_put_space(const char *key, const mp_chip_space_t *space, mp_strbuf_t *out) {
  report_json_key(", ", key, out);
  mp_strbuf_puts(out, "{\"bytes\": ");
  const double results = (double)(space->results - space->aliased);
  mp_strbuf_put_double(out, (double)space->arguments + results + (double)space->temporaries);
  report_json_put_number("arguments", (double)space->arguments, out);
  report_json_put_number("other_results", results, out);
  report_json_put_number("temporaries", (double)space->temporaries, out);
  mp_strbuf_putc(out, '}');
}

static void report_json_put_program(const mp_report_table_t *table, const mp_report_program_t *row,
                                    mp_strbuf_t *out) {
  const mp_moment_t known = row->work + row->waiting + row->traffic;
  report_json_key("\n  {", "name", out);
  mp_strbuf_put_json(out, mp_str(row->name));
  if (row->number != 0) report_json_put_count("number", row->number, out);
  report_json_put_count("devices", row->num_devices, out);
  report_json_put_count("launches", row->launches, out);
  report_json_put_count("runs", row->runs, out);
  report_json_put_time("seconds", row->time, out);
  report_json_put_time("available", row->available, out);
  report_json_put_time("work", row->work, out);
  report_json_put_time("collective", row->traffic, out);
  report_json_put_time("waiting", row->waiting, out);
  report_json_put_time("idle", row->available > known ? row->available - known : 0, out);
  report_json_put_time("hidden", row->hidden, out);
  report_json_put_time("transfers", row->transfers, out);
  if (row->rhythm.count != 0) {
    report_json_put_time("every", mp_moment_of(row->rhythm.seconds), out);
    report_json_put_time("every_host", mp_moment_of(row->rhythm.host_seconds), out);
  }
  report_json_put_count("meetings", row->collectives, out);
  report_json_put_count("guesses", row->guessed, out);
  report_json_put_space("memory", &row->memory.device, out);
  report_json_put_space("host_memory", &row->memory.host, out);
  report_json_put_link(table, row->link, row->link_bytes, row->link_seconds, out);
  report_json_put_collectives(table, row, out);
  report_json_put_copies(row, out);
  report_json_put_guesses(row, out);
  report_json_put_ops(row, out);
  report_json_put_number(
      "unsure",
      mp_kernel_basis_unsure(table->figures, row->by_figure) * mp_moment_seconds(row->work), out);
  report_json_put_classes(row, out);
  report_json_put_layers(row, out);
  report_json_put_callers(row, out);
  report_json_put_findings(row, out);
  mp_strbuf_putc(out, '}');
}

// ---- Everything ----

static void report_json_put_devices(const mp_report_rows_t *rows, mp_strbuf_t *out) {
  report_json_key(",\n ", "devices", out);
  mp_strbuf_putc(out, '[');
  for (uint32_t i = 0; i < rows->num_devices; ++i) {
    const mp_replay_device_books_t *device = &rows->devices[i];
    mp_strbuf_printf(out, "%s{\"id\": %" PRIu32, i == 0 ? "\n  " : ",\n  ", i);
    report_json_put_time("work", device->work, out);
    report_json_put_time("collective", device->traffic, out);
    report_json_put_time("waiting", device->waiting, out);
    report_json_put_time("hidden", device->hidden, out);
    mp_strbuf_putc(out, '}');
  }
  mp_strbuf_putc(out, ']');
}

// Matmul operations/s of a device, for utilisation; 0: not described.
static void report_json_put_rates(const mp_pod_info_t *info, mp_strbuf_t *out) {
  static const char *const names[] = {
#define MP_FLOP_NAME(name, text) text,
      MP_FLOP_KINDS(MP_FLOP_NAME)
#undef MP_FLOP_NAME
  };
  report_json_key(", ", "flops", out);
  for (int kind = 0; kind < MP_FLOP_KIND_COUNT; ++kind) {
    report_json_key(kind == 0 ? "{" : ", ", names[kind], out);
    mp_strbuf_put_double(out, info->flops[kind]);
  }
  mp_strbuf_putc(out, '}');
}

// Bytes of a device that are described; what is not is this machine's memory.
static void report_json_put_capacity(const mp_pod_t *pod, mp_strbuf_t *out) {
  const mp_pod_device_t *device = mp_pod_device(pod, 0);
  const uint64_t capacity = device->capacity[MP_MEMORY_DEVICE];
  if (device->is_shared[MP_MEMORY_DEVICE] || capacity == UINT64_MAX) return;
  report_json_put_count("device_memory", capacity, out);
}

typedef struct {
  uint32_t count;
  mp_strbuf_t *out;
} json_slow_t;

static void report_json_put_slow(void *context, uint32_t device, double times) {
  json_slow_t *slow = context;
  report_json_key(slow->count++ == 0 ? "\n  {" : ",\n  {", "finding", slow->out);
  mp_strbuf_put_json(slow->out, MP_STR("slow"));
  report_json_put_count("device", device, slow->out);
  report_json_put_number("times", times, slow->out);
  mp_strbuf_putc(slow->out, '}');
}

mp_status_t mp_report_json_print(mp_report_table_t *table, mp_strbuf_t *out) {
  const mp_pod_info_t *info = mp_pod_info(table->pod);
  const uint32_t count = table->rows->programs.count;
  mp_report_table_sort(table);
  report_json_key("{", "pod", out);
  mp_strbuf_put_json(out, mp_str(info->name));
  report_json_put_text("kind", info->kind, out);
  report_json_put_count("num_devices", (uint64_t)info->num_devices, out);
  report_json_put_rates(info, out);
  report_json_put_capacity(table->pod, out);
  if (info->memory_bandwidth > 0) {
    report_json_put_number("memory_bandwidth", info->memory_bandwidth, out);
  }
  report_json_put_time("seconds", table->now, out);
  report_json_put_time("host_seconds", table->host, out);
  report_json_put_number("real_seconds", table->real_seconds, out);
  report_json_put_count("launches", table->launches, out);
  report_json_put_count("transfers", table->transfers, out);
  report_json_put_count("pending", table->pending, out);
  report_json_put_count("lost", table->lost, out);
  report_json_put_devices(table->rows, out);
  report_json_key(",\n ", "findings", out);
  mp_strbuf_putc(out, '[');
  MP_RETURN_IF_ERROR(
      mp_report_advice_slow(table->rows, report_json_put_slow, &(json_slow_t){.out = out}));
  mp_strbuf_puts(out, "],\n \"programs\": ");
  mp_strbuf_putc(out, '[');
  for (uint32_t i = 0; i < count; ++i) {
    if (i != 0) mp_strbuf_putc(out, ',');
    report_json_put_program(table, &table->rows->programs.items[i], out);
  }
  mp_strbuf_puts(out, "]}\n");
  return NULL;
}
