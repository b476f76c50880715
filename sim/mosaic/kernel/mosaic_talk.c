// Kernels that communicate: the runs of one call on the devices of a launch.
#include <string.h>

#include "sim/base/alloc.h"
#include "sim/base/hash.h"
#include "sim/kernels/shape.h"
#include "sim/mosaic/kernel/mosaic_maker.h"
#include "sim/mosaic/run/mosaic_peers.h"

// The run on one device. Its memory follows, 64-byte aligned, and then `args`.
typedef struct {
  mp_mosaic_grid_t grid;     // first
  mp_mosaic_arg_t *args;     // [num_args] where they are at the current step
  mp_mosaic_check_t *check;  // NULL: none
  bool has_ended;            // all steps are done
} mosaic_run_t;

typedef struct {
  mp_talk_t base;  // first
  mp_mosaic_peers_t *peers;
  mosaic_run_t **runs;  // [devices], owned; NULL: not in the kernel
} mosaic_talk_t;

static const mp_mosaic_kernel_t *mosaic_talk_kernel(const mosaic_talk_t *talk) {
  return (const mp_mosaic_kernel_t *)talk->base.kernel;
}

// ---- a talk ----

static mp_status_t mosaic_talk_create(const mp_kernel_t *base, const mp_talk_link_t *link,
                                      mp_talk_t **out_talk) {
  const mp_mosaic_kernel_t *kernel = (const mp_mosaic_kernel_t *)base;
  mosaic_talk_t *talk = mp_calloc(1, sizeof(*talk) + link->num_devices * sizeof(*talk->runs));
  MP_RETURN_IF_NULL(talk);
  talk->base.kernel = base;
  talk->runs = (mosaic_run_t **)(talk + 1);
  mp_status_t status = mp_mosaic_peers_create(kernel->name, kernel->run_bytes,
                                              kernel->main.num_args, link, &talk->peers);
  if (status == NULL && kernel->names != NULL) {
    status = mp_mosaic_peers_watch(talk->peers, &kernel->program);
  }
  if (status != NULL) {
    mp_mosaic_peers_release(talk->peers);
    mp_free(talk);
    return status;
  }
  *out_talk = &talk->base;
  return NULL;
}

static void mosaic_talk_release(mp_talk_t *base) {
  mosaic_talk_t *talk = (mosaic_talk_t *)base;
  mp_mosaic_peers_release(talk->peers);
  mp_free(talk);
}

// ---- a device ----

static mosaic_run_t *mosaic_talk_new_run(const mp_mosaic_kernel_t *kernel) {
  const size_t args = kernel->main.num_args * sizeof(mp_mosaic_arg_t);
  const size_t header = mp_round_up_64(sizeof(mosaic_run_t));
  const size_t memory = mp_round_up_64(kernel->run_bytes);
  mosaic_run_t *run = mp_aligned_malloc(64, header + memory + args);
  if (run == NULL) return NULL;
  run->args = (mp_mosaic_arg_t *)((char *)run + header + memory);
  run->check = NULL;
  run->has_ended = false;
  memset(run->args, 0, args);
  return run;
}

// Tells the peers where the arguments are at the current step.
static void mosaic_talk_has_moved(mp_mosaic_grid_t *grid) {
  const mosaic_run_t *run = (mosaic_run_t *)grid;
  const mp_mosaic_kernel_t *kernel = grid->kernel;
  for (uint32_t w = 0; w < kernel->num_windows; ++w) {
    const mp_mosaic_window_t *window = &kernel->windows[w];
    const mp_mosaic_window_block_t *block = &grid->windows[w].block;
    mp_mosaic_arg_t *arg = &run->args[window->arg];
    arg->base = grid->state.views[window->view].base;
    if (window->is_whole) continue;
    arg->block =
        mp_hash_bytes(MP_HASH_START, block->index, window->type->rank * sizeof(*block->index));
  }
  mp_mosaic_peers_move(grid->state.peers, grid->state.device, run->args);
}

static mp_status_t mosaic_talk_enter(mp_talk_t *base, uint32_t device, const void *const *operands,
                                     void *const *results) {
  mosaic_talk_t *talk = (mosaic_talk_t *)base;
  const mp_mosaic_kernel_t *kernel = mosaic_talk_kernel(talk);
  mosaic_run_t *run = mosaic_talk_new_run(kernel);
  MP_RETURN_IF_NULL(run);
  talk->runs[device] = run;
  char *memory = (char *)run + mp_round_up_64(sizeof(*run));
  const mp_kernel_call_t call = {.operands = operands, .results = results, .scratch = memory};
  if (kernel->names != NULL) {
    MP_RETURN_IF_ERROR(mp_mosaic_check_create(kernel->names, kernel->num_args, &run->check));
  }
  if (run->check != NULL) mp_mosaic_check_share(run->check, &talk->peers->lock);
  MP_RETURN_IF_ERROR(mp_mosaic_grid_begin(kernel, &call, run->check, &run->grid));
  run->grid.state.peers = talk->peers;
  run->grid.state.device = device;
  MP_RETURN_IF_ERROR(mp_mosaic_grid_enter_step(&run->grid));
  mosaic_talk_has_moved(&run->grid);
  run->grid.has_moved = mosaic_talk_has_moved;
  mp_mosaic_peers_enter(talk->peers, device, memory, run->grid.state.watcher);
  return NULL;
}

// Does the steps of the grid.
static mp_status_t mosaic_talk_do_steps(mosaic_run_t *run, mp_talk_stop_t *out_stop) {
  mp_mosaic_outcome_t outcome = MP_MOSAIC_DONE;
  MP_RETURN_IF_ERROR(mp_mosaic_grid_go_on(&run->grid, &outcome));
  *out_stop = outcome == MP_MOSAIC_BLOCKED  ? MP_TALK_RUN_WAITS
              : outcome == MP_MOSAIC_YIELDS ? MP_TALK_RUN_YIELDS
                                            : MP_TALK_RUN_IS_OVER;
  run->has_ended = *out_stop == MP_TALK_RUN_IS_OVER;
  return run->has_ended && run->grid.kernel->has_semaphores ? mp_mosaic_peers_end(&run->grid.state)
                                                            : NULL;
}

static mp_status_t mosaic_talk_run_on(mosaic_talk_t *talk, uint32_t device,
                                      mp_talk_stop_t *out_stop) {
  mosaic_run_t *run = talk->runs[device];
  if (!run->has_ended) {
    MP_RETURN_IF_ERROR(mosaic_talk_do_steps(run, out_stop));
    if (!run->has_ended) return NULL;
  }
  // A DMA may still be on its way to the device, whose semaphore another kernel awaits: so it stays
  // until no other device can start one.
  if (run->grid.kernel->has_semaphores && mp_mosaic_peers_await_ends(talk->peers, device)) {
    *out_stop = MP_TALK_RUN_WAITS;
    return NULL;
  }
  *out_stop = MP_TALK_RUN_IS_OVER;
  mp_lock(&talk->peers->lock);
  mp_status_t status = mp_mosaic_grid_end(&run->grid);
  mp_unlock(&talk->peers->lock);
  return status;
}

static mp_status_t mosaic_talk_go_on(mp_talk_t *base, uint32_t device, mp_talk_stop_t *out_stop) {
  mosaic_talk_t *talk = (mosaic_talk_t *)base;
  mp_status_t status = mosaic_talk_run_on(talk, device, out_stop);
  if (status != NULL) mp_mosaic_peers_fail(talk->peers, device, status);
  return status;
}

static bool mosaic_talk_may_go_on(mp_talk_t *base, uint32_t device) {
  return mp_mosaic_peers_may_go_on(((mosaic_talk_t *)base)->peers, device);
}

static mp_status_t mosaic_talk_deliver(mp_talk_t *base, uint32_t device, const void *data,
                                       size_t bytes) {
  const mosaic_talk_t *talk = (const mosaic_talk_t *)base;
  mp_status_t status = mp_mosaic_message_take(talk->peers, device, data, bytes);
  return status == NULL ? NULL
                        : mp_status_annotate(status, "kernel '%s'", mosaic_talk_kernel(talk)->name);
}

static void mosaic_talk_leave(mp_talk_t *base, uint32_t device) {
  mosaic_talk_t *talk = (mosaic_talk_t *)base;
  mp_mosaic_peers_leave(talk->peers, device);
  if (talk->runs[device] != NULL) mp_mosaic_check_destroy(talk->runs[device]->check);
  mp_free(talk->runs[device]);
  talk->runs[device] = NULL;
}

// ---- what a device waits for ----

static void mosaic_talk_print_semaphore(uint32_t root, mp_strbuf_t *out) {
  if (root == MP_MOSAIC_BARRIER) {
    mp_strbuf_puts(out, "the semaphore for barriers");
  } else if (root == MP_MOSAIC_NONE) {
    mp_strbuf_puts(out, "a semaphore that the kernel allocates");
  } else {
    mp_strbuf_printf(out, "the semaphore of argument %u of the kernel", root);
  }
}

// What a run that polls reads, in vain.
static void mosaic_talk_print_poll(uint32_t root, const mp_mosaic_wait_t *wait, int64_t value,
                                   mp_strbuf_t *out) {
  mp_strbuf_puts(out, "it reads ");
  if (wait->semaphore != NULL) {
    mosaic_talk_print_semaphore(root, out);
    mp_strbuf_printf(out, " again and again, and it stays %lld", (long long)value);
  } else if (root == MP_MOSAIC_NONE) {
    mp_strbuf_puts(out, "memory that the kernel allocates again and again, and it stays the same");
  } else {
    mp_strbuf_printf(out, "argument %u of the kernel again and again, and it stays the same", root);
  }
}

static void mosaic_talk_describe(mp_talk_t *base, uint32_t device, mp_strbuf_t *out) {
  const mosaic_talk_t *talk = (const mosaic_talk_t *)base;
  const mosaic_run_t *run = talk->runs[device];
  int64_t value = 0;
  const mp_mosaic_wait_t wait = mp_mosaic_peers_wait(talk->peers, device, &value);
  const mp_mosaic_state_t *state = &run->grid.state;
  const mp_mosaic_instruction_t *in = &run->grid.kernel->program.instructions[state->pc];
  if (run->has_ended) {
    mp_strbuf_printf(out,
                     "kernel '%s': it has ended, and has semaphores of other kernels: %lld of the "
                     "other devices have not ended it",
                     run->grid.kernel->name, (long long)(wait.wanted - value));
    return;
  }
  mp_mosaic_grid_print(&run->grid, out);
  mp_strbuf_printf(out, ": %s: ", in->where == NULL ? "" : in->where);
  if (wait.kind == MP_MOSAIC_WAITS_FOR_PEER) {
    mp_strbuf_printf(out, "device %u has not reached the kernel",
                     talk->peers->link.names[wait.peer]);
    return;
  }
  const bool reads_memory = wait.kind == MP_MOSAIC_WAITS_FOR_CHANGE && wait.semaphore == NULL;
  const uint32_t root = state->views[reads_memory ? in->a : in->c].root;
  if (wait.kind == MP_MOSAIC_WAITS_FOR_CHANGE) {
    mosaic_talk_print_poll(root, &wait, value, out);
    return;
  }
  mosaic_talk_print_semaphore(root, out);
  mp_strbuf_printf(out, " is %lld, and the wait is for %lld", (long long)value,
                   (long long)wait.wanted);
}

static const mp_talk_ops_t k_mosaic_talk = {
    .create = mosaic_talk_create,
    .release = mosaic_talk_release,
    .enter = mosaic_talk_enter,
    .go_on = mosaic_talk_go_on,
    .may_go_on = mosaic_talk_may_go_on,
    .deliver = mosaic_talk_deliver,
    .leave = mosaic_talk_leave,
    .describe = mosaic_talk_describe,
};

static mp_status_t mosaic_talk_run(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  (void)call;
  return mp_status_make(MP_UNIMPLEMENTED, "the kernel '%s' communicates with other devices",
                        ((const mp_mosaic_kernel_t *)kernel)->name);
}

mp_status_t mp_mosaic_make_talk(const mp_mosaic_maker_t *maker) {
  mp_kernel_t *kernel = &maker->kernel->kernel;
  kernel->talk = &k_mosaic_talk;
  kernel->run = mosaic_talk_run;
  kernel->finish = NULL;
  kernel->num_parts = 1;
  return NULL;
}
