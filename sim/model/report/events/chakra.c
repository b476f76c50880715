#include "sim/model/report/events/chakra.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "collectives/mailbox.h"
#include "sim/base/alloc.h"
#include "sim/base/log.h"
#include "sim/base/os/system.h"
#include "sim/base/proto.h"
#include "sim/model/report/events/chakra_groups.h"
#include "sim/model/report/events/watching.h"

// The fields of Chakra's et_def.proto that are written here.
enum { METADATA_VERSION = 1 };
enum {
  NODE_ID = 1,
  NODE_NAME = 2,
  NODE_TYPE = 3,
  NODE_DATA_DEPS = 5,
  NODE_START_MICROS = 6,
  NODE_DURATION_MICROS = 7,
  NODE_ATTR = 10,
};
enum {
  ATTR_NAME = 1,
  ATTR_INT32 = 7,
  ATTR_INT64 = 9,
  ATTR_UINT64 = 13,
  ATTR_BOOL = 27,
  ATTR_STRING = 29,
};
typedef enum { CHAKRA_COMP = 4, CHAKRA_SEND = 5, CHAKRA_RECV = 6, CHAKRA_COLL = 7 } node_type_t;

// Buffers are written when they are as large as this, or all together as large as the second.
enum { CHAKRA_MOST_BYTES = 1 << 16, CHAKRA_ALL_BYTES = 1 << 26, CHAKRA_LEAST_BYTES = 1 << 10 };

// The trace of a device.
typedef struct {
  mp_strbuf_t buffer;
  uint64_t num_nodes;
  uint32_t same;  // so many calls more belong to the permutation that was written last
} trace_t;

struct mp_chakra_s {
  const mp_model_t *model;
  char *folder;
  uint32_t num_devices;
  size_t most_bytes;  // of a buffer
  trace_t *traces;    // [num_devices]
  mp_chakra_groups_t *groups;
  bool has_failed;  // a write: nothing more is tried
  mp_model_observer_t observer;
};

// ---- Files ----

// Appends the text to a file of the folder, or replaces the file by it.
static void chakra_write(mp_chakra_t *chakra, const char *name, const char *mode,
                         const mp_strbuf_t *text) {
  mp_strbuf_t path;
  mp_strbuf_init(&path);
  mp_strbuf_printf(&path, "%s/%s", chakra->folder, name);
  FILE *file = path.failed || text->failed ? NULL : mp_fopen_out(mp_strbuf_text(&path), mode);
  bool is_written = file != NULL && fwrite(mp_strbuf_text(text), 1, text->size, file) == text->size;
  const int cause = text->failed || path.failed ? ENOMEM : errno;
  if (file != NULL && fclose(file) != 0) is_written = false;
  if (!is_written && !chakra->has_failed) {
    mp_log_notice("the Chakra traces are not complete: cannot write %s: %s", mp_strbuf_text(&path),
                  mp_system_text(cause));
    chakra->has_failed = true;
  }
  mp_strbuf_deinit(&path);
}

static void chakra_flush_device(mp_chakra_t *chakra, uint32_t device, const char *mode) {
  trace_t *trace = &chakra->traces[device];
  if (trace->buffer.size == 0 && !trace->buffer.failed) return;
  char name[48];
  (void)snprintf(name, sizeof(name), "minipod.%" PRIu32 ".et", device);
  if (!chakra->has_failed) chakra_write(chakra, name, mode, &trace->buffer);
  trace->buffer.size = 0;
}

// Writes what is in the buffers, and the list of groups.
static void chakra_flush(mp_chakra_t *chakra) {
  for (uint32_t i = 0; i < chakra->num_devices; ++i) chakra_flush_device(chakra, i, "ab");
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_chakra_groups_print(chakra->groups, &text);
  if (!chakra->has_failed) chakra_write(chakra, "comm_groups.json", "wb", &text);
  mp_strbuf_deinit(&text);
}

// ---- Nodes ----

static void chakra_put_attr(mp_strbuf_t *node, const char *name, uint32_t field, uint64_t value) {
  mp_strbuf_t attr;
  mp_strbuf_init(&attr);
  mp_proto_put_bytes(&attr, ATTR_NAME, mp_str(name));
  mp_proto_put_varint(&attr, field, value);
  mp_proto_put_message(node, NODE_ATTR, &attr);
  mp_strbuf_deinit(&attr);
}

static void chakra_put_text_attr(mp_strbuf_t *node, const char *name, mp_str_t value) {
  mp_strbuf_t attr;
  mp_strbuf_init(&attr);
  mp_proto_put_bytes(&attr, ATTR_NAME, mp_str(name));
  mp_proto_put_bytes(&attr, ATTR_STRING, value);
  mp_proto_put_message(node, NODE_ATTR, &attr);
  mp_strbuf_deinit(&attr);
}

// A node that the caller adds attributes to.
static mp_strbuf_t chakra_begin(const trace_t *trace, node_type_t type, const char *name,
                                const mp_loc_t *loc, mp_moment_t begin, mp_moment_t end) {
  const uint64_t microsecond = 1000000;
  mp_strbuf_t node;
  mp_strbuf_init(&node);
  mp_proto_put_varint(&node, NODE_ID, trace->num_nodes);
  const mp_str_t path = mp_op_path(loc);
  mp_proto_put_bytes(&node, NODE_NAME, path.size != 0 ? path : mp_str(name));
  mp_proto_put_varint(&node, NODE_TYPE, type);
  if (trace->num_nodes != 0) {
    const int64_t before = (int64_t)trace->num_nodes - 1;
    mp_proto_put_packed(&node, NODE_DATA_DEPS, &before, 1);
  }
  mp_proto_put_varint(&node, NODE_START_MICROS, begin / microsecond);
  mp_proto_put_varint(&node, NODE_DURATION_MICROS, (end - begin + microsecond / 2) / microsecond);
  chakra_put_attr(&node, "is_cpu_op", ATTR_BOOL, 0);
  chakra_put_attr(&node, "duration_ps", ATTR_UINT64, end - begin);
  return node;
}

static void chakra_end(mp_chakra_t *chakra, uint32_t device, mp_strbuf_t *node) {
  trace_t *trace = &chakra->traces[device];
  mp_proto_put_delimited(&trace->buffer, node);
  mp_strbuf_deinit(node);
  trace->num_nodes += 1;
  if (trace->buffer.size >= chakra->most_bytes) chakra_flush_device(chakra, device, "ab");
}

static void chakra_put_work(void *context, const mp_step_part_t *part) {
  mp_chakra_t *chakra = context;
  mp_strbuf_t node = chakra_begin(&chakra->traces[part->device], CHAKRA_COMP, part->kernel->name,
                                  part->kernel->op->loc, part->begin, part->end);
  chakra_put_attr(&node, "num_ops", ATTR_INT64, (uint64_t)part->kernel->flops);
  chakra_put_attr(&node, "tensor_size", ATTR_UINT64, (uint64_t)part->kernel->bytes);
  chakra_end(chakra, part->device, &node);
}

static void chakra_on_work(void *context, const mp_model_program_t *program, uint32_t device,
                           uint32_t step, mp_moment_t begin, mp_moment_t end) {
  mp_step_parts(mp_model_program_chip(program), &(mp_step_span_t){step, device, begin, end},
                chakra_put_work, context);
}

// CollectiveCommType by kind.
static uint64_t chakra_comm_type(mp_collective_kind_t kind) {
  enum { ALL_REDUCE = 0, ALL_GATHER = 2, BROADCAST = 5, ALL_TO_ALL = 6, REDUCE_SCATTER = 7 };
  switch (kind) {
    case MP_COLLECTIVE_ALL_REDUCE:
      return ALL_REDUCE;
    case MP_COLLECTIVE_ALL_GATHER:
      return ALL_GATHER;
    case MP_COLLECTIVE_REDUCE_SCATTER:
      return REDUCE_SCATTER;
    case MP_COLLECTIVE_BROADCAST:
      return BROADCAST;
    case MP_COLLECTIVE_ALL_TO_ALL:
    case MP_COLLECTIVE_RAGGED_ALL_TO_ALL:
    case MP_COLLECTIVE_EXCHANGE:
    case MP_COLLECTIVE_PERMUTE:
    case MP_COLLECTIVE_SEND_RECV:
      break;
  }
  return ALL_TO_ALL;
}

// A message, as one of its ends has it. Both ends have the same tag.
static void chakra_put_message(mp_chakra_t *chakra, const mp_chip_collective_t *one,
                               const mp_model_message_t *message, uint32_t tag) {
  const uint32_t device = message->device, other = message->other;
  mp_strbuf_t node =
      chakra_begin(&chakra->traces[device], message->is_send ? CHAKRA_SEND : CHAKRA_RECV, one->name,
                   one->op->loc, message->begin, message->end);
  chakra_put_attr(&node, "comm_src", ATTR_INT32, message->is_send ? device : other);
  chakra_put_attr(&node, "comm_dst", ATTR_INT32, message->is_send ? other : device);
  chakra_put_attr(&node, "comm_tag", ATTR_INT32, tag);
  chakra_put_attr(&node, "comm_size", ATTR_INT64, mp_message_bytes(one->collective));
  chakra_end(chakra, device, &node);
}

static void chakra_put_messages(mp_chakra_t *chakra, const mp_model_program_t *program,
                                const mp_chip_collective_t *one, uint32_t device, mp_moment_t begin,
                                mp_moment_t end) {
  const mp_collective_t *collective = one->collective;
  const int32_t *ids = mp_model_program_ids(program);
  trace_t *trace = &chakra->traces[device];
  if (trace->same != 0) {  // the other ends of what was written already
    trace->same -= 1;
    return;
  }
  for (uint32_t i = 0; i < 2 * collective->num_pairs; ++i) {
    const uint32_t source = (uint32_t)ids[collective->pairs[i & ~1u]];
    const uint32_t target = (uint32_t)ids[collective->pairs[i | 1]];
    const bool is_send = (i & 1) == 0;
    if ((is_send ? source : target) != device) continue;
    trace->same += 1;
    if (source == target) continue;
    const mp_model_message_t message = {.device = device,
                                        .other = is_send ? target : source,
                                        .is_send = is_send,
                                        .begin = begin,
                                        .end = end};
    chakra_put_message(chakra, one, &message, collective->ordinal);
  }
  trace->same -= 1;
}

// Messages of a channel come in the order in which they were sent, so that its number is the tag;
// permutations have small ones. A receive is as long as the device waited.
static void chakra_on_message(void *context, const mp_model_program_t *program,
                              const mp_model_message_t *message) {
  const mp_chip_collective_t *one =
      &mp_model_program_chip(program)->collectives[message->collective];
  const uint32_t channel = (uint32_t)one->collective->channel_id & 0x3fffffff;
  chakra_put_message(context, one, message, 1u << 30 | channel);
}

static void chakra_put_collective(mp_chakra_t *chakra, const mp_model_program_t *program,
                                  const mp_chip_collective_t *one, uint32_t device,
                                  mp_moment_t begin, mp_moment_t end) {
  if (one->collective->kind == MP_COLLECTIVE_SEND_RECV) return;
  if (one->collective->kind == MP_COLLECTIVE_PERMUTE) {
    chakra_put_messages(chakra, program, one, device, begin, end);
    return;
  }
  char group[32];
  (void)snprintf(group, sizeof(group), "%" PRIu32,
                 mp_chakra_group_of(chakra->groups, program, one->collective, device));
  mp_strbuf_t node =
      chakra_begin(&chakra->traces[device], CHAKRA_COLL, one->name, one->op->loc, begin, end);
  chakra_put_attr(&node, "comm_type", ATTR_INT64, chakra_comm_type(one->collective->kind));
  chakra_put_attr(&node, "comm_size", ATTR_INT64, mp_message_bytes(one->collective));
  chakra_put_text_attr(&node, "pg_name", mp_str(group));
  chakra_end(chakra, device, &node);
}

// How long a device waited is not in the trace: simulators find out themselves.
static void chakra_on_meeting(void *context, const mp_model_program_t *program,
                              const mp_model_meeting_t *meeting) {
  const mp_chip_collective_t *one =
      &mp_model_program_chip(program)->collectives[meeting->collective];
  if (one->overlap == MP_OVERLAP_SYNC) {
    chakra_put_collective(context, program, one, meeting->device, meeting->begin, meeting->end);
  }
}

// Overlapped operations are written once, whole.
static void chakra_on_stream(void *context, const mp_model_program_t *program, uint32_t device,
                             uint32_t collective, mp_moment_t begin, mp_moment_t end) {
  mp_chakra_t *chakra = context;
  const mp_chip_collective_t *one = &mp_model_program_chip(program)->collectives[collective];
  chakra_put_collective(chakra, program, one, device, begin, end);
  chakra->traces[device].same = 0;
}

// ---- Making ----

static mp_status_t chakra_make(mp_chakra_t *chakra, const char *folder) {
  const size_t size = strlen(folder);
  chakra->folder = mp_malloc(size + 1);
  MP_RETURN_IF_NULL(chakra->folder);
  memcpy(chakra->folder, folder, size + 1);
  chakra->traces = mp_calloc(chakra->num_devices, sizeof(*chakra->traces));
  MP_RETURN_IF_NULL(chakra->traces);
  MP_RETURN_IF_ERROR(mp_chakra_groups_create(chakra->num_devices, &chakra->groups));
  if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
    return mp_status_make(MP_INVALID_ARGUMENT, "option chakra: cannot make the folder %s: %s",
                          folder, strerror(errno));
  }
  mp_strbuf_t metadata;
  mp_strbuf_init(&metadata);
  mp_proto_put_bytes(&metadata, METADATA_VERSION, MP_STR("0.0.4"));
  for (uint32_t i = 0; i < chakra->num_devices && !chakra->has_failed; ++i) {
    mp_proto_put_delimited(&chakra->traces[i].buffer, &metadata);
    chakra_flush_device(chakra, i, "wb");
  }
  mp_strbuf_deinit(&metadata);
  if (!chakra->has_failed) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT, "option chakra: cannot write into %s", folder);
}

mp_status_t mp_chakra_create(const mp_model_t *model, const char *folder,
                             mp_chakra_t **out_chakra) {
  mp_chakra_t *chakra = mp_calloc(1, sizeof(*chakra));
  MP_RETURN_IF_NULL(chakra);
  chakra->model = model;
  chakra->num_devices = (uint32_t)mp_pod_info(mp_model_pod(model))->num_devices;
  chakra->most_bytes = CHAKRA_ALL_BYTES / chakra->num_devices;
  if (chakra->most_bytes > CHAKRA_MOST_BYTES) chakra->most_bytes = CHAKRA_MOST_BYTES;
  if (chakra->most_bytes < CHAKRA_LEAST_BYTES) chakra->most_bytes = CHAKRA_LEAST_BYTES;
  chakra->observer = mp_watching_silent_observer();
  chakra->observer.on_work = chakra_on_work;
  chakra->observer.on_meeting = chakra_on_meeting;
  chakra->observer.on_stream = chakra_on_stream;
  chakra->observer.on_message = chakra_on_message;
  chakra->observer.context = chakra;
  mp_status_t status = chakra_make(chakra, folder);
  if (status != NULL) {
    chakra->has_failed = true;  // nothing is written any more
    mp_chakra_release(chakra);
    return status;
  }
  *out_chakra = chakra;
  return NULL;
}

const mp_model_observer_t *mp_chakra_observer(const mp_chakra_t *chakra) {
  return &chakra->observer;
}

void mp_chakra_release(mp_chakra_t *chakra) {
  if (chakra == NULL) return;
  if (!chakra->has_failed) chakra_flush(chakra);
  for (uint32_t i = 0; i < chakra->num_devices && chakra->traces != NULL; ++i) {
    mp_strbuf_deinit(&chakra->traces[i].buffer);
  }
  mp_chakra_groups_release(chakra->groups);
  mp_free(chakra->traces);
  mp_free(chakra->folder);
  mp_free(chakra);
}
