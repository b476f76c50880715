// The functions of PJRT's extensions that the log knows, in the order of their tables.
//
// EXTENSION(type, SLOT(function, result)...): the result is `error` (a PJRT_Error *) or `none`.
// TpuTopology has TPU_SLOT(function, its field in the table); all of these return errors.
// Extensions that also have functions of other forms are not here (Profiler, PhaseCompile).
#ifndef MINIPOD_TOOLS_PJRT_LOG_EXTENSION_SLOTS_H_
#define MINIPOD_TOOLS_PJRT_LOG_EXTENSION_SLOTS_H_

#include "pjrt/c_api/c_api_tpu_topology.h"

// clang-format off
#define PJRT_LOG_EXTENSIONS(EXTENSION, SLOT, TPU_SLOT) \
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
  EXTENSION(TpuTopology, PJRT_TPU_TOPOLOGY_FUNCTIONS(TPU_SLOT)) \
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
