// What the files of the model share: its programs (model.c), the log (model_log.c) and what is
// computed from it (model_settle.c).
#ifndef MINIPOD_SIM_MODEL_CLOCK_MODEL_IMPL_H_
#define MINIPOD_SIM_MODEL_CLOCK_MODEL_IMPL_H_

#include "sim/base/containers/hash_map.h"
#include "sim/base/containers/list.h"
#include "sim/base/os/lock.h"
#include "sim/model/clock/host_flows.h"
#include "sim/model/clock/model.h"

typedef enum {
  MP_ENTRY_LAUNCH,
  MP_ENTRY_PUT,
  MP_ENTRY_COPY,
  MP_ENTRY_GET,
  MP_ENTRY_WAIT,    // the host waits for all devices of the process
  MP_ENTRY_HEALTH,  // from here on the pod has another one
} mp_entry_kind_t;

typedef struct mp_entry_s mp_entry_t;

// What programs have in common whose launches of one number belong together. Threads that have a
// device each may come to a program at the same time and compile it each for itself.
typedef struct {
  uint64_t key;      // mp_model_program_books_t.key
  uint64_t devices;  // a fingerprint of the ids, in order
} mp_model_kin_t;

struct mp_model_share_s {
  // The run's own, without the lock, until the share is over; then the log's.
  mp_path_t path;
  mp_entry_t *entry;
  bool is_over;
};

// An entry of the log.
struct mp_entry_s {
  mp_entry_kind_t kind;
  mp_entry_t *next;
  uint64_t number;  // in the log, from 1
  double asked;     // when, by mp_model_clock, by the host; 0: the model is not paced
  // LAUNCH
  mp_model_program_t *program;  // a reference; NULL when set aside
  mp_model_kin_t kin;           // the program's
  uint64_t launch;
  int64_t traced;            // the call that made the entry, to the caller's profiler
  const char *caller;        // of the model's texts; NULL: not known
  uint32_t num_missing;      // devices of this process that have not been launched on
  uint32_t num_running;      // shares that are not over
  mp_stamp_t *inputs;        // [num_devices]
  bool is_kept;              // until no launch can meet it any more (model_beside.c)
  bool *is_here;             // [num_devices] launched on by this process
  bool is_partial;           // these devices alone take part: the others have launches of their own
  mp_model_share_t *shares;  // [num_devices]; NULL: the program has no choices
  // PUT, COPY, GET
  mp_model_place_t from, to;
  uint64_t bytes;
  mp_stamp_t source;
  mp_health_t *health;  // HEALTH: a reference, or NULL
};

// A text of mp_model_call_t.caller, each once.
typedef struct {
  uint64_t hash;
  const char *text;
} mp_known_caller_t;

// What a launch came to: kept, because a loop's launches are mostly alike.
typedef struct {
  mp_moment_t *starts;     // [num_devices] relative to the first; NULL: nothing has been kept here
  mp_moment_t *ends;       // the same
  mp_flows_spans_t spans;  // what went over links, if others may overlap with it
  uint64_t path_hash;
  uint64_t hits;  // launches that came to this and are not in the program's books yet
  mp_replay_books_t books;
} mp_memo_t;

enum { MP_MODEL_MEMOS = 4, MP_MODEL_KEPT_ENDS = 1 << 16, MP_MODEL_NETWORKS = 8 };

// A launch beside which others may go on: what it puts on links, in seconds after `base`.
typedef struct {
  mp_moment_t base, end;
  uint32_t num_spans;
  mp_flows_span_t *spans;  // owned
  mp_entry_t *entry;       // owned: it can be replayed again; NULL: it stays as it is
  mp_memo_t *memo;         // what it came to first
  bool is_used;            // something began at its end
} mp_beside_t;

// So many launches are replayed again beside one.
enum { MP_MODEL_MATES = 15 };

// What a launch shares links with.
typedef struct {
  mp_moment_t base;    // when the first of all begins
  uint32_t num_mates;  // launches that are replayed again beside it, in the order of the log
  mp_beside_t *mates[MP_MODEL_MATES];
  mp_flows_spans_t others;  // what stays as it is, in seconds after `base`; on the heap
} mp_company_t;

// A replay for another network than the model's (model_health.c).
typedef struct mp_variant_s mp_variant_t;
struct mp_variant_s {
  mp_variant_t *next;
  uint64_t id;  // of the changes
  mp_replay_t *replay;
};

typedef struct {
  uint64_t id;            // of the changes
  mp_network_t *network;  // NULL: none
} mp_changed_network_t;

// The last launches of a program of a paced model, a ring: when each began by the script's clock,
// and for how long the pod had stood until then, in virtual seconds.
typedef struct {
  double began, stood;
} mp_beat_t;

struct mp_model_program_s {
  mp_model_t *model;
  mp_model_program_t *prev, *next;  // in the model's list; `next` also among the dead
  uint32_t references;              // under the model's lock
  uint64_t serial;                  // from 1 on, in the order in which programs were made
  mp_arena_t *arena;
  mp_str_t name;
  mp_model_kin_t kin;
  uint32_t num_devices;
  uint32_t num_local;  // devices of this process
  int32_t *ids;        // [num_devices]
  const mp_chip_program_t *chip_program;
  mp_mosaic_module_t **kernels;  // [chip program->num_controls] of kernels whose time depends on
                                 // values, owned; NULL: there are none
  mp_replay_t *replay;
  mp_variant_t *variants;  // owned
  mp_replay_t *current;    // the replay of the last launch
  double *slowness;        // [num_devices] for one launch at a time
  mp_memo_t memos[MP_MODEL_MEMOS];
  uint32_t next_memo;
  mp_memo_t again;        // books: the last launch's, if it was replayed again
  mp_program_t *adopted;  // freed with it
  uint32_t
      *branches;  // [chip program->num_controls] mp_model_program_branch; NULL: programs compute
  // Sums over what was replayed; what memos stand for is added when they are read or replaced.
  uint64_t launches;
  uint64_t runs;          // devices that took part in these, together
  mp_moment_t time;       // of the device that took longest
  mp_moment_t available;  // of all that took part
  mp_moment_t transfers;  // that these waited for arguments before they began
  mp_replay_books_t books;
  MP_ARRAY(mp_model_caller_books_t) callers;  // on the heap
  uint32_t next_caller;                       // the row that probably comes next
  mp_beat_t beats[MP_MODEL_RHYTHM + 1];
  uint64_t num_beats;
  // For one launch at a time.
  mp_moment_t *starts, *ends;
  const mp_path_t **paths;
  bool *links;  // [links] over which it sends; NULL: not known yet (model_beside.c)
};

// `pod`, `chip`, `network`, `pace` and `is_virtual` never change; all else is under the lock, and
// so is what the programs keep. Launches, ends of devices and requests for times come from any
// thread: they add to the log, and the one that finds it long, or wants an answer, computes under
// the lock. The lock is no leaf, because observers are called under it (report.c), in the order of
// the log.
struct mp_model_s {
  mp_lock_t lock;
  mp_pod_t *pod;  // a reference
  mp_chip_t chip;
  mp_network_t *network;
  // What absent values decide, where programs run for their shapes alone (topology/pod.h).
  bool has_guesses;
  int32_t unknown_branch;
  int64_t unknown_trip_count;
  mp_health_t *health;  // a reference: at this point of the log; NULL: all is well
  mp_changed_network_t changed[MP_MODEL_NETWORKS];
  uint32_t next_changed;
  MP_LIST(mp_model_program_t) programs;  // in the order in which they were made
  uint64_t num_made;                     // of them, also of those that are gone
  // MP_QUEUE: what has not been computed yet.
  mp_entry_t *first, *last;
  // Launches that were computed before they had come on all devices: because of a request. Later
  // ones are in the books already.
  mp_entry_t *aside;
  uint64_t num_entries;  // made so far
  uint64_t num_waiting;  // in the queue
  pthread_cond_t ended;  // all runs of a launch are over, and a thread awaits that
  uint32_t num_awaiting;
  // The end of the entry with number n, at n % MP_MODEL_KEPT_ENDS. Older ones were long ago.
  mp_moment_t *ends;
  // Of a paced model; else 0 and NULL. Virtual moment v is to be seen at `offset` + v * `pace` (in
  // real seconds) at the earliest. The offset grows when the host is late.
  double pace, offset;
  // Real seconds that the host has waited longer than that, up to the moment `late_until`.
  double late, late_until;
  double began;  // the moment at which the model was made
  bool is_late_logged;
  bool is_virtual;  // the real time is that of the host's clock (mp_model_is_virtual)
  double *dues;     // [MP_MODEL_KEPT_ENDS] when the ends above are to be seen
  mp_moment_t host;
  mp_moment_t *devices;   // [num_devices] when each is done with what was launched so far
  mp_moment_t dispatch;   // what the host takes for each launch
  mp_moment_t *incoming;  // [num_devices] when the last transfer to it has come
  mp_moment_t *outgoing;  // [num_devices] when the last transfer from it to a host has come
  // [num_hosts] transfers to devices, and from them, of hosts that carry less than the links of
  // their devices; NULL: of others.
  mp_host_flows_t **to_devices, **from_devices;
  mp_moment_t reading_since;  // the host's moment before the reads at the end of the log
  uint64_t launches, transfers, lost;
  mp_arena_t *caller_arena;  // of the texts of callers
  MP_HASH_MAP(mp_known_caller_t) callers;
  mp_model_visitor_t on_retire;
  void *retire_context;
  mp_model_program_t *dead;  // to be freed when the lock is given back (mp_model_unlock)
  bool is_observed;
  mp_model_observer_t observer;
  MP_ARRAY(mp_beside_t) beside;  // launches in the order of the log that later ones may meet
};

static inline mp_moment_t mp_moment_later(mp_moment_t a, mp_moment_t b) {
  return a > b ? a : b;
}

// ---- model_settle.c; the caller holds the lock ----

// Computes the entries at the head of the log, up to the first one whose runs are not over.
// `is_last`: launches that miss devices are taken as they are, if none of their runs goes on.
void mp_model_settle(mp_model_t *model, bool is_last);

// ---- model_moments.c; the caller holds the lock ----

// The moment now, of a model that is paced.
double mp_model_clock(const mp_model_t *model);

// When what was computed from entry `number` is to be seen (mp_model_due). 0: long ago.
double mp_model_due_of(const mp_model_t *model, uint64_t number);
// When the entry that a stamp names was done. 0: there is none, or it was long ago.
mp_moment_t mp_model_end_of(mp_model_t *model, mp_stamp_t stamp);
// The host's virtual moment is `begin` at the latest when it asks for this, and so it is not to be
// seen before the real moment of asking. So a host that is late (it compiles, say) moves all that
// comes after.
void mp_model_begin_entry(mp_model_t *model, const mp_entry_t *entry, mp_moment_t begin);
// Notes that a launch of the program begins now, for its rhythm.
void mp_model_beat(mp_model_program_t *program, mp_moment_t begin);
mp_rhythm_t mp_model_rhythm_of(const mp_model_program_t *program);
// Keeps when entry `number` is done.
void mp_model_end_entry(mp_model_t *model, uint64_t number, mp_moment_t end);

// ---- model_transfer.c; the caller holds the lock ----

// Makes what the devices of hosts share, where they do.
MP_NODISCARD mp_status_t mp_model_make_hosts(mp_model_t *model);
// What a program has of the link between a device and its host while all of its devices copy.
MP_NODISCARD mp_status_t mp_model_host_link(const mp_model_program_t *program,
                                            mp_chip_links_t *links);
void mp_model_free_hosts(mp_model_t *model);
// When the transfer of an entry PUT, COPY or GET ends.
mp_moment_t mp_model_transfer(mp_model_t *model, const mp_entry_t *entry);

// ---- model_health.c; the caller holds the lock ----

// The entry HEALTH is due: its reference is the model's now.
void mp_model_take_health(mp_model_t *model, mp_entry_t *entry);
// The network as it is at this point of the log.
MP_NODISCARD mp_status_t mp_model_network_now(mp_model_t *model, mp_network_t **out_network);
// Chooses program->current for the next launch. `out_slowness` is that of the launch's devices, or
// NULL; what the launch depends on goes into the hash.
MP_NODISCARD mp_status_t mp_model_apply_health(mp_model_program_t *program,
                                               const double **out_slowness, uint64_t *inout_hash);
void mp_model_free_health(mp_model_t *model);

// ---- model_beside.c; the caller holds the lock ----

// Whether launches of the program send something while others may go on other devices.
bool mp_model_is_beside(const mp_model_program_t *program);
// What earlier launches put on links of a launch that begins at `base`, and which of them can be
// replayed again beside it, if `can_share`.
MP_NODISCARD mp_status_t mp_model_find_company(mp_model_program_t *program, mp_moment_t base,
                                               bool can_share, mp_company_t *out_company);
// Replays a launch that begins at `base` beside its mates, whose ends and books are those of the
// new replay from now on.
MP_NODISCARD mp_status_t mp_model_run_beside(mp_model_program_t *program,
                                             const mp_company_t *company, mp_moment_t base,
                                             const mp_replay_launch_t *launch);
// Keeps what a launch from `base` to `end` puts on links (copied), and the launch itself, if it can
// be replayed again. `memo`: what it came to.
MP_NODISCARD mp_status_t mp_model_keep_beside(mp_entry_t *entry, mp_moment_t base, mp_moment_t end,
                                              mp_memo_t *memo, bool can_share);
// The launches of a program that goes are not replayed again; NULL: forgets all launches.
void mp_model_forget_beside(mp_model_t *model, const mp_model_program_t *program);

// ---- model_callers.c; the caller holds the lock ----

MP_NODISCARD mp_status_t mp_model_make_callers(mp_model_t *model);
void mp_model_free_callers(mp_model_t *model);
// The model's one copy of a text; NULL: of no text, or memory is short.
const char *mp_model_intern_caller(mp_model_t *model, const char *text);
// Adds to the row of the call's text, which is one of the model's; NULL: does nothing.
void mp_model_add_call(mp_model_program_t *program, const mp_model_caller_books_t *call);

// ---- model_program.c; the caller holds the lock ----

// Of a permutation, so many messages are looked at.
enum { MP_MODEL_PAIRS = 64 };

// mp_chip_links_t: about what a collective of the program takes; `context` is the program, whose
// ids are set.
MP_NODISCARD mp_status_t mp_model_collective_seconds(void *context,
                                                     const mp_collective_t *collective,
                                                     double *out_seconds);
// The same: the position of its first group in a slice.
mp_chip_spread_t mp_model_collective_spread(void *context, const mp_collective_t *collective);
// Adds up what a memo stands for.
void mp_model_fold_memo(mp_model_program_t *program, mp_memo_t *memo);
// Sets what the program has in common with others, when all else is set.
void mp_model_set_kin(mp_model_program_t *program);
// Reads the modules of kernels whose time depends on values, so that no launch has to.
MP_NODISCARD mp_status_t mp_model_read_kernels(mp_model_program_t *program);
// Sets program->branches; the model's lock is held. estimate.c
MP_NODISCARD mp_status_t mp_model_guess_branches(mp_model_program_t *program);
// The books of a program as they are shown.
mp_model_program_books_t mp_model_books_of(mp_model_program_t *program);
// Frees a program that nothing refers to; the lock need not be held.
void mp_model_free_program(mp_model_program_t *program);
// Frees an entry that is in no queue.
void mp_model_free_entry(mp_entry_t *entry);
// Keeps of a launch that is in no queue only what it takes to know what belongs to it.
void mp_model_set_aside(mp_model_t *model, mp_entry_t *entry);
// Gives a reference to a program back.
void mp_model_unref_program(mp_model_program_t *program);
// Gives the lock back, and frees the programs that went meanwhile: that may call foreign code.
void mp_model_unlock(mp_model_t *model);

#endif  // MINIPOD_SIM_MODEL_CLOCK_MODEL_IMPL_H_
