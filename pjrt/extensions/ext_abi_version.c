// The AbiVersion extension (type 20): which stored executables this library can load.
//
// A stored executable is the unchanged input program (pjrt/pjrt_serialize.c), so every version of
// minipod that knows that form can load it. A version is that form's number. As a message it is a
// PjRtRuntimeAbiVersionProto or a PjRtExecutableAbiVersionProto: 1 platform, 2 version.

#include "pjrt/extensions/extensions.h"
#include "pjrt/pjrt_executable.h"
#include "sim/base/alloc.h"
#include "sim/base/proto.h"

// XLA's number for the name "minipod": its FarmHash Fingerprint64, which clients also compute.
static const uint64_t platform_id = 0x3a807cea19d88afb;

enum { FIELD_PLATFORM = 1, FIELD_VERSION };

// The object behind both PJRT_RuntimeAbiVersion and PJRT_ExecutableAbiVersion.
typedef struct {
  uint64_t platform;
  size_t size;
  char form[];
} version_t;

static mp_status_t ext_abi_version_make(uint64_t platform, mp_str_t form, version_t **out_version) {
  version_t *version = mp_malloc(sizeof(*version) + form.size);
  MP_RETURN_IF_NULL(version);
  version->platform = platform;
  version->size = form.size;
  memcpy(version->form, form.data, form.size);
  *out_version = version;
  return NULL;
}

static PJRT_Error *ext_abi_version_of_client(PJRT_Client_RuntimeAbiVersion_Args *args) {
  MP_EXTENSION_REQUIRE(args, client);
  version_t *version = NULL;
  mp_status_t status = ext_abi_version_make(platform_id, MP_STR(MP_PJRT_STORED_FORM), &version);
  if (status == NULL) args->abi_version = (PJRT_RuntimeAbiVersion *)version;
  return mp_pjrt_error(status);
}

// Since 0.11 JAX calls this before it stores an executable. It accepts no version from a platform
// that is not XLA's own, and then stores nothing; if it gets an error, it stores the executable
// without a version.
static PJRT_Error *ext_abi_version_of_executable(PJRT_Executable_GetAbiVersion_Args *args) {
  (void)args;
  return mp_pjrt_error(mp_status_make(
      MP_UNIMPLEMENTED,
      "PJRT_Executable_GetAbiVersion: executables are stored without a version beside them; the "
      "bytes of each have one, which is checked when they are loaded"));
}

static mp_status_t ext_abi_version_compare(const char *what, const version_t *ours,
                                           const version_t *other) {
  if (ours == NULL || other == NULL) return mp_pjrt_null_argument(what, "abi_version");
  if (other->platform != ours->platform) {
    return mp_status_make(MP_INVALID_ARGUMENT, "%s: the version is another platform's", what + 3);
  }
  if (other->size == ours->size && memcmp(other->form, ours->form, ours->size) == 0) return NULL;
  return mp_status_make(MP_FAILED_PRECONDITION,
                        "%s: executables of form '%.*s' cannot be loaded, those of form '%.*s' can",
                        what + 3, (int)other->size, other->form, (int)ours->size, ours->form);
}

static PJRT_Error *ext_abi_version_compare_runtime(
    PJRT_RuntimeAbiVersion_IsCompatibleWithRuntime_Args *args) {
  return mp_pjrt_error(ext_abi_version_compare("mp_PJRT_RuntimeAbiVersion_IsCompatibleWithRuntime",
                                               (const version_t *)args->abi_version,
                                               (const version_t *)args->other_abi_version));
}

static PJRT_Error *ext_abi_version_compare_executable(
    PJRT_RuntimeAbiVersion_IsCompatibleWithExecutable_Args *args) {
  return mp_pjrt_error(ext_abi_version_compare(
      "mp_PJRT_RuntimeAbiVersion_IsCompatibleWithExecutable", (const version_t *)args->abi_version,
      (const version_t *)args->executable_abi_version));
}

// ---- as messages ----

static void ext_abi_version_write(const version_t *version, mp_strbuf_t *out) {
  mp_proto_put_varint(out, FIELD_PLATFORM, version->platform);
  mp_proto_put_bytes(out, FIELD_VERSION, (mp_str_t){version->form, version->size});
}

static mp_status_t ext_abi_version_read(const char *data, size_t size, version_t **out_version) {
  uint64_t platform = 0;
  mp_str_t form = MP_STR("");
  mp_proto_reader_t reader = mp_proto_reader(mp_pjrt_str(data, size), "ABI version");
  mp_proto_field_t field;
  while (mp_proto_next(&reader, &field)) {
    if (field.number == FIELD_PLATFORM) platform = mp_proto_varint(&reader, &field);
    if (field.number == FIELD_VERSION) form = mp_proto_bytes(&reader, &field);
  }
  MP_RETURN_IF_ERROR(mp_proto_reader_status(&reader));
  return ext_abi_version_make(platform, form, out_version);
}

// The functions for both kinds of versions.
#define DEFINE_KIND(kind, name)                                                                   \
  static PJRT_Error *ext_abi_version_destroy_##name(PJRT_##kind##AbiVersion_Destroy_Args *args) { \
    mp_free(args->abi_version);                                                                   \
    return NULL;                                                                                  \
  }                                                                                               \
  static PJRT_Error *ext_abi_version_write_##name(PJRT_##kind##AbiVersion_ToProto_Args *args) {   \
    MP_EXTENSION_REQUIRE(args, abi_version);                                                      \
    mp_strbuf_t bytes;                                                                            \
    mp_strbuf_init(&bytes);                                                                       \
    ext_abi_version_write((const version_t *)args->abi_version, &bytes);                          \
    return mp_pjrt_error(                                                                         \
        mp_pjrt_lend_bytes(NULL, &bytes, &args->serialized_proto, &args->serialized_proto_size,   \
                           &args->serialized_proto_holder, &args->serialized_proto_deleter));     \
  }                                                                                               \
  static PJRT_Error *ext_abi_version_platform_##name(                                             \
      PJRT_##kind##AbiVersion_PlatformId_Args *args) {                                            \
    MP_EXTENSION_REQUIRE(args, abi_version);                                                      \
    args->platform_id = ((const version_t *)args->abi_version)->platform;                         \
    return NULL;                                                                                  \
  }                                                                                               \
  static PJRT_Error *ext_abi_version_read_##name(PJRT_##kind##AbiVersion_FromProto_Args *args) {  \
    version_t *version = NULL;                                                                    \
    mp_status_t status =                                                                          \
        ext_abi_version_read(args->serialized_proto, args->serialized_proto_size, &version);      \
    if (status == NULL) args->abi_version = (PJRT_##kind##AbiVersion *)version;                   \
    return mp_pjrt_error(status);                                                                 \
  }
DEFINE_KIND(Runtime, runtime)
DEFINE_KIND(Executable, executable)

MP_PJRT_EXTENSION(AbiVersion, abi_version) = {
    MP_PJRT_EXTENSION_BASE(AbiVersion),
    .client_runtime_abi_version = ext_abi_version_of_client,
    .executable_get_abi_version = ext_abi_version_of_executable,
    .runtime_abi_version_destroy = ext_abi_version_destroy_runtime,
    .runtime_abi_version_is_compatible_with_runtime = ext_abi_version_compare_runtime,
    .runtime_abi_version_is_compatible_with_executable = ext_abi_version_compare_executable,
    .runtime_abi_version_to_proto = ext_abi_version_write_runtime,
    .runtime_abi_version_platform_id = ext_abi_version_platform_runtime,
    .executable_abi_version_destroy = ext_abi_version_destroy_executable,
    .executable_abi_version_to_proto = ext_abi_version_write_executable,
    .executable_abi_version_platform_id = ext_abi_version_platform_executable,
    .runtime_abi_version_from_proto = ext_abi_version_read_runtime,
    .executable_abi_version_from_proto = ext_abi_version_read_executable,
};
