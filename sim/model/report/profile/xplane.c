#include "sim/model/report/profile/xplane.h"

#include "sim/base/proto.h"

// The fields of tsl's xplane.proto that are written here.
enum { SPACE_PLANES = 1 };
enum {
  PLANE_ID = 1,
  PLANE_NAME = 2,
  PLANE_LINES = 3,
  PLANE_EVENT_METADATA = 4,
  PLANE_STAT_METADATA = 5,
  PLANE_STATS = 6,
};
enum { LINE_ID = 1, LINE_NAME = 2, LINE_TIMESTAMP_NS = 3, LINE_EVENTS = 4 };
enum { EVENT_METADATA_ID = 1, EVENT_OFFSET_PS = 2, EVENT_DURATION_PS = 3, EVENT_STATS = 4 };
enum { METADATA_ID = 1, METADATA_NAME = 2, METADATA_DISPLAY_NAME = 4, METADATA_STATS = 5 };
enum {
  STAT_METADATA_ID = 1,
  STAT_DOUBLE = 2,
  STAT_UINT64 = 3,
  STAT_INT64 = 4,
  STAT_TEXT = 5,
  STAT_BYTES = 6,
};
enum { MAP_KEY = 1, MAP_VALUE = 2 };

static const char *const k_stats[] = {"",
#define MP_XPLANE_STAT_TEXT(name, text) text,
                                      MP_XPLANE_STATS(MP_XPLANE_STAT_TEXT)
#undef MP_XPLANE_STAT_TEXT
};

void mp_xplane_init(mp_xplane_t *plane, int64_t start) {
  *plane = (mp_xplane_t){.start = start};
}

void mp_xplane_deinit(mp_xplane_t *plane) {
  for (uint32_t i = 0; i < MP_XPLANE_LINES; ++i) mp_strbuf_deinit(&plane->lines[i].events);
  mp_strbuf_deinit(&plane->names);
  mp_strbuf_deinit(&plane->stats);
  MP_HASH_MAP_FREE(&plane->known);
}

bool mp_xplane_is_named(mp_xplane_t *plane, uint64_t number) {
  const mp_xplane_known_t *entry;
  return MP_HASH_MAP_GET(&plane->known, number, entry) != NULL;
}

static void xplane_put_stat(mp_strbuf_t *owner, uint32_t field, const mp_xplane_stat_t *stat) {
  mp_strbuf_t message;
  mp_strbuf_init(&message);
  mp_proto_put_varint(&message, STAT_METADATA_ID, stat->id);
  switch (stat->kind) {
    case MP_XPLANE_TEXT:
      mp_proto_put_bytes(&message, STAT_TEXT, stat->text);
      break;
    case MP_XPLANE_BYTES:
      mp_proto_put_bytes(&message, STAT_BYTES, stat->text);
      break;
    case MP_XPLANE_NUMBER:
      mp_proto_put_varint(&message, STAT_UINT64, stat->number);
      break;
    case MP_XPLANE_SIGNED:
      mp_proto_put_varint(&message, STAT_INT64, stat->number);
      break;
    case MP_XPLANE_RATE:
      mp_proto_put_double(&message, STAT_DOUBLE, stat->rate);
      break;
  }
  mp_proto_put_message(owner, field, &message);
  mp_strbuf_deinit(&message);
}

// An entry of a map from numbers to messages.
static void xplane_put_entry(mp_strbuf_t *plane, uint32_t field, uint64_t key,
                             const mp_strbuf_t *value) {
  mp_strbuf_t entry;
  mp_strbuf_init(&entry);
  mp_proto_put_varint(&entry, MAP_KEY, key);
  mp_proto_put_message(&entry, MAP_VALUE, value);
  mp_proto_put_message(plane, field, &entry);
  mp_strbuf_deinit(&entry);
}

void mp_xplane_put_name(mp_xplane_t *plane, uint64_t number, mp_str_t name, mp_str_t short_name,
                        uint32_t num_stats, const mp_xplane_stat_t *stats) {
  if (mp_xplane_is_named(plane, number)) return;
  mp_status_t status = MP_HASH_MAP_ADD(NULL, &plane->known, &(mp_xplane_known_t){number});
  plane->has_failed |= status != NULL;
  mp_status_release(status);
  plane->is_used = true;
  mp_strbuf_t metadata;
  mp_strbuf_init(&metadata);
  mp_proto_put_varint(&metadata, METADATA_ID, number);
  mp_proto_put_bytes(&metadata, METADATA_NAME, name);
  if (short_name.size != 0) mp_proto_put_bytes(&metadata, METADATA_DISPLAY_NAME, short_name);
  for (uint32_t i = 0; i < num_stats; ++i) xplane_put_stat(&metadata, METADATA_STATS, &stats[i]);
  xplane_put_entry(&plane->names, PLANE_EVENT_METADATA, number, &metadata);
  mp_strbuf_deinit(&metadata);
}

void mp_xplane_put_stat(mp_xplane_t *plane, const mp_xplane_stat_t *stat) {
  xplane_put_stat(&plane->stats, PLANE_STATS, stat);
}

void mp_xplane_put_event(mp_xplane_t *plane, uint32_t line, const char *line_name,
                         const mp_xplane_event_t *event) {
  mp_strbuf_t message;
  mp_strbuf_init(&message);
  mp_proto_put_varint(&message, EVENT_METADATA_ID, event->number);
  mp_proto_put_varint(&message, EVENT_OFFSET_PS, event->begin);
  mp_proto_put_varint(&message, EVENT_DURATION_PS, event->duration);
  for (uint32_t i = 0; i < event->num_stats; ++i) {
    xplane_put_stat(&message, EVENT_STATS, &event->stats[i]);
  }
  mp_proto_put_message(&plane->lines[line].events, LINE_EVENTS, &message);
  mp_strbuf_deinit(&message);
  plane->lines[line].name = line_name;
  plane->is_used = true;
}

size_t mp_xplane_bytes(const mp_xplane_t *plane) {
  size_t bytes = plane->names.size;
  for (uint32_t i = 0; i < MP_XPLANE_LINES; ++i) bytes += plane->lines[i].events.size;
  return bytes;
}

static void xplane_print_line(const mp_xplane_t *plane, uint32_t line, mp_strbuf_t *message) {
  const mp_strbuf_t *events = &plane->lines[line].events;
  if (plane->lines[line].name == NULL) return;
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_proto_put_varint(&text, LINE_ID, line + 1);
  mp_proto_put_bytes(&text, LINE_NAME, mp_str(plane->lines[line].name));
  mp_proto_put_varint(&text, LINE_TIMESTAMP_NS, (uint64_t)plane->start);
  mp_strbuf_append(&text, mp_strbuf_text(events), events->size);
  text.failed |= events->failed;
  mp_proto_put_message(message, PLANE_LINES, &text);
  mp_strbuf_deinit(&text);
}

void mp_xplane_print(const mp_xplane_t *plane, uint64_t id, const char *name, mp_strbuf_t *space) {
  mp_strbuf_t message;
  mp_strbuf_init(&message);
  mp_proto_put_varint(&message, PLANE_ID, id);
  mp_proto_put_bytes(&message, PLANE_NAME, mp_str(name));
  for (uint32_t i = 0; i < MP_XPLANE_LINES; ++i) xplane_print_line(plane, i, &message);
  mp_strbuf_append(&message, mp_strbuf_text(&plane->names), plane->names.size);
  for (uint32_t i = 1; i < MP_XPLANE_STAT_END; ++i) {
    mp_strbuf_t metadata;
    mp_strbuf_init(&metadata);
    mp_proto_put_varint(&metadata, METADATA_ID, i);
    mp_proto_put_bytes(&metadata, METADATA_NAME, mp_str(k_stats[i]));
    xplane_put_entry(&message, PLANE_STAT_METADATA, i, &metadata);
    mp_strbuf_deinit(&metadata);
  }
  mp_strbuf_append(&message, mp_strbuf_text(&plane->stats), plane->stats.size);
  message.failed |= plane->names.failed || plane->stats.failed || plane->has_failed;
  mp_proto_put_message(space, SPACE_PLANES, &message);
  mp_strbuf_deinit(&message);
}
