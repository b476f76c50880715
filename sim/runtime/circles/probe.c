#include "sim/runtime/circles/probe.h"

#include <inttypes.h>

enum { MP_MAX_SHOWN = 8 };  // hops in a message; others are counted

// The layout of a packet: the head, then each hop followed by its text. All processes of a
// job run the same build, so structs may be sent.
typedef struct {
  uint64_t round, changes, num_hops;
} head_t;

typedef struct {
  uint64_t devices, number;
  uint32_t rank, logical, text_bytes, unused;
} hop_t;

bool mp_probe_read(const void *bytes, size_t size, mp_probe_t *out_probe) {
  const char *at = bytes;
  head_t head;
  if (size < sizeof(head)) return false;
  memcpy(&head, at, sizeof(head));
  at += sizeof(head);
  size -= sizeof(head);
  if (head.num_hops == 0 || head.num_hops > MP_PROBE_HOPS) return false;
  out_probe->round = head.round;
  out_probe->changes = head.changes;
  out_probe->num_hops = (uint32_t)head.num_hops;
  for (uint32_t i = 0; i < out_probe->num_hops; ++i) {
    hop_t hop;
    if (size < sizeof(hop)) return false;
    memcpy(&hop, at, sizeof(hop));
    at += sizeof(hop);
    size -= sizeof(hop);
    if (size < hop.text_bytes) return false;
    out_probe->hops[i] =
        (mp_probe_hop_t){hop.rank, hop.logical, hop.devices, hop.number, {at, hop.text_bytes}};
    at += hop.text_bytes;
    size -= hop.text_bytes;
  }
  return true;
}

void mp_probe_write(const mp_probe_t *probe, mp_strbuf_t *out) {
  const head_t head = {probe->round, probe->changes, probe->num_hops};
  mp_strbuf_append(out, (const char *)&head, sizeof(head));
  for (uint32_t i = 0; i < probe->num_hops; ++i) {
    const mp_probe_hop_t *from = &probe->hops[i];
    const hop_t hop = {
        from->devices, from->number, from->rank, from->logical, (uint32_t)from->text.size, 0};
    mp_strbuf_append(out, (const char *)&hop, sizeof(hop));
    mp_strbuf_append(out, from->text.data, from->text.size);
  }
}

// The hop with which messages begin: the lowest process, and of its launches the first.
static uint32_t probe_find_first(const mp_probe_t *probe) {
  uint32_t first = 0;
  for (uint32_t i = 1; i < probe->num_hops; ++i) {
    const mp_probe_hop_t *a = &probe->hops[i], *b = &probe->hops[first];
    if (a->rank != b->rank ? a->rank < b->rank : a->number < b->number) first = i;
  }
  return first;
}

void mp_probe_describe(const mp_probe_t *probe, mp_strbuf_t *out) {
  const uint32_t first = probe_find_first(probe);
  mp_strbuf_puts(out,
                 "collectives are stuck: each of these processes waits for the next one, and "
                 "the last one for the first: ");
  for (uint32_t i = 0; i < probe->num_hops && i < MP_MAX_SHOWN; ++i) {
    const mp_probe_hop_t *hop = &probe->hops[(first + i) % probe->num_hops];
    mp_strbuf_puts(out, i == 0 ? "" : "; ");
    mp_strbuf_append(out, hop->text.data, hop->text.size);
  }
  if (probe->num_hops > MP_MAX_SHOWN) {
    mp_strbuf_printf(out, "; and %" PRIu32 " more", probe->num_hops - MP_MAX_SHOWN);
  }
}
