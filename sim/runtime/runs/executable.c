#include "sim/runtime/runs/executable.h"

#include <inttypes.h>
#include <math.h>

#include "collectives/collective_parts.h"
#include "sim/base/alloc.h"
#include "sim/base/hash.h"
#include "sim/plan/compile.h"
#include "sim/runtime/buffers/buffer_impl.h"
#include "sim/runtime/devices/launching.h"
#include "sim/runtime/devices/pacer.h"
#include "sim/runtime/devices/unread.h"
#include "sim/runtime/order/launch_order.h"
#include "sim/runtime/runs/executable_impl.h"
#include "sim/runtime/runs/partners.h"
#include "sim/runtime/runs/shapes.h"

static mp_status_t executable_check_assignment(const mp_client_t *client,
                                               const mp_program_t *program, const uint32_t *ids,
                                               uint32_t count) {
  bool *seen = mp_calloc(client->num_devices, sizeof(*seen));
  MP_RETURN_IF_NULL(seen);
  mp_status_t status = NULL;
  for (uint32_t i = 0; i < count && status == NULL; ++i) {
    if (ids[i] >= client->num_devices) {
      status = mp_status_make(MP_INVALID_ARGUMENT,
                              "%.*s: its device assignment names device %" PRIu32
                              ", but there are %" PRIu32 " devices",
                              MP_STR_ARG(program->name), ids[i], client->num_devices);
    } else if (seen[ids[i]]) {
      status = mp_status_make(MP_INVALID_ARGUMENT,
                              "%.*s: its device assignment names device %" PRIu32 " twice",
                              MP_STR_ARG(program->name), ids[i]);
    } else {
      seen[ids[i]] = true;
    }
  }
  mp_free(seen);
  return status;
}

// How many nanoseconds a heavy op takes per byte of its operands: a guess.
enum { MP_HEAVY_FACTOR = 50 };

static double executable_heavy_seconds(const mp_op_t *op) {
  double bytes = 0;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    int64_t operand_bytes = 0;
    if (mp_type_num_bytes(op->operands[i]->type, &operand_bytes)) bytes += (double)operand_bytes;
  }
  return bytes * MP_HEAVY_FACTOR * 1e-9;
}

static double executable_kernel_seconds(const mp_kernel_t *kernel) {
  if (kernel->num_parts > 1)
    return INFINITY;  // divided into parts, because several workers pay off
  if (kernel->op == NULL || mp_op_info(kernel->op->code)->cost != MP_OP_COST_HEAVY) return 0;
  return executable_heavy_seconds(kernel->op);
}

// Handing a call over to a caller thread takes about this long.
#define MP_HAND_OVER_SECONDS 5e-6

// A foreign function that may block is handed over; any other is guessed to be heavy.
static double executable_call_seconds(const mp_foreign_call_t *call) {
  return call->may_block ? MP_HAND_OVER_SECONDS : executable_heavy_seconds(call->op);
}

// In a nanosecond one core does about one operation of a simple kernel on two bytes, or copies some
// twenty bytes.
static const double k_seconds_per_op = 1e-9, k_seconds_per_byte = 0.5e-9,
                    k_seconds_per_packed_byte = 0.05e-9;

// Where the other members of a collective are: in this process, on this host or on other hosts.
typedef enum { EXECUTABLE_HERE, EXECUTABLE_ON_HOST, EXECUTABLE_FAR } executable_reach_t;

static executable_reach_t executable_reach_of(const mp_executable_t *executable, uint32_t rank) {
  const mp_world_t *world = mp_endpoint_world(executable->set->endpoint);
  const uint32_t own = mp_world_peer(world, mp_world_rank(world))->host;
  return mp_world_peer(world, rank)->host == own ? EXECUTABLE_ON_HOST : EXECUTABLE_FAR;
}

// The farthest reach among the processes in which the executable runs.
static executable_reach_t executable_most_reach(const mp_executable_t *executable) {
  executable_reach_t most = EXECUTABLE_HERE;
  for (uint32_t i = 0; i < executable->set->num_ranks && most != EXECUTABLE_FAR; ++i) {
    most = executable_reach_of(executable, executable->set->ranks[i]);
  }
  return most;
}

static executable_reach_t executable_reach(const mp_executable_t *executable,
                                           const mp_collective_t *collective,
                                           executable_reach_t most) {
  executable_reach_t reach = EXECUTABLE_HERE;
  const mp_groups_t *groups = collective->groups;
  if (groups == NULL) return reach;
  for (uint32_t i = 0; i < executable->num_local; ++i) {
    const int32_t group = groups->group_of[executable->local[i]];
    if (group < 0) continue;
    for (uint32_t m = groups->offsets[group]; m < groups->offsets[group + 1]; ++m) {
      if (reach == most) return reach;
      const uint32_t member = groups->members[m];
      if (executable->client->devices[executable->ids[member]].is_local) continue;
      const executable_reach_t other =
          executable_reach_of(executable, executable->set->ranks_of[member]);
      if (other > reach) reach = other;
    }
  }
  return reach;
}

static bool executable_is_striped(const mp_collective_t *collective, executable_reach_t reach) {
  return mp_collective_is_striped(collective, reach == EXECUTABLE_FAR);
}

// True when its steps are so short that the thread that receives the last packet of a step also
// does the next step (mp_remote_stripes_are_light). Then no worker is needed, which would compete
// for the core of a thread that attends.
static bool executable_is_light(const mp_collective_t *collective, executable_reach_t reach) {
  const double most = reach == EXECUTABLE_FAR ? MP_LIGHT_FAR_BYTES : MP_LIGHT_BYTES;
  return executable_is_striped(collective, reach) || mp_operands_bytes(collective) <= most;
}

// The time that the launching thread spends on a collective with other processes: it packs what is
// sent, and then continues with something else. The time that the same bytes count for elsewhere is
// subtracted. For a sum between hosts it packs only the first stripes (remote_stripes.c).
static double executable_remote_seconds(const mp_collective_t *collective,
                                        executable_reach_t reach) {
  const double sent = mp_operands_bytes(collective);
  const double packed = executable_is_striped(collective, reach)
                            ? fmin(sent, MP_STRIPES_UNDER_WAY * MP_STRIPE_BYTES)
                            : sent;
  return packed * k_seconds_per_packed_byte -
         (sent + mp_results_bytes(collective)) * k_seconds_per_byte;
}

// A fingerprint of the program's name, the order of its commands and its collectives: in programs
// of equal digests, participants come to the same collectives in the same order.
static uint64_t executable_digest_of(const mp_program_t *program) {
  uint64_t digest = mp_hash_bytes(MP_HASH_START, program->name.data, program->name.size);
  for (uint32_t i = 0; i < program->num_commands; ++i) {
    const mp_cmd_t *cmd = &program->commands[i];
    digest = mp_hash_u64(digest, (uint64_t)cmd->kind << 32 | cmd->num_operands);
    digest = mp_hash_bytes(digest, cmd->targets, cmd->num_targets * sizeof(*cmd->targets));
    if (cmd->collective == NULL) continue;
    digest = mp_hash_u64(digest, mp_collective_digest(cmd->collective));
  }
  return digest;
}

// The time of the commands that were merged into one LOOP command.
static double executable_straight_seconds(const mp_cmd_t *cmd) {
  double seconds = 0;
  for (uint32_t i = 0; i < cmd->num_body; ++i) {
    const mp_cmd_t *part = &cmd->body[i];
    if (part->kind == MP_CMD_LAUNCH) seconds += executable_kernel_seconds(part->kernel);
  }
  return seconds;
}

// The number of commands, including those that were merged into others.
static uint32_t executable_num_commands(const mp_program_t *program) {
  uint32_t count = program->num_commands;
  for (uint32_t i = 0; i < program->num_commands; ++i) count += program->commands[i].num_body;
  return count;
}

// Fills in what launches need to know about the parameters and commands.
static void executable_survey(mp_executable_t *executable) {
  const mp_program_t *program = executable->program;
  for (uint32_t p = 0; p < program->num_params; ++p) {
    executable->num_donatable += program->params[p].alias != -1;
  }
  const double least = 0.3e-6 * executable_num_commands(program);
  double seconds = least + k_seconds_per_op * (program->flops + program->transcendentals) +
                   k_seconds_per_byte * program->bytes_accessed;
  const executable_reach_t most = executable_most_reach(executable);
  for (uint32_t i = 0; i < program->num_commands; ++i) {
    const mp_cmd_t *cmd = &program->commands[i];
    if (cmd->num_operands > executable->max_operands) executable->max_operands = cmd->num_operands;
    if (cmd->num_results > executable->max_results) executable->max_results = cmd->num_results;
    for (uint32_t t = 0; t < cmd->num_targets; ++t) {
      if (cmd->targets[t] <= i) seconds = INFINITY;  // a loop
    }
    if (cmd->kind == MP_CMD_LOOP) {
      const bool is_loop = mp_loop_num_edges(cmd->loop) != 0;
      seconds += is_loop ? mp_cmd_loop_seconds(cmd) : executable_straight_seconds(cmd);
      // For each `while`: how often it went round, and how often it was entered.
      const uint32_t edges = executable->timed == NULL ? 0 : 2 * mp_loop_num_edges(cmd->loop);
      if (edges > executable->max_edges) executable->max_edges = edges;
    }
    if (cmd->kind == MP_CMD_CALL) {
      seconds += executable_call_seconds(cmd->call);
      executable->may_block |= cmd->call->may_block;
      executable->has_stages |= cmd->call->has_stages;
    }
    if (cmd->kind == MP_CMD_COPY && mp_copy_num_parts(cmd->bytes) > 1) seconds = INFINITY;
    if (cmd->kind == MP_CMD_LAUNCH || cmd->kind == MP_CMD_TALK) {
      seconds += executable_kernel_seconds(cmd->kernel);
    }
    if (cmd->kind == MP_CMD_COLLECTIVE) {
      const executable_reach_t reach = executable_reach(executable, cmd->collective, most);
      if (reach != EXECUTABLE_HERE) {
        seconds += executable_remote_seconds(cmd->collective, reach);
        executable->needs_workers |= !executable_is_light(cmd->collective, reach);
      }
    }
    executable->has_collectives |= cmd->kind == MP_CMD_COLLECTIVE || cmd->kind == MP_CMD_TALK ||
                                   cmd->kind == MP_CMD_SEND || cmd->kind == MP_CMD_RECV;
  }
  if (executable->is_for_others) executable->has_collectives = false;
  executable->inline_seconds = fmax(seconds, least);
  executable->digest = executable_digest_of(program);
}

static mp_status_t executable_list_local(mp_executable_t *executable) {
  const mp_client_t *client = executable->client;
  executable->local = mp_calloc(executable->num_devices + 1, sizeof(*executable->local));
  MP_RETURN_IF_NULL(executable->local);
  for (uint32_t i = 0; i < executable->num_devices; ++i) {
    if (!client->devices[executable->ids[i]].is_local) continue;
    executable->local[executable->num_local++] = i;
  }
  return NULL;
}

// Fills in the devices among which launches are counted; `out_takes_part` (owned) NULL: all. Only
// in a process with one of the devices, so that a launch has one session there; and not if launches
// compare arrays of all devices.
static mp_status_t executable_find_partners(const mp_executable_t *executable,
                                            const uint32_t *assignment, bool **out_takes_part) {
  const mp_client_t *client = executable->client;
  *out_takes_part = NULL;
  if (!client->matches_groups || client->world == NULL || client->checks_replicas) return NULL;
  uint32_t own = 0, count = 0;
  for (uint32_t i = 0; i < executable->num_devices; ++i) {
    if (!client->devices[assignment[i]].is_local) continue;
    own = i;
    count += 1;
  }
  if (count != 1) return NULL;
  bool *takes_part = mp_calloc(executable->num_devices, sizeof(*takes_part));
  MP_RETURN_IF_NULL(takes_part);
  mp_partners_find(executable->program, own, executable->num_devices, takes_part);
  *out_takes_part = takes_part;
  return NULL;
}

static mp_status_t executable_find_set(mp_executable_t *executable, const uint32_t *assignment) {
  mp_client_t *client = executable->client;
  bool *takes_part;
  MP_RETURN_IF_ERROR(executable_find_partners(executable, assignment, &takes_part));
  // Threads that compile for the same devices at once share one set.
  mp_lock(&client->launches->lock);
  mp_status_t status =
      mp_device_set_get(client, assignment, takes_part, executable->num_devices, &executable->set);
  mp_unlock(&client->launches->lock);
  mp_free(takes_part);
  MP_RETURN_IF_ERROR(status);
  executable->ids = executable->set->ids;
  executable->is_for_others = executable->set->is_shared && client->is_for_all;
  return executable_list_local(executable);
}

// Makes what runs without values need.
static mp_status_t executable_make_shapes(mp_executable_t *executable) {
  const mp_program_t *program = executable->program;
  executable->newest = mp_calloc(program->num_results + 1, sizeof(*executable->newest));
  MP_RETURN_IF_NULL(executable->newest);
  MP_RETURN_IF_ERROR(mp_shapes_create(program, executable->timed,
                                      (uint64_t)executable->client->unknown_trip_count,
                                      &executable->shapes));
  return mp_shapes_find_meetings(executable->shapes);
}

// Makes what the arrays of a result have in common on all devices.
static mp_status_t executable_make_forms(mp_executable_t *executable) {
  const mp_program_t *program = executable->program;
  executable->forms = mp_calloc(program->num_results + 1, sizeof(*executable->forms));
  MP_RETURN_IF_NULL(executable->forms);
  executable->labels = mp_calloc(program->num_results + 1, sizeof(*executable->labels));
  MP_RETURN_IF_NULL(executable->labels);
  for (uint32_t r = 0; r < program->num_results; ++r) {
    const mp_type_t *type = program->results[r].type;
    const mp_label_t label =
        mp_label_make(MP_ORIGIN_RESULT, type->dtype, type->dims, type->rank, executable->name, r);
    MP_RETURN_IF_ERROR(
        mp_buffer_form_create(type->dtype, type->dims, type->rank, &executable->forms[r]));
    MP_RETURN_IF_ERROR(mp_label_create(&label, &executable->labels[r]));
  }
  return NULL;
}

// Whether devices of several processes should hold equal arrays.
static bool executable_has_replicas_elsewhere(const mp_executable_t *executable) {
  const mp_device_set_t *set = executable->set;
  for (uint32_t a = 0; set->endpoint != NULL && a < executable->replicas->num_arrays; ++a) {
    const uint32_t *first = executable->replicas->arrays[a].first;
    for (uint32_t d = 0; d < executable->num_devices; ++d) {
      if (set->ranks_of[d] != set->ranks_of[first[d]]) return true;
    }
  }
  return false;
}

// Compiles the program that sends `count` digests of each of `num_devices` devices to all of them.
static mp_status_t executable_compile_exchange(uint32_t num_devices, uint32_t count,
                                               mp_program_t **out_program) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_printf(&text,
                   "module @check_replicas attributes {mhlo.num_replicas = %" PRIu32
                   " : i32} {\nfunc.func public @main(%%arg0: tensor<1x%" PRIu32
                   "xui64>) -> tensor<%" PRIu32 "x%" PRIu32
                   "xui64> {\n%%0 = \"stablehlo.all_gather\"(%%arg0) {all_gather_dim = 0 : i64, "
                   "replica_groups = dense<[[0",
                   num_devices, count, num_devices, count);
  for (uint32_t d = 1; d < num_devices; ++d) mp_strbuf_printf(&text, ", %" PRIu32, d);
  mp_strbuf_printf(&text,
                   "]]> : tensor<1x%" PRIu32 "xi64>} : (tensor<1x%" PRIu32
                   "xui64>) -> tensor<%" PRIu32 "x%" PRIu32 "xui64>\nreturn %%0 : tensor<%" PRIu32
                   "x%" PRIu32 "xui64>\n}\n}\n",
                   num_devices, count, num_devices, count, num_devices, count);
  mp_status_t status = mp_strbuf_status(&text);
  const mp_compile_request_t request = {.form = MP_PROGRAM_MLIR};
  if (status == NULL) {
    status = mp_compile(mp_strbuf_text(&text), text.size, &request, out_program);
  }
  mp_strbuf_deinit(&text);
  return status;
}

static mp_status_t executable_create(mp_client_t *client, mp_program_t *program,
                                     const uint32_t *assignment, bool is_users,
                                     mp_executable_t **out_executable);

// Finds the arrays that launches compare on several devices.
static mp_status_t executable_find_replicas(mp_executable_t *executable,
                                            const uint32_t *assignment) {
  if (!executable->client->checks_replicas) return NULL;
  MP_RETURN_IF_ERROR(
      mp_replicas_create(executable->program, executable->ids, &executable->replicas));
  if (executable->replicas == NULL || !executable_has_replicas_elsewhere(executable)) return NULL;
  mp_program_t *program = NULL;
  MP_RETURN_IF_ERROR(executable_compile_exchange(executable->num_devices,
                                                 executable->replicas->num_arrays, &program));
  return executable_create(executable->client, program, assignment, false, &executable->exchange);
}

// `is_users`: not one of minipod's own programs, which take no model time and are not checked.
static mp_status_t executable_make(mp_executable_t *executable, const uint32_t *assignment,
                                   bool is_users) {
  const mp_client_t *client = executable->client;
  MP_RETURN_IF_ERROR(mp_name_create(executable->program->name, &executable->name));
  MP_RETURN_IF_ERROR(executable_make_forms(executable));
  MP_RETURN_IF_ERROR(executable_find_set(executable, assignment));
  if (is_users) MP_RETURN_IF_ERROR(executable_find_replicas(executable, assignment));
  if (client->model != NULL && is_users) {
    MP_RETURN_IF_ERROR(mp_model_program_create(client->model, executable->program,
                                               executable->num_devices, executable->ids,
                                               &executable->timed));
  }
  return client->shapes_only ? executable_make_shapes(executable) : NULL;
}

// Frees the parts made so far, and the program.
static void executable_free(mp_executable_t *executable) {
  const uint32_t num_results = executable->program->num_results;
  mp_shapes_release(executable->shapes);
  for (uint32_t r = 0; executable->newest != NULL && r < num_results; ++r) {
    mp_contents_release(executable->newest[r]);
  }
  mp_free(executable->newest);
  for (uint32_t r = 0; executable->labels != NULL && r < num_results; ++r) {
    mp_buffer_form_release(executable->forms[r]);
    mp_label_release(executable->labels[r]);
  }
  mp_free(executable->forms);
  mp_free(executable->labels);
  mp_executable_release(executable->exchange);
  mp_replicas_release(executable->replicas);
  mp_link_users_release(executable->users);
  mp_model_program_release(executable->timed, executable->program);
  mp_name_release(executable->name);
  mp_free(executable->local);
  mp_free(executable);
}

static mp_status_t executable_create(mp_client_t *client, mp_program_t *program,
                                     const uint32_t *assignment, bool is_users,
                                     mp_executable_t **out_executable) {
  const uint32_t count = program->num_replicas * program->num_partitions;
  mp_executable_t *executable = NULL;
  mp_status_t status = mp_client_check(client);
  if (status == NULL) status = executable_check_assignment(client, program, assignment, count);
  if (status == NULL) {
    executable = mp_calloc(1, sizeof(*executable));
    if (executable == NULL) status = mp_status_out_of_memory();
  }
  if (status != NULL) {
    mp_program_release(program);
    return status;
  }
  executable->client = client;
  executable->program = program;
  executable->num_devices = count;
  status = executable_make(executable, assignment, is_users);
  if (status != NULL) {
    executable_free(executable);
    return status;
  }
  atomic_init(&executable->references, 1);
  mp_client_hold(client);
  executable_survey(executable);
  *out_executable = executable;
  return NULL;
}

mp_status_t mp_executable_create(mp_client_t *client, mp_program_t *program,
                                 const uint32_t *assignment, mp_executable_t **out_executable) {
  return executable_create(client, program, assignment, true, out_executable);
}

mp_executable_t *mp_executable_retain(mp_executable_t *executable) {
  if (executable != NULL) {
    // Relaxed: the caller has a reference already.
    atomic_fetch_add_explicit(&executable->references, 1, memory_order_relaxed);
  }
  return executable;
}

void mp_executable_release(mp_executable_t *executable) {
  if (executable == NULL) return;
  // The last reference may be that of a worker that ends a run. Acquire: it frees what other
  // threads have used, so it must come after them.
  const int before = atomic_fetch_sub_explicit(&executable->references, 1, memory_order_acq_rel);
  MP_ASSERT(before > 0);
  if (before != 1) return;
  mp_client_t *client = executable->client;
  executable_free(executable);
  mp_client_unhold(client);
}

const mp_program_t *mp_executable_program(const mp_executable_t *executable) {
  return executable->program;
}

uint32_t mp_executable_num_devices(const mp_executable_t *executable) {
  return executable->num_devices;
}

uint32_t mp_executable_num_donatable(const mp_executable_t *executable) {
  return executable->num_donatable;
}

mp_device_t *mp_executable_device(const mp_executable_t *executable, uint32_t logical) {
  MP_ASSERT(logical < executable->num_devices);
  return mp_client_device(executable->client, executable->ids[logical]);
}

const uint32_t *mp_executable_local(const mp_executable_t *executable, uint32_t *out_count) {
  *out_count = executable->num_local;
  return executable->local;
}

const mp_chip_memory_t *mp_executable_memory(const mp_executable_t *executable) {
  if (executable->timed == NULL) return NULL;
  return &mp_model_program_chip(executable->timed)->memory;
}

bool mp_executable_has_time(const mp_executable_t *executable) {
  return executable->timed != NULL;
}

mp_status_t mp_executable_estimate(const mp_executable_t *executable, double *out_seconds) {
  mp_model_estimate_t estimate;
  MP_RETURN_IF_ERROR(mp_model_program_estimate(executable->timed, &estimate));
  *out_seconds = estimate.seconds;
  return NULL;
}

double mp_executable_patience(const mp_executable_t *executable, uint32_t num_devices) {
  const mp_client_t *client = executable->client;
  if (!executable->may_block && executable->replicas == NULL) return 0;
  if (client->world != NULL || client->pacer != NULL || !mp_launching_may_wait()) return 0;
  // This launch meets launches on other devices, which this thread may make next.
  if (executable->has_collectives && num_devices != executable->num_devices) return 0;
  const int vain = atomic_load_explicit(&executable->num_vain_waits, memory_order_relaxed);
  return ldexp(client->callback_wait, -vain);
}

bool mp_executable_has_callbacks(const mp_executable_t *executable) {
  return executable->may_block;
}

void mp_executable_note_wait(mp_executable_t *executable, bool was_over) {
  enum { MOST = 20 };  // waits of a microsecond
  const int vain = atomic_load_explicit(&executable->num_vain_waits, memory_order_relaxed);
  const int next = was_over ? 0 : vain < MOST ? vain + 1 : MOST;
  if (next != vain) {
    atomic_store_explicit(&executable->num_vain_waits, next, memory_order_relaxed);
  }
}
