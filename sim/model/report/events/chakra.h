// Execution traces for other simulators: MLCommons' Chakra (schema/protobuf/et_def.proto of version
// 0.0.4), a file for each device.
//
// A file is a row of messages, each behind its size as a varint: a GlobalMetadata, then a Node for
// everything that the device did. Nodes depend on the one before them (`data_deps`). Kernels are
// COMP_NODEs with `num_ops` and `tensor_size`; collectives COMM_COLL_NODEs with `comm_type`,
// `comm_size` and the group that met (`pg_name`), which `comm_groups.json` lists; the messages of
// permutations, sends and receives COMM_SEND_NODEs and COMM_RECV_NODEs. Their durations are those
// of this model, in whole microseconds, for simulators that replay times; others compute their own.
#ifndef MINIPOD_SIM_MODEL_REPORT_EVENTS_CHAKRA_H_
#define MINIPOD_SIM_MODEL_REPORT_EVENTS_CHAKRA_H_

#include "sim/model/clock/model.h"

typedef struct mp_chakra_s mp_chakra_t;

// Makes the folder, if it does not exist, and an empty trace for each device in it:
// `minipod.<device>.et`. INVALID_ARGUMENT when they cannot be written.
MP_NODISCARD mp_status_t mp_chakra_create(const mp_model_t *model, const char *folder,
                                          mp_chakra_t **out_chakra);
// Writes what is left, and the list of groups. NULL has no effect.
void mp_chakra_release(mp_chakra_t *chakra);
// What writes the nodes; called by one thread at a time.
const mp_model_observer_t *mp_chakra_observer(const mp_chakra_t *chakra);

#endif  // MINIPOD_SIM_MODEL_REPORT_EVENTS_CHAKRA_H_
