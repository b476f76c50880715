#include "collectives/transport/store/presence.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/alloc.h"
#include "sim/base/containers/array.h"
#include "sim/base/os/clock.h"
#include "sim/base/os/process.h"

// How long a condition that others can still fix lasts before it is reported: a process that has
// ended may be restarted.
static const double k_grace_seconds = 2;
// How long to wait for one key in a store that has no get without waiting.
static const double k_look_seconds = 0.05;

// Stands in place of the members: this process has not joined a world, or has failed to.
#define PRESENCE_NONE "-"
// The same, because processes disagree; the error follows.
#define PRESENCE_DISAGREES "!"

enum {
  MP_MOST_LOOKS = 64,       // at other processes, at a time
  MP_MOST_SLOW_LOOKS = 4,   // in a store that has no get without waiting
  MP_MOST_NOTES = 1 << 16,  // of one process and its predecessors
  MP_MOST_SHOWN = 48,       // characters of a list
  MP_MOST_TOLD = 500,       // characters of an error
  MP_MOST_LINKS = 8,        // of a circle that are shown
};

// ---- Notes ----

typedef struct {
  mp_process_id_t process;
  uint64_t world;
  bool is_from_environment;
  char *text;  // the members as they are written
  bool is_all;
  MP_ARRAY(uint32_t) members;  // where they are listed
} presence_note_t;

typedef enum { PRESENCE_NEW, PRESENCE_ON_PATH, PRESENCE_DONE } presence_mark_t;

typedef struct {
  MP_ARRAY(presence_note_t) notes;     // those of predecessors come first
  double gone_since, elsewhere_since;  // 0: it is not
  presence_mark_t mark;                // of a search
} presence_process_t;

// A process, and how many of those that it joins have been followed.
typedef struct {
  uint32_t rank, num_followed;
} presence_step_t;

struct mp_presence_s {
  mp_presence_join_t join;
  mp_process_id_t self;
  uint32_t next;          // whose notes are looked at next
  presence_step_t *path;  // [size], for the search of circles
  presence_process_t processes[];
};

static uint32_t g_next_note;  // of this process; under the lock of joining

static void presence_make_key(char key[MP_STORE_KEY_BYTES], uint32_t rank, uint32_t number) {
  snprintf(key, MP_STORE_KEY_BYTES, "minipod/joins/%" PRIu32 "/%" PRIu32, rank, number);
}

// Puts a note under the first number that has none: a predecessor of this process has left some.
static void presence_put(const mp_presence_join_t *join, uint64_t world, const char *members) {
  const mp_process_id_t self = mp_process_self();
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_printf(&text, "%" PRId64 " %" PRIu64 " %" PRIu64 " %s %" PRIx64 " %c %s", self.pid,
                   self.start, self.numbers, self.boot_id[0] == '\0' ? "-" : self.boot_id, world,
                   join->is_from_environment ? 'e' : 'o', members);
  for (bool is_taken = true; is_taken && g_next_note < MP_MOST_NOTES;) {
    char key[MP_STORE_KEY_BYTES];
    presence_make_key(key, join->rank, g_next_note++);
    mp_status_t status = mp_strbuf_status(&text);
    if (status == NULL) {
      status = join->store->put(join->store->context, key, (mp_str_t){text.data, text.size});
    }
    is_taken = mp_status_code(status) == MP_ALREADY_EXISTS;
    mp_status_ignore(status);
  }
  mp_strbuf_deinit(&text);
}

static void presence_free(presence_note_t *note) {
  mp_free(note->text);
  MP_ARRAY_FREE(&note->members);
}

static mp_status_t presence_read_members(presence_note_t *note, const char *text, uint32_t size) {
  const size_t bytes = strlen(text) + 1;
  note->text = mp_malloc(bytes);
  MP_RETURN_IF_NULL(note->text);
  memcpy(note->text, text, bytes);
  note->is_all = strcmp(text, MP_PRESENCE_ALL) == 0;
  while (isdigit((unsigned char)*text)) {
    char *end;
    const unsigned long long number = strtoull(text, &end, 10);
    text = *end == ',' ? end + 1 : end;
    if (number >= size) continue;
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(NULL, &note->members, (uint32_t)number));
  }
  return NULL;
}

// Reads a note of a job of `size` processes; to be freed in any case.
static mp_status_t presence_read(const char *text, uint32_t size, presence_note_t *note) {
  int used = 0;
  char source = 0;
  mp_process_id_t *process = &note->process;
  if (sscanf(text, "%" SCNd64 " %" SCNu64 " %" SCNu64 " %39s %" SCNx64 " %c %n", &process->pid,
             &process->start, &process->numbers, process->boot_id, &note->world, &source,
             &used) != 6) {
    return mp_status_make(MP_INTERNAL, "no note");
  }
  if (strcmp(process->boot_id, "-") == 0) process->boot_id[0] = '\0';
  note->is_from_environment = source == 'e';
  return presence_read_members(note, text + used, size);
}

static mp_status_t presence_get(const mp_presence_t *self, const char *key, mp_strbuf_t *text) {
  const mp_key_value_store_t *store = self->join.store;
  return store->try_get == NULL ? store->get(store->context, key, k_look_seconds, text)
                                : store->try_get(store->context, key, text);
}

// Takes the next note of a process; false: there is none yet.
static bool presence_take_note(mp_presence_t *self, uint32_t rank) {
  presence_process_t *process = &self->processes[rank];
  char key[MP_STORE_KEY_BYTES];
  presence_make_key(key, rank, process->notes.count);
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  presence_note_t note;
  memset(&note, 0, sizeof(note));
  mp_status_t status = presence_get(self, key, &text);
  if (status == NULL) status = presence_read(mp_strbuf_text(&text), self->join.size, &note);
  if (status == NULL) status = MP_ARRAY_PUSH(NULL, &process->notes, note);
  const bool has_note = status == NULL;
  if (!has_note) presence_free(&note);
  mp_status_ignore(status);
  mp_strbuf_deinit(&text);
  return has_note;
}

// Whether a process has left new notes.
static bool presence_look(mp_presence_t *self, uint32_t rank) {
  bool is_new = false;
  while (self->processes[rank].notes.count < MP_MOST_NOTES && presence_take_note(self, rank)) {
    is_new = true;
  }
  return is_new;
}

// ---- What the notes say ----

// The last note; NULL: the process has left none.
static const presence_note_t *presence_last(const mp_presence_t *self, uint32_t rank) {
  const presence_process_t *process = &self->processes[rank];
  return process->notes.count == 0 ? NULL : &process->notes.items[process->notes.count - 1];
}

static bool presence_has_given_up(const presence_note_t *note) {
  return note->text[0] == PRESENCE_NONE[0] || note->text[0] == PRESENCE_DISAGREES[0];
}

// Whether a process, and not its predecessor, has begun to join a world.
static bool presence_has_joined(const mp_presence_t *self, uint32_t rank, uint64_t world) {
  const presence_process_t *process = &self->processes[rank];
  const presence_note_t *last = presence_last(self, rank);
  for (uint32_t i = process->notes.count; i-- > 0;) {
    const presence_note_t *note = &process->notes.items[i];
    if (!mp_process_is_same(&note->process, &last->process)) break;
    if (note->world == world && !presence_has_given_up(note)) return true;
  }
  return false;
}

static uint32_t presence_num_members(const mp_presence_t *self, const presence_note_t *note) {
  return note->is_all ? self->join.size : note->members.count;
}

static uint32_t presence_member(const presence_note_t *note, uint32_t index) {
  return note->is_all ? index : note->members.items[index];
}

static void presence_describe(const presence_note_t *note, mp_strbuf_t *text) {
  if (note->is_all) {
    mp_strbuf_puts(text, "all processes");
    return;
  }
  const bool is_long = strlen(note->text) > MP_MOST_SHOWN;
  mp_strbuf_printf(text, "processes %.*s%s (%s)", MP_MOST_SHOWN, note->text, is_long ? "..." : "",
                   note->is_from_environment ? "MINIPOD_SUBSET" : "option 'subset'");
}

// ---- Members that will not come ----

// Whether a condition has lasted long enough; `since` is when it was seen first.
static bool presence_is_lasting(bool is_so, double *since) {
  if (!is_so) {
    *since = 0;
    return false;
  }
  if (*since == 0) *since = mp_clock_seconds();
  return mp_clock_seconds() - *since >= k_grace_seconds;
}

// Whether a process joins, or has joined, what its MINIPOD_SUBSET says, which is not what this
// one's does.
static bool presence_is_elsewhere(const mp_presence_t *self, const presence_note_t *last) {
  return self->join.is_from_environment && last->is_from_environment &&
         last->world != self->join.world && !presence_has_given_up(last);
}

static mp_status_t presence_report_elsewhere(const mp_presence_t *self, uint32_t rank,
                                             const presence_note_t *last) {
  mp_strbuf_t theirs;
  mp_strbuf_init(&theirs);
  presence_describe(last, &theirs);
  mp_status_t status = mp_status_make(
      MP_FAILED_PRECONDITION,
      "the processes disagree on MINIPOD_SUBSET: process %" PRIu32
      " chose processes %.*s, process %" PRIu32
      " chose %s. Set the same MINIPOD_SUBSET in all processes of a list; a process that joins "
      "several lists, one after the other, names them by the client option 'subset'",
      self->join.rank, MP_MOST_SHOWN, self->join.members, rank, mp_strbuf_text(&theirs));
  mp_strbuf_deinit(&theirs);
  return status;
}

static mp_status_t presence_check_member(mp_presence_t *self, uint32_t rank) {
  presence_process_t *process = &self->processes[rank];
  const presence_note_t *last = presence_last(self, rank);
  if (last == NULL) return NULL;
  if (last->text[0] == PRESENCE_DISAGREES[0]) {
    return mp_status_make(MP_FAILED_PRECONDITION, "process %" PRIu32 " has failed: %.*s", rank,
                          MP_MOST_TOLD, last->text + 1);
  }
  if (presence_is_lasting(mp_process_is_gone(&self->self, &last->process), &process->gone_since)) {
    return mp_status_make(MP_UNAVAILABLE,
                          "process %" PRIu32 " (pid %" PRId64
                          ") has ended before all processes had joined; see its own output",
                          rank, last->process.pid);
  }
  if (presence_has_joined(self, rank, self->join.world)) return NULL;
  if (!presence_is_lasting(presence_is_elsewhere(self, last), &process->elsewhere_since)) {
    return NULL;
  }
  return presence_report_elsewhere(self, rank, last);
}

// Checks the members that this process waits for.
static mp_status_t presence_check_members(mp_presence_t *self) {
  const presence_note_t *own = presence_last(self, self->join.rank);
  for (uint32_t i = 0; own != NULL && i < presence_num_members(self, own); ++i) {
    MP_RETURN_IF_ERROR(presence_check_member(self, presence_member(own, i)));
  }
  return NULL;
}

// ---- Processes that wait for each other ----

// The next process that one waits for: a member of what it joins that has not begun to; -1: it
// waits for no more that are known.
static int64_t presence_next_missing(const mp_presence_t *self, presence_step_t *step) {
  const presence_note_t *last = presence_last(self, step->rank);
  while (step->num_followed < presence_num_members(self, last)) {
    const uint32_t member = presence_member(last, step->num_followed++);
    const presence_note_t *theirs = presence_last(self, member);
    if (member != step->rank && theirs != NULL && !presence_has_joined(self, member, last->world) &&
        !mp_process_is_gone(&self->self, &theirs->process)) {
      return member;
    }
  }
  return -1;
}

static void presence_step_on(mp_presence_t *self, uint32_t rank, uint32_t *count) {
  self->processes[rank].mark = PRESENCE_ON_PATH;
  self->path[(*count)++] = (presence_step_t){.rank = rank};
}

// Searches from this process on for processes that wait for each other in a circle. The circle is
// path[*out_begin ... *out_end - 1].
static bool presence_find_circle(mp_presence_t *self, uint32_t *out_begin, uint32_t *out_end) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < self->join.size; ++i) self->processes[i].mark = PRESENCE_NEW;
  if (presence_last(self, self->join.rank) != NULL) {
    presence_step_on(self, self->join.rank, &count);
  }
  while (count > 0) {
    const int64_t next = presence_next_missing(self, &self->path[count - 1]);
    if (next < 0) {
      self->processes[self->path[--count].rank].mark = PRESENCE_DONE;
    } else if (self->processes[next].mark == PRESENCE_NEW) {
      presence_step_on(self, (uint32_t)next, &count);
    } else if (self->processes[next].mark == PRESENCE_ON_PATH) {
      uint32_t begin = 0;
      while (self->path[begin].rank != next) ++begin;
      *out_begin = begin;
      *out_end = count;
      return true;
    }
  }
  return false;
}

static mp_status_t presence_report_circle(const mp_presence_t *self, uint32_t begin, uint32_t end) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  for (uint32_t i = begin; i < end && i - begin < MP_MOST_LINKS; ++i) {
    mp_strbuf_printf(&text, "%sprocess %" PRIu32 " chose ", i == begin ? "" : ", ",
                     self->path[i].rank);
    presence_describe(presence_last(self, self->path[i].rank), &text);
    mp_strbuf_printf(&text, " and waits for process %" PRIu32,
                     self->path[i + 1 == end ? begin : i + 1].rank);
  }
  mp_status_t status = mp_status_make(MP_FAILED_PRECONDITION,
                                      "the processes disagree on which of them share a pod: %s",
                                      mp_strbuf_text(&text));
  mp_strbuf_deinit(&text);
  return status;
}

// What notes show was so when the last of them was read. So the circle's are looked at once more:
// if there are no new ones, all were as they are now when that began, and none can go on.
static mp_status_t presence_check_circles(mp_presence_t *self) {
  uint32_t begin = 0, end = 0;
  if (!presence_find_circle(self, &begin, &end)) return NULL;
  bool is_new = false;
  for (uint32_t i = begin; i < end; ++i) is_new |= presence_look(self, self->path[i].rank);
  return is_new ? NULL : presence_report_circle(self, begin, end);
}

// ---- Checks during a wait ----

mp_presence_join_t mp_presence_of_options(const mp_options_t *options,
                                          const mp_key_value_store_t *store,
                                          const mp_subset_t *subset) {
  mp_presence_join_t join = {.store = store, .members = MP_PRESENCE_ALL};
  if (subset == NULL) {
    join.rank = (uint32_t)options->node_id;
    join.size = (uint32_t)options->num_nodes;
    return join;
  }
  const bool is_listed = options->subset[0] != '\0';
  join.rank = subset->job_rank;
  join.size = subset->job_size;
  join.world = subset->name;
  join.members = is_listed ? options->subset : MP_PRESENCE_UNKNOWN;
  join.is_from_environment =
      is_listed && options->source[MP_OPTION_ID_subset] == MP_SOURCE_ENVIRONMENT;
  return join;
}

void mp_presence_tell(const mp_presence_join_t *join) {
  presence_put(join, join->world, join->members);
}

void mp_presence_give_up(const mp_presence_join_t *join, mp_status_t status) {
  char text[MP_MOST_TOLD + 2] = PRESENCE_NONE;
  if (mp_status_code(status) == MP_FAILED_PRECONDITION) {
    snprintf(text, sizeof(text), PRESENCE_DISAGREES "%s", mp_status_message(status));
  }
  presence_put(join, 0, text);
}

mp_presence_t *mp_presence_begin(const mp_presence_join_t *join) {
  mp_presence_tell(join);
  const size_t bytes =
      sizeof(mp_presence_t) + join->size * (sizeof(presence_process_t) + sizeof(presence_step_t));
  mp_presence_t *self = mp_calloc(1, bytes);
  if (self == NULL) return NULL;
  self->join = *join;
  self->self = mp_process_self();
  self->path = (presence_step_t *)(void *)(self->processes + join->size);
  (void)presence_look(self, join->rank);
  return self;
}

// Looks for notes of the awaited members, some at a time. Notes of further processes show which
// processes these members wait for in turn.
static void presence_look_around(mp_presence_t *self) {
  const uint32_t most = self->join.store->try_get == NULL ? MP_MOST_SLOW_LOOKS : MP_MOST_LOOKS;
  for (uint32_t i = 0, count = 0; i < self->join.size && count < most; ++i) {
    const uint32_t rank = self->next;
    self->next = (self->next + 1) % self->join.size;
    if (rank == self->join.rank) continue;
    if (presence_last(self, rank) != NULL && presence_has_joined(self, rank, self->join.world)) {
      continue;
    }
    (void)presence_look(self, rank);
    ++count;
  }
}

mp_status_t mp_presence_check(mp_presence_t *presence) {
  presence_look_around(presence);
  MP_RETURN_IF_ERROR(presence_check_members(presence));
  return presence_check_circles(presence);
}

void mp_presence_end(mp_presence_t *presence) {
  for (uint32_t i = 0; presence != NULL && i < presence->join.size; ++i) {
    presence_process_t *process = &presence->processes[i];
    for (uint32_t j = 0; j < process->notes.count; ++j) presence_free(&process->notes.items[j]);
    MP_ARRAY_FREE(&process->notes);
  }
  mp_free(presence);
}
