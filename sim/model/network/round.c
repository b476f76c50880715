// All transfers of a collective.
#include "collectives/mailbox.h"
#include "sim/model/network/network.h"

bool mp_network_is_of_pairs(const mp_collective_t *collective) {
  return collective->kind == MP_COLLECTIVE_PERMUTE || collective->kind == MP_COLLECTIVE_SEND_RECV;
}

static mp_status_t round_visit_pairs(mp_network_t *network, const mp_collective_t *collective,
                                     const int32_t *ids, mp_transfer_visitor_t visit,
                                     void *context) {
  const double bytes = (double)mp_message_bytes(collective);
  for (uint32_t i = 0; i < collective->num_pairs; ++i) {
    mp_transfer_t transfer;
    MP_RETURN_IF_ERROR(mp_network_message(network, mp_network_device(ids[collective->pairs[2 * i]]),
                                          mp_network_device(ids[collective->pairs[2 * i + 1]]),
                                          bytes, &transfer));
    visit(context, &transfer);
  }
  return NULL;
}

static mp_status_t round_visit_groups(mp_network_t *network, const mp_collective_t *collective,
                                      const int32_t *ids, mp_transfer_visitor_t visit,
                                      void *context) {
  for (uint32_t g = 0; g < collective->groups->num_groups; ++g) {
    const mp_traffic_t *traffic = NULL;
    MP_RETURN_IF_ERROR(mp_network_traffic(network, collective, g, ids, &traffic));
    for (uint32_t s = 0; s < traffic->num_stages; ++s) {
      const mp_stage_t *stage = &traffic->stages[s];
      for (uint32_t t = 0; t < stage->num_transfers; ++t) visit(context, &stage->transfers[t]);
    }
  }
  return NULL;
}

mp_status_t mp_network_visit_round(mp_network_t *network, const mp_collective_t *collective,
                                   const int32_t *ids, mp_transfer_visitor_t visit, void *context) {
  return mp_network_is_of_pairs(collective)
             ? round_visit_pairs(network, collective, ids, visit, context)
             : round_visit_groups(network, collective, ids, visit, context);
}
