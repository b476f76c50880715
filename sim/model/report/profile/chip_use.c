#include "sim/model/report/profile/chip_use.h"

#include "sim/base/proto.h"

// Where a TPU's profiler puts shares. What collects a profile makes one plane of this and the
// host's own, which has the same name.
static const char k_host_plane[] = "/host:CPU";

mp_chip_use_t mp_chip_use_make(const mp_model_t *model, mp_moment_t begin) {
  const mp_pod_info_t *info = mp_pod_info(mp_model_pod(model));
  const mp_chip_t *chip = mp_model_chip(model);
  // XProf's shares of the peak and its roofline are by these, so they are those that are described,
  // not those that kernels come to.
  const double flops = info->flops[MP_FLOP_BF16], bandwidth = info->memory_bandwidth;
  return (mp_chip_use_t){
      .info = info,
      .peak_flops = flops > 0 ? flops : chip->flops[MP_FLOP_BF16],
      .peak_bandwidth = bandwidth > 0 ? bandwidth : chip->memory_bandwidth,
      .begin = begin,
  };
}

// ---- What a device is ----

// CoreDetails of XProf's op_stats.proto: without it the pod viewer leaves the device out.
static void chip_use_print_core(uint32_t device, const mp_pod_info_t *info, mp_strbuf_t *out) {
  enum { CORE_DEVICE = 2, CORE_NUM = 3, CORE_LOCAL_CHIP = 4, CORE_CHIP = 5, CORE_GLOBAL = 6 };
  const uint32_t cores = info->cores_per_chip > 1 ? (uint32_t)info->cores_per_chip : 1;
  mp_proto_put_varint(out, CORE_DEVICE, device);
  mp_proto_put_varint(out, CORE_NUM, device % cores);
  mp_proto_put_varint(out, CORE_LOCAL_CHIP, device / cores);
  mp_proto_put_varint(out, CORE_CHIP, device / cores);
  mp_proto_put_varint(out, CORE_GLOBAL, device);
}

void mp_chip_use_describe(const mp_chip_use_t *use, uint32_t device, mp_xplane_t *plane) {
  mp_strbuf_t core;
  mp_strbuf_init(&core);
  chip_use_print_core(device, use->info, &core);
  const mp_xplane_stat_t stats[] = {
      {.id = MP_XPLANE_DEVICE_TYPE, .text = mp_str(use->info->kind)},
      {.id = MP_XPLANE_PEAK_TFLOPS, .kind = MP_XPLANE_RATE, .rate = 1e-12 * use->peak_flops},
      {.id = MP_XPLANE_PEAK_HBM, .kind = MP_XPLANE_RATE, .rate = 1e-9 * use->peak_bandwidth},
      {.id = MP_XPLANE_CORE_DETAILS,
       .kind = MP_XPLANE_BYTES,
       .text = {mp_strbuf_text(&core), core.size}}};
  for (size_t i = 0; i < sizeof(stats) / sizeof(stats[0]); ++i) {
    mp_xplane_put_stat(plane, &stats[i]);
  }
  mp_strbuf_deinit(&core);
}

// ---- What was used ----

void mp_chip_use_add_launch(mp_chip_use_t *use, mp_moment_t begin, mp_moment_t end) {
  if (begin < use->begin) begin = use->begin;
  if (end > begin) use->available += end - begin;
}

void mp_chip_use_add_work(mp_chip_use_t *use, const mp_step_part_t *part) {
  const mp_chip_kernel_t *kernel = part->kernel;
  if (part->end <= use->begin) return;
  const mp_moment_t from = part->begin < use->begin ? use->begin : part->begin;
  const double share =
      part->end == part->begin ? 1 : (double)(part->end - from) / (double)(part->end - part->begin);
  const bool is_matmul =
      kernel->work_class == MP_WORK_MATMUL || kernel->work_class == MP_WORK_CONVOLUTION;
  if (is_matmul) use->matmul_flops += share * kernel->flops;
  use->hbm_bytes += share * kernel->bytes;
}

// A TPU's profiler reads it from counters: how much of what the devices could do in their launches
// they did.
void mp_chip_use_print(const mp_chip_use_t *use, int64_t start, uint64_t id, mp_strbuf_t *space) {
  const double available = mp_moment_seconds(use->available);
  if (available <= 0 || use->peak_flops <= 0 || use->peak_bandwidth <= 0) return;
  const mp_xplane_stat_t stats[] = {
      {.id = MP_XPLANE_MXU_USED,
       .kind = MP_XPLANE_RATE,
       .rate = 100 * use->matmul_flops / (use->peak_flops * available)},
      {.id = MP_XPLANE_HBM_USED,
       .kind = MP_XPLANE_RATE,
       .rate = 100 * use->hbm_bytes / (use->peak_bandwidth * available)}};
  mp_xplane_t host;
  mp_xplane_init(&host, start);
  for (size_t i = 0; i < sizeof(stats) / sizeof(stats[0]); ++i) {
    mp_xplane_put_stat(&host, &stats[i]);
  }
  mp_xplane_print(&host, id, k_host_plane, space);
  mp_xplane_deinit(&host);
}
