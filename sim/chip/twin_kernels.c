// From clusters of ops to the chip's kernels.
#include <string.h>

#include "sim/chip/cost/kernel_cost.h"
#include "sim/chip/twin_impl.h"

const char *mp_twin_name(const mp_op_t *op) {
  const char *name = mp_op_info(op->code)->name, *dot = strchr(name, '.');
  return dot == NULL ? name : dot + 1;
}

// Adds a kernel to the last step, or to a new one.
static mp_status_t twin_kernels_add(mp_twin_builder_t *b, const mp_twin_kernel_t *kernel) {
  const uint32_t number = b->kernels.count;
  const mp_twin_kind_t kind = b->is_in_part ? MP_TWIN_PART : MP_TWIN_WORK;
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(b->arena, &b->kernels, *kernel));
  mp_twin_step_t *last = b->steps.count == 0 ? NULL : &b->steps.items[b->steps.count - 1];
  if (last == NULL || last->kind != kind || last->op != NULL || b->must_begin) {
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(
        b->arena, &b->steps, (mp_twin_step_t){.kind = kind, .first = number, .rounds = -1}));
    last = &b->steps.items[b->steps.count - 1];
    b->must_begin = false;
  }
  last->end = number + 1;
  last->time += mp_moment_of(kernel->seconds);
  return NULL;
}

// The bytes that the ops of a cluster copy before they change arrays in place.
static double twin_kernels_bytes_kept(const mp_twin_builder_t *b, const mp_cluster_t *cluster) {
  double bytes = 0;
  for (uint32_t at = cluster->first_member; at != MP_CLUSTER_NONE;) {
    const mp_cluster_member_t *member = &b->clusters.members.items[at];
    bytes += mp_twin_bytes_kept(b, member->op);
    at = member->next;
  }
  return bytes;
}

double mp_twin_kernel_seconds(const mp_twin_builder_t *b, const mp_op_t *op) {
  const mp_cluster_t *cluster = mp_cluster_at(&b->clusters, op);
  if (cluster == NULL) return 0;
  return mp_kernel_seconds(b->chip, &b->clusters, cluster, cluster->bytes);
}

mp_status_t mp_twin_add_kernel(mp_twin_builder_t *b, const mp_op_t *op) {
  const mp_cluster_t *cluster = mp_cluster_at(&b->clusters, op);
  if (cluster == NULL) return NULL;
  const mp_work_t *work = &cluster->work;
  const double bytes = cluster->bytes + twin_kernels_bytes_kept(b, cluster);
  const mp_twin_kernel_t kernel = {
      .op = cluster->leader,
      .name = mp_twin_name(cluster->leader),
      .work_class = work->work_class,
      .kind = work->product.batch > 0 ? mp_chip_flop_kind(work->product.dtype) : MP_FLOP_F32,
      .flops = work->flops,
      .transcendentals = work->transcendentals,
      .bytes = bytes,
      .seconds = mp_kernel_seconds(b->chip, &b->clusters, cluster, bytes),
  };
  return twin_kernels_add(b, &kernel);
}

mp_status_t mp_twin_add_copy(mp_twin_builder_t *b, const mp_op_t *op, double bytes) {
  enum { SCALAR_BYTES = 16 };
  if (bytes == 0) return NULL;
  const mp_work_t work = {.work_class = bytes <= 2 * SCALAR_BYTES ? MP_WORK_SCALAR : MP_WORK_COPY};
  const bool is_scalar = work.work_class == MP_WORK_SCALAR;
  const double seconds =
      is_scalar ? mp_kernel_scalar_seconds(b->chip) : mp_kernel_copy_seconds(b->chip, bytes);
  return twin_kernels_add(b, &(mp_twin_kernel_t){.op = op,
                                                 .name = "copy",
                                                 .work_class = work.work_class,
                                                 .kind = MP_FLOP_F32,
                                                 .bytes = bytes,
                                                 .seconds = seconds});
}

mp_status_t mp_twin_add_scalar(mp_twin_builder_t *b, const mp_op_t *op) {
  const mp_work_t work = {.work_class = MP_WORK_SCALAR};
  return twin_kernels_add(b, &(mp_twin_kernel_t){.op = op,
                                                 .name = mp_twin_name(op),
                                                 .work_class = work.work_class,
                                                 .kind = MP_FLOP_F32,
                                                 .seconds = mp_kernel_scalar_seconds(b->chip)});
}
