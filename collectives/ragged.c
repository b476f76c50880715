// ragged_all_to_all: rows of varying number from every member to every member.
//
// Operands in the order of the custom call: operand, output, input_offsets, send_sizes,
// output_offsets, recv_sizes. The four index arrays hold k entries per member (k = their length /
// group size); entry j*k+u of source i describes its u-th update for destination j. Offsets and
// sizes count rows of the outermost dimension.
#include <string.h>

#include "collectives/internal.h"
#include "sim/base/box.h"

static int64_t index_at(const mp_collective_operand_t *operand, const void *data, int64_t i) {
  if (mp_dtype_size(operand->dtype) == 4) return ((const int32_t *)data)[i];
  return ((const int64_t *)data)[i];
}

typedef struct {
  int64_t in, out, rows, received;
} mp_ragged_update_t;

static mp_status_t check_update(const mp_collective_call_t *call, const mp_ragged_update_t *update,
                                uint32_t source, int64_t destination) {
  const mp_collective_operand_t *operands = call->collective->operands;
  if (update->rows < 0 || update->in < 0 || update->out < 0 ||
      update->rows > operands[0].dims[0] - update->in ||
      update->rows > operands[1].dims[0] - update->out) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "%s [%s]: device %u sends rows %lld+%lld of %lld to rows %lld of %lld of "
                          "device %u",
                          call->collective->name, call->collective->location, call->members[source],
                          (long long)update->in, (long long)update->rows,
                          (long long)operands[0].dims[0], (long long)update->out,
                          (long long)operands[1].dims[0], call->members[destination]);
  }
  if (update->rows != update->received) {
    return mp_status_make(
        MP_INVALID_ARGUMENT, "%s [%s]: device %u sends %lld rows to device %u, which expects %lld",
        call->collective->name, call->collective->location, call->members[source],
        (long long)update->rows, call->members[destination], (long long)update->received);
  }
  return NULL;
}

mp_status_t mp_ragged_all_to_all_chunk(const mp_collective_call_t *call) {
  const mp_collective_operand_t *operands = call->collective->operands;
  const int64_t row_bytes = mp_dims_product(operands[0].dims + 1, operands[0].rank - 1) *
                            (int64_t)mp_dtype_size(operands[0].dtype);
  const int64_t per_pair = operands[2].dims[0] / call->size;
  int64_t begin, end;
  mp_chunk_range(call, call->size, &begin, &end);
  for (int64_t destination = begin; destination < end; ++destination) {
    const mp_contribution_t *to = &call->contributions[destination];
    const size_t bytes = (size_t)(operands[1].dims[0] * row_bytes);
    if (bytes != 0) memcpy(to->outputs[0], to->inputs[1], bytes);
    for (uint32_t source = 0; source < call->size; ++source) {
      const mp_contribution_t *from = &call->contributions[source];
      for (int64_t u = 0; u < per_pair; ++u) {
        const int64_t i = destination * per_pair + u;
        const mp_ragged_update_t update = {
            .in = index_at(&operands[2], from->inputs[2], i),
            .rows = index_at(&operands[3], from->inputs[3], i),
            .out = index_at(&operands[4], from->inputs[4], i),
            .received = index_at(&operands[5], to->inputs[5], source * per_pair + u),
        };
        MP_RETURN_IF_ERROR(check_update(call, &update, source, destination));
        if (update.rows == 0 || row_bytes == 0) continue;
        memcpy((char *)to->outputs[0] + update.out * row_bytes,
               (const char *)from->inputs[0] + update.in * row_bytes,
               (size_t)(update.rows * row_bytes));
      }
    }
  }
  return NULL;
}
