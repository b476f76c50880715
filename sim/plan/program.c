#include "sim/plan/program.h"

#include <inttypes.h>
#include <math.h>

// The number of rounds of the `while` that ends with command `edge` of a LOOP's body: -1 if it is
// not known.
static int64_t program_rounds(const mp_cmd_t *cmd, uint32_t edge) {
  for (uint32_t i = cmd->body[edge].targets[0]; i < edge; ++i) {
    const mp_cmd_t *part = &cmd->body[i];
    if (part->kind == MP_CMD_BRANCH_UNLESS && part->control == cmd->body[edge].control) {
      return part->rounds;
    }
  }
  return -1;
}

double mp_cmd_loop_seconds(const mp_cmd_t *cmd) {
  double most = 1;
  for (uint32_t i = 0; i < cmd->num_body; ++i) {
    double rounds = 1;
    for (uint32_t edge = i; edge < cmd->num_body; ++edge) {
      const mp_cmd_t *jump = &cmd->body[edge];
      if (jump->kind != MP_CMD_JUMP || jump->targets[0] > i) continue;
      const int64_t more = program_rounds(cmd, edge);
      rounds *= more < 0 ? INFINITY : (double)more + 1;
    }
    most = fmax(most, rounds);
  }
  return most * mp_loop_seconds(cmd->loop);
}

uint32_t mp_copy_num_parts(uint64_t bytes) {
  enum { GRAIN_BYTES = 512 * 1024 };
  return mp_part_count((int64_t)bytes, GRAIN_BYTES);
}

void mp_program_release(mp_program_t *program) {
  if (program == NULL) return;
  // The program itself lives in its arena.
  for (uint32_t i = 0; i < program->num_calls; ++i) mp_foreign_call_release(program->calls[i]);
  mp_module_t *module = program->module, *partitioned = program->partitioned;
  mp_arena_release(program->arena);
  mp_module_release(partitioned);
  mp_module_release(module);
}

// ---- as text: one line per command, for tests, dumps and bug reports ----

static const char *const g_kinds[] = {
#define ROW(name, text) [MP_CMD_##name] = #text,
    MP_COMMANDS(ROW)
#undef ROW
};

static void program_print_slots(const mp_slot_t *slots, uint32_t count, mp_strbuf_t *out) {
  for (uint32_t i = 0; i < count; ++i) {
    mp_strbuf_puts(out, i == 0 ? "" : ", ");
    switch (slots[i].kind) {
      case MP_SLOT_NONE:
        mp_strbuf_puts(out, "none");
        break;
      case MP_SLOT_ARENA:
        mp_strbuf_printf(out, "arena+%" PRIu64, slots[i].offset);
        break;
      case MP_SLOT_PARAM:
        mp_strbuf_printf(out, "param%" PRIu32, slots[i].index);
        break;
      case MP_SLOT_RESULT:
        mp_strbuf_printf(out, "result%" PRIu32, slots[i].index);
        if (slots[i].offset != 0) mp_strbuf_printf(out, "+%" PRIu64, slots[i].offset);
        break;
      case MP_SLOT_CONSTANT:
        mp_strbuf_printf(out, "constant%" PRIu32, slots[i].index);
        break;
    }
  }
}

static void program_print_command(const mp_cmd_t *command, mp_strbuf_t *out) {
  const bool is_sequence = command->kind == MP_CMD_LOOP && mp_loop_num_edges(command->loop) == 0;
  mp_strbuf_puts(out, is_sequence ? "sequence" : g_kinds[command->kind]);
  if (command->kind == MP_CMD_LAUNCH || command->kind == MP_CMD_TALK ||
      command->kind == MP_CMD_COLLECTIVE) {
    mp_strbuf_printf(out, " %s", command->name);
  }
  if (command->kind == MP_CMD_CALL) {
    mp_strbuf_printf(out, " %.*s", MP_STR_ARG(command->call->handler->name));
  }
  if (command->kind == MP_CMD_LOOP) {
    mp_strbuf_printf(out, " of %" PRIu32 " steps, from these commands:\n",
                     mp_loop_num_steps(command->loop));
    return;
  }
  if (command->num_operands != 0 || command->num_results != 0) {
    mp_strbuf_puts(out, " (");
    program_print_slots(command->operands, command->num_operands, out);
    mp_strbuf_puts(out, ")");
  }
  if (command->num_results != 0) {
    mp_strbuf_puts(out, " -> ");
    program_print_slots(command->results, command->num_results, out);
  }
  for (uint32_t i = 0; i < command->num_targets; ++i) {
    mp_strbuf_printf(out, "%s%" PRIu32, i == 0 ? " to " : ", ", command->targets[i]);
  }
  mp_strbuf_putc(out, '\n');
}

static void program_print_io(const char *what, const mp_program_io_t *io, uint32_t index,
                             mp_strbuf_t *out) {
  mp_strbuf_printf(out, "%s%" PRIu32 " ", what, index);
  mp_type_print(io->type, out);
  if (io->memory != MP_MEMORY_DEVICE) {
    mp_strbuf_printf(out, " in %s", mp_memory_space_name(io->memory));
  }
  if (io->alias != -1) mp_strbuf_printf(out, " alias %" PRId32, io->alias);
  mp_strbuf_putc(out, '\n');
}

void mp_program_print(const mp_program_t *program, mp_strbuf_t *out) {
  mp_strbuf_printf(out,
                   "program %.*s: %" PRIu32 " x %" PRIu32 " devices, arena %" PRIu64 " bytes\n",
                   MP_STR_ARG(program->name), program->num_replicas, program->num_partitions,
                   program->arena_bytes);
  for (uint32_t i = 0; i < program->num_params; ++i)
    program_print_io("param", &program->params[i], i, out);
  for (uint32_t i = 0; i < program->num_results; ++i) {
    program_print_io("result", &program->results[i], i, out);
  }
  for (uint32_t i = 0; i < program->num_commands; ++i) {
    const mp_cmd_t *command = &program->commands[i];
    mp_strbuf_printf(out, "%4" PRIu32 "  ", i);
    program_print_command(command, out);
    for (uint32_t k = 0; k < command->num_body; ++k) {
      mp_strbuf_printf(out, "      .%-4" PRIu32, k);
      program_print_command(&command->body[k], out);
    }
  }
}
