// How often the commands of a small loop are executed, from how often its back edges are taken.
//
// The flow through the commands is followed once from the first to the last: what comes into a
// command goes on to the next one or to its targets. At the first command of a loop the rounds are
// added to what comes in; at the branch that ends it, as many go on into the body as there are
// rounds, and the others leave.
#include <math.h>

#include "sim/base/assert.h"
#include "sim/model/cost/cost.h"

typedef struct {
  const mp_cmd_t *body;
  uint32_t count;
  const uint64_t *edges;                     // of the back edges, in their order; NULL: not known
  double inflow[MP_LOOP_MOST_COMMANDS + 1];  // what has come to a command
  double rounds[MP_LOOP_MOST_COMMANDS];      // of the back edge that a command is
  bool is_begin[MP_LOOP_MOST_COMMANDS];      // of a loop
} flow_t;

static bool cost_loop_is_back_edge(const mp_cmd_t *cmd, uint32_t number) {
  return cmd->kind == MP_CMD_JUMP && cmd->targets[0] <= number;
}

// How often the loop with this back edge goes round each time, as the program says; once where it
// does not.
static double cost_loop_rounds(const flow_t *flow, uint32_t edge) {
  for (uint32_t i = flow->body[edge].targets[0]; i < edge; ++i) {
    const mp_cmd_t *cmd = &flow->body[i];
    if (cmd->kind != MP_CMD_BRANCH_UNLESS || cmd->targets[0] != edge + 1) continue;
    return cmd->rounds < 0 ? 1 : (double)cmd->rounds;
  }
  return 1;
}

// Adds the rounds of the loops that begin with a command, of which the last edge is the
// outermost's.
static double cost_loop_enter(flow_t *flow, uint32_t number) {
  double times = flow->inflow[number];
  for (uint32_t i = flow->count; i-- > number;) {
    if (!cost_loop_is_back_edge(&flow->body[i], i) || flow->body[i].targets[0] != number) continue;
    if (flow->edges == NULL) flow->rounds[i] = times * cost_loop_rounds(flow, i);
    times += flow->rounds[i];
  }
  return times;
}

// What goes on behind the branch at `number`: into the loop which it can leave, its rounds.
static double cost_loop_stay(const flow_t *flow, uint32_t number, double times) {
  const uint32_t end = flow->body[number].targets[0];
  if (end == 0 || end > flow->count || end <= number) return times;
  const mp_cmd_t *last = &flow->body[end - 1];
  const bool is_exit = cost_loop_is_back_edge(last, end - 1) && last->targets[0] <= number;
  return is_exit ? flow->rounds[end - 1] : times / 2;
}

static void cost_loop_leave(flow_t *flow, uint32_t number, double times) {
  const mp_cmd_t *cmd = &flow->body[number];
  double on = times;
  if (cmd->kind == MP_CMD_JUMP) {
    on = 0;
    if (cmd->targets[0] > number) flow->inflow[cmd->targets[0]] += times;
  } else if (cmd->kind == MP_CMD_BRANCH_UNLESS) {
    on = cost_loop_stay(flow, number, times);
    flow->inflow[cmd->targets[0]] += times > on ? times - on : 0;
  } else if (cmd->kind == MP_CMD_SWITCH) {
    on = 0;
    for (uint32_t t = 0; t < cmd->num_targets; ++t) {
      flow->inflow[cmd->targets[t]] += times / cmd->num_targets;
    }
  }
  flow->inflow[number + 1] += on;
}

static void cost_loop_begin(const mp_cmd_t *loop, const uint64_t *edges, flow_t *out_flow) {
  *out_flow = (flow_t){.body = loop->body, .count = loop->num_body, .edges = edges};
  out_flow->inflow[0] = 1;
  for (uint32_t i = 0, edge = 0; i < loop->num_body; ++i) {
    if (!cost_loop_is_back_edge(&loop->body[i], i)) continue;
    out_flow->is_begin[loop->body[i].targets[0]] = true;
    if (edges != NULL) out_flow->rounds[i] = (double)edges[edge++];
  }
}

void mp_cost_of_loop(const mp_cmd_t *loop, const mp_cost_t *cost, const uint64_t *edges,
                     mp_cost_t *out_cost) {
  MP_ASSERT(loop->num_body <= MP_LOOP_MOST_COMMANDS);
  flow_t flow;
  mp_cost_t sum = *cost;
  cost_loop_begin(loop, edges, &flow);
  sum.flops = sum.transcendentals = sum.bytes = sum.seconds = 0;
  for (uint32_t i = 0; i < loop->num_body; ++i) {
    const double times = cost_loop_enter(&flow, i);
    const mp_cost_t *one = &cost->body[i];
    sum.flops += times * one->flops;
    sum.transcendentals += times * one->transcendentals;
    sum.bytes += times * one->bytes;
    // In whole picoseconds, as the clock counts: the sum is that of the commands one by one.
    sum.seconds += times * (nearbyint(one->seconds * 1e12) / 1e12);
    cost_loop_leave(&flow, i, times);
  }
  *out_cost = sum;
}
