// The time of a collective of all devices on a described pod, for each possible algorithm, and the
// algorithm that the model chooses. --messages prints the network, and all messages of single
// devices, one per line, for other simulators (tools/simgrid/compare.py).

#include <stdio.h>
#include <string.h>

#include "pjrt/command/command.h"
#include "sim/base/alloc.h"
#include "sim/model/network/algorithms/network_options.h"
#include "sim/model/network/network.h"
#include "sim/model/network/traffic/traffic.h"
#include "topology/pod.h"

typedef struct {
  mp_arena_t *arena;
  mp_pod_t *pod;
  int32_t num_devices;
  int32_t *ids;
  mp_collective_t collective;
  mp_collective_operand_t operand;
  int64_t dims[1], result_dims[1];
} question_t;

// The names of MP_ALGORITHMS, one per line.
#define VERB_NETWORK_NAME(name, text) "                 " text "\n"
#define VERB_NETWORK_ALGORITHMS       MP_ALGORITHMS(VERB_NETWORK_NAME)

static const char g_usage[] =
    "usage: minipod network POD COLLECTIVE BYTES [ALGORITHM] [--messages]\n"
    "\n"
    "Prints how long a collective of all devices of POD takes with each algorithm, first with the\n"
    "one that the time model chooses, and the busiest link.\n"
    "\n"
    "  POD          a line such as \"v5e:4x4\" or \"h100:8 slices:4\", or a YAML file\n"
    "  COLLECTIVE   all_reduce, all_gather, reduce_scatter, all_to_all, collective_permute or\n"
    "               collective_broadcast\n"
    "  BYTES        size of a device's array, such as 64MiB or 64 MiB: of the operand, but for an\n"
    "               all_gather of the result\n"
    "  ALGORITHM    only this one, of\n" VERB_NETWORK_ALGORITHMS
    "\n"
    "  --messages   print the network, and each message of single devices on a line\n"
    "  --version    print the version of minipod\n";

// Whether one size is enough to time this kind.
static bool verb_network_can_ask(mp_collective_kind_t kind) {
  return kind != MP_COLLECTIVE_EXCHANGE && kind != MP_COLLECTIVE_SEND_RECV &&
         kind != MP_COLLECTIVE_RAGGED_ALL_TO_ALL;
}

static mp_status_t verb_network_find_kind(const char *name, mp_collective_kind_t *out_kind) {
  char known[256] = "";
  size_t size = 0;
  if (mp_collective_kind_from_name(mp_str(name), out_kind) && verb_network_can_ask(*out_kind))
    return NULL;
  for (int k = 0; k < MP_COLLECTIVE_KINDS; ++k) {
    const mp_collective_kind_t kind = (mp_collective_kind_t)k;
    if (!verb_network_can_ask(kind) || size >= sizeof(known)) continue;
    size += (size_t)snprintf(known + size, sizeof(known) - size, "%s%s", size == 0 ? "" : ", ",
                             mp_collective_kind_name(kind));
  }
  return mp_status_make(MP_INVALID_ARGUMENT, "collective '%s' is none of %s", name, known);
}

// A permute goes to the device half a list away: the longest path that is possible for all.
static mp_status_t verb_network_make_pairs(question_t *question) {
  const uint32_t count = (uint32_t)question->num_devices;
  uint32_t *pairs = MP_ARENA_ARRAY(question->arena, uint32_t, 2 * (size_t)count);
  MP_RETURN_IF_NULL(pairs);
  for (uint32_t target = 0; target < count; ++target) {
    pairs[2 * target] = (target + count - count / 2) % count;
    pairs[2 * target + 1] = target;
  }
  question->collective.num_pairs = count;
  question->collective.pairs = pairs;
  return NULL;
}

// A collective of all devices in one group, of arrays of bytes.
static mp_status_t verb_network_make_question(question_t *question, const char *pod,
                                              const char *kind_name, const char *bytes_text) {
  mp_collective_kind_t kind = MP_COLLECTIVE_ALL_REDUCE;
  unsigned long long bytes;
  MP_RETURN_IF_ERROR(verb_network_find_kind(kind_name, &kind));
  if (!mp_str_parse_bytes(mp_str(bytes_text), &bytes) || bytes > INT64_MAX) {
    return mp_status_make(MP_INVALID_ARGUMENT, "'%s' is not a number of bytes such as 64MiB",
                          bytes_text);
  }
  MP_RETURN_IF_ERROR(mp_pod_create_from_name(mp_str(pod), "argument", &question->pod));
  MP_RETURN_IF_ERROR(mp_arena_create(&question->arena));
  question->num_devices = mp_pod_info(question->pod)->num_devices;
  question->ids = MP_ARENA_ARRAY(question->arena, int32_t, (size_t)question->num_devices);
  MP_RETURN_IF_NULL(question->ids);
  for (int32_t i = 0; i < question->num_devices; ++i) question->ids[i] = i;
  question->dims[0] = question->result_dims[0] = (int64_t)bytes;
  if (kind == MP_COLLECTIVE_ALL_GATHER) question->dims[0] /= question->num_devices;
  question->operand = (mp_collective_operand_t){.dtype = MP_DTYPE_S8,
                                                .rank = 1,
                                                .dims = question->dims,
                                                .result_dims = question->result_dims};
  question->collective = (mp_collective_t){
      .kind = kind, .name = kind_name, .num_operands = 1, .operands = &question->operand};
  if (kind == MP_COLLECTIVE_PERMUTE) MP_RETURN_IF_ERROR(verb_network_make_pairs(question));
  return mp_groups_create(question->arena, MP_GROUPS_FLATTENED_IDS, 1,
                          (uint32_t)question->num_devices, NULL, 0, 0,
                          &question->collective.groups);
}

static mp_status_t verb_network_make_network(const question_t *question, const char *algorithm,
                                             mp_network_t **out_network) {
  char text[256];
  mp_network_options_t options = {0};
  snprintf(text, sizeof(text), "%s:%s", mp_collective_kind_name(question->collective.kind),
           algorithm);
  MP_RETURN_IF_ERROR(mp_network_options_read(mp_str(text), &options));
  return mp_network_create(question->pod, &options, out_network);
}

// ---- The table ----

// The link that the traffic keeps busy for longest.
static void verb_network_print_busiest(const mp_network_t *network, const mp_traffic_t *traffic,
                                       double *seconds) {
  const uint32_t count = mp_network_num_links(network);
  uint32_t busiest = 0;
  for (uint32_t s = 0; s < traffic->num_stages; ++s) {
    for (uint32_t t = 0; t < traffic->stages[s].num_transfers; ++t) {
      const mp_transfer_t *transfer = &traffic->stages[s].transfers[t];
      for (uint32_t u = 0; u < transfer->num_uses; ++u) {
        const mp_network_use_t *use = &transfer->uses[u];
        seconds[use->link] += mp_network_link_seconds(mp_network_link(network, use->link),
                                                      transfer->bytes * use->times);
      }
    }
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (seconds[i] > seconds[busiest]) busiest = i;
  }
  printf("  %s: %.0f %%\n", mp_network_link(network, busiest)->name,
         100 * seconds[busiest] / traffic->alone);
}

static mp_status_t verb_network_print_row(const question_t *question, const char *algorithm) {
  mp_network_t *network = NULL;
  const mp_traffic_t *traffic;
  double *seconds = NULL;
  mp_status_t status = verb_network_make_network(question, algorithm, &network);
  if (status == NULL) {
    status = mp_network_traffic(network, &question->collective, 0, question->ids, &traffic);
  }
  if (status == NULL && (strcmp(algorithm, "auto") == 0 ||
                         strcmp(mp_algorithm_name(traffic->algorithm), algorithm) == 0)) {
    seconds = mp_calloc(mp_network_num_links(network), sizeof(*seconds));
    printf("%-26s %12.3f us  ", mp_algorithm_name(traffic->algorithm), traffic->alone * 1e6);
    if (seconds != NULL) verb_network_print_busiest(network, traffic, seconds);
  }
  mp_free(seconds);
  mp_network_release(network);
  return status;
}

static mp_status_t verb_network_print_table(const question_t *question) {
  printf("%-26s %15s    busiest link\n", "chosen:", "time");
  MP_RETURN_IF_ERROR(verb_network_print_row(question, "auto"));
  printf("all:\n");
  for (int i = MP_ALGORITHM_AUTO + 1; i < MP_ALGORITHM_COUNT; ++i) {
    mp_status_t status = verb_network_print_row(question, mp_algorithm_name((mp_algorithm_t)i));
    if (mp_status_code(status) != MP_INVALID_ARGUMENT) MP_RETURN_IF_ERROR(status);
    mp_status_release(status);  // not an algorithm of this collective
  }
  return NULL;
}

// ---- The messages ----

static mp_status_t verb_network_print_sends(mp_network_t *network, const mp_network_sends_t *all) {
  for (uint32_t i = 0; i < all->count; ++i) {
    const mp_network_send_t *send = &all->sends[i];
    mp_transfer_t transfer;
    printf("send %u %d %d %.17g", send->step, send->source, send->target, send->bytes);
    MP_RETURN_IF_ERROR(mp_network_message(network, mp_network_device(send->source),
                                          mp_network_device(send->target), send->bytes, &transfer));
    for (uint32_t u = 0; u < transfer.num_uses; ++u) printf(" %u", transfer.uses[u].link);
    printf("\n");
  }
  return NULL;
}

// Lines "link NUMBER BYTES/S SECONDS", "send STEP SOURCE TARGET BYTES LINK...", and the model's
// time of them.
static mp_status_t verb_network_print_messages(const question_t *question, const char *algorithm) {
  mp_network_t *network = NULL;
  const mp_traffic_t *traffic;
  mp_network_sends_t sends;
  mp_status_t status = NULL;
  MP_GOTO_IF_ERROR(status, verb_network_make_network(question, algorithm, &network), done);
  MP_GOTO_IF_ERROR(
      status, mp_network_traffic(network, &question->collective, 0, question->ids, &traffic), done);
  MP_GOTO_IF_ERROR(
      status,
      mp_network_expand(network, question->arena, &question->collective, 0, question->ids, &sends),
      done);
  printf("algorithm %s\ntime %.17g\n", mp_algorithm_name(sends.algorithm), traffic->alone);
  for (uint32_t i = 0; i < mp_network_num_links(network); ++i) {
    const mp_network_link_t *link = mp_network_link(network, i);
    printf("link %u %.17g %.17g\n", i, link->bandwidth, link->latency);
  }
  MP_GOTO_IF_ERROR(status, verb_network_print_sends(network, &sends), done);
done:
  mp_network_release(network);
  return status;
}

// Joins a size that was split into a number and its unit ("64 MiB") in `joined`.
static void verb_network_join_size(int *argc, char **argv, char *joined, size_t capacity) {
  unsigned long long bytes;
  if (*argc < 5 || !mp_str_parse_bytes(mp_str(argv[3]), &bytes)) return;
  const int size = snprintf(joined, capacity, "%s%s", argv[3], argv[4]);
  if (size < 0 || (size_t)size >= capacity || !mp_str_parse_bytes(mp_str(joined), &bytes)) return;
  argv[3] = joined;
  for (int i = 5; i < *argc; ++i) argv[i - 1] = argv[i];
  --*argc;
}

int mp_verb_network(int argc, char **argv) {
  static const char *const needed[] = {"POD", "COLLECTIVE", "BYTES"};
  if (mp_command_answers(argc, argv, g_usage)) return MP_EXIT_GOOD;
  char size[64];
  verb_network_join_size(&argc, argv, size, sizeof(size));
  const bool has_messages = argc > 4 && strcmp(argv[argc - 1], "--messages") == 0;
  if (has_messages) --argc;
  if (argc < 4) return mp_command_misuse(argv[0], mp_command_missing(needed[argc - 1]));
  if (argc > 5) return mp_command_misuse(argv[0], mp_command_unexpected(argv[5]));
  const char *algorithm = argc > 4 ? argv[4] : NULL;
  question_t question = {0};
  mp_status_t status = verb_network_make_question(&question, argv[1], argv[2], argv[3]);
  if (status == NULL && has_messages) {
    status = verb_network_print_messages(&question, algorithm != NULL ? algorithm : "auto");
  } else if (status == NULL) {
    status = algorithm != NULL ? verb_network_print_row(&question, algorithm)
                               : verb_network_print_table(&question);
  }
  mp_arena_release(question.arena);
  mp_pod_release(question.pod);
  return mp_command_end(argv[0], status);
}
