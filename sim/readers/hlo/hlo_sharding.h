// Annotations of instructions: shardings (OpSharding) and the frontend's attributes.
#ifndef MINIPOD_SIM_READERS_HLO_HLO_SHARDING_H_
#define MINIPOD_SIM_READERS_HLO_HLO_SHARDING_H_

#include "sim/readers/hlo/hlo_build.h"

// The shardings of `count` values one by one; NULLs when the message is one sharding for all of
// them.
MP_NODISCARD mp_status_t mp_hlo_read_shardings(mp_hlo_t *h, mp_str_t bytes, uint32_t count,
                                               const mp_attr_t **out_attrs);
// FrontendAttributes as a dictionary of texts; NULL when there are none.
MP_NODISCARD mp_status_t mp_hlo_read_frontend(mp_hlo_t *h, mp_str_t bytes,
                                              const mp_attr_t **out_dict);
// The value of one of the instruction's frontend attributes; "" when it is absent.
MP_NODISCARD mp_status_t mp_hlo_frontend_text(mp_hlo_t *h, const mp_hlo_inst_t *inst,
                                              const char *key, mp_str_t *out_text);
// Writes both to the operation of which the leaves are the results, if there is one.
MP_NODISCARD mp_status_t mp_hlo_annotate(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                         mp_hlo_leaves_t leaves);

#endif  // MINIPOD_SIM_READERS_HLO_HLO_SHARDING_H_
