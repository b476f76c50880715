// Plays messages of devices in SimGrid's flow model and prints when the last one has arrived, in
// seconds. compare.py builds it against Debian's libsimgrid-dev; nothing else does.
//
//   simgrid_messages PLATFORM.xml MESSAGES NUM_DEVICES [--cfg=...]
//
// MESSAGES has lines "STEP SOURCE TARGET BYTES", in the order of steps. Every device is an actor on
// the host "dN". It has room for all that it will receive from the beginning, so that a message
// starts when it is sent; in each step it sends, and waits for what it receives. So devices wait
// only for the devices that send to them.

#include <simgrid/actor.h>
#include <simgrid/comm.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>
#include <simgrid/mailbox.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  unsigned step;
  int source, target;
  double bytes;
} message_t;

static message_t *g_messages;
static size_t g_count;

static sg_mailbox_t mailbox_of(const message_t *message) {
  char name[64];
  snprintf(name, sizeof(name), "%d-%d", message->source, message->target);
  return sg_mailbox_by_name(name);
}

static void device(int argc, char **argv) {
  static char content;
  const int self = argc > 1 ? atoi(argv[1]) : 0;
  sg_comm_t *sends = malloc(g_count * sizeof(*sends));
  sg_comm_t *receives = malloc(g_count * sizeof(*receives));
  void **contents = malloc(g_count * sizeof(*contents));
  size_t num_sends = 0, num_receives = 0, first = 0;
  for (size_t i = 0; i < g_count; ++i) {
    if (g_messages[i].target != self) continue;
    receives[num_receives++] = sg_mailbox_get_async(mailbox_of(&g_messages[i]), &contents[i]);
  }
  for (size_t at = 0; at < g_count;) {
    const unsigned step = g_messages[at].step;
    size_t count = 0;
    for (; at < g_count && g_messages[at].step == step; ++at) {
      const message_t *message = &g_messages[at];
      count += message->target == self;
      if (message->source != self) continue;
      sends[num_sends++] =
          sg_mailbox_put_async(mailbox_of(message), &content, (long)message->bytes);
    }
    if (count != 0) sg_comm_wait_all(receives + first, count);
    first += count;
  }
  if (num_sends != 0) sg_comm_wait_all(sends, num_sends);
  free(contents);
  free(receives);
  free(sends);
}

static int read_messages(const char *path) {
  FILE *file = fopen(path, "r");
  if (file == NULL) return 0;
  size_t room = 0;
  message_t message;
  while (fscanf(file, "%u %d %d %lf", &message.step, &message.source, &message.target,
                &message.bytes) == 4) {
    if (g_count == room) {
      room = room == 0 ? 1024 : 2 * room;
      g_messages = realloc(g_messages, room * sizeof(*g_messages));
      if (g_messages == NULL) return 0;
    }
    g_messages[g_count++] = message;
  }
  fclose(file);
  return 1;
}

int main(int argc, char **argv) {
  simgrid_init(&argc, argv);
  if (argc != 4 || !read_messages(argv[2])) {
    fprintf(stderr, "usage: simgrid_messages PLATFORM.xml MESSAGES NUM_DEVICES [--cfg=...]\n");
    return EXIT_FAILURE;
  }
  simgrid_load_platform(argv[1]);
  const int num_devices = atoi(argv[3]);
  for (int i = 0; i < num_devices; ++i) {
    char name[32], number[16];
    snprintf(name, sizeof(name), "d%d", i);
    snprintf(number, sizeof(number), "%d", i);
    const char *arguments[] = {name, number, NULL};
    sg_actor_create_(name, sg_host_by_name(name), device, 2, arguments);
  }
  simgrid_run();
  printf("%.17g\n", simgrid_get_clock());
  free(g_messages);
  return EXIT_SUCCESS;
}
