// Where the script launches programs: the texts, and each program's sums per text.
#include "sim/base/alloc.h"
#include "sim/base/hash.h"
#include "sim/model/clock/model_impl.h"

// So many texts per model; the rest is one text.
enum { MODEL_CALLER_TEXTS = 1 << 14 };

static const char k_others[] = MP_MODEL_OTHER_CALLERS;

mp_status_t mp_model_make_callers(mp_model_t *model) {
  return mp_arena_create(&model->caller_arena);
}

void mp_model_free_callers(mp_model_t *model) {
  mp_arena_release(model->caller_arena);
}

const char *mp_model_intern_caller(mp_model_t *model, const char *text) {
  if (text == NULL || text[0] == '\0') return NULL;
  const size_t size = strlen(text);
  const uint64_t hash = mp_hash_bytes(mp_hash_pointer(model), text, size);
  const mp_known_caller_t *known;
  MP_HASH_MAP_EACH(&model->callers, hash, known) {
    if (strcmp(known->text, text) == 0) return known->text;
  }
  if (model->callers.map.count == MODEL_CALLER_TEXTS) return k_others;
  const char *copy = mp_arena_strndup(model->caller_arena, text, size);
  if (copy == NULL) return NULL;
  mp_status_t status =
      MP_HASH_MAP_ADD(model->caller_arena, &model->callers, &(mp_known_caller_t){hash, copy});
  if (status == NULL) return copy;
  mp_status_release(status);
  return NULL;
}

// The row of a text. Scripts repeat their launches in the same order, so the search begins after
// the row that was used last. NULL: there is none.
static mp_model_caller_books_t *model_callers_find(mp_model_program_t *program, const char *text) {
  const uint32_t count = program->callers.count;
  for (uint32_t i = 0, at = program->next_caller; i < count; ++i, ++at) {
    if (at >= count) at = 0;
    if (program->callers.items[at].text != text) continue;
    program->next_caller = at + 1;
    return &program->callers.items[at];
  }
  return NULL;
}

void mp_model_caller_add(mp_model_caller_books_t *row, const mp_model_caller_books_t *more) {
  row->launches += more->launches;
  row->runs += more->runs;
  row->time += more->time;
  row->available += more->available;
}

void mp_model_add_call(mp_model_program_t *program, const mp_model_caller_books_t *call) {
  if (call->text == NULL) return;
  const char *text = call->text;
  mp_model_caller_books_t *row = model_callers_find(program, text);
  if (row == NULL && program->callers.count >= MP_MODEL_CALLERS - 1) {
    text = k_others;
    row = model_callers_find(program, text);
  }
  if (row == NULL) {
    mp_status_t status =
        MP_ARRAY_PUSH(NULL, &program->callers, (mp_model_caller_books_t){.text = text});
    if (status != NULL) {
      mp_status_release(status);
      return;
    }
    row = &program->callers.items[program->callers.count - 1];
    program->next_caller = program->callers.count;
  }
  mp_model_caller_add(row, call);
}
