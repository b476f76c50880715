#include "sim/readers/options/debug_options.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "sim/base/hash.h"
#include "sim/base/log.h"

typedef enum { TYPE_BOOL, TYPE_INT, TYPE_FLOAT, TYPE_STRING } mp_flag_type_t;

static const char *const g_type_names[] = {"bool", "int", "float", "string"};

static const struct {
  const char *name;
  mp_flag_type_t type;
} g_flags[] = {
    {"xla_allow_excess_precision", TYPE_BOOL},
    {"xla_backend_optimization_level", TYPE_INT},
    {"xla_cpu_copy_insertion_use_region_analysis", TYPE_BOOL},
    {"xla_cpu_enable_concurrency_optimized_scheduler", TYPE_BOOL},
    {"xla_cpu_enable_fast_math", TYPE_BOOL},
    {"xla_cpu_enable_fast_min_max", TYPE_BOOL},
    {"xla_cpu_fast_math_honor_division", TYPE_BOOL},
    {"xla_cpu_fast_math_honor_functions", TYPE_BOOL},
    {"xla_cpu_fast_math_honor_infs", TYPE_BOOL},
    {"xla_cpu_fast_math_honor_nans", TYPE_BOOL},
    {"xla_cpu_max_isa", TYPE_STRING},
    {"xla_cpu_parallel_codegen_split_count", TYPE_INT},
    {"xla_cpu_prefer_vector_width", TYPE_INT},
    {"xla_cpu_use_thunk_runtime", TYPE_BOOL},
    {"xla_disable_hlo_passes", TYPE_STRING},
    {"xla_dump_disable_metadata", TYPE_BOOL},
    {"xla_dump_enable_mlir_pretty_form", TYPE_BOOL},
    {"xla_dump_hlo_as_dot", TYPE_BOOL},
    {"xla_dump_hlo_as_html", TYPE_BOOL},
    {"xla_dump_hlo_as_long_text", TYPE_BOOL},
    {"xla_dump_hlo_as_proto", TYPE_BOOL},
    {"xla_dump_hlo_as_text", TYPE_BOOL},
    {"xla_dump_hlo_as_url", TYPE_BOOL},
    {"xla_dump_hlo_module_re", TYPE_STRING},
    {"xla_dump_hlo_pass_re", TYPE_STRING},
    {"xla_dump_hlo_snapshots", TYPE_BOOL},
    {"xla_dump_include_timestamp", TYPE_BOOL},
    {"xla_dump_max_hlo_modules", TYPE_INT},
    {"xla_dump_module_metadata", TYPE_BOOL},
    {"xla_dump_to", TYPE_STRING},
    {"xla_embed_ir_in_executable", TYPE_BOOL},
    {"xla_enable_dumping", TYPE_BOOL},
    {"xla_gpu_auto_spmd_partitioning_memory_budget_gb", TYPE_INT},
    {"xla_gpu_auto_spmd_partitioning_memory_budget_ratio", TYPE_FLOAT},
    {"xla_gpu_autotune_level", TYPE_INT},
    {"xla_gpu_cuda_data_dir", TYPE_STRING},
    {"xla_gpu_enable_command_buffer", TYPE_STRING},
    {"xla_gpu_enable_fast_min_max", TYPE_BOOL},
    {"xla_gpu_enable_latency_hiding_scheduler", TYPE_BOOL},
    {"xla_gpu_enable_triton_gemm", TYPE_BOOL},
    {"xla_gpu_triton_gemm_any", TYPE_BOOL},
    {"xla_hlo_profile", TYPE_BOOL},
    {"xla_llvm_disable_expensive_passes", TYPE_BOOL},
    {"xla_llvm_enable_alias_scope_metadata", TYPE_BOOL},
    {"xla_llvm_enable_invariant_load_metadata", TYPE_BOOL},
    {"xla_llvm_enable_noalias_metadata", TYPE_BOOL},
};

enum { NUM_FLAGS = sizeof(g_flags) / sizeof(g_flags[0]) };

// Relaxed: the exchange makes sure that each line is printed once; it orders nothing.
static atomic_bool g_is_told[NUM_FLAGS];

// Logs once per process that an option has no effect here.
static void debug_options_tell(size_t flag) {
  if (!mp_log_enabled(MP_LOG_INFO) ||
      atomic_exchange_explicit(&g_is_told[flag], true, memory_order_relaxed))
    return;
  mp_log(MP_LOG_INFO, "compile option %s is known but has no effect here", g_flags[flag].name);
}

// Field numbers of OptionOverrideProto, and the type of each.
enum { STRING_FIELD = 1, BOOL_FIELD, INT_FIELD, DOUBLE_FIELD };

static bool debug_options_text_is(mp_str_t text, const char *const *words, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (mp_str_is(text, words[i])) return true;
  }
  return false;
}

static bool debug_options_text_is_number(mp_str_t text) {
  char copy[64];
  if (text.size == 0 || text.size >= sizeof(copy)) return false;
  memcpy(copy, text.data, text.size);
  copy[text.size] = '\0';
  char *end = NULL;
  (void)strtod(copy, &end);
  return end == copy + text.size;
}

// Whether a flag of this type takes a value given as text.
static bool debug_options_text_fits(mp_flag_type_t type, mp_str_t text) {
  static const char *const bools[] = {"True", "true", "False", "false", "1", "0"};
  long long number = 0;
  switch (type) {
    case TYPE_BOOL:
      return debug_options_text_is(text, bools, sizeof(bools) / sizeof(bools[0]));
    case TYPE_INT:
      return mp_str_parse_i64(text, &number);
    case TYPE_FLOAT:
      return debug_options_text_is_number(text);
    case TYPE_STRING:
      return true;
  }
  return false;
}

// Whether the value fits the flag. Text is accepted for flags of every type that it can express.
static bool debug_options_value_fits(mp_proto_reader_t *reader, const mp_proto_field_t *field,
                                     mp_flag_type_t type, mp_strbuf_t *shown) {
  switch (field->number) {
    case STRING_FIELD: {
      mp_str_t text = mp_proto_bytes(reader, field);
      mp_strbuf_append(shown, text.data, text.size);
      return debug_options_text_fits(type, text);
    }
    case BOOL_FIELD:
      mp_strbuf_puts(shown, mp_proto_bool(reader, field) ? "true" : "false");
      return type == TYPE_BOOL;
    case INT_FIELD:
      mp_strbuf_printf(shown, "%lld", (long long)mp_proto_varint(reader, field));
      return type == TYPE_INT || type == TYPE_FLOAT;
    case DOUBLE_FIELD:
      mp_strbuf_printf(shown, "%g", mp_proto_double(reader, field));
      return type == TYPE_FLOAT;
    default:
      return true;
  }
}

static mp_status_t debug_options_check_value(mp_proto_reader_t reader, const char *name,
                                             mp_flag_type_t type) {
  mp_proto_field_t field;
  while (mp_proto_next(&reader, &field)) {
    mp_strbuf_t shown;
    mp_strbuf_init(&shown);
    mp_status_t status = NULL;
    if (!debug_options_value_fits(&reader, &field, type, &shown) && reader.fault == NULL) {
      status = mp_status_make(MP_INVALID_ARGUMENT,
                              "While setting option %s, '%s' is not a valid %s value.", name,
                              mp_strbuf_text(&shown), g_type_names[type]);
    }
    mp_strbuf_deinit(&shown);
    MP_RETURN_IF_ERROR(status);
  }
  return mp_proto_reader_status(&reader);
}

// Whether a list of names, separated by commas, has this one.
static bool debug_options_lists(mp_str_t list, const char *name) {
  while (list.size > 0) {
    const char *comma = memchr(list.data, ',', list.size);
    const size_t size = comma == NULL ? list.size : (size_t)(comma - list.data);
    if (mp_str_is((mp_str_t){list.data, size}, name)) return true;
    const size_t taken = size + (comma != NULL);
    list = (mp_str_t){list.data + taken, list.size - taken};
  }
  return false;
}

// Whether the value of xla_disable_hlo_passes names XLA's algebraic simplifier.
static bool debug_options_is_as_written(mp_proto_reader_t value) {
  mp_proto_field_t field;
  bool is_named = false;
  while (mp_proto_next(&value, &field)) {
    if (field.number == STRING_FIELD)
      is_named = debug_options_lists(mp_proto_bytes(&value, &field), "algsimp");
  }
  return is_named;
}

// How names of libtpu's flags begin. It has more than 1,600 of them, which change with its
// versions.
static const char *const g_libtpu_prefixes[] = {
    "xla_tpu_", "xla_jf_",     "xla_sc_",    "xla_msa_",          "xla_lhs_",           "xla_vf_",
    "xla_llo_", "xla_mosaic_", "megascale_", "xla_enable_async_", "xla_latency_hiding_"};

static bool debug_options_is_libtpu(mp_str_t name) {
  for (size_t i = 0; i < sizeof(g_libtpu_prefixes) / sizeof(g_libtpu_prefixes[0]); ++i) {
    if (mp_str_starts_with(name, g_libtpu_prefixes[i])) return true;
  }
  return false;
}

// The value of a flag of libtpu as its command line has it.
static void debug_options_write_value(mp_proto_reader_t value, mp_strbuf_t *out) {
  mp_proto_field_t field;
  while (mp_proto_next(&value, &field)) {
    switch (field.number) {
      case STRING_FIELD: {
        const mp_str_t text = mp_proto_bytes(&value, &field);
        const bool is_python = mp_str_is(text, "True") || mp_str_is(text, "False");
        mp_strbuf_append(out, text.data, text.size);
        if (is_python) out->data[out->size - text.size] ^= 'T' ^ 't';
        break;
      }
      case BOOL_FIELD:
        mp_strbuf_puts(out, mp_proto_bool(&value, &field) ? "true" : "false");
        break;
      case INT_FIELD:
        mp_strbuf_printf(out, "%lld", (long long)mp_proto_varint(&value, &field));
        break;
      case DOUBLE_FIELD:
        mp_strbuf_put_double(out, mp_proto_double(&value, &field));
        break;
      default:
        break;
    }
  }
}

static mp_status_t debug_options_read_libtpu(mp_str_t name, mp_proto_reader_t value,
                                             mp_arena_t *arena, mp_str_t *out_flag) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_printf(&text, "%.*s=", MP_STR_ARG(name));
  debug_options_write_value(value, &text);
  mp_status_t status = mp_strbuf_status(&text);
  if (status == NULL) {
    *out_flag = (mp_str_t){mp_arena_strndup(arena, text.data, text.size), text.size};
    if (out_flag->data == NULL) status = mp_status_out_of_memory();
  }
  mp_strbuf_deinit(&text);
  return status;
}

// Names are known by a hash: of two with the same one, only the first is logged.
void mp_debug_option_tell_libtpu(mp_str_t flag) {
  enum { WORDS = 64, BITS = 64 };
  static _Atomic uint64_t told[WORDS];
  if (!mp_log_enabled(MP_LOG_INFO)) return;
  const mp_str_t name = mp_str_cut(&flag, '=');
  const uint64_t hash = mp_hash_fnv1a(name.data, name.size);
  const uint64_t bit = UINT64_C(1) << hash % BITS;
  if ((atomic_fetch_or_explicit(&told[hash / BITS % WORDS], bit, memory_order_relaxed) & bit) != 0)
    return;
  mp_log(MP_LOG_INFO, "compile option %.*s of libtpu has no effect here", MP_STR_ARG(name));
}

mp_status_t mp_debug_option_read(mp_proto_reader_t entry, bool is_tpu, mp_arena_t *arena,
                                 bool *out_as_written, mp_str_t *out_libtpu) {
  enum { KEY = 1, VALUE = 2 };
  mp_proto_field_t field;
  mp_str_t name = {"", 0};
  for (mp_proto_reader_t reader = entry; mp_proto_next(&reader, &field);) {
    if (field.number == KEY) name = mp_proto_bytes(&reader, &field);
  }
  const size_t count = NUM_FLAGS;
  size_t flag = 0;
  bool has_effect = false;
  mp_proto_reader_t last = mp_proto_reader((mp_str_t){"", 0}, "OptionOverrideProto");
  while (flag < count && !mp_str_is(name, g_flags[flag].name)) ++flag;
  while (mp_proto_next(&entry, &field)) {
    if (field.number != VALUE) continue;
    const mp_proto_reader_t value = last = mp_proto_message(&entry, &field, "OptionOverrideProto");
    if (flag == count) continue;
    MP_RETURN_IF_ERROR(debug_options_check_value(value, g_flags[flag].name, g_flags[flag].type));
    has_effect = mp_str_is(name, "xla_disable_hlo_passes") && debug_options_is_as_written(value);
  }
  MP_RETURN_IF_ERROR(mp_proto_reader_status(&entry));
  if (flag < count) {
    if (!has_effect) debug_options_tell(flag);
    *out_as_written |= has_effect;
    return NULL;
  }
  if (is_tpu && debug_options_is_libtpu(name)) {
    return debug_options_read_libtpu(name, last, arena, out_libtpu);
  }
  return mp_status_make(MP_INVALID_ARGUMENT, "No such compile option: '%.*s'", MP_STR_ARG(name));
}
