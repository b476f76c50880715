#include "pjrt/command/topo_matrix.h"

#include <inttypes.h>
#include <stdio.h>

enum { MAX_DEVICES = 1024 };

// The property of paths that a table shows.
typedef enum { HOPS, BANDWIDTH } figure_t;

// Bytes/s of a single message, by the narrowest link; 0: it takes no link.
static double topo_matrix_bandwidth(const mp_network_t *network, const mp_transfer_t *way) {
  double least = 0;
  for (uint32_t i = 0; i < way->num_uses; ++i) {
    const mp_network_use_t *use = &way->uses[i];
    const double rate =
        mp_network_flow_rate(mp_network_link(network, use->link)->bandwidth, use->times);
    if (i == 0 || rate < least) least = rate;
  }
  return least;
}

static void topo_matrix_put_cell(const mp_network_t *network, const mp_transfer_t *way,
                                 figure_t figure, bool is_json, mp_strbuf_t *out) {
  char text[32] = "";
  if (way->num_uses == 0) {
    snprintf(text, sizeof(text), "%s", is_json ? (figure == HOPS ? "0" : "null") : "-");
  } else if (figure == HOPS) {
    snprintf(text, sizeof(text), "%" PRIu32, way->num_uses);
  } else if (is_json) {
    mp_strbuf_put_double(out, topo_matrix_bandwidth(network, way));
  } else {
    snprintf(text, sizeof(text), "%.4g", topo_matrix_bandwidth(network, way) / 1e9);
  }
  mp_strbuf_printf(out, is_json ? "%s" : " %6s", text);
}

static mp_status_t topo_matrix_put_row(mp_network_t *network, int32_t from, figure_t figure,
                                       bool is_json, mp_strbuf_t *out) {
  const int32_t count = mp_pod_info(mp_network_pod(network))->num_devices;
  for (int32_t to = 0; to < count; ++to) {
    mp_transfer_t way = {0};
    if (to != from) {
      MP_RETURN_IF_ERROR(
          mp_network_message(network, mp_network_device(from), mp_network_device(to), 1, &way));
    }
    if (is_json && to != 0) mp_strbuf_puts(out, ", ");
    topo_matrix_put_cell(network, &way, figure, is_json, out);
  }
  return NULL;
}

static mp_status_t topo_matrix_put_table(mp_network_t *network, figure_t figure, mp_strbuf_t *out) {
  const int32_t count = mp_pod_info(mp_network_pod(network))->num_devices;
  mp_strbuf_puts(out, figure == HOPS ? "hops\n      " : "\nGB/s\n      ");
  for (int32_t to = 0; to < count; ++to) mp_strbuf_printf(out, " %6" PRId32, to);
  for (int32_t from = 0; from < count; ++from) {
    mp_strbuf_printf(out, "\n%6" PRId32, from);
    MP_RETURN_IF_ERROR(topo_matrix_put_row(network, from, figure, false, out));
  }
  mp_strbuf_putc(out, '\n');
  return NULL;
}

static mp_status_t topo_matrix_put_json(mp_network_t *network, figure_t figure, mp_strbuf_t *out) {
  const int32_t count = mp_pod_info(mp_network_pod(network))->num_devices;
  mp_strbuf_puts(out, figure == HOPS ? "{\"hops\": [" : ",\n \"bandwidth\": [");
  for (int32_t from = 0; from < count; ++from) {
    mp_strbuf_puts(out, from == 0 ? "[" : ",\n  [");
    MP_RETURN_IF_ERROR(topo_matrix_put_row(network, from, figure, true, out));
    mp_strbuf_putc(out, ']');
  }
  mp_strbuf_puts(out, figure == HOPS ? "]" : "]}\n");
  return NULL;
}

mp_status_t mp_topo_matrix_write(mp_network_t *network, bool is_json, mp_strbuf_t *out) {
  const int32_t count = mp_pod_info(mp_network_pod(network))->num_devices;
  if (count > MAX_DEVICES) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "a matrix of %" PRId32 " devices is too large to read: at most %d", count,
                          MAX_DEVICES);
  }
  if (is_json) {
    MP_RETURN_IF_ERROR(topo_matrix_put_json(network, HOPS, out));
    return topo_matrix_put_json(network, BANDWIDTH, out);
  }
  MP_RETURN_IF_ERROR(topo_matrix_put_table(network, HOPS, out));
  return topo_matrix_put_table(network, BANDWIDTH, out);
}
