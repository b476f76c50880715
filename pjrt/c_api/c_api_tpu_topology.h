// The PJRT C API: the TpuTopology extension (type 16), which describes TPUs in libtpu's terms.
//
// A *process* is what JAX calls one, with its *chips*; a *logical device* is what JAX calls a
// device: a core, or all cores of a chip. Ids of chips, devices and processes are global. Lists of
// ids and coordinates are written to the caller's memory, whose capacity is given in numbers.
// These structs have no extension_start.
#ifndef MINIPOD_PJRT_C_API_C_API_TPU_TOPOLOGY_H_
#define MINIPOD_PJRT_C_API_C_API_TPU_TOPOLOGY_H_

#include "pjrt/c_api/c_api.h"

typedef struct PJRT_TpuTopology_Subslice_Args {
  size_t struct_size;
  const PJRT_TopologyDescription *topology;
  const int32_t *chips_per_host_bounds;
  size_t chips_per_host_bounds_num_dims;
  const int32_t *host_bounds;
  size_t host_bounds_num_dims;
  PJRT_TopologyDescription *subslice_topology;  // out
} PJRT_TpuTopology_Subslice_Args;

typedef struct PJRT_TpuTopology_IsSubsliceTopology_Args {
  size_t struct_size;
  const PJRT_TopologyDescription *topology;
  bool is_subslice_topology;  // out
} PJRT_TpuTopology_IsSubsliceTopology_Args;

typedef struct PJRT_TpuTopology_SubsliceDeviceIdFromFullDeviceId_Args {
  size_t struct_size;
  const PJRT_TopologyDescription *client_topology;
  const PJRT_TopologyDescription *subslice_topology;
  const int32_t *subslice_origin;
  size_t subslice_origin_dim_num;
  int32_t full_device_id;
  int32_t subslice_device_id;  // out
} PJRT_TpuTopology_SubsliceDeviceIdFromFullDeviceId_Args;

typedef struct PJRT_TpuTopology_ReplaceHostBounds_Args {
  size_t struct_size;
  const PJRT_TopologyDescription *topology;
  const int32_t *host_bounds;
  size_t host_bounds_dim_num;
  PJRT_TopologyDescription *new_topology;  // out
} PJRT_TpuTopology_ReplaceHostBounds_Args;

typedef struct PJRT_TpuTopology_IsEnhancedBarrierEnabled_Args {
  size_t struct_size;
  const PJRT_TopologyDescription *topology;
  bool is_enhanced_barrier_enabled;  // out
} PJRT_TpuTopology_IsEnhancedBarrierEnabled_Args;

typedef struct PJRT_TpuTopology_HasLimitedIciConnectivity_Args {
  size_t struct_size;
  const PJRT_TopologyDescription *topology;
  bool has_limited_ici_connectivity;  // out
} PJRT_TpuTopology_HasLimitedIciConnectivity_Args;

typedef struct PJRT_TpuTopology_IsReachableOverLimitedIci_Args {
  size_t struct_size;
  const PJRT_TopologyDescription *topology;
  int32_t source_chip_id;
  int32_t dest_chip_id;
  bool is_reachable_over_limited_ici;  // out
} PJRT_TpuTopology_IsReachableOverLimitedIci_Args;

typedef struct PJRT_TpuTopology_ProcessCount_Args {
  size_t struct_size;
  const PJRT_TopologyDescription *topology;
  int32_t process_count;  // out
} PJRT_TpuTopology_ProcessCount_Args;

typedef struct PJRT_TpuTopology_ChipsPerProcess_Args {
  size_t struct_size;
  const PJRT_TopologyDescription *topology;
  int32_t chips_per_process;  // out
} PJRT_TpuTopology_ChipsPerProcess_Args;

typedef struct PJRT_TpuTopology_CoreCountPerChip_Args {
  size_t struct_size;
  const PJRT_TopologyDescription *topology;
  int32_t core_count_of_default_type_per_chip;  // out
} PJRT_TpuTopology_CoreCountPerChip_Args;

typedef struct PJRT_TpuTopology_ChipCount_Args {
  size_t struct_size;
  const PJRT_TopologyDescription *topology;
  int32_t chip_count;  // out
} PJRT_TpuTopology_ChipCount_Args;

typedef struct PJRT_TpuTopology_CoreCount_Args {
  size_t struct_size;
  const PJRT_TopologyDescription *topology;
  int32_t core_count_of_default_type;  // out
} PJRT_TpuTopology_CoreCount_Args;

typedef struct PJRT_TpuTopology_LogiDeviceCount_Args {
  size_t struct_size;
  const PJRT_TopologyDescription *topology;
  int32_t logical_device_count_of_default_type;  // out
} PJRT_TpuTopology_LogiDeviceCount_Args;

typedef struct PJRT_TpuTopology_LogiDeviceCountPerProcess_Args {
  size_t struct_size;
  const PJRT_TopologyDescription *topology;
  int32_t logical_device_count_of_default_type_per_process;  // out
} PJRT_TpuTopology_LogiDeviceCountPerProcess_Args;

typedef struct PJRT_TpuTopology_LogiDeviceCountPerChip_Args {
  size_t struct_size;
  const PJRT_TopologyDescription *topology;
  int32_t logical_device_count_of_default_type_per_chip;  // out
} PJRT_TpuTopology_LogiDeviceCountPerChip_Args;

typedef struct PJRT_TpuTopology_CoreCountPerProcess_Args {
  size_t struct_size;
  const PJRT_TopologyDescription *topology;
  int32_t core_count_of_default_type_per_process;  // out
} PJRT_TpuTopology_CoreCountPerProcess_Args;

typedef struct PJRT_TpuTopology_ProcessIds_Args {
  size_t struct_size;
  const PJRT_TopologyDescription *topology;
  int32_t max_process_ids;
  int32_t *process_ids;
  size_t num_process_ids;  // out
} PJRT_TpuTopology_ProcessIds_Args;

typedef struct PJRT_TpuTopology_LogiDeviceIdsOnProcess_Args {
  size_t struct_size;
  const PJRT_TopologyDescription *topology;
  int32_t process_id;
  int32_t max_logical_device_ids;
  int32_t *logical_device_of_default_type_ids;
  size_t num_logical_device_ids;  // out
} PJRT_TpuTopology_LogiDeviceIdsOnProcess_Args;

typedef struct PJRT_TpuTopology_ProcIdAndIdxOnProcForChip_Args {
  size_t struct_size;
  const PJRT_TopologyDescription *topology;
  int32_t chip_id;
  int32_t process_id;        // out
  int32_t index_on_process;  // out
} PJRT_TpuTopology_ProcIdAndIdxOnProcForChip_Args;

typedef struct PJRT_TpuTopology_ProcIdAndIdxOnProcForLogiDevice_Args {
  size_t struct_size;
  const PJRT_TopologyDescription *topology;
  int32_t device_id;
  int32_t process_id;        // out
  int32_t index_on_process;  // out
} PJRT_TpuTopology_ProcIdAndIdxOnProcForLogiDevice_Args;

typedef struct PJRT_TpuTopology_ProcessCoordFromId_Args {
  size_t struct_size;
  const PJRT_TopologyDescription *topology;
  int32_t process_id;
  size_t coords_max_dims;
  int32_t *coords;
  size_t coords_num_dims;  // out
} PJRT_TpuTopology_ProcessCoordFromId_Args;

typedef struct PJRT_TpuTopology_ChipIdFromCoord_Args {
  size_t struct_size;
  const PJRT_TopologyDescription *topology;
  const int32_t *coords;
  size_t coords_num_dims;
  int32_t chip_id;  // out
} PJRT_TpuTopology_ChipIdFromCoord_Args;

typedef struct PJRT_TpuTopology_LogiDeviceIdFromChipCoordAndIdx_Args {
  size_t struct_size;
  const PJRT_TopologyDescription *topology;
  const int32_t *chip_coords;
  size_t chip_coords_num_dims;
  int32_t logical_device_index_on_chip;
  int32_t logical_device_of_default_type_id;  // out
} PJRT_TpuTopology_LogiDeviceIdFromChipCoordAndIdx_Args;

typedef struct PJRT_TpuTopology_ChipCoordAndIdxForLogiDevice_Args {
  size_t struct_size;
  const PJRT_TopologyDescription *topology;
  int32_t device_id;
  size_t chip_coords_max_dims;
  int32_t *chip_coords;
  size_t chip_coords_num_dims;   // out
  int32_t device_index_on_chip;  // out
} PJRT_TpuTopology_ChipCoordAndIdxForLogiDevice_Args;

typedef struct PJRT_TpuTopology_ChipsPerProcessBounds_Args {
  size_t struct_size;
  const PJRT_TopologyDescription *topology;
  size_t chip_per_process_bounds_max_dims;
  int32_t *chip_per_process_bounds;
  size_t chip_per_process_bounds_num_dims;  // out
} PJRT_TpuTopology_ChipsPerProcessBounds_Args;

typedef struct PJRT_TpuTopology_ChipBounds_Args {
  size_t struct_size;
  const PJRT_TopologyDescription *topology;
  size_t chip_bounds_max_dims;
  int32_t *chip_bounds;
  size_t chip_bounds_num_dims;  // out
} PJRT_TpuTopology_ChipBounds_Args;

typedef struct PJRT_TpuTopology_ProcessBounds_Args {
  size_t struct_size;
  const PJRT_TopologyDescription *topology;
  size_t process_bounds_max_dims;
  int32_t *process_bounds;
  size_t process_bounds_num_dims;  // out
} PJRT_TpuTopology_ProcessBounds_Args;

typedef struct PJRT_TpuTopology_GetRoutingStrategy_Args {
  size_t struct_size;
  const PJRT_TopologyDescription *topology;
  char *routing_strategy;       // the caller's memory for the text and a NUL
  size_t routing_strategy_len;  // of the memory; out: of the text
} PJRT_TpuTopology_GetRoutingStrategy_Args;

typedef struct PJRT_TpuTopology_SliceConfig {
  size_t dim_size;
  int32_t dimensions[4];
  bool wrap[4];
  bool twist;
} PJRT_TpuTopology_SliceConfig;

typedef struct PJRT_TpuTopology_GetSliceConfig_Args {
  size_t struct_size;
  const char *platform_type_name;
  size_t platform_type_name_len;
  const char *slice_name;
  size_t slice_name_len;
  PJRT_TpuTopology_SliceConfig *slice_config;  // out, in the caller's memory
} PJRT_TpuTopology_GetSliceConfig_Args;

typedef struct PJRT_TpuTopology_GetSliceConfigs_Args {
  size_t struct_size;
  const char *platform_type_name;
  size_t platform_type_name_len;
  PJRT_TpuTopology_SliceConfig *slice_configs;
  size_t max_slice_configs;
  size_t num_slice_configs;  // out
} PJRT_TpuTopology_GetSliceConfigs_Args;

typedef struct PJRT_TpuTopology_GetDefaultPlatformConfig_Args {
  size_t struct_size;
  const char *platform_type_name;
  size_t platform_type_name_len;
  int64_t num_chips_per_tray;  // out
  int64_t num_trays;           // out
} PJRT_TpuTopology_GetDefaultPlatformConfig_Args;

// The functions in the order of the table: name, slot.
#define PJRT_TPU_TOPOLOGY_FUNCTIONS(X)                                          \
  X(Subslice, subslice)                                                         \
  X(IsSubsliceTopology, is_subslice_topology)                                   \
  X(SubsliceDeviceIdFromFullDeviceId, subslice_device_id_from_full_device_id)   \
  X(ReplaceHostBounds, replace_host_bounds)                                     \
  X(IsEnhancedBarrierEnabled, is_enhanced_barrier_enabled)                      \
  X(HasLimitedIciConnectivity, has_limited_ici_connectivity)                    \
  X(IsReachableOverLimitedIci, is_reachable_over_limited_ici)                   \
  X(ProcessCount, process_count)                                                \
  X(ChipsPerProcess, chips_per_process)                                         \
  X(CoreCountPerChip, core_count_per_chip)                                      \
  X(ChipCount, chip_count)                                                      \
  X(CoreCount, core_count)                                                      \
  X(LogiDeviceCountPerProcess, logical_device_count_per_process)                \
  X(LogiDeviceCount, logical_device_count)                                      \
  X(LogiDeviceCountPerChip, logical_device_count_per_chip)                      \
  X(CoreCountPerProcess, core_count_per_process)                                \
  X(ProcessIds, process_ids)                                                    \
  X(LogiDeviceIdsOnProcess, logical_device_ids_on_process)                      \
  X(ProcIdAndIdxOnProcForChip, proc_id_and_idx_on_proc_for_chip)                \
  X(ProcIdAndIdxOnProcForLogiDevice, proc_id_and_idx_on_proc_for_logi_device)   \
  X(ProcessCoordFromId, process_coord_from_id)                                  \
  X(ChipIdFromCoord, chip_id_from_coord)                                        \
  X(LogiDeviceIdFromChipCoordAndIdx, logical_device_id_from_chip_coord_and_idx) \
  X(ChipCoordAndIdxForLogiDevice, chip_coord_and_idx_for_logi_device)           \
  X(ChipsPerProcessBounds, chips_per_process_bounds)                            \
  X(ChipBounds, chip_bounds)                                                    \
  X(ProcessBounds, process_bounds)                                              \
  X(GetRoutingStrategy, get_routing_strategy)                                   \
  X(GetSliceConfig, get_slice_config)                                           \
  X(GetSliceConfigs, get_slice_configs)                                         \
  X(GetDefaultPlatformConfig, get_default_platform_config)

typedef struct PJRT_TpuTopology_Extension {
  PJRT_Extension_Base base;
#define PJRT_TPU_TOPOLOGY_SLOT(name, slot) PJRT_Error *(*slot)(PJRT_TpuTopology_##name##_Args *);
  PJRT_TPU_TOPOLOGY_FUNCTIONS(PJRT_TPU_TOPOLOGY_SLOT)
#undef PJRT_TPU_TOPOLOGY_SLOT
} PJRT_TpuTopology_Extension;

#endif  // MINIPOD_PJRT_C_API_C_API_TPU_TOPOLOGY_H_
