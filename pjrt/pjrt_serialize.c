// Executables as bytes: the program as it was received, its options, and the writer's version.
//
// A plan depends on the machine and its form is ours to change, so loading compiles again. The form
// is a magic word and a message:
//   1 version (text), 2 format, 3 code, 4 compile options, 5 fingerprint of all that, 6 what custom
//   partitioners have answered (sim/plan/partitioners/partition_answers.h), if any were asked.

#include "pjrt/pjrt_executable.h"
#include "sim/base/hash.h"
#include "sim/base/proto.h"

static const char magic[8] = "minipod" MP_PJRT_STORED_FORM;  // without a NUL

enum {
  FIELD_VERSION = 1,
  FIELD_FORMAT,
  FIELD_CODE,
  FIELD_OPTIONS,
  FIELD_FINGERPRINT,
  FIELD_ANSWERS
};

static uint64_t pjrt_serialize_fingerprint(mp_str_t version, const mp_pjrt_source_t *source) {
  uint64_t hash = mp_hash_bytes(MP_HASH_START, version.data, version.size);
  hash = mp_hash_bytes(hash, source->format.data, source->format.size);
  hash = mp_hash_bytes(hash, source->code.data, source->code.size);
  hash = mp_hash_bytes(hash, source->options.data, source->options.size);
  return mp_hash_bytes(hash, source->answers.data, source->answers.size);
}

// What an executable was made of, to make it once more.
static mp_pjrt_source_t pjrt_serialize_source_of(const PJRT_Executable *executable) {
  return (mp_pjrt_source_t){.code = executable->code,
                            .format = executable->format,
                            .options = executable->options,
                            .answers = executable->program->answers,
                            .is_stored = true};
}

mp_status_t mp_PJRT_Executable_Serialize(PJRT_Executable_Serialize_Args *args) {
  MP_REQUIRE(args, executable);
  mp_pjrt_source_t source = pjrt_serialize_source_of(args->executable);
  mp_strbuf_t bytes;
  mp_strbuf_init(&bytes);
  mp_strbuf_append(&bytes, magic, sizeof(magic));
  mp_proto_put_bytes(&bytes, FIELD_VERSION, MP_STR(MINIPOD_VERSION));
  mp_proto_put_bytes(&bytes, FIELD_FORMAT, source.format);
  mp_proto_put_bytes(&bytes, FIELD_CODE, source.code);
  mp_proto_put_bytes(&bytes, FIELD_OPTIONS, source.options);
  mp_proto_put_varint(&bytes, FIELD_FINGERPRINT,
                      pjrt_serialize_fingerprint(MP_STR(MINIPOD_VERSION), &source));
  if (source.answers.size != 0) mp_proto_put_bytes(&bytes, FIELD_ANSWERS, source.answers);
  return mp_pjrt_lend_bytes(NULL, &bytes, &args->serialized_bytes, &args->serialized_bytes_size,
                            &args->serialized_executable, &args->serialized_executable_deleter);
}

static mp_status_t pjrt_serialize_parse(mp_str_t bytes, mp_pjrt_source_t *out_source) {
  if (bytes.size < sizeof(magic) || memcmp(bytes.data, magic, sizeof(magic)) != 0) {
    return mp_status_make(MP_INVALID_ARGUMENT, "these are not the bytes of a minipod executable");
  }
  mp_pjrt_source_t source = {
      .code = MP_STR(""), .format = MP_STR(""), .options = MP_STR(""), .answers = MP_STR("")};
  mp_str_t version = MP_STR("");
  uint64_t stored = 0;
  mp_proto_reader_t reader = mp_proto_reader(
      (mp_str_t){bytes.data + sizeof(magic), bytes.size - sizeof(magic)}, "serialized executable");
  mp_proto_field_t field;
  while (mp_proto_next(&reader, &field)) {
    if (field.number == FIELD_VERSION) version = mp_proto_bytes(&reader, &field);
    if (field.number == FIELD_FORMAT) source.format = mp_proto_bytes(&reader, &field);
    if (field.number == FIELD_CODE) source.code = mp_proto_bytes(&reader, &field);
    if (field.number == FIELD_OPTIONS) source.options = mp_proto_bytes(&reader, &field);
    if (field.number == FIELD_ANSWERS) source.answers = mp_proto_bytes(&reader, &field);
    if (field.number == FIELD_FINGERPRINT) stored = mp_proto_varint(&reader, &field);
  }
  MP_RETURN_IF_ERROR(mp_proto_reader_status(&reader));
  if (stored != pjrt_serialize_fingerprint(version, &source)) {
    return mp_status_make(MP_DATA_LOSS, "the serialized executable is damaged");
  }
  source.is_stored = true;
  *out_source = source;
  return NULL;
}

mp_status_t mp_PJRT_Executable_DeserializeAndLoad(PJRT_Executable_DeserializeAndLoad_Args *args) {
  MP_REQUIRE(args, client);
  MP_REQUIRE(args, serialized_executable);
  mp_pjrt_source_t source;
  MP_RETURN_IF_ERROR(pjrt_serialize_parse(
      (mp_str_t){args->serialized_executable, args->serialized_executable_size}, &source));
  if (MP_HAS(args, overridden_serialized_compile_options_size) &&
      args->overridden_serialized_compile_options != NULL &&
      args->overridden_serialized_compile_options_size > 0) {
    source.options = (mp_str_t){args->overridden_serialized_compile_options,
                                args->overridden_serialized_compile_options_size};
  }
  return mp_pjrt_loaded_executable_compile(args->client, &source, &args->loaded_executable);
}

// An executable that was compiled without a client is compiled again for this one.
mp_status_t mp_PJRT_Client_Load(PJRT_Client_Load_Args *args) {
  MP_REQUIRE(args, client);
  MP_REQUIRE(args, executable);
  mp_pjrt_source_t source = pjrt_serialize_source_of(args->executable);
  if (args->compile_options != NULL && args->compile_options_size > 0) {
    source.options = (mp_str_t){args->compile_options, args->compile_options_size};
  }
  return mp_pjrt_loaded_executable_compile(args->client, &source, &args->loaded_executable);
}
