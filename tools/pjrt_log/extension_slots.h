// The functions of PJRT's extensions that the log knows, in the order of their tables.
//
// EXTENSION(type, SLOT(function, result)...): the result is `error` (a PJRT_Error *) or `none`.
// Extensions that also have functions of other forms are not here (Profiler, PhaseCompile).
#ifndef MINIPOD_TOOLS_PJRT_LOG_EXTENSION_SLOTS_H_
#define MINIPOD_TOOLS_PJRT_LOG_EXTENSION_SLOTS_H_

// clang-format off
#define PJRT_LOG_EXTENSIONS(EXTENSION, SLOT) \
  EXTENSION(Custom_Partitioner, \
      SLOT(Register_Custom_Partitioner, error) SLOT(Register_Batch_Partitionable, error)) \
  EXTENSION(Stream, \
      SLOT(Get_Stream_For_External_Ready_Events, error) \
      SLOT(Wait_Until_Buffer_Ready_On_Stream, error)) \
  EXTENSION(Layouts, \
      SLOT(MemoryLayout_Destroy, error) SLOT(MemoryLayout_Serialize, error) \
      SLOT(Client_GetDefaultLayout, error) SLOT(Buffer_MemoryLayout, error) \
      SLOT(Topology_GetDefaultLayout, error) SLOT(Executable_GetOutputLayouts, error) \
      SLOT(Executable_GetParameterLayouts, error)) \
  EXTENSION(FFI, \
      SLOT(Type_Register, error) SLOT(UserData_Add, error) SLOT(Register_Handler, error)) \
  EXTENSION(MemoryDescriptions, \
      SLOT(DeviceDescription_MemoryDescriptions, error) SLOT(MemoryDescription_Kind, error)) \
  EXTENSION(RawBuffer, \
      SLOT(CreateRawAliasOfBuffer, error) SLOT(Destroy, error) \
      SLOT(GetOnDeviceSizeInBytes, error) SLOT(GetMemorySpace, error) \
      SLOT(CopyRawHostToDevice, error) SLOT(CopyRawDeviceToHost, error) \
      SLOT(GetHostPointer, error)) \
  EXTENSION(CrossHostTransfers, \
      SLOT(MakeCrossHostReceiveBuffers, error) SLOT(CopyToRemoteDevice, none) \
      SLOT(CrossHostReceiveBuffers, error) SLOT(CrossHostSendBuffers, error)) \
  EXTENSION(Callback, SLOT(Register_Callback, error) SLOT(InvokeCallback, error)) \
  EXTENSION(TpuTopology, \
      SLOT(Subslice, error) SLOT(IsSubsliceTopology, error) \
      SLOT(SubsliceDeviceIdFromFullDeviceId, error) SLOT(ReplaceHostBounds, error) \
      SLOT(IsEnhancedBarrierEnabled, error) SLOT(HasLimitedIciConnectivity, error) \
      SLOT(IsReachableOverLimitedIci, error) SLOT(ProcessCount, error) \
      SLOT(ChipsPerProcess, error) SLOT(CoreCountPerChip, error) SLOT(ChipCount, error) \
      SLOT(CoreCount, error) SLOT(LogiDeviceCountPerProcess, error) SLOT(LogiDeviceCount, error) \
      SLOT(LogiDeviceCountPerChip, error) SLOT(CoreCountPerProcess, error) \
      SLOT(ProcessIds, error) SLOT(LogiDeviceIdsOnProcess, error) \
      SLOT(ProcIdAndIdxOnProcForChip, error) SLOT(ProcIdAndIdxOnProcForLogiDevice, error) \
      SLOT(ProcessCoordFromId, error) SLOT(ChipIdFromCoord, error) \
      SLOT(LogiDeviceIdFromChipCoordAndIdx, error) SLOT(ChipCoordAndIdxForLogiDevice, error) \
      SLOT(ChipsPerProcessBounds, error) SLOT(ChipBounds, error) SLOT(ProcessBounds, error) \
      SLOT(GetRoutingStrategy, error) SLOT(GetSliceConfig, error) SLOT(GetSliceConfigs, error) \
      SLOT(GetDefaultPlatformConfig, error)) \
  EXTENSION(Shardings, \
      SLOT(Executable_ParameterShardings, error) SLOT(Executable_OutputShardings, error)) \
  EXTENSION(AbiVersion, \
      SLOT(Client_RuntimeAbiVersion, error) SLOT(Executable_GetAbiVersion, error) \
      SLOT(Runtime_Destroy, error) SLOT(Runtime_IsCompatibleWithRuntime, error) \
      SLOT(Runtime_IsCompatibleWithExecutable, error) SLOT(Runtime_ToProto, error) \
      SLOT(Runtime_PlatformId, error) SLOT(Executable_Destroy, error) \
      SLOT(Executable_ToProto, error) SLOT(Executable_PlatformId, error) \
      SLOT(Runtime_FromProto, error) SLOT(Executable_FromProto, error)) \
  EXTENSION(MultiSlice, \
      SLOT(Config_Destroy, error) SLOT(Config_NumSlices, error) SLOT(Config_SliceId, error) \
      SLOT(Config_NumDevicesPerSlice, error) SLOT(Config_Serialize, error)) \
  EXTENSION(HostMemoryAllocator, SLOT(Allocate, error))
// clang-format on

#endif  // MINIPOD_TOOLS_PJRT_LOG_EXTENSION_SLOTS_H_
