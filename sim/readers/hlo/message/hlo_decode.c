#include "sim/readers/hlo/message/hlo_decode.h"

mp_proto_reader_t mp_hlo_proto_reader(const mp_hlo_source_t *source, mp_str_t bytes,
                                      const char *message) {
  mp_proto_reader_t reader = mp_proto_reader(bytes, message);
  if (bytes.size != 0) reader.start = source->start;
  return reader;
}

static const mp_hlo_field_t *hlo_decode_find(const mp_hlo_message_t *message, uint32_t number) {
  for (size_t i = 0; i < message->num_fields; ++i) {
    if (message->fields[i].number == number) return &message->fields[i];
  }
  return NULL;
}

static mp_status_t hlo_decode_ints(const mp_hlo_source_t *source, mp_proto_reader_t *reader,
                                   const mp_proto_field_t *field, mp_hlo_ints_t *ints) {
  mp_proto_values_t values = mp_proto_values(reader, field, MP_PROTO_VARINT);
  const size_t count = mp_proto_values_count(&values);
  if (count > UINT32_MAX) return mp_status_out_of_memory();
  MP_RETURN_IF_ERROR(MP_ARRAY_RESERVE(source->arena, ints, (uint32_t)count));
  for (uint64_t bits = 0; mp_proto_values_next(&values, &bits);) {
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(source->arena, ints, (int64_t)bits));
  }
  return NULL;
}

static mp_status_t hlo_decode_field(const mp_hlo_source_t *source, mp_proto_reader_t *reader,
                                    const mp_proto_field_t *field, uint16_t kind, void *target) {
  switch ((mp_hlo_field_kind_t)kind) {
    case MP_HLO_INT:
      *(int64_t *)target = (int64_t)mp_proto_varint(reader, field);
      return NULL;
    case MP_HLO_FLAG:
      *(bool *)target = mp_proto_bool(reader, field);
      return NULL;
    case MP_HLO_FLOAT:
      *(float *)target = mp_proto_float(reader, field);
      return NULL;
    case MP_HLO_TEXT:
      *(mp_str_t *)target = mp_proto_bytes(reader, field);
      return NULL;
    case MP_HLO_INTS:
      return hlo_decode_ints(source, reader, field, target);
    case MP_HLO_TEXTS:
      return MP_ARRAY_PUSH(source->arena, (mp_hlo_texts_t *)target, mp_proto_bytes(reader, field));
  }
  return NULL;
}

mp_status_t mp_hlo_decode(const mp_hlo_source_t *source, const mp_hlo_message_t *message,
                          mp_str_t bytes, void *out_struct) {
  mp_proto_reader_t reader = mp_hlo_proto_reader(source, bytes, message->name);
  mp_proto_field_t field;
  while (mp_proto_next(&reader, &field)) {
    const mp_hlo_field_t *row = hlo_decode_find(message, field.number);
    if (row == NULL) continue;
    MP_RETURN_IF_ERROR(
        hlo_decode_field(source, &reader, &field, row->kind, (char *)out_struct + row->offset));
  }
  return mp_proto_reader_status(&reader);
}
