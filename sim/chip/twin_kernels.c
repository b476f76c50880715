// From clusters of ops to the chip's kernels.
#include "sim/chip/cost/irregular_cost.h"
#include "sim/chip/cost/kernel_cost.h"
#include "sim/chip/twin_impl.h"

// The bytes that the ops of a cluster copy: before they change arrays in place, and into other
// tiles.
static double twin_kernels_bytes_copied(const mp_twin_builder_t *b, const mp_cluster_t *cluster) {
  double bytes = 0;
  for (uint32_t at = cluster->first_member; at != MP_CLUSTER_NONE;) {
    const mp_cluster_member_t *member = &b->clusters.members.items[at];
    bytes += mp_twin_bytes_kept(b, member->op) + mp_twin_bytes_split(b, member->op);
    at = member->next;
  }
  return bytes;
}

static double twin_kernels_seconds(const mp_twin_builder_t *b, const mp_cluster_t *cluster,
                                   double bytes, const mp_ring_product_t *ring) {
  return ring != NULL ? mp_ring_seconds(b->chip, &b->clusters, cluster, bytes, ring)
                      : mp_kernel_seconds(b->chip, &b->clusters, cluster, bytes);
}

double mp_twin_kernel_seconds(const mp_twin_builder_t *b, const mp_op_t *op,
                              const mp_ring_product_t *ring) {
  const mp_cluster_t *cluster = mp_cluster_at(&b->clusters, op);
  return cluster == NULL ? 0 : twin_kernels_seconds(b, cluster, cluster->bytes, ring);
}

// Transposes alone: on a TPU they move nothing, since layouts are copied where they differ.
static bool twin_kernels_moves_nothing(const mp_twin_builder_t *b, const mp_cluster_t *cluster) {
  if (b->chip->figures.compiler != MP_CHIP_COMPILER_TPU) return false;
  uint32_t at = cluster->first_member;
  while (at != MP_CLUSTER_NONE && b->clusters.members.items[at].op->code == MP_OP_TRANSPOSE) {
    at = b->clusters.members.items[at].next;
  }
  return at == MP_CLUSTER_NONE;
}

mp_status_t mp_twin_add_kernel(mp_twin_builder_t *b, const mp_op_t *op,
                               const mp_ring_product_t *ring) {
  const mp_cluster_t *cluster = mp_cluster_at(&b->clusters, op);
  if (cluster == NULL) return NULL;
  if (twin_kernels_moves_nothing(b, cluster)) return NULL;
  for (uint32_t at = cluster->first_member; at != MP_CLUSTER_NONE;) {
    const mp_cluster_member_t *member = &b->clusters.members.items[at];
    MP_RETURN_IF_ERROR(mp_twin_add_layout_copies(b, member->op));
    at = member->next;
  }
  MP_RETURN_IF_ERROR(mp_twin_turn_factors(b, cluster->leader));
  MP_RETURN_IF_ERROR(mp_twin_pad_factors(b, cluster->leader));
  const mp_work_t *work = &cluster->work;
  const double bytes = cluster->bytes + twin_kernels_bytes_copied(b, cluster);
  const mp_twin_kernel_t kernel = {
      .op = cluster->leader,
      .name = mp_twin_name(cluster->leader),
      .work_class = work->work_class,
      .kind = work->product.batch > 0 ? mp_chip_flop_kind(work->product.dtype) : MP_FLOP_F32,
      .flops =
          work->work_class == MP_WORK_FOREIGN ? mp_foreign_flops(cluster->leader) : work->flops,
      .transcendentals = work->transcendentals,
      .bytes = bytes,
      .seconds = twin_kernels_seconds(b, cluster, bytes, ring),
  };
  return mp_twin_put_kernel(b, &kernel);
}
