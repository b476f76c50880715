#include "sim/model/report/report_links.h"

mp_busiest_t mp_busiest_of(const mp_network_t *network, const double *bytes, uint32_t count) {
  mp_busiest_t busiest = {.link = -1};
  for (uint32_t i = 0; i < count; ++i) {
    const double seconds = mp_network_link_seconds(mp_network_link(network, i), bytes[i]);
    if (seconds > busiest.seconds) busiest = (mp_busiest_t){i, bytes[i], seconds};
  }
  return busiest;
}

uint32_t mp_report_collective_round(const mp_collective_t *collective) {
  return mp_network_is_of_pairs(collective) ? collective->num_pairs
                                            : collective->groups->num_groups;
}

static void report_links_add(void *bytes, const mp_transfer_t *transfer) {
  mp_transfer_add_bytes(transfer, bytes);
}

mp_status_t mp_busiest_of_collective(mp_network_t *network, const mp_collective_t *collective,
                                     const int32_t *ids, double *scratch,
                                     mp_busiest_t *out_busiest) {
  mp_status_t status = mp_network_visit_round(network, collective, ids, report_links_add, scratch);
  const uint32_t count = mp_network_num_links(network);
  if (status == NULL) *out_busiest = mp_busiest_of(network, scratch, count);
  memset(scratch, 0, count * sizeof(*scratch));
  return status;
}
