// The Custom_Partitioner extension (type 2): JAX's custom_partitioning registers its partitioners
// here, all under the target CustomSPMDPartitioning; a call's backend_config names JAX's
// partitioner.

#include "pjrt/extensions/extensions.h"
#include "sim/base/alloc.h"
#include "sim/foreign/foreign_partitioner.h"

static JAX_CustomCallPartitioner_string ext_custom_partitioner_text(mp_str_t text) {
  return (JAX_CustomCallPartitioner_string){text.data, text.size};
}

static mp_str_t ext_custom_partitioner_str(JAX_CustomCallPartitioner_string text) {
  return mp_pjrt_str(text.data, text.size);
}

static JAX_CustomCallPartitioner_aval ext_custom_partitioner_aval(const mp_foreign_aval_t *aval) {
  return (JAX_CustomCallPartitioner_aval){
      .shape = ext_custom_partitioner_text(aval->shape),
      .has_sharding = true,
      .sharding = ext_custom_partitioner_text(aval->sharding),
  };
}

// The data of an answer until it is cleaned up.
typedef struct {
  void (*cleanup)(void *data);  // the client's
  void *data;
  mp_str_t shardings[];
} held_t;

static void ext_custom_partitioner_cleanup(void *data) {
  held_t *held = data;
  if (held->cleanup != NULL) held->cleanup(held->data);
  mp_free(held);
}

static mp_status_t ext_custom_partitioner_read(const JAX_CustomCallPartitioner_Partition_Args *args,
                                               held_t *held, mp_foreign_answer_t *out_answer) {
  held->cleanup = args->header.cleanup_fn;
  held->data = args->header.data;
  if (args->header.has_error) {
    mp_status_t status =
        mp_pjrt_status(args->header.code, args->header.error_msg.data, args->header.error_msg.size);
    ext_custom_partitioner_cleanup(held);
    return status;
  }
  for (size_t i = 0; i < args->num_args; ++i) {
    held->shardings[i] = ext_custom_partitioner_str(args->args_sharding[i]);
  }
  *out_answer = (mp_foreign_answer_t){
      .module = ext_custom_partitioner_str(args->mlir_module),
      .operand_shardings = held->shardings,
      .result_sharding = ext_custom_partitioner_str(args->result_sharding),
      .cleanup = ext_custom_partitioner_cleanup,
      .data = held,
  };
  return NULL;
}

static mp_status_t ext_custom_partitioner_ask(void *partitioner,
                                              const mp_foreign_question_t *question,
                                              mp_foreign_answer_t *out_answer) {
  JAX_CustomCallPartitioner_Callbacks *callbacks = partitioner;
  const uint32_t count = question->num_operands;
  JAX_CustomCallPartitioner_aval *operands = mp_calloc(count, sizeof(*operands));
  held_t *held = mp_calloc(1, sizeof(*held) + count * sizeof(held->shardings[0]));
  if (operands == NULL || held == NULL) {
    mp_free(operands);
    mp_free(held);
    return mp_status_out_of_memory();
  }
  for (uint32_t i = 0; i < count; ++i) {
    operands[i] = ext_custom_partitioner_aval(&question->operands[i]);
  }
  JAX_CustomCallPartitioner_Partition_Args args = {
      .num_args = count,
      .op_args = operands,
      .op_result = ext_custom_partitioner_aval(&question->result),
      .backend_config = ext_custom_partitioner_text(question->config),
  };
  callbacks->partition(callbacks, &args);
  mp_free(operands);
  return ext_custom_partitioner_read(&args, held, out_answer);
}

static PJRT_Error *ext_custom_partitioner_register(PJRT_Register_Custom_Partitioner_Args *args) {
  MP_EXTENSION_REQUIRE(args, name);
  if (args->callbacks == NULL || args->callbacks->partition == NULL) {
    return mp_pjrt_error(mp_pjrt_null_argument(__func__, "callbacks"));
  }
  return mp_pjrt_error(mp_foreign_register_partitioner(
      (mp_str_t){args->name, args->name_size}, ext_custom_partitioner_ask, args->callbacks));
}

// Nothing to record: a call that is partitioned along its batch states the number of batch
// dimensions (sim/spmd/rules/rules_call.c).
static PJRT_Error *ext_custom_partitioner_batch(PJRT_Register_Batch_Partitionable_Args *args) {
  return args->name == NULL ? mp_pjrt_error(mp_pjrt_null_argument(__func__, "name")) : NULL;
}

MP_PJRT_EXTENSION(Custom_Partitioner, custom_partitioner) = {
    MP_PJRT_EXTENSION_BASE(Custom_Partitioner),
    .register_custom_partitioner = ext_custom_partitioner_register,
    .register_batch_partitionable = ext_custom_partitioner_batch,
};
