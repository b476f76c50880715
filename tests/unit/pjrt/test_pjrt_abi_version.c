// The AbiVersion extension: versions as objects and as messages, and which go together.

#include "sim/base/proto.h"
#include "tests/unit/support/pjrt_test.h"

static const PJRT_AbiVersion_Extension *extension(void) {
  const PJRT_Extension_Base *found = find_extension(PJRT_Extension_Type_AbiVersion);
  assert_int_equal(found->struct_size, sizeof(PJRT_AbiVersion_Extension));
  return (const PJRT_AbiVersion_Extension *)found;
}

static PJRT_RuntimeAbiVersion *version_of(PJRT_Client *client) {
  PJRT_Client_RuntimeAbiVersion_Args args = {.struct_size = sizeof(args), .client = client};
  expect_ok(extension()->client_runtime_abi_version(&args));
  return args.abi_version;
}

static void destroy_runtime(PJRT_RuntimeAbiVersion *version) {
  PJRT_RuntimeAbiVersion_Destroy_Args args = {.struct_size = sizeof(args), .abi_version = version};
  expect_ok(extension()->runtime_abi_version_destroy(&args));
}

static void destroy_executable(PJRT_ExecutableAbiVersion *version) {
  PJRT_ExecutableAbiVersion_Destroy_Args args = {.struct_size = sizeof(args),
                                                 .abi_version = version};
  expect_ok(extension()->executable_abi_version_destroy(&args));
}

static PJRT_ExecutableAbiVersion *read_executable(const char *data, size_t size) {
  PJRT_ExecutableAbiVersion_FromProto_Args args = {
      .struct_size = sizeof(args), .serialized_proto = data, .serialized_proto_size = size};
  expect_ok(extension()->executable_abi_version_from_proto(&args));
  return args.abi_version;
}

static PJRT_ExecutableAbiVersion *make_executable(uint64_t platform, mp_str_t form) {
  mp_strbuf_t bytes;
  mp_strbuf_init(&bytes);
  mp_proto_put_varint(&bytes, 1, platform);
  mp_proto_put_bytes(&bytes, 2, form);
  PJRT_ExecutableAbiVersion *version = read_executable(mp_strbuf_text(&bytes), bytes.size);
  mp_strbuf_deinit(&bytes);
  return version;
}

static PJRT_Error *compare(const PJRT_RuntimeAbiVersion *ours,
                           const PJRT_ExecutableAbiVersion *other) {
  PJRT_RuntimeAbiVersion_IsCompatibleWithExecutable_Args args = {
      .struct_size = sizeof(args), .abi_version = ours, .executable_abi_version = other};
  return extension()->runtime_abi_version_is_compatible_with_executable(&args);
}

static void versions_go_through_messages(void **state) {
  (void)state;
  PJRT_Client *client = make_client(1);
  PJRT_RuntimeAbiVersion *ours = version_of(client);
  destroy_client(client);  // the version stays
  PJRT_RuntimeAbiVersion_ToProto_Args write = {.struct_size = sizeof(write), .abi_version = ours};
  expect_ok(extension()->runtime_abi_version_to_proto(&write));
  PJRT_RuntimeAbiVersion_FromProto_Args read = {
      .struct_size = sizeof(read),
      .serialized_proto = write.serialized_proto,
      .serialized_proto_size = write.serialized_proto_size};
  expect_ok(extension()->runtime_abi_version_from_proto(&read));
  // The two kinds of messages have one form, so that one can be read as the other.
  PJRT_ExecutableAbiVersion *executable =
      read_executable(write.serialized_proto, write.serialized_proto_size);
  PJRT_ExecutableAbiVersion_ToProto_Args again = {.struct_size = sizeof(again),
                                                  .abi_version = executable};
  expect_ok(extension()->executable_abi_version_to_proto(&again));
  assert_int_equal(again.serialized_proto_size, write.serialized_proto_size);
  assert_memory_equal(again.serialized_proto, write.serialized_proto, write.serialized_proto_size);
  write.serialized_proto_deleter(write.serialized_proto_holder);
  again.serialized_proto_deleter(again.serialized_proto_holder);
  PJRT_RuntimeAbiVersion_IsCompatibleWithRuntime_Args same = {
      .struct_size = sizeof(same), .abi_version = ours, .other_abi_version = read.abi_version};
  expect_ok(extension()->runtime_abi_version_is_compatible_with_runtime(&same));
  expect_ok(compare(ours, executable));
  PJRT_RuntimeAbiVersion_PlatformId_Args one = {.struct_size = sizeof(one),
                                                .abi_version = read.abi_version};
  PJRT_ExecutableAbiVersion_PlatformId_Args two = {.struct_size = sizeof(two),
                                                   .abi_version = executable};
  expect_ok(extension()->runtime_abi_version_platform_id(&one));
  expect_ok(extension()->executable_abi_version_platform_id(&two));
  assert_true(one.platform_id == 0x3a807cea19d88afb && two.platform_id == one.platform_id);
  destroy_runtime(ours);
  destroy_runtime(read.abi_version);
  destroy_executable(executable);
}

static void other_versions_are_refused(void **state) {
  (void)state;
  PJRT_Client *client = make_client(1);
  PJRT_RuntimeAbiVersion *ours = version_of(client);
  PJRT_ExecutableAbiVersion *foreign = make_executable(7, MP_STR("1"));
  PJRT_ExecutableAbiVersion *later = make_executable(0x3a807cea19d88afb, MP_STR("12"));
  expect_error(compare(ours, foreign), PJRT_Error_Code_INVALID_ARGUMENT, "another platform's");
  expect_error(compare(ours, later), PJRT_Error_Code_FAILED_PRECONDITION, "form '12'");
  expect_error(compare(ours, NULL), PJRT_Error_Code_INVALID_ARGUMENT, "abi_version is NULL");
  destroy_executable(foreign);
  destroy_executable(later);
  destroy_runtime(ours);
  destroy_client(client);
  PJRT_ExecutableAbiVersion_FromProto_Args broken = {
      .struct_size = sizeof(broken), .serialized_proto = "\x12\x05x", .serialized_proto_size = 3};
  expect_error(extension()->executable_abi_version_from_proto(&broken),
               PJRT_Error_Code_INVALID_ARGUMENT, "ABI version");
  PJRT_Executable_GetAbiVersion_Args none = {.struct_size = sizeof(none)};
  expect_error(extension()->executable_get_abi_version(&none), PJRT_Error_Code_UNIMPLEMENTED,
               "PJRT_Executable_GetAbiVersion");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(versions_go_through_messages),
      cmocka_unit_test(other_versions_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
