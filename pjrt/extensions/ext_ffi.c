// The FFI extension (type 5): foreign functions, the types of their states and user data, and the
// user data of an execution. A handler that is registered here is only the `execute` stage;
// pjrt_foreign.c has functions for all stages.

#include "pjrt/extensions/extensions.h"
#include "sim/foreign/foreign_registry.h"

static PJRT_Error *ext_ffi_type_register(PJRT_FFI_Type_Register_Args *args) {
  XLA_FFI_TypeId id = {args->type_id};
  mp_status_t status =
      mp_foreign_register_type(mp_pjrt_str(args->type_name, args->type_name_size),
                               args->type_info == NULL ? NULL : args->type_info->deleter, &id);
  if (status == NULL) args->type_id = id.type_id;
  return mp_pjrt_error(status);
}

static PJRT_Error *ext_ffi_user_data_add(PJRT_FFI_UserData_Add_Args *args) {
  MP_EXTENSION_REQUIRE(args, context);
  return mp_pjrt_error(mp_foreign_context_add(mp_pjrt_execute_context(args->context),
                                              args->user_data.type_id, args->user_data.data));
}

static PJRT_Error *ext_ffi_register_handler(PJRT_FFI_Register_Handler_Args *args) {
  MP_EXTENSION_REQUIRE(args, handler);
  const XLA_FFI_Handler_Bundle bundle = {.execute = (XLA_FFI_Handler *)(uintptr_t)args->handler};
  const mp_foreign_traits_t traits = {.traits = (XLA_FFI_Handler_Traits)args->traits};
  return mp_pjrt_error(mp_foreign_register_typed(
      mp_pjrt_str(args->target_name, args->target_name_size),
      mp_pjrt_str(args->platform_name, args->platform_name_size), &bundle, traits));
}

MP_PJRT_EXTENSION(FFI, ffi) = {
    MP_PJRT_EXTENSION_BASE(FFI),
    .type_register = ext_ffi_type_register,
    .user_data_add = ext_ffi_user_data_add,
    .register_handler = ext_ffi_register_handler,
};
