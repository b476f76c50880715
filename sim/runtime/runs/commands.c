// The commands of a program: one function each, in a table.
#include <inttypes.h>

#include "sim/base/alloc.h"
#include "sim/base/table.h"
#include "sim/runtime/runs/run.h"
#include "sim/runtime/runs/run_slots.h"
#include "sim/runtime/runs/shape_memory.h"
#include "sim/runtime/workers/job.h"

enum { MP_BACK_EDGES_PER_LOOK = 8 };  // back edges between two checks whether other devices wait

// What comes after a command.
typedef struct {
  mp_worker_t *self;
  mp_run_t *run;
  const mp_cmd_t *cmd;
  uint32_t next;  // the next command; set to the following one before the call
  mp_step_t step;
} exec_t;

// ---- Kernels ----

typedef struct {
  mp_job_t job;  // first, because its callback gets a pointer to it
  const mp_kernel_t *kernel;
  const mp_run_t *run;
  void *shared;
} kernel_job_t;

static mp_status_t commands_run_kernel_part(mp_job_t *job, uint32_t part, void *scratch) {
  const kernel_job_t *k = (kernel_job_t *)job;
  MP_ASSERT(part < k->kernel->num_parts);
  mp_kernel_call_t call = {.operands = k->run->inputs,
                           .results = k->run->outputs,
                           .scratch = scratch,
                           .part = part,
                           .shared = k->shared};
  return k->kernel->run(k->kernel, &call);
}

static mp_status_t commands_finish_kernel(mp_job_t *job, uint32_t part, void *scratch) {
  const kernel_job_t *k = (kernel_job_t *)job;
  mp_kernel_call_t call = {.operands = k->run->inputs,
                           .results = k->run->outputs,
                           .scratch = scratch,
                           .part = part,
                           .shared = k->shared};
  return k->kernel->finish(k->kernel, &call);
}

// Runs a kernel whose parts share memory.
static mp_status_t commands_run_sharing(const exec_t *exec, const kernel_job_t *parts) {
  _Alignas(64) char shared[MP_KERNEL_SHARED_MOST];
  MP_ASSERT(parts->kernel->shared_bytes <= sizeof(shared));
  kernel_job_t job = *parts, last = *parts;
  job.shared = last.shared = shared;
  last.job.run = commands_finish_kernel;
  last.job.num_parts = 1;
  MP_RETURN_IF_ERROR(mp_job_attend(exec->self->client, exec->self, &job.job));
  return mp_job_attend(exec->self->client, exec->self, &last.job);
}

// Runs a kernel of one part on this thread; no other worker takes part.
static mp_status_t commands_run_alone(const exec_t *exec, const mp_kernel_t *kernel) {
  mp_kernel_call_t call = {
      .operands = exec->run->inputs, .results = exec->run->outputs, .scratch = mp_empty_array()};
  if (kernel->scratch_bytes != 0) {
    call.scratch = mp_worker_scratch(exec->self, kernel->scratch_bytes);
    MP_RETURN_IF_NULL(call.scratch);
  }
  return kernel->run(kernel, &call);
}

static mp_status_t commands_do_launch(exec_t *exec) {
  const mp_kernel_t *kernel = exec->cmd->kernel;
  mp_run_resolve(exec->run, exec->cmd);
  if (kernel->num_parts == 1 && kernel->finish == NULL) return commands_run_alone(exec, kernel);
  kernel_job_t job = {
      .job = {.run = commands_run_kernel_part,
              .queue = exec->run->device->queue,
              .num_parts = kernel->num_parts,
              .scratch_bytes = kernel->scratch_bytes},
      .kernel = kernel,
      .run = exec->run,
  };
  if (kernel->finish != NULL) return commands_run_sharing(exec, &job);
  return mp_job_attend(exec->self->client, exec->self, &job.job);
}

// ---- Copies ----

typedef struct {
  mp_job_t job;  // first, because its callback gets a pointer to it
  char *to;
  const char *from;
  int64_t bytes;
} copy_job_t;

static mp_status_t commands_copy_part(mp_job_t *job, uint32_t part, void *scratch) {
  (void)scratch;
  const copy_job_t *copy = (copy_job_t *)job;
  int64_t begin = 0, end = 0;
  mp_part_range(copy->bytes, job->num_parts, part, &begin, &end);
  memcpy(copy->to + begin, copy->from + begin, (size_t)(end - begin));
  return NULL;
}

static mp_status_t commands_do_copy(exec_t *exec) {
  const mp_cmd_t *cmd = exec->cmd;
  copy_job_t copy = {
      .job = {.run = commands_copy_part,
              .queue = exec->run->device->queue,
              .num_parts = mp_copy_num_parts(cmd->bytes)},
      .to = mp_run_address(exec->run, &cmd->results[0]),
      .from = mp_run_address(exec->run, &cmd->operands[0]),
      .bytes = (int64_t)cmd->bytes,
  };
  // Two slots may be the same memory (that of a donated array), but never overlap in part.
  if (copy.from == copy.to || copy.bytes == 0) return NULL;
  if (copy.job.num_parts > 1) return mp_job_attend(exec->self->client, exec->self, &copy.job);
  memcpy(copy.to, copy.from, cmd->bytes);
  return NULL;
}

// Executed a second time after the run was out: then the function has ended.
static mp_status_t commands_do_call(exec_t *exec) {
  exec->run->pc = exec->next - 1;  // before it is out: another thread may bring it back at once
  bool is_out = false;
  MP_RETURN_IF_ERROR(mp_run_call(exec->self, exec->run, exec->cmd, &is_out));
  if (is_out) exec->step = MP_STEP_PARKED;
  return NULL;
}

// ---- Collectives ----

// Meets the other devices at a collective. Called again after the run was parked here: then the
// meeting is over, or this participant arrived last and still has work to do for it.
static mp_status_t commands_meet(exec_t *exec, const mp_collective_t *collective,
                                 mp_contribution_t contribution) {
  mp_run_t *run = exec->run;
  mp_arrival_t *arrival = &run->arrival;
  MP_ASSERT(run->session != NULL);
  MP_ASSERT(arrival->collective == NULL || arrival->collective == collective);
  if (arrival->collective == NULL) {
    *arrival = (mp_arrival_t){
        .collective = collective,
        .program_digest = run->executable->digest,
        .logical = run->logical,
        .contribution = contribution,
    };
  }
  if (!arrival->is_over) {
    run->pc = exec->next - 1;  // before arriving: another thread may resume the run at once
    mp_arrived_t arrived;
    MP_RETURN_IF_ERROR(mp_session_meet(run->session, exec->self, arrival, &arrived));
    if (arrived == MP_ARRIVED_PARKED) {
      exec->step = MP_STEP_PARKED;
      return NULL;
    }
  }
  arrival->collective = NULL;
  return NULL;
}

static mp_status_t commands_do_collective(exec_t *exec) {
  mp_run_t *run = exec->run;
  const uint32_t pc = exec->next - 1;
  const mp_collective_t *collective = exec->cmd->collective;
  if (run->arrival.collective == NULL) mp_run_resolve(run, exec->cmd);
  if (run->executable->is_for_others) return mp_shape_run_meet_alone(run, pc);
  for (bool is_over = false; !is_over;) {
    mp_contribution_t contribution = {run->inputs, run->outputs};
    if (run->shape_run != NULL) collective = mp_shape_run_meeting(run, pc, &contribution);
    MP_RETURN_IF_ERROR(commands_meet(exec, collective, contribution));
    if (exec->step == MP_STEP_PARKED) return NULL;
    is_over = run->shape_run == NULL || mp_shape_run_has_met(run, pc);
  }
  return NULL;
}

static mp_status_t commands_do_send(exec_t *exec) {
  mp_run_t *run = exec->run;
  const mp_collective_t *collective = exec->cmd->collective;
  mp_run_resolve(run, exec->cmd);
  for (uint32_t i = 0; i < collective->num_pairs; ++i) {
    if (collective->pairs[2 * i] != run->logical) continue;
    MP_RETURN_IF_ERROR(mp_session_send(run->session, collective, run->logical,
                                       collective->pairs[2 * i + 1], run->inputs));
  }
  return NULL;
}

// Executed a second time after the run was parked here: then it has the message.
static mp_status_t commands_do_recv(exec_t *exec) {
  mp_run_t *run = exec->run;
  const mp_collective_t *collective = exec->cmd->collective;
  mp_run_resolve(run, exec->cmd);
  mp_receiver_t *receiver = &run->receiver;
  if (receiver->message == NULL) {
    uint32_t i = 0;
    while (i < collective->num_pairs && collective->pairs[2 * i + 1] != run->logical) ++i;
    if (i == collective->num_pairs) {  // no device sends to this one
      mp_arrival_t alone = {.contribution = {.outputs = run->outputs}};
      mp_collective_zero_outputs(collective, &alone);
      return NULL;
    }
    *receiver = (mp_receiver_t){
        .collective = collective, .source = collective->pairs[2 * i], .target = run->logical};
    run->pc = exec->next - 1;
    mp_arrived_t arrived;
    mp_session_receive(run->session, receiver, &arrived);
    if (arrived == MP_ARRIVED_PARKED) {
      exec->step = MP_STEP_PARKED;
      return NULL;
    }
    if (receiver->message == NULL) return mp_session_error(run->session);
  }
  mp_message_t *message = receiver->message;
  receiver->message = NULL;
  mp_status_t status =
      mp_message_read(message, mp_session_mailbox(run->session), collective, run->outputs);
  mp_message_release(message);
  return status;
}

// Executed again after the run was parked here or has yielded: then the kernel continues.
static mp_status_t commands_do_talk(exec_t *exec) {
  mp_run_t *run = exec->run;
  if (run->talk == NULL) {
    const mp_talk_call_t call = {
        .kernel = exec->cmd->kernel, .program = run->executable->digest, .number = exec->next - 1};
    mp_run_resolve(run, exec->cmd);
    MP_RETURN_IF_ERROR(mp_session_enter_talk(run->session, &call, run->logical, run->inputs,
                                             run->outputs, &run->talk));
  }
  run->pc = exec->next - 1;  // before it parks: another thread may resume the run at once
  mp_arrived_t arrived;
  MP_RETURN_IF_ERROR(mp_session_go_on_talk(run->session, run->talk, run->logical, &arrived));
  if (arrived != MP_ARRIVED_GO_ON) {
    exec->step = arrived == MP_ARRIVED_PARKED ? MP_STEP_PARKED : MP_STEP_YIELDED;
    return NULL;
  }
  mp_session_leave_talk(run->session, run->talk, run->logical);
  run->talk = NULL;
  return NULL;
}

// ---- Numbers and control flow ----

static mp_status_t commands_do_replica_id(exec_t *exec) {
  uint32_t id = exec->run->logical / exec->run->executable->program->num_partitions;
  memcpy(mp_run_address(exec->run, &exec->cmd->results[0]), &id, sizeof(id));
  return NULL;
}

static mp_status_t commands_do_partition_id(exec_t *exec) {
  uint32_t id = exec->run->logical % exec->run->executable->program->num_partitions;
  memcpy(mp_run_address(exec->run, &exec->cmd->results[0]), &id, sizeof(id));
  return NULL;
}

static mp_status_t commands_do_jump(exec_t *exec) {
  exec->next = exec->cmd->targets[0];
  return NULL;
}

static mp_status_t commands_do_branch_unless(exec_t *exec) {
  const uint8_t *condition = mp_run_address(exec->run, &exec->cmd->operands[0]);
  if (exec->run->path != NULL) mp_path_add(exec->run->path, exec->cmd->control, *condition == 0, 1);
  if (*condition == 0) exec->next = exec->cmd->targets[0];
  return NULL;
}

static mp_status_t commands_do_switch(exec_t *exec) {
  int32_t index;
  memcpy(&index, mp_run_address(exec->run, &exec->cmd->operands[0]), sizeof(index));
  uint32_t last = exec->cmd->num_targets - 1;
  const uint32_t chosen = index >= 0 && (uint32_t)index < last ? (uint32_t)index : last;
  if (exec->run->path != NULL) mp_path_add(exec->run->path, exec->cmd->control, chosen, 1);
  exec->next = exec->cmd->targets[chosen];
  return NULL;
}

// ---- Loops ----

static bool commands_must_end(const mp_worker_t *self, const mp_run_t *run) {
  return mp_client_is_stopping(self->client) ||
         (run->session != NULL && mp_session_is_poisoned(run->session));
}

static bool commands_must_stop_loop(void *context) {
  const exec_t *exec = context;
  return commands_must_end(exec->self, exec->run) || mp_worker_is_wanted(exec->self);
}

// Records in the path how many rounds each `while` of the loop made, and how often it was left,
// which is as often as it was entered.
static void commands_note_edges(mp_run_t *run, const mp_cmd_t *cmd) {
  const uint32_t count = mp_loop_num_edges(cmd->loop);
  uint64_t *entries = run->edges + count;
  for (uint32_t i = count; i-- > 0;) {
    const mp_loop_edge_t *edge = &cmd->edges[i];
    entries[i] = edge->outer == i ? 1 : run->edges[edge->outer];
    if (edge->is_in_condition) entries[i] += entries[edge->outer];
    mp_path_add(run->path, edge->control, 0, run->edges[i]);
    mp_path_add(run->path, edge->control, 1, entries[i]);
  }
  memset(run->edges, 0, 2 * count * sizeof(*run->edges));  // a later loop may have more
}

// Executed again after the run has yielded in the loop: then the loop continues.
static mp_status_t commands_do_loop(exec_t *exec) {
  mp_run_t *run = exec->run;
  const mp_loop_t *loop = exec->cmd->loop;
  mp_run_resolve(run, exec->cmd);
  mp_loop_run_t state = {
      .slots = (void *const *)(uintptr_t)run->inputs,
      .scratch = mp_worker_scratch(exec->self, mp_loop_scratch_bytes(loop)),
      .replica = run->logical / run->executable->program->num_partitions,
      .partition = run->logical % run->executable->program->num_partitions,
      .must_stop = commands_must_stop_loop,
      .context = exec,
      .at = run->loop_at,
      .edges = run->path == NULL ? NULL : run->edges,
  };
  MP_RETURN_IF_NULL(state.scratch);
  bool is_over = false;
  MP_RETURN_IF_ERROR(mp_loop_run(loop, &state, &is_over));
  run->loop_at = state.at;
  if (is_over) {
    if (run->path != NULL) commands_note_edges(run, exec->cmd);
    return NULL;
  }
  run->pc = exec->next - 1;
  exec->step = MP_STEP_YIELDED;
  return NULL;
}

static mp_status_t commands_do_done(exec_t *exec) {
  if (exec->run->shape_run != NULL) {
    mp_shape_run_end(exec->run->shape_run);
    MP_RETURN_IF_ERROR(mp_shape_memory_end(exec->run));
  }
  exec->step = MP_STEP_OVER;
  return NULL;
}

static mp_status_t (*const k_commands[])(exec_t *exec) = {
#define ROW(name, text) [MP_CMD_##name] = commands_do_##text,
    MP_COMMANDS(ROW)
#undef ROW
};

// Records how long a TPU kernel takes for the values of its operands, if these decide it.
static void commands_note_kernel(mp_run_t *run, const mp_cmd_t *cmd) {
  const mp_shape_run_t *shapes = run->shape_run;
  const bool is_kernel = cmd->kind == MP_CMD_LAUNCH || (cmd->kind == MP_CMD_CALL && shapes != NULL);
  if (run->path == NULL || cmd->control == 0 || !is_kernel) return;
  for (uint32_t i = 0; i < cmd->num_operands; ++i) {
    const bool is_known = shapes == NULL || mp_shape_run_has_operand(shapes, cmd, i);
    run->inputs[i] = is_known ? mp_run_address(run, &cmd->operands[i]) : NULL;
  }
  const uint64_t time =
      mp_model_program_kernel(run->executable->timed, cmd->control, run->inputs, cmd->num_operands);
  if (time != 0) mp_path_add(run->path, cmd->control, time, 1);
}

mp_status_t mp_run_commands(mp_worker_t *self, mp_run_t *run, mp_step_t *out_step) {
  const mp_program_t *program = run->executable->program;
  exec_t exec = {.self = self, .run = run, .step = MP_STEP_GO_ON};
  uint32_t pc = run->pc, back_edges = 0;
  while (exec.step == MP_STEP_GO_ON) {
    MP_ASSERT(pc < program->num_commands);
    exec.cmd = &program->commands[pc];
    MP_ASSERT((size_t)exec.cmd->kind < MP_COUNT_OF(k_commands));
    exec.next = pc + 1;
    if (exec.cmd->control != 0) commands_note_kernel(run, exec.cmd);
    if (run->shape_run == NULL || !mp_shape_run_skips(run, pc, &exec.next)) {
      MP_RETURN_IF_ERROR(k_commands[exec.cmd->kind](&exec));
    }
    if (exec.next <= pc && exec.step == MP_STEP_GO_ON) {
      bool must_end = commands_must_end(self, run);
      // A run without values does not yield: it is short, and it keeps its region, so no more such
      // runs are under way than there are workers.
      bool may_yield = run->region == NULL && ++back_edges % MP_BACK_EDGES_PER_LOOK == 0 &&
                       mp_worker_is_wanted(self);
      if (must_end || may_yield) {
        run->pc = exec.next;
        exec.step = MP_STEP_YIELDED;
      }
    }
    pc = exec.next;
  }
  *out_step = exec.step;
  return NULL;
}
