// Compiled programs as clients read them back (PJRT_Executable_OptimizedProgram).
//
// A program goes back as what it has become for one device, in StableHLO's text, with the shardings
// of its border as the module attributes that become an HloModule's spmd_output_sharding and
// spmd_parameters_shardings, where clients look for them. A program that came as an HLO proto and
// was not partitioned goes back as it came, which clients that speak HLO read much faster: in an
// HloModuleProtoWithConfig, with the entry_computation_layout without which they end the process.

#include "pjrt/pjrt_executable.h"
#include "sim/base/alloc.h"
#include "sim/base/proto.h"
#include "sim/spmd/sharding/op_sharding.h"

// The fields that are read or written here of HloModuleProtoWithConfig, HloModuleProto and
// HloModuleConfigProto.
enum { FIELD_MODULE = 1, FIELD_CONFIG = 2 };
enum { MODULE_PROGRAM_SHAPE = 4 };
enum { CONFIG_ENTRY_LAYOUT = 1, CONFIG_REPLICAS = 4, CONFIG_PARTITIONS = 5 };

struct mp_pjrt_optimized_s {
  const char *format;  // a static text
  mp_strbuf_t bytes;
};

void mp_pjrt_optimized_free(mp_pjrt_optimized_t *optimized) {
  if (optimized == NULL) return;
  mp_strbuf_deinit(&optimized->bytes);
  mp_free(optimized);
}

// ---- as HLO ----

// The module in what was received, which may stand beside a config.
static mp_status_t pjrt_optimized_find_module(const PJRT_Executable *executable,
                                              mp_str_t *out_module) {
  *out_module = executable->code;
  if (!mp_str_is(executable->format, "hlo_with_config")) return NULL;
  mp_proto_reader_t reader = mp_proto_reader(executable->code, "HloModuleProtoWithConfig");
  mp_proto_field_t field;
  while (mp_proto_next(&reader, &field)) {
    if (field.number == FIELD_MODULE) *out_module = mp_proto_bytes(&reader, &field);
  }
  return mp_proto_reader_status(&reader);
}

// The types of the module's parameters and result: a ProgramShapeProto.
static mp_status_t pjrt_optimized_find_signature(mp_str_t module, mp_str_t *out_signature) {
  *out_signature = MP_STR("");
  mp_proto_reader_t reader = mp_proto_reader(module, "HloModuleProto");
  mp_proto_field_t field;
  while (mp_proto_next(&reader, &field)) {
    if (field.number == MODULE_PROGRAM_SHAPE) *out_signature = mp_proto_bytes(&reader, &field);
  }
  return mp_proto_reader_status(&reader);
}

static mp_status_t pjrt_optimized_put_hlo(const PJRT_Executable *executable, mp_strbuf_t *out) {
  mp_str_t module, signature;
  MP_RETURN_IF_ERROR(pjrt_optimized_find_module(executable, &module));
  MP_RETURN_IF_ERROR(pjrt_optimized_find_signature(module, &signature));
  mp_strbuf_t config;
  mp_strbuf_init(&config);
  mp_proto_put_bytes(&config, CONFIG_ENTRY_LAYOUT, signature);
  mp_proto_put_varint(&config, CONFIG_REPLICAS, executable->program->num_replicas);
  mp_proto_put_varint(&config, CONFIG_PARTITIONS, executable->program->num_partitions);
  mp_proto_put_bytes(out, FIELD_MODULE, module);
  mp_proto_put_message(out, FIELD_CONFIG, &config);
  mp_strbuf_deinit(&config);
  return NULL;
}

// ---- as StableHLO ----

static mp_status_t pjrt_optimized_make_text(mp_arena_t *arena, mp_strbuf_t *text,
                                            const mp_attr_t **out_attr) {
  mp_status_t status = mp_strbuf_status(text);
  if (status == NULL) {
    status = mp_attr_make_string(arena, (mp_str_t){mp_strbuf_text(text), text->size}, out_attr);
  }
  mp_strbuf_deinit(text);
  return status;
}

// The sharding of one result, or of several as a tuple, as a string.
static mp_status_t pjrt_optimized_print_output(const PJRT_Executable *executable, mp_arena_t *arena,
                                               const mp_attr_t **out_attr) {
  const uint32_t count = executable->program->num_results;
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_status_t status = NULL;
  if (count > 1) mp_strbuf_putc(&text, '{');
  for (uint32_t i = 0; i < count && status == NULL; ++i) {
    if (i > 0) mp_strbuf_puts(&text, ", ");
    status = mp_op_sharding_print(
        (mp_str_t){executable->output_shardings[i], executable->output_sharding_sizes[i]}, &text);
  }
  if (count > 1) mp_strbuf_putc(&text, '}');
  if (status != NULL) {
    mp_strbuf_deinit(&text);
    return status;
  }
  return pjrt_optimized_make_text(arena, &text, out_attr);
}

// The shardings of the parameters: a list of strings.
static mp_status_t pjrt_optimized_print_parameters(const PJRT_Executable *executable,
                                                   mp_arena_t *arena, const mp_attr_t **out_attr) {
  const uint32_t count = executable->program->num_params;
  const mp_attr_t **items = MP_ARENA_ARRAY(arena, const mp_attr_t *, count + 1);
  mp_attr_t *list = MP_ARENA_NEW(arena, mp_attr_t);
  MP_RETURN_IF_NULL(items);
  MP_RETURN_IF_NULL(list);
  for (uint32_t i = 0; i < count; ++i) {
    mp_strbuf_t text;
    mp_strbuf_init(&text);
    mp_status_t status = mp_op_sharding_print(
        (mp_str_t){executable->parameter_shardings[i], executable->parameter_sharding_sizes[i]},
        &text);
    if (status != NULL) {
      mp_strbuf_deinit(&text);
      return status;
    }
    MP_RETURN_IF_ERROR(pjrt_optimized_make_text(arena, &text, &items[i]));
  }
  list->kind = MP_KIND_ARRAY;
  list->u.array.items = items;
  list->u.array.count = count;
  *out_attr = list;
  return NULL;
}

// The module's attributes with those of its shardings.
static mp_status_t pjrt_optimized_add_shardings(const PJRT_Executable *executable,
                                                mp_arena_t *arena, const mp_attr_t **attrs) {
  const size_t count = *attrs == NULL ? 0 : (*attrs)->u.dict.count;
  mp_named_attr_t *items = MP_ARENA_ARRAY(arena, mp_named_attr_t, count + 2);
  mp_attr_t *dict = MP_ARENA_NEW(arena, mp_attr_t);
  MP_RETURN_IF_NULL(items);
  MP_RETURN_IF_NULL(dict);
  dict->kind = MP_KIND_DICT;
  dict->u.dict.items = items;
  mp_named_attr_t *next = items;
  for (size_t i = 0; i < count; ++i) *next++ = (*attrs)->u.dict.items[i];
  if (executable->output_shardings != NULL) {
    *next = (mp_named_attr_t){.name = MP_ATTR_OTHER, .text = MP_STR("mhlo.spmd_output_sharding")};
    MP_RETURN_IF_ERROR(pjrt_optimized_print_output(executable, arena, &next->value));
    ++next;
  }
  if (executable->parameter_shardings != NULL) {
    *next =
        (mp_named_attr_t){.name = MP_ATTR_OTHER, .text = MP_STR("mhlo.spmd_parameters_shardings")};
    MP_RETURN_IF_ERROR(pjrt_optimized_print_parameters(executable, arena, &next->value));
    ++next;
  }
  dict->u.dict.count = (size_t)(next - items);
  *attrs = dict;
  return NULL;
}

static mp_status_t pjrt_optimized_put_text(const PJRT_Executable *executable, mp_strbuf_t *out) {
  mp_arena_t *arena = NULL;
  MP_RETURN_IF_ERROR(mp_arena_create(&arena));
  const mp_attr_t *attrs = executable->program->module->attrs;
  mp_status_t status = pjrt_optimized_add_shardings(executable, arena, &attrs);
  if (status == NULL) status = mp_pjrt_print_program(executable->program, attrs, true, out);
  mp_arena_release(arena);
  mp_strbuf_putc(out, '\n');
  return status;
}

// ---- asking ----

static mp_status_t pjrt_optimized_make(const PJRT_Executable *executable,
                                       mp_pjrt_optimized_t **out_optimized) {
  mp_pjrt_optimized_t *made = mp_calloc(1, sizeof(*made));
  MP_RETURN_IF_NULL(made);
  mp_strbuf_init(&made->bytes);
  const bool is_text =
      mp_str_is(executable->format, "mlir") || executable->program->num_partitions > 1;
  made->format = is_text ? "mlir" : "hlo_with_config";
  mp_status_t status = is_text ? pjrt_optimized_put_text(executable, &made->bytes)
                               : pjrt_optimized_put_hlo(executable, &made->bytes);
  if (status == NULL) status = mp_strbuf_status(&made->bytes);
  if (status != NULL) {
    mp_pjrt_optimized_free(made);
    return status;
  }
  *out_optimized = made;
  return NULL;
}

// It is made once; of two threads that make it together the first one's stays.
static mp_status_t pjrt_optimized_get(PJRT_Executable *executable,
                                      const mp_pjrt_optimized_t **out_optimized) {
  uintptr_t known = atomic_load(&executable->optimized);
  if (known == 0) {
    mp_pjrt_optimized_t *made = NULL;
    MP_RETURN_IF_ERROR(pjrt_optimized_make(executable, &made));
    // No lock: making it takes long, and the exchange publishes what it has made.
    if (atomic_compare_exchange_strong(&executable->optimized, &known, (uintptr_t)made)) {
      known = (uintptr_t)made;
    } else {
      mp_pjrt_optimized_free(made);
    }
  }
  *out_optimized = (const mp_pjrt_optimized_t *)known;
  return NULL;
}

// Clients call this twice: for the size, and then to have their memory filled.
mp_status_t mp_PJRT_Executable_OptimizedProgram(PJRT_Executable_OptimizedProgram_Args *args) {
  MP_REQUIRE(args, executable);
  MP_REQUIRE(args, program);
  const mp_pjrt_optimized_t *optimized = NULL;
  MP_RETURN_IF_ERROR(pjrt_optimized_get(args->executable, &optimized));
  const size_t size = optimized->bytes.size;
  PJRT_Program *program = args->program;
  if (program->code != NULL) {
    if (program->code_size < size) {
      return mp_status_make(MP_INVALID_ARGUMENT, "the program has %zu bytes, there is room for %zu",
                            size, program->code_size);
    }
    memcpy(program->code, mp_strbuf_text(&optimized->bytes), size);
  }
  program->code_size = size;
  program->format = optimized->format;
  program->format_size = strlen(optimized->format);
  return NULL;
}
