#include "sim/model/report/report_links.h"

#include "collectives/mailbox.h"

mp_busiest_t mp_busiest_of(const mp_network_t *network, const double *bytes, uint32_t count) {
  mp_busiest_t busiest = {.link = -1};
  for (uint32_t i = 0; i < count; ++i) {
    const double seconds = bytes[i] / mp_network_link(network, i)->bandwidth;
    if (seconds > busiest.seconds) busiest = (mp_busiest_t){i, bytes[i], seconds};
  }
  return busiest;
}

static bool report_links_has_pairs(const mp_collective_t *collective) {
  return collective->kind == MP_COLLECTIVE_PERMUTE || collective->kind == MP_COLLECTIVE_SEND_RECV;
}

uint32_t mp_report_collective_round(const mp_collective_t *collective) {
  return report_links_has_pairs(collective) ? collective->num_pairs
                                            : collective->groups->num_groups;
}

static mp_status_t report_links_add_pairs(mp_network_t *network, const mp_collective_t *collective,
                                          const int32_t *ids, double *bytes) {
  const double size = (double)mp_message_bytes(collective);
  for (uint32_t i = 0; i < collective->num_pairs; ++i) {
    mp_transfer_t transfer;
    MP_RETURN_IF_ERROR(mp_network_message(network, mp_network_device(ids[collective->pairs[2 * i]]),
                                          mp_network_device(ids[collective->pairs[2 * i + 1]]),
                                          size, &transfer));
    mp_transfer_add_bytes(&transfer, bytes);
  }
  return NULL;
}

static mp_status_t report_links_add_groups(mp_network_t *network, const mp_collective_t *collective,
                                           const int32_t *ids, double *bytes) {
  for (uint32_t g = 0; g < collective->groups->num_groups; ++g) {
    const mp_traffic_t *traffic = NULL;
    MP_RETURN_IF_ERROR(mp_network_traffic(network, collective, g, ids, &traffic));
    for (uint32_t s = 0; s < traffic->num_stages; ++s) {
      const mp_stage_t *stage = &traffic->stages[s];
      for (uint32_t t = 0; t < stage->num_transfers; ++t) {
        mp_transfer_add_bytes(&stage->transfers[t], bytes);
      }
    }
  }
  return NULL;
}

mp_status_t mp_busiest_of_collective(mp_network_t *network, const mp_collective_t *collective,
                                     const int32_t *ids, double *scratch,
                                     mp_busiest_t *out_busiest) {
  mp_status_t status = report_links_has_pairs(collective)
                           ? report_links_add_pairs(network, collective, ids, scratch)
                           : report_links_add_groups(network, collective, ids, scratch);
  const uint32_t count = mp_network_num_links(network);
  if (status == NULL) *out_busiest = mp_busiest_of(network, scratch, count);
  memset(scratch, 0, count * sizeof(*scratch));
  return status;
}
