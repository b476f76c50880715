// all_reduce and reduce_scatter over processes.
//
// The elements are divided into *segments*, one per process: the elements that this process
// combines in the end. In a large all_reduce they are equal shares of the elements, in a
// reduce_scatter the parts of the process' members. The segments of a column of processes, one
// after the other, are a *column*; without a grid of hosts column and segment are the same. First,
// on each host, one process collects the pieces of each column; then the segment's process collects
// the hosts' pieces of each segment.
#include <string.h>

#include "collectives/collective_parts.h"
#include "collectives/reduction_tree.h"
#include "sim/base/assert.h"
#include "sim/numeric/dims.h"

// Up to this many bytes one phase, in which every process combines everything, costs less than two
// (or four).
#define MP_SMALL_ALL_REDUCE               (256 * 1024)
#define MP_SMALL_ALL_REDUCE_BETWEEN_HOSTS (64 * 1024)

typedef enum {
  MP_STAGE_ALL,          // own pieces to all processes
  MP_STAGE_REDUCE_NEAR,  // own pieces of each column to its process on this host
  MP_STAGE_REDUCE_FAR,   // this host's pieces of each segment to its process in this column
  MP_STAGE_SPREAD_FAR,   // the results of the own segment to the own column
  MP_STAGE_SPREAD_NEAR,  // the results of the own column to this host
} stage_t;

static bool schedule_reduce_is_all_reduce(const mp_collective_schedule_t *schedule) {
  return schedule->collective->kind == MP_COLLECTIVE_ALL_REDUCE;
}

static stage_t schedule_reduce_stage_of(const mp_collective_schedule_t *schedule, uint32_t phase) {
  if (schedule_reduce_is_all_reduce(schedule) && schedule->num_phases == 1) return MP_STAGE_ALL;
  if (schedule->layout->num_hosts == 1) {
    return phase == 0 ? MP_STAGE_REDUCE_NEAR : MP_STAGE_SPREAD_NEAR;
  }
  return MP_STAGE_REDUCE_NEAR + phase;
}

// True for two processes on two hosts with one piece each: in one phase they send as many bytes as
// in two, but wait only once. (Within a host sending is free, and it is better that each combines a
// half. Pieces in a wider type than the results cost more than the results.)
static bool schedule_reduce_is_between_two(const mp_collective_schedule_t *schedule) {
  const mp_group_layout_t *layout = schedule->layout;
  if (!layout->spans_hosts || layout->num_processes != 2 || layout->num_pieces != 2) return false;
  bool widens = false;
  for (uint32_t i = 0; i < schedule->collective->num_operands; ++i) {
    const mp_collective_operand_t *operand = &schedule->collective->operands[i];
    widens |= operand->accumulation != operand->dtype;
  }
  return layout->size == 2 || !widens;
}

static uint32_t schedule_reduce_num_phases(const mp_collective_schedule_t *schedule) {
  const mp_group_layout_t *layout = schedule->layout;
  const bool is_flat = layout->num_hosts == 1;
  if (!schedule_reduce_is_all_reduce(schedule)) return is_flat ? 1 : 2;
  if (schedule_reduce_is_between_two(schedule)) return 1;
  const double bytes = mp_operands_bytes(schedule->collective) * layout->num_processes;
  if (bytes <= (is_flat ? MP_SMALL_ALL_REDUCE : MP_SMALL_ALL_REDUCE_BETWEEN_HOSTS)) return 1;
  return is_flat ? 2 : 4;
}

// ---- Columns and segments, in elements ----

static int64_t schedule_reduce_share_begin(int64_t total, uint32_t index, uint32_t count) {
  return total * index / count;
}

// An all_reduce's first element of a column.
static int64_t schedule_reduce_column_begin(const mp_collective_schedule_t *schedule,
                                            uint32_t number, uint32_t column) {
  return schedule_reduce_share_begin(mp_operand_elements(&schedule->collective->operands[number]),
                                     column, schedule->layout->num_columns);
}

static int64_t schedule_reduce_column_count(const mp_collective_schedule_t *schedule,
                                            uint32_t number, uint32_t column);

static int64_t schedule_reduce_segment_count(const mp_collective_schedule_t *schedule,
                                             uint32_t number, uint32_t process) {
  const mp_group_layout_t *layout = schedule->layout;
  if (!schedule_reduce_is_all_reduce(schedule)) {
    const mp_collective_operand_t *operand = &schedule->collective->operands[number];
    return mp_dims_product(operand->result_dims, 0, operand->rank) *
           mp_group_layout_num_members(layout, process);
  }
  const int64_t column = schedule_reduce_column_count(schedule, number, layout->column_of[process]);
  const uint32_t host = layout->host_of[process];
  return schedule_reduce_share_begin(column, host + 1, layout->num_hosts) -
         schedule_reduce_share_begin(column, host, layout->num_hosts);
}

// The element of its column at which a segment begins; for `host` = number of hosts: the column's
// end.
static int64_t schedule_reduce_segment_at(const mp_collective_schedule_t *schedule, uint32_t number,
                                          uint32_t column, uint32_t host) {
  int64_t at = 0;
  for (uint32_t h = 0; h < host; ++h) {
    at += schedule_reduce_segment_count(schedule, number,
                                        mp_group_layout_process_at(schedule->layout, h, column));
  }
  return at;
}

static int64_t schedule_reduce_own_segment_at(const mp_collective_schedule_t *schedule,
                                              uint32_t number) {
  const mp_group_layout_t *layout = schedule->layout;
  return schedule_reduce_segment_at(schedule, number, layout->column_of[layout->self],
                                    layout->host_of[layout->self]);
}

static int64_t schedule_reduce_column_count(const mp_collective_schedule_t *schedule,
                                            uint32_t number, uint32_t column) {
  if (schedule_reduce_is_all_reduce(schedule)) {
    return schedule_reduce_column_begin(schedule, number, column + 1) -
           schedule_reduce_column_begin(schedule, number, column);
  }
  return schedule_reduce_segment_at(schedule, number, column, schedule->layout->num_hosts);
}

// ---- Payloads: blocks of one operand after the other ----

typedef struct {
  int64_t count;  // elements of each piece
  uint32_t num_pieces;
  size_t element_bytes;
} block_t;

static block_t schedule_reduce_block_of(const mp_collective_schedule_t *schedule, stage_t stage,
                                        uint32_t number, uint32_t source, uint32_t destination) {
  const mp_group_layout_t *layout = schedule->layout;
  const mp_collective_operand_t *operand = &schedule->collective->operands[number];
  block_t block = {.num_pieces = 1, .element_bytes = mp_dtype_size(operand->dtype)};
  switch (stage) {
    case MP_STAGE_ALL:
    case MP_STAGE_REDUCE_NEAR:
      block.num_pieces = layout->pieces_of[source];
      block.element_bytes = mp_piece_element_bytes(layout, source, operand);
      block.count = stage == MP_STAGE_ALL ? mp_operand_elements(operand)
                                          : schedule_reduce_column_count(
                                                schedule, number, layout->column_of[destination]);
      break;
    case MP_STAGE_REDUCE_FAR:
      block.num_pieces = layout->hosts->pieces_of[layout->host_of[source]];
      block.element_bytes = mp_piece_element_bytes(layout->hosts, layout->host_of[source], operand);
      block.count = schedule_reduce_segment_count(schedule, number, destination);
      break;
    case MP_STAGE_SPREAD_FAR:
      block.count = schedule_reduce_segment_count(schedule, number, source);
      break;
    case MP_STAGE_SPREAD_NEAR:
      block.count = schedule_reduce_column_count(schedule, number, layout->column_of[source]);
      break;
  }
  MP_ASSERT(block.count >= 0);
  return block;
}

static size_t schedule_reduce_piece_stride(const block_t *block) {
  return mp_align64((size_t)block->count * block->element_bytes);
}

// The byte of a payload at which operand `number` begins; for the number of operands: the payload's
// size.
static size_t schedule_reduce_block_at(const mp_collective_schedule_t *schedule, stage_t stage,
                                       uint32_t number, uint32_t source, uint32_t destination) {
  MP_ASSERT(number <= schedule->collective->num_operands);
  size_t at = 0;
  for (uint32_t i = 0; i < number; ++i) {
    const block_t block = schedule_reduce_block_of(schedule, stage, i, source, destination);
    at += block.num_pieces * schedule_reduce_piece_stride(&block);
  }
  return at;
}

// True when this process and another one send each other payloads in this stage.
static bool schedule_reduce_is_concerned(const mp_collective_schedule_t *schedule, stage_t stage,
                                         uint32_t process) {
  if (stage == MP_STAGE_ALL) return true;
  if (stage == MP_STAGE_REDUCE_NEAR || stage == MP_STAGE_SPREAD_NEAR) {
    return mp_group_layout_is_near(schedule->layout, process);
  }
  return mp_group_layout_is_in_column(schedule->layout, process);
}

static bool schedule_reduce_awaits(const mp_collective_schedule_t *schedule, uint32_t phase,
                                   uint32_t process) {
  return schedule_reduce_is_concerned(schedule, schedule_reduce_stage_of(schedule, phase), process);
}

static size_t schedule_reduce_expected(const mp_collective_schedule_t *schedule, uint32_t phase,
                                       uint32_t process) {
  const stage_t stage = schedule_reduce_stage_of(schedule, phase);
  if (!schedule_reduce_is_concerned(schedule, stage, process)) return 0;
  return schedule_reduce_block_at(schedule, stage, schedule->collective->num_operands, process,
                                  schedule->layout->self);
}

static mp_status_t schedule_reduce_plan(mp_collective_schedule_t *schedule, uint32_t phase,
                                        bool *out_is_shared) {
  const mp_group_layout_t *layout = schedule->layout;
  const stage_t stage = schedule_reduce_stage_of(schedule, phase);
  for (uint32_t p = 0; p < layout->num_processes; ++p) {
    if (p == layout->self) continue;
    size_t *size = &schedule->sizes[mp_collective_schedule_at(schedule, phase, p)];
    if (schedule_reduce_is_concerned(schedule, stage, p)) {
      *size = schedule_reduce_block_at(schedule, stage, schedule->collective->num_operands,
                                       layout->self, p);
    } else if (phase == 0) {
      *size = 0;
    }
  }
  *out_is_shared = stage != MP_STAGE_REDUCE_NEAR && stage != MP_STAGE_REDUCE_FAR;
  return NULL;
}

// Operand `number` in the payload from a process, or, for this process, in the payload that it
// packed for all. NULL: there is no such payload.
static const char *schedule_reduce_received_block(const mp_collective_schedule_t *schedule,
                                                  uint32_t phase, uint32_t number,
                                                  uint32_t process) {
  const uint32_t self = schedule->layout->self;
  const size_t at = mp_collective_schedule_at(schedule, phase, process);
  const char *data = process == self ? schedule->payloads[at] : schedule->received[at].data;
  if (data == NULL) return NULL;
  return data + schedule_reduce_block_at(schedule, schedule_reduce_stage_of(schedule, phase),
                                         number, process, self);
}

// The same in the payload that this process packs for another one. NULL: it is empty, so nothing is
// packed.
static char *schedule_reduce_own_block(const mp_collective_schedule_t *schedule, uint32_t phase,
                                       uint32_t number, uint32_t destination) {
  char *data = schedule->payloads[mp_collective_schedule_at(schedule, phase, destination)];
  if (data == NULL) return NULL;
  return data + schedule_reduce_block_at(schedule, schedule_reduce_stage_of(schedule, phase),
                                         number, schedule->layout->self, destination);
}

// ---- Reducing received pieces ----

// Lets the reduction use the pieces of phase 0: those of the own column, or of everything if all
// processes get everything.
static void schedule_reduce_use_near(const mp_collective_schedule_t *schedule,
                                     mp_reduction_t *reduction) {
  const mp_group_layout_t *layout = schedule->layout;
  const stage_t stage = schedule_reduce_stage_of(schedule, 0);
  mp_piece_source_t *near = &reduction->near;
  near->layout = layout;
  near->count =
      schedule_reduce_block_of(schedule, stage, reduction->number, layout->self, layout->self)
          .count;
  for (uint32_t p = 0; p < layout->num_processes; ++p) {
    const bool is_there = schedule_reduce_is_concerned(schedule, stage, p);
    near->bases[p] =
        is_there ? schedule_reduce_received_block(schedule, 0, reduction->number, p) : NULL;
  }
}

// Lets the reduction also use the pieces of the own segment from other hosts.
static void schedule_reduce_use_far(const mp_collective_schedule_t *schedule,
                                    mp_reduction_t *reduction) {
  const mp_group_layout_t *layout = schedule->layout;
  if (layout->num_hosts == 1) return;
  mp_piece_source_t *far = &reduction->far;
  far->layout = layout->hosts;
  far->count = schedule_reduce_segment_count(schedule, reduction->number, layout->self);
  for (uint32_t host = 0; host < layout->num_hosts; ++host) {
    const uint32_t p = mp_group_layout_process_at(layout, host, layout->column_of[layout->self]);
    far->bases[host] = p == layout->self
                           ? NULL
                           : schedule_reduce_received_block(schedule, 1, reduction->number, p);
  }
}

static mp_reduction_t schedule_reduce_start(const mp_collective_schedule_t *schedule,
                                            uint32_t number, void *scratch) {
  return mp_reduction_start(schedule->collective, schedule->contributions, schedule->layout->size,
                            number, schedule->layout->num_processes, scratch);
}

// ---- Packing pieces ----

typedef struct {
  const mp_collective_schedule_t *schedule;
  mp_reduction_t reduction;
  const mp_group_layout_t *layout;  // layout of the packed pieces: over processes, or over hosts
  uint32_t owner;                   // this process, or this host, in that layout
  block_t block;
  char *to;
  int64_t first;  // the element of the column that is at `to`
} packer_t;

// The elements of a piece that is a single leaf: the input of a member of this process, or the
// payload from the member's process.
static const char *schedule_reduce_find_leaf(const packer_t *packer, uint32_t position,
                                             int64_t leaf) {
  const mp_collective_schedule_t *schedule = packer->schedule;
  const mp_reduction_t *reduction = &packer->reduction;
  if (mp_group_layout_is_local(schedule->layout, position)) {
    const char *input = schedule->contributions[position].inputs[reduction->number];
    return input + (size_t)leaf * packer->block.element_bytes;
  }
  const mp_piece_t piece = {.begin = position,
                            .count = 1,
                            .process = schedule->layout->process_of[position],
                            .index = schedule->layout->index_of[position]};
  return mp_piece_data(&reduction->near, &piece, reduction->operand);
}

// Packs elements [at, at + count) of the column, which are [leaf, leaf + count) of the inputs.
static void schedule_reduce_pack_run(packer_t *packer, int64_t leaf, int64_t at, int64_t count) {
  const bool is_plain = mp_group_layout_has_leaves_only(packer->layout, packer->owner);
  const size_t size = packer->block.element_bytes;
  const int64_t step = is_plain ? count : mp_reduce_block_elements(packer->schedule->collective);
  for (uint32_t i = 0; i < packer->layout->num_pieces; ++i) {
    const mp_piece_t *piece = &packer->layout->pieces[i];
    if (piece->process != packer->owner) continue;
    char *to = packer->to + piece->index * schedule_reduce_piece_stride(&packer->block) +
               (size_t)(at - packer->first) * size;
    for (int64_t done = 0; done < count; done += step) {
      const int64_t now = count - done < step ? count - done : step;
      packer->reduction.near.at = at + done;
      const void *from = NULL;
      if (is_plain) {
        from = schedule_reduce_find_leaf(packer, piece->begin, leaf + done);
      } else {
        mp_reduction_run(&packer->reduction, piece->begin, piece->count, leaf + done, now);
        from = packer->reduction.tops[0];
      }
      memcpy(to + (size_t)done * size, from, (size_t)now * size);
    }
  }
}

// Packs elements [begin, end) of a segment of a reduce_scatter, which begins at element `segment`
// of its column. The parts of the members of `process` are short runs scattered over the input.
static void schedule_reduce_pack_parts(packer_t *packer, uint32_t process, int64_t segment,
                                       int64_t begin, int64_t end) {
  const mp_collective_schedule_t *schedule = packer->schedule;
  const mp_collective_operand_t *operand = packer->reduction.operand;
  const uint32_t dimension = (uint32_t)schedule->collective->dimension;
  const int64_t run = mp_dims_product(operand->result_dims, dimension, operand->rank);
  const int64_t per_member = mp_dims_product(operand->result_dims, 0, operand->rank);
  const uint32_t *members = mp_group_layout_members(schedule->layout, process);
  for (int64_t at = begin; at < end;) {
    const int64_t row = at % per_member / run;
    const int64_t within = at % run;
    const int64_t left = run - within < end - at ? run - within : end - at;
    const uint32_t member = members[at / per_member];
    schedule_reduce_pack_run(packer, (row * schedule->layout->size + member) * run + within,
                             segment + at, left);
    at += left;
  }
}

// Packs one part of the payload to `destination`, which begins with element `packer->first` of its
// column.
static void schedule_reduce_pack_column(packer_t *packer, uint32_t destination, uint32_t part,
                                        uint32_t num_parts) {
  const mp_collective_schedule_t *schedule = packer->schedule;
  const mp_group_layout_t *layout = schedule->layout;
  const uint32_t number = packer->reduction.number;
  const uint32_t column = layout->column_of[destination];
  const int64_t begin = packer->first + packer->block.count * part / num_parts;
  const int64_t end = packer->first + packer->block.count * (part + 1) / num_parts;
  if (begin == end) return;
  if (schedule_reduce_is_all_reduce(schedule)) {
    const int64_t first =
        schedule->num_phases == 1 ? 0 : schedule_reduce_column_begin(schedule, number, column);
    schedule_reduce_pack_run(packer, first + begin, begin, end - begin);
    return;
  }
  int64_t segment = 0;
  for (uint32_t host = 0; host < layout->num_hosts; ++host) {
    const uint32_t process = mp_group_layout_process_at(layout, host, column);
    const int64_t count = schedule_reduce_segment_count(schedule, number, process);
    const int64_t from = begin > segment ? begin - segment : 0;
    const int64_t to = end - segment < count ? end - segment : count;
    if (from < to) schedule_reduce_pack_parts(packer, process, segment, from, to);
    segment += count;
  }
}

static void schedule_reduce_pack_pieces(const mp_collective_schedule_t *schedule, uint32_t phase,
                                        uint32_t number, uint32_t destination, uint32_t part,
                                        uint32_t num_parts, void *scratch) {
  const mp_group_layout_t *layout = schedule->layout;
  const stage_t stage = schedule_reduce_stage_of(schedule, phase);
  const bool is_far = stage == MP_STAGE_REDUCE_FAR;
  packer_t packer = {
      .schedule = schedule,
      .reduction = schedule_reduce_start(schedule, number, scratch),
      .layout = is_far ? layout->hosts : layout,
      .owner = is_far ? layout->host_of[layout->self] : layout->self,
      .block = schedule_reduce_block_of(schedule, stage, number, layout->self, destination),
      .to = schedule_reduce_own_block(schedule, phase, number, destination),
  };
  if (is_far) {
    schedule_reduce_use_near(schedule, &packer.reduction);
    packer.first = schedule_reduce_segment_at(schedule, number, layout->column_of[destination],
                                              layout->host_of[destination]);
  }
  schedule_reduce_pack_column(&packer, destination, part, num_parts);
}

// ---- Packing results ----

// Writes elements of an all_reduce to all members of this process.
static void schedule_reduce_write_outputs(const mp_collective_schedule_t *schedule, uint32_t number,
                                          int64_t begin, int64_t count, const void *from) {
  const mp_group_layout_t *layout = schedule->layout;
  const size_t size = mp_dtype_size(schedule->collective->operands[number].dtype);
  const uint32_t *members = mp_group_layout_members(layout, layout->self);
  for (uint32_t m = 0; m < mp_group_layout_num_members(layout, layout->self) && count != 0; ++m) {
    char *to = schedule->contributions[members[m]].outputs[number];
    memcpy(to + (size_t)begin * size, from, (size_t)count * size);
  }
}

// Combines the own segment of a large all_reduce, into the payload and into the results of this
// process's members.
static void schedule_reduce_combine_segment(const mp_collective_schedule_t *schedule,
                                            uint32_t phase, uint32_t number, uint32_t part,
                                            uint32_t num_parts, void *scratch) {
  const mp_group_layout_t *layout = schedule->layout;
  mp_reduction_t reduction = schedule_reduce_start(schedule, number, scratch);
  schedule_reduce_use_near(schedule, &reduction);
  schedule_reduce_use_far(schedule, &reduction);
  const size_t size = mp_dtype_size(reduction.operand->dtype);
  const int64_t count = schedule_reduce_segment_count(schedule, number, layout->self);
  const int64_t segment = schedule_reduce_own_segment_at(schedule, number);
  const int64_t first =
      schedule_reduce_column_begin(schedule, number, layout->column_of[layout->self]) + segment;
  const int64_t step = mp_reduce_block_elements(schedule->collective);
  const int64_t end = count * (part + 1) / num_parts;
  char *to = schedule_reduce_own_block(schedule, phase, number, layout->self);
  for (int64_t at = count * part / num_parts; at < end; at += step) {
    const int64_t now = end - at < step ? end - at : step;
    reduction.near.at = segment + at;
    reduction.far.at = at;
    mp_reduction_run(&reduction, 0, layout->size, first + at, now);
    mp_reduction_store(&reduction, to + (size_t)at * size);
    schedule_reduce_write_outputs(schedule, number, first + at, now, to + (size_t)at * size);
  }
}

// Collects the results of the own column, most of which came from its other processes, for this
// host; also writes them into the results of this process's members.
static void schedule_reduce_collect_column(const mp_collective_schedule_t *schedule, uint32_t phase,
                                           uint32_t number, uint32_t part, uint32_t num_parts) {
  const mp_group_layout_t *layout = schedule->layout;
  const uint32_t column = layout->column_of[layout->self];
  const size_t size = mp_dtype_size(schedule->collective->operands[number].dtype);
  char *to = schedule_reduce_own_block(schedule, phase, number, layout->self);
  for (uint32_t host = 0; host < layout->num_hosts; ++host) {
    const uint32_t process = mp_group_layout_process_at(layout, host, column);
    const int64_t count = schedule_reduce_segment_count(schedule, number, process);
    const int64_t begin = count * part / num_parts;
    const int64_t end = count * (part + 1) / num_parts;
    if (begin == end) continue;
    const char *from =
        schedule_reduce_received_block(schedule, phase - 1, number, process) + (size_t)begin * size;
    const int64_t at = schedule_reduce_segment_at(schedule, number, column, host) + begin;
    memcpy(to + (size_t)at * size, from, (size_t)(end - begin) * size);
    if (process == layout->self) continue;  // written when it was combined
    schedule_reduce_write_outputs(schedule, number,
                                  schedule_reduce_column_begin(schedule, number, column) + at,
                                  end - begin, from);
  }
}

static void schedule_reduce_pack(const mp_collective_schedule_t *schedule, uint32_t phase,
                                 uint32_t part, uint32_t num_parts, void *scratch) {
  const mp_group_layout_t *layout = schedule->layout;
  const stage_t stage = schedule_reduce_stage_of(schedule, phase);
  for (uint32_t i = 0; i < schedule->collective->num_operands; ++i) {
    if (stage == MP_STAGE_SPREAD_NEAR && layout->num_hosts > 1) {
      schedule_reduce_collect_column(schedule, phase, i, part, num_parts);
    } else if (stage == MP_STAGE_SPREAD_NEAR || stage == MP_STAGE_SPREAD_FAR) {
      schedule_reduce_combine_segment(schedule, phase, i, part, num_parts, scratch);
    } else if (stage == MP_STAGE_ALL) {
      schedule_reduce_pack_pieces(schedule, phase, i, layout->self, part, num_parts, scratch);
    } else {
      for (uint32_t p = 0; p < layout->num_processes; ++p) {
        if (p == layout->self || !schedule_reduce_is_concerned(schedule, stage, p)) continue;
        schedule_reduce_pack_pieces(schedule, phase, i, p, part, num_parts, scratch);
      }
    }
  }
}

// ---- The results of this process's members ----

static void schedule_reduce_all(const mp_collective_call_t *call, uint32_t number) {
  const mp_collective_schedule_t *schedule = call->schedule;
  mp_reduction_t reduction = schedule_reduce_start(schedule, number, call->scratch);
  schedule_reduce_use_near(schedule, &reduction);
  const uint32_t *members = mp_group_layout_members(schedule->layout, schedule->layout->self);
  const int64_t step = mp_reduce_block_elements(call->collective);
  int64_t begin, end;
  mp_chunk_range(call, mp_operand_elements(reduction.operand), &begin, &end);
  for (int64_t at = begin; at < end; at += step) {
    reduction.near.at = at;
    // The first member's result is computed in place, and the others' are copies of it.
    mp_reduction_aim_at(&reduction, &call->contributions[members[0]], at);
    mp_reduction_run(&reduction, 0, call->size, at, end - at < step ? end - at : step);
    for (uint32_t m = 0; m < mp_group_layout_num_members(schedule->layout, schedule->layout->self);
         ++m) {
      mp_reduction_store_at(&reduction, &call->contributions[members[m]], at);
    }
  }
}

// Copies the columns from the other processes of this host into the results of this process's
// members.
static void schedule_reduce_copy_columns(const mp_collective_call_t *call, uint32_t number) {
  const mp_collective_schedule_t *schedule = call->schedule;
  const mp_group_layout_t *layout = schedule->layout;
  const size_t size = mp_dtype_size(call->collective->operands[number].dtype);
  for (uint32_t p = 0; p < layout->num_processes; ++p) {
    if (p == layout->self || !mp_group_layout_is_near(layout, p)) continue;
    const uint32_t column = layout->column_of[p];
    int64_t begin, end;
    mp_chunk_range(call, schedule_reduce_column_count(schedule, number, column), &begin, &end);
    if (begin == end) continue;
    const char *from =
        schedule_reduce_received_block(schedule, schedule->num_phases - 1, number, p);
    schedule_reduce_write_outputs(schedule, number,
                                  schedule_reduce_column_begin(schedule, number, column) + begin,
                                  end - begin, from + (size_t)begin * size);
  }
}

void mp_all_reduce_schedule(const mp_collective_call_t *call) {
  for (uint32_t i = 0; i < call->collective->num_operands; ++i) {
    if (call->schedule->num_phases == 1) {
      schedule_reduce_all(call, i);
    } else {
      schedule_reduce_copy_columns(call, i);
    }
  }
}

static void schedule_reduce_scatter_operand(const mp_collective_call_t *call, uint32_t number) {
  const mp_collective_schedule_t *schedule = call->schedule;
  const mp_group_layout_t *layout = schedule->layout;
  mp_reduction_t reduction = schedule_reduce_start(schedule, number, call->scratch);
  schedule_reduce_use_near(schedule, &reduction);
  schedule_reduce_use_far(schedule, &reduction);
  const mp_collective_operand_t *operand = reduction.operand;
  const uint32_t dimension = (uint32_t)call->collective->dimension;
  const int64_t outer = mp_dims_product(operand->dims, 0, dimension);
  const int64_t run = mp_dims_product(operand->result_dims, dimension, operand->rank);
  const int64_t step = mp_reduce_block_elements(call->collective);
  const int64_t segment = schedule_reduce_own_segment_at(schedule, number);
  const uint32_t *members = mp_group_layout_members(layout, layout->self);
  int64_t begin, end;
  mp_chunk_range(call, outer * mp_group_layout_num_members(layout, layout->self), &begin, &end);
  for (int64_t i = begin; i < end; ++i) {
    const uint32_t member = members[i / outer];
    const int64_t row = i % outer;
    for (int64_t done = 0; done < run; done += step) {
      reduction.far.at = i * run + done;
      reduction.near.at = segment + reduction.far.at;
      mp_reduction_run(&reduction, 0, call->size, (row * call->size + member) * run + done,
                       run - done < step ? run - done : step);
      mp_reduction_store_at(&reduction, &call->contributions[member], row * run + done);
    }
  }
}

void mp_reduce_scatter_schedule(const mp_collective_call_t *call) {
  for (uint32_t i = 0; i < call->collective->num_operands; ++i)
    schedule_reduce_scatter_operand(call, i);
}

const mp_collective_schedule_kind_t mp_collective_schedule_pieces = {
    .num_phases = schedule_reduce_num_phases,
    .plan = schedule_reduce_plan,
    .pack = schedule_reduce_pack,
    .awaits = schedule_reduce_awaits,
    .expected = schedule_reduce_expected};
