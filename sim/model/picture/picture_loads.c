// Loads of links as text: from a report of a run, or written by hand.
#include "sim/base/alloc.h"
#include "sim/base/containers/hash_map.h"
#include "sim/base/hash.h"
#include "sim/model/picture/picture.h"

typedef struct {
  uint64_t hash;  // of the name
  uint32_t link;
} named_link_t;

typedef MP_HASH_MAP(named_link_t) named_links_t;

static mp_status_t picture_loads_index(const mp_network_t *network, named_links_t *links) {
  for (uint32_t i = 0; i < mp_network_num_links(network); ++i) {
    const char *name = mp_network_link(network, i)->name;
    MP_RETURN_IF_ERROR(
        MP_HASH_MAP_ADD(NULL, links, &(named_link_t){mp_hash_bytes(0, name, strlen(name)), i}));
  }
  return NULL;
}

// "0.83" or "83 %", from 0.
static bool picture_loads_parse(mp_str_t text, double *out_load) {
  double load = 0;
  const size_t used = mp_str_scan_double(text, &load);
  if (used == 0 || !(load >= 0 && load < 1e9)) return false;
  const mp_str_t unit = mp_str_trim((mp_str_t){text.data + used, text.size - used});
  if (unit.size != 0 && !mp_str_is(unit, "%")) return false;
  *out_load = unit.size == 0 ? load : load / 100;
  return true;
}

MP_NODISCARD static mp_status_t picture_loads_refuse_name(const mp_network_t *network,
                                                          const char *origin, int line,
                                                          mp_str_t name) {
  const uint32_t count = mp_network_num_links(network);
  const char **names = mp_calloc(count, sizeof(*names));
  MP_RETURN_IF_NULL(names);
  for (uint32_t i = 0; i < count; ++i) names[i] = mp_network_link(network, i)->name;
  const char *nearest = name.size > 64 ? NULL : mp_str_nearest(name, names, count);
  mp_status_t status =
      mp_status_make(MP_INVALID_ARGUMENT, "%s:%d: no link '%.*s' in this pod%s%s%s", origin, line,
                     MP_STR_SHOWN(name, 64), nearest == NULL ? "" : ", did you mean '",
                     nearest == NULL ? "" : nearest, nearest == NULL ? "" : "'?");
  mp_free(names);
  return status;
}

static mp_status_t picture_loads_read_line(const mp_network_t *network, const named_links_t *links,
                                           const char *origin, int line, mp_str_t text,
                                           double *loads) {
  // Names have neither colons nor tabs, so that the last one ends the name.
  size_t end = text.size;
  while (end > 0 && text.data[end - 1] != ':' && text.data[end - 1] != '\t') --end;
  mp_str_t name = mp_str_trim((mp_str_t){text.data, end == 0 ? 0 : end - 1});
  if (name.size > 0 && name.data[name.size - 1] == ':') --name.size;  // there were both
  const mp_str_t value = mp_str_trim((mp_str_t){text.data + end, text.size - end});
  double load = 0;
  if (name.size == 0 || !picture_loads_parse(value, &load)) {
    return mp_status_make(
        MP_INVALID_ARGUMENT,
        "%s:%d: expected a link and its load, such as 'host 3 up: 0.83' or 'host 3 up: 83 %%', got "
        "'%.*s'",
        origin, line, MP_STR_SHOWN(text, 64));
  }
  const named_link_t *entry = NULL;
  MP_HASH_MAP_EACH(links, mp_hash_bytes(0, name.data, name.size), entry) {
    if (!mp_str_is(name, mp_network_link(network, entry->link)->name)) continue;
    loads[entry->link] = load;
    return NULL;
  }
  return picture_loads_refuse_name(network, origin, line, name);
}

mp_status_t mp_picture_read_loads(const mp_network_t *network, const char *origin, mp_str_t text,
                                  double *out_loads) {
  named_links_t links = {0};
  mp_status_t status = picture_loads_index(network, &links);
  for (uint32_t i = 0; i < mp_network_num_links(network); ++i) out_loads[i] = 0;
  for (int line = 1; text.size != 0 && status == NULL; ++line) {
    mp_str_t words = mp_str_cut(&text, '\n');
    words = mp_str_trim(mp_str_cut(&words, '#'));
    if (words.size == 0) continue;
    status = picture_loads_read_line(network, &links, origin, line, words, out_loads);
  }
  MP_HASH_MAP_FREE(&links);
  return status;
}
