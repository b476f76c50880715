// A program as in its message: computations of instructions, which refer to each other by numbers.
// hlo_graph.c decodes them and replaces the numbers by pointers.
#ifndef MINIPOD_SIM_READERS_HLO_MESSAGE_HLO_GRAPH_H_
#define MINIPOD_SIM_READERS_HLO_MESSAGE_HLO_GRAPH_H_

#include "sim/base/containers/hash_map.h"
#include "sim/ir/module.h"
#include "sim/readers/hlo/message/hlo_decode.h"
#include "sim/readers/hlo/message/hlo_shape.h"

typedef struct mp_hlo_row_s mp_hlo_row_t;
typedef struct mp_hlo_comp_s mp_hlo_comp_t;
typedef struct mp_hlo_inst_s mp_hlo_inst_t;

// HloInstructionProto. Texts whose names end in `_bytes` are messages.
struct mp_hlo_inst_s {
  mp_str_t name, opcode;
  mp_str_t shape_bytes, metadata_bytes, literal_bytes, window_bytes, convolution_bytes;
  mp_str_t padding_bytes, dot_bytes, gather_bytes, scatter_bytes, sharding_bytes, precision_bytes;
  mp_str_t triangular_bytes, cholesky_bytes, frontend_bytes;
  mp_str_t device_list_bytes, iota_list_bytes, mesh_list_bytes;
  mp_str_t custom_call_target, comparison_direction, comparison_type, backend_config;
  mp_hlo_texts_t slices, replica_groups, source_target_pairs, aliasing, operand_shapes;
  mp_hlo_ints_t dimensions, dynamic_slice_sizes, fft_length, gather_slice_sizes;
  mp_hlo_ints_t operand_ids, predecessor_ids, called_ids;
  int64_t id, parameter_number, tuple_index, exponent_bits, mantissa_bits, distribution;
  int64_t feature_index, channel_id, fft_type, feature_group_count, batch_group_count;
  int64_t rng_algorithm, api_version;
  float epsilon;
  bool is_host_transfer, constrain_layout, is_stable, has_side_effect, indices_are_sorted;
  bool unique_indices, use_global_device_ids, largest;

  // Set by hlo_graph.c.
  const mp_hlo_comp_t *comp;
  const mp_hlo_row_t *row;  // of the table of opcodes (hlo_ops.c); NULL before it is built
  const mp_hlo_shape_t *shape;
  mp_hlo_inst_t **operands;      // [operand_ids.count]
  mp_hlo_inst_t **predecessors;  // [predecessor_ids.count]
  mp_hlo_comp_t **called;        // [called_ids.count]
  uint32_t index;                // in its computation
  const mp_loc_t *loc;           // in the module's arena
};

typedef struct {
  uint64_t hash;  // of the id
  int64_t id;
  void *object;
} mp_hlo_by_id_t;
typedef MP_HASH_MAP(mp_hlo_by_id_t) mp_hlo_ids_t;

// HloComputationProto.
struct mp_hlo_comp_s {
  mp_str_t name;
  mp_hlo_texts_t inst_bytes;
  int64_t id, root_id;

  uint32_t index;         // in the module
  uint32_t count;         // instructions
  mp_hlo_inst_t *insts;   // [count]
  mp_hlo_inst_t **order;  // [count]: each behind its operands and predecessors
  mp_hlo_inst_t *root;
  uint32_t num_params;
  mp_hlo_inst_t **params;   // [num_params]: by parameter number
  uint32_t *param_leaf;     // [num_params]: the number of each one's first leaf
  uint32_t num_leaves;      // of all parameters
  const mp_type_t **types;  // [num_leaves]
  mp_func_t *func;          // once it is called
  bool is_active;           // while it is being built
};

// HloModuleProto.
typedef struct {
  mp_str_t name, alias_bytes, output_sharding_bytes, frames_bytes;
  mp_str_t donor_bytes, frontend_bytes;
  mp_hlo_texts_t comp_bytes, parameter_shardings;
  int64_t entry_id;
} mp_hlo_module_t;

// The location of a stack frame, once it was needed, and how many frames it has.
typedef struct {
  const mp_loc_t *loc;
  uint32_t depth;  // 0: not yet known
} mp_hlo_frame_t;

// The state of a reading.
typedef struct {
  // The row of an opcode in the table of builders (hlo_ops.c); NULL when it is not known.
  const mp_hlo_row_t *(*find_row)(mp_str_t opcode);
  mp_hlo_source_t source;  // with the arena for temporaries of reading
  mp_module_t *module;     // the result
  mp_hlo_module_t proto;
  mp_str_t entry_layout_bytes;  // ProgramShapeProto: layouts of parameters and result
  mp_hlo_texts_t frames, frame_locations, file_names;
  mp_hlo_frame_t *known_frames;  // [frames.count]
  uint32_t num_comps;
  mp_hlo_comp_t *comps;
  mp_hlo_comp_t *entry;
  uint32_t depth;       // computations that are being built, each within the one before
  uint32_t num_insts;   // instructions that were built
  uint64_t secret;      // where hashes start
  uint32_t num_meshes;  // that were made for device lists
} mp_hlo_t;

// Decodes all computations, resolves their references, and finds the entry.
MP_NODISCARD mp_status_t mp_hlo_read_graph(mp_hlo_t *h);

// "computation 'main.5': instruction 'add.3' (add, loss at train.py:12): ..."
MP_NODISCARD MP_PRINTF(3, 4) mp_status_t
    mp_hlo_error(const mp_hlo_inst_t *inst, mp_status_code_t code, const char *format, ...);
// Adds the instruction to an error without one; consumes it. OK stays OK.
MP_NODISCARD mp_status_t mp_hlo_error_at(const mp_hlo_inst_t *inst, mp_status_t status);

#endif  // MINIPOD_SIM_READERS_HLO_MESSAGE_HLO_GRAPH_H_
