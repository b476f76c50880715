// Loops and branches in which no device meets another one. Their time depends only on how often
// each of their blocks is done, so that a million rounds cost no more than one.
#include "sim/model/clock/replay/replay_impl.h"

// A device in control flow: what has to be counted.
typedef struct {
  mp_replay_t *replay;
  uint32_t logical;
} local_t;

static void replay_local_flow(const local_t *l, const mp_chip_flow_t *flow, uint64_t times);

static void replay_local_block(const local_t *l, const mp_chip_block_t *block, uint64_t count) {
  mp_replay_t *replay = l->replay;
  if (count == 0) return;
  if (block->step != UINT32_MAX) {
    replay->books.counts[block->step] += count;
    mp_replay_work(replay, l->logical, block->step,
                   count * replay->chip_program->steps[block->step].time);
  }
  for (uint32_t i = 0; i < block->num_flows; ++i) {
    replay_local_flow(l, &block->flows[i], count);
  }
}

// A loop that is entered so often: it goes round until it has been left as often. What the path
// does not say is taken to be what the program says, or one round.
static void replay_local_loop(const local_t *l, const mp_chip_flow_t *flow, uint64_t times) {
  uint64_t rounds = 0, left = times;
  while (left != 0) {
    uint64_t choice;
    const uint64_t count =
        mp_replay_take(l->replay, l->logical, flow->step, flow->control, UINT64_MAX, left, &choice);
    if (count == 0) break;
    if (choice == 0) {
      rounds += count;
    } else {
      left -= count;
    }
  }
  if (left != 0) {
    l->replay->books.is_cut = true;
    rounds += left * (flow->rounds < 0 ? 1 : (uint64_t)flow->rounds);
  }
  replay_local_block(l, &flow->blocks[0], rounds + times);
  replay_local_block(l, &flow->blocks[1], rounds);
}

// The region of a branch whose own work takes longest: XLA's estimates count that one, too.
static uint64_t replay_local_longest(const local_t *l, const mp_chip_flow_t *flow) {
  const mp_chip_step_t *steps = l->replay->chip_program->steps;
  uint64_t longest = 0;
  mp_moment_t most = 0;
  for (uint32_t r = 0; r < flow->num_blocks; ++r) {
    const uint32_t step = flow->blocks[r].step;
    if (step == UINT32_MAX || steps[step].time <= most) continue;
    most = steps[step].time;
    longest = r;
  }
  return longest;
}

static void replay_local_branch(const local_t *l, const mp_chip_flow_t *flow, uint64_t times) {
  for (uint64_t left = times; left != 0;) {
    uint64_t choice;
    uint64_t count =
        mp_replay_take(l->replay, l->logical, flow->step, flow->control, left, left, &choice);
    if (count == 0) {
      l->replay->books.is_cut = true;
      choice = replay_local_longest(l, flow);
      count = left;
    }
    const uint32_t last = flow->num_blocks - 1;
    replay_local_block(l, &flow->blocks[choice < last ? choice : last], count);
    left -= count;
  }
}

// A kernel that runs so often: the path has its times, in picoseconds. What it does not say is the
// time that the chip program has.
static void replay_local_by_values(const local_t *l, const mp_chip_flow_t *flow, uint64_t times) {
  mp_replay_t *replay = l->replay;
  const uint32_t step = flow->blocks[0].step;
  for (uint64_t left = times; left != 0;) {
    uint64_t choice;
    uint64_t count =
        mp_replay_take(replay, l->logical, flow->step, flow->control, left, left, &choice);
    if (count == 0) {
      count = left;
      choice = replay->chip_program->steps[step].time;
    }
    replay->books.counts[step] += count;
    mp_replay_work(replay, l->logical, step, count * choice);
    left -= count;
  }
}

static void replay_local_flow(const local_t *l, const mp_chip_flow_t *flow, uint64_t times) {
  if (flow->is_by_values) {
    replay_local_by_values(l, flow, times);
  } else if (flow->is_loop) {
    replay_local_loop(l, flow, times);
  } else {
    replay_local_branch(l, flow, times);
  }
}

void mp_replay_local(mp_replay_t *replay, uint32_t logical, const mp_chip_flow_t *flow) {
  const local_t l = {replay, logical};
  replay_local_flow(&l, flow, 1);
}
