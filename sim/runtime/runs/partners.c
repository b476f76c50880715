#include "sim/runtime/runs/partners.h"

#include <string.h>

// Adds the groups that have a partner. Returns whether there is a new one.
static bool partners_add_groups(const mp_groups_t *groups, bool *is_partner) {
  bool has_new = false;
  for (uint32_t g = 0; g < groups->num_groups; ++g) {
    const uint32_t begin = groups->offsets[g], end = groups->offsets[g + 1];
    uint32_t count = 0;
    for (uint32_t i = begin; i < end; ++i) count += is_partner[groups->members[i]];
    if (count == 0 || count == end - begin) continue;
    has_new = true;
    for (uint32_t i = begin; i < end; ++i) is_partner[groups->members[i]] = true;
  }
  return has_new;
}

void mp_partners_find(const mp_program_t *program, uint32_t logical, uint32_t num_devices,
                      bool *is_partner) {
  is_partner[logical] = true;
  for (bool again = true; again;) {
    again = false;
    for (uint32_t i = 0; i < program->num_commands; ++i) {
      const mp_cmd_t *cmd = &program->commands[i];
      if (cmd->kind == MP_CMD_SEND || cmd->kind == MP_CMD_RECV || cmd->kind == MP_CMD_TALK) {
        memset(is_partner, true, num_devices * sizeof(*is_partner));
        return;
      }
      if (cmd->kind != MP_CMD_COLLECTIVE) continue;
      again |= partners_add_groups(cmd->collective->groups, is_partner);
    }
  }
}
