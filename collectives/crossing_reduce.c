// all_reduce and reduce_scatter over processes: everybody sends its pieces of the tree, and who
// needs a result combines the pieces of all.
#include <string.h>

#include "collectives/internal.h"
#include "sim/base/box.h"

// Above this a second hop costs less than everybody combining everything.
#define MP_SMALL_ALL_REDUCE (256 * 1024)

static int64_t elements_of(const mp_collective_operand_t *operand) {
  return mp_dims_product(operand->dims, operand->rank);
}

bool mp_all_reduce_is_large(const mp_collective_t *collective, const mp_spread_t *spread) {
  double bytes = 0;
  for (uint32_t i = 0; i < collective->num_operands; ++i) {
    const mp_collective_operand_t *operand = &collective->operands[i];
    bytes += (double)elements_of(operand) * (double)mp_dtype_size(operand->dtype);
  }
  return bytes * spread->num_processes > MP_SMALL_ALL_REDUCE;
}

// ---- What is sent ----

// The first element of a process' share.
static int64_t share_begin(const mp_crossing_t *crossing, int64_t total, uint32_t process) {
  return total * process / crossing->spread->num_processes;
}

static int64_t share_of(const mp_crossing_t *crossing, int64_t total, uint32_t process) {
  return share_begin(crossing, total, process + 1) - share_begin(crossing, total, process);
}

// Elements of each piece that goes to `destination`.
static int64_t wire_count(const mp_crossing_t *crossing, uint32_t number, uint32_t destination) {
  const mp_collective_operand_t *operand = &crossing->collective->operands[number];
  if (crossing->collective->kind == MP_COLLECTIVE_REDUCE_SCATTER) {
    return mp_dims_product(operand->result_dims, operand->rank) *
           mp_spread_num_members(crossing->spread, destination);
  }
  const int64_t total = elements_of(operand);
  return crossing->num_phases == 1 ? total : share_of(crossing, total, destination);
}

// Bytes from one piece of the operand to the next.
static size_t piece_stride(const mp_crossing_t *crossing, uint32_t number, uint32_t source,
                           uint32_t destination) {
  const mp_collective_operand_t *operand = &crossing->collective->operands[number];
  return mp_align64((size_t)wire_count(crossing, number, destination) *
                    mp_piece_element_bytes(crossing->spread, source, operand));
}

// Where operand `number` begins in the parcel from `source` to `destination`; for the number of
// operands: its size.
static size_t pieces_at(const mp_crossing_t *crossing, uint32_t number, uint32_t source,
                        uint32_t destination) {
  size_t at = 0;
  for (uint32_t i = 0; i < number; ++i) {
    at += crossing->spread->pieces_of[source] * piece_stride(crossing, i, source, destination);
  }
  return at;
}

// The same of a parcel of results.
static size_t results_at(const mp_crossing_t *crossing, uint32_t number, uint32_t source) {
  size_t at = 0;
  for (uint32_t i = 0; i < number; ++i) {
    const mp_collective_operand_t *operand = &crossing->collective->operands[i];
    at += mp_align64((size_t)share_of(crossing, elements_of(operand), source) *
                     mp_dtype_size(operand->dtype));
  }
  return at;
}

static size_t parcel_bytes(const mp_crossing_t *crossing, uint32_t phase, uint32_t source,
                           uint32_t destination) {
  const uint32_t all = crossing->collective->num_operands;
  return phase == 0 ? pieces_at(crossing, all, source, destination)
                    : results_at(crossing, all, source);
}

static mp_status_t plan(mp_crossing_t *crossing, uint32_t phase, bool *out_is_shared) {
  const mp_spread_t *spread = crossing->spread;
  for (uint32_t p = 0; p < spread->num_processes; ++p) {
    if (p == spread->self) continue;
    crossing->sizes[mp_crossing_at(crossing, phase, p)] =
        parcel_bytes(crossing, phase, spread->self, p);
  }
  *out_is_shared = phase == 1 || (crossing->collective->kind == MP_COLLECTIVE_ALL_REDUCE &&
                                  crossing->num_phases == 1);
  return NULL;
}

static size_t expected(const mp_crossing_t *crossing, uint32_t phase, uint32_t process) {
  return parcel_bytes(crossing, phase, process, crossing->spread->self);
}

// ---- Packing pieces ----

typedef struct {
  const mp_crossing_t *crossing;
  mp_reduction_t reduction;
  const mp_piece_t *piece;
  uint32_t destination;
  char *to;  // where the piece begins
  size_t element_bytes;
  int64_t step;  // elements at a time
} mp_piece_packer_t;

static void pack_run(mp_piece_packer_t *packer, int64_t leaf, int64_t wire, int64_t count) {
  const mp_piece_t *piece = packer->piece;
  const size_t size = packer->element_bytes;
  if (mp_spread_has_leaves_only(packer->crossing->spread, piece->process)) {
    const mp_contribution_t *member = &packer->crossing->contributions[piece->begin];
    const char *input = member->inputs[packer->reduction.number];
    memcpy(packer->to + (size_t)wire * size, input + (size_t)leaf * size, (size_t)count * size);
    return;
  }
  for (int64_t done = 0; done < count; done += packer->step) {
    const int64_t now = count - done < packer->step ? count - done : packer->step;
    mp_reduction_run(&packer->reduction, piece->begin, piece->count, leaf + done, 0, now);
    memcpy(packer->to + (size_t)(wire + done) * size, packer->reduction.partials,
           (size_t)now * size);
  }
}

// The parts of the destination's members are runs all over the input.
static void pack_scattered(mp_piece_packer_t *packer, int64_t begin, int64_t end) {
  const mp_crossing_t *crossing = packer->crossing;
  const mp_collective_operand_t *operand = packer->reduction.operand;
  const uint32_t dimension = (uint32_t)crossing->collective->dimension;
  const int64_t run = mp_dims_product(operand->result_dims + dimension, operand->rank - dimension);
  const int64_t per_member = mp_dims_product(operand->result_dims, operand->rank);
  const uint32_t *members = mp_spread_members(crossing->spread, packer->destination);
  for (int64_t wire = begin; wire < end;) {
    const int64_t row = wire % per_member / run;
    const int64_t within = wire % run;
    const int64_t left = run - within < end - wire ? run - within : end - wire;
    const uint32_t member = members[wire / per_member];
    pack_run(packer, (row * crossing->spread->size + member) * run + within, wire, left);
    wire += left;
  }
}

static void pack_operand(const mp_crossing_t *crossing, uint32_t number, uint32_t destination,
                         uint32_t part, uint32_t num_parts, void *scratch) {
  const mp_spread_t *spread = crossing->spread;
  const mp_collective_operand_t *operand = &crossing->collective->operands[number];
  const int64_t count = wire_count(crossing, number, destination);
  const int64_t begin = count * part / num_parts;
  const int64_t end = count * (part + 1) / num_parts;
  char *to = (char *)crossing->parcels[mp_crossing_at(crossing, 0, destination)] +
             pieces_at(crossing, number, spread->self, destination);
  mp_piece_packer_t packer = {
      .crossing = crossing,
      .reduction = mp_reduction_start(crossing->collective, crossing->contributions, spread->size,
                                      number, NULL, scratch),
      .destination = destination,
      .element_bytes = mp_piece_element_bytes(spread, spread->self, operand),
      .step = mp_reduce_block_elements(crossing->collective),
  };
  for (uint32_t i = 0; i < spread->num_pieces && begin < end; ++i) {
    packer.piece = &spread->pieces[i];
    if (packer.piece->process != spread->self) continue;
    packer.to =
        to + packer.piece->index * piece_stride(crossing, number, spread->self, destination);
    if (crossing->collective->kind == MP_COLLECTIVE_REDUCE_SCATTER) {
      pack_scattered(&packer, begin, end);
    } else {
      const int64_t first =
          crossing->num_phases == 1 ? 0 : share_begin(crossing, elements_of(operand), destination);
      pack_run(&packer, first + begin, begin, end - begin);
    }
  }
}

// ---- Combining ----

mp_reduction_t mp_crossing_reduction_start(const mp_crossing_t *crossing, uint32_t number,
                                           void *scratch) {
  const mp_spread_t *spread = crossing->spread;
  mp_reduction_t reduction = mp_reduction_start(crossing->collective, crossing->contributions,
                                                spread->size, number, spread, scratch);
  reduction.piece_count = wire_count(crossing, number, spread->self);
  for (uint32_t p = 0; p < spread->num_processes; ++p) {
    const size_t i = mp_crossing_at(crossing, 0, p);
    // A parcel for all has our own pieces as well.
    const char *data = p == spread->self ? crossing->parcels[i] : crossing->received[i].data;
    reduction.bases[p] = data == NULL ? NULL : data + pieces_at(crossing, number, p, spread->self);
  }
  return reduction;
}

// Our share of a large all_reduce: into the parcel for all, and into our members' results.
static void combine_share(const mp_crossing_t *crossing, uint32_t number, uint32_t part,
                          uint32_t num_parts, void *scratch) {
  const mp_spread_t *spread = crossing->spread;
  mp_reduction_t reduction = mp_crossing_reduction_start(crossing, number, scratch);
  const size_t size = mp_dtype_size(reduction.operand->dtype);
  const int64_t first = share_begin(crossing, elements_of(reduction.operand), spread->self);
  const int64_t count = wire_count(crossing, number, spread->self);
  const int64_t step = mp_reduce_block_elements(crossing->collective);
  const int64_t end = count * (part + 1) / num_parts;
  char *to = (char *)crossing->parcels[mp_crossing_at(crossing, 1, spread->self)] +
             results_at(crossing, number, spread->self);
  for (int64_t at = count * part / num_parts; at < end; at += step) {
    mp_reduction_run(&reduction, 0, spread->size, first + at, at,
                     end - at < step ? end - at : step);
    mp_reduction_store(&reduction, to + (size_t)at * size);
    const uint32_t *members = mp_spread_members(spread, spread->self);
    for (uint32_t m = 0; m < mp_spread_num_members(spread, spread->self); ++m) {
      mp_reduction_store_at(&reduction, &crossing->contributions[members[m]], first + at);
    }
  }
}

static void pack(const mp_crossing_t *crossing, uint32_t phase, uint32_t part, uint32_t num_parts,
                 void *scratch) {
  const mp_spread_t *spread = crossing->spread;
  const bool is_for_all =
      crossing->collective->kind == MP_COLLECTIVE_ALL_REDUCE && crossing->num_phases == 1;
  for (uint32_t i = 0; i < crossing->collective->num_operands; ++i) {
    if (phase == 1) combine_share(crossing, i, part, num_parts, scratch);
    if (phase == 1) continue;
    for (uint32_t p = 0; p < spread->num_processes; ++p) {
      if ((p == spread->self) != is_for_all) continue;
      pack_operand(crossing, i, p, part, num_parts, scratch);
    }
  }
}

void mp_all_reduce_copy_chunk(const mp_collective_call_t *call) {
  const mp_crossing_t *crossing = call->crossing;
  const mp_spread_t *spread = crossing->spread;
  const uint32_t *members = mp_spread_members(spread, spread->self);
  for (uint32_t i = 0; i < call->collective->num_operands; ++i) {
    const mp_collective_operand_t *operand = &call->collective->operands[i];
    const size_t size = mp_dtype_size(operand->dtype);
    for (uint32_t p = 0; p < spread->num_processes; ++p) {
      if (p == spread->self) continue;
      const int64_t total = elements_of(operand);
      const char *from = (const char *)crossing->received[mp_crossing_at(crossing, 1, p)].data;
      int64_t begin, end;
      mp_chunk_range(call, share_of(crossing, total, p), &begin, &end);
      if (begin == end) continue;
      from += results_at(crossing, i, p) + (size_t)begin * size;
      const size_t at = (size_t)(share_begin(crossing, total, p) + begin) * size;
      for (uint32_t m = 0; m < mp_spread_num_members(spread, spread->self); ++m) {
        char *to = call->contributions[members[m]].outputs[i];
        memcpy(to + at, from, (size_t)(end - begin) * size);
      }
    }
  }
}

const mp_crossing_kind_t mp_crossing_pieces = {.plan = plan, .pack = pack, .expected = expected};
