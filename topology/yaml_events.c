#include "topology/yaml_events.h"

#include <string.h>

mp_status_t mp_yaml_begin(mp_yaml_t *yaml, const char *origin, mp_str_t text) {
  memset(yaml, 0, sizeof(*yaml));
  yaml->origin = origin;
  if (!yaml_parser_initialize(&yaml->parser)) return mp_status_out_of_memory();
  yaml_parser_set_input_string(&yaml->parser, (const unsigned char *)text.data, text.size);
  return NULL;
}

void mp_yaml_end(mp_yaml_t *yaml) {
  yaml_event_delete(&yaml->event);
  yaml_parser_delete(&yaml->parser);
}

mp_status_t mp_yaml_advance(mp_yaml_t *yaml) {
  yaml_event_delete(&yaml->event);
  memset(&yaml->event, 0, sizeof(yaml->event));
  if (yaml_parser_parse(&yaml->parser, &yaml->event)) return NULL;
  const yaml_parser_t *parser = &yaml->parser;
  if (parser->error == YAML_MEMORY_ERROR) return mp_status_out_of_memory();
  size_t line = parser->error == YAML_READER_ERROR ? parser->mark.line : parser->problem_mark.line;
  return mp_status_make(MP_INVALID_ARGUMENT, "%s:%zu: not YAML: %s%s%s", yaml->origin, line + 1,
                        parser->problem == NULL ? "unreadable" : parser->problem,
                        parser->context == NULL ? "" : " ",
                        parser->context == NULL ? "" : parser->context);
}

mp_status_t mp_yaml_skip(mp_yaml_t *yaml) {
  for (uint32_t depth = 0;;) {
    const yaml_event_type_t type = yaml->event.type;
    depth += type == YAML_MAPPING_START_EVENT || type == YAML_SEQUENCE_START_EVENT;
    depth -= type == YAML_MAPPING_END_EVENT || type == YAML_SEQUENCE_END_EVENT;
    if (depth == 0) return NULL;
    MP_RETURN_IF_ERROR(mp_yaml_advance(yaml));
  }
}

mp_status_t mp_yaml_finish_document(mp_yaml_t *yaml) {
  MP_RETURN_IF_ERROR(mp_yaml_advance(yaml));  // document end
  MP_RETURN_IF_ERROR(mp_yaml_advance(yaml));
  if (yaml->event.type == YAML_STREAM_END_EVENT) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT, "%s:%d: expected one document, got a second",
                        yaml->origin, mp_yaml_line(yaml));
}

int mp_yaml_line(const mp_yaml_t *yaml) {
  return (int)yaml->event.start_mark.line + 1;
}

mp_str_t mp_yaml_scalar(const mp_yaml_t *yaml) {
  return (mp_str_t){(const char *)yaml->event.data.scalar.value, yaml->event.data.scalar.length};
}
