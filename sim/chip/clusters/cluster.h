// Clusters: the ops of which a real accelerator's compiler would make one kernel, and the bytes
// that this kernel moves through memory. README.md has the rules. Private to sim/chip.
#ifndef MINIPOD_SIM_CHIP_CLUSTERS_CLUSTER_H_
#define MINIPOD_SIM_CHIP_CLUSTERS_CLUSTER_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/containers/array.h"
#include "sim/base/containers/hash_map.h"
#include "sim/work/work.h"

#define MP_CLUSTER_NONE UINT32_MAX

typedef struct {
  const mp_op_t *leader;  // the op whose work makes it a kernel of its own; else the last one
  const mp_block_t *block;
  mp_work_t work;  // of all its ops
  bool has_hero;   // the leader is a product, a reduction or the like, of which a kernel has one
  double count;    // elements of the largest result
  double bytes;    // that it reads and writes
  uint32_t first_member;  // in `members`
} mp_cluster_t;

typedef struct {
  const mp_op_t *op;
  uint32_t next;  // the next member of its cluster; MP_CLUSTER_NONE at its end
} mp_cluster_member_t;

typedef struct {
  uint64_t hash;  // mp_hash_pointer of the op
  uint32_t cluster;
} mp_cluster_entry_t;

typedef struct {
  MP_ARRAY(mp_cluster_t) clusters;
  MP_ARRAY(mp_cluster_member_t) members;
  MP_HASH_MAP(mp_cluster_entry_t) of_op;  // by number; no entry: users of the op's result make it
} mp_clusters_t;

// Finds the clusters of main's ops, those in its control flow among them. What is found lies in
// `arena`. The only error is that memory is short.
MP_NODISCARD mp_status_t mp_clusters_find(const mp_module_t *module, mp_arena_t *arena,
                                          mp_clusters_t *out_clusters);

// The cluster of an op; NULL if it has none.
const mp_cluster_t *mp_cluster_of(const mp_clusters_t *clusters, const mp_op_t *op);

#endif  // MINIPOD_SIM_CHIP_CLUSTERS_CLUSTER_H_
