#include "sim/readers/hlo/message/hlo_locs.h"

// As many frames of a stack as JAX writes by default.
enum { MAX_FRAMES = 100 };

typedef struct {
  mp_str_t op_name, source_file;
  int64_t line, column, end_line, end_column, frame;
} metadata_t;

MP_HLO_MESSAGE(g_metadata, "OpMetadata", MP_HLO_FIELD(2, TEXT, metadata_t, op_name),
               MP_HLO_FIELD(3, TEXT, metadata_t, source_file),
               MP_HLO_FIELD(4, INT, metadata_t, line), MP_HLO_FIELD(15, INT, metadata_t, frame),
               MP_HLO_FIELD(17, INT, metadata_t, end_line),
               MP_HLO_FIELD(18, INT, metadata_t, column),
               MP_HLO_FIELD(19, INT, metadata_t, end_column));

typedef struct {
  mp_hlo_texts_t files, locations, frames;
} frames_t;

MP_HLO_MESSAGE(g_frames, "StackFrameIndexProto", MP_HLO_FIELD(1, TEXTS, frames_t, files),
               MP_HLO_FIELD(3, TEXTS, frames_t, locations),
               MP_HLO_FIELD(4, TEXTS, frames_t, frames));

typedef struct {
  int64_t file, line, column, end_line, end_column;
} file_location_t;

MP_HLO_MESSAGE(g_file_location, "StackFrameIndexProto.FileLocation",
               MP_HLO_FIELD(1, INT, file_location_t, file),
               MP_HLO_FIELD(3, INT, file_location_t, line),
               MP_HLO_FIELD(4, INT, file_location_t, column),
               MP_HLO_FIELD(5, INT, file_location_t, end_line),
               MP_HLO_FIELD(6, INT, file_location_t, end_column));

typedef struct {
  int64_t location, parent;
} frame_t;

MP_HLO_MESSAGE(g_frame, "StackFrameIndexProto.StackFrame", MP_HLO_FIELD(1, INT, frame_t, location),
               MP_HLO_FIELD(2, INT, frame_t, parent));

mp_status_t mp_hlo_read_frames(mp_hlo_t *h) {
  frames_t frames = {0};
  MP_RETURN_IF_ERROR(mp_status_annotate(
      mp_hlo_decode(&h->source, &g_frames, h->proto.frames_bytes, &frames), "stack_frame_index"));
  h->frames = frames.frames;
  h->frame_locations = frames.locations;
  h->file_names = frames.files;
  h->known_frames = MP_ARENA_ARRAY(h->module->arena, mp_hlo_frame_t, frames.frames.count);
  MP_RETURN_IF_NULL(h->known_frames);
  return NULL;
}

// Numbers in the index begin with 1; entries may be missing, because metadata do not change a
// program's meaning.
static mp_str_t hlo_locs_pick(const mp_hlo_texts_t *texts, int64_t number) {
  return number >= 1 && number <= texts->count ? texts->items[number - 1] : (mp_str_t){0};
}

static uint32_t hlo_locs_number(int64_t number) {
  return number > 0 && number <= INT32_MAX ? (uint32_t)number : 0;
}

static mp_status_t hlo_locs_copy(mp_hlo_t *h, mp_str_t text, mp_str_t *out_text) {
  const char *copy = mp_arena_strndup(h->module->arena, text.data, text.size);
  MP_RETURN_IF_NULL(copy);
  *out_text = (mp_str_t){copy, text.size};
  return NULL;
}

// NULL if the file is unknown.
static mp_status_t hlo_locs_make_file(mp_hlo_t *h, mp_str_t name, const file_location_t *at,
                                      const mp_loc_t **out_loc) {
  *out_loc = NULL;
  if (name.size == 0) return NULL;
  mp_loc_t *file = MP_ARENA_NEW(h->module->arena, mp_loc_t);
  MP_RETURN_IF_NULL(file);
  file->kind = MP_LOC_FILE;
  MP_RETURN_IF_ERROR(hlo_locs_copy(h, name, &file->text));
  file->line = hlo_locs_number(at->line);
  file->column = hlo_locs_number(at->column);
  file->end_line = hlo_locs_number(at->end_line);
  file->end_column = hlo_locs_number(at->end_column);
  *out_loc = file;
  return NULL;
}

static mp_status_t hlo_locs_make_call(mp_hlo_t *h, const mp_loc_t *callee, const mp_loc_t *caller,
                                      const mp_loc_t **out_loc) {
  mp_loc_t *call = MP_ARENA_NEW(h->module->arena, mp_loc_t);
  const mp_loc_t **parts = MP_ARENA_ARRAY(h->module->arena, const mp_loc_t *, 2);
  if (call == NULL || parts == NULL) return mp_status_out_of_memory();
  parts[0] = callee;
  parts[1] = caller;
  *call = (mp_loc_t){.kind = MP_LOC_CALL_SITE, .num_children = 2, .children = parts};
  *out_loc = call;
  return NULL;
}

// The frame with its callers; `room` bounds the number of callers, because frames may form a cycle.
// No location if there is no such frame.
static mp_status_t hlo_locs_read_frame(mp_hlo_t *h, int64_t number, uint32_t room,
                                       mp_hlo_frame_t *out_frame) {
  *out_frame = (mp_hlo_frame_t){0};
  if (number < 1 || number > h->frames.count || room == 0) return NULL;
  mp_hlo_frame_t *known = &h->known_frames[number - 1];
  if (known->depth == 0) {
    frame_t frame = {0};
    file_location_t at = {0};
    mp_hlo_frame_t caller, made = {.depth = 1};
    MP_RETURN_IF_ERROR(
        mp_hlo_decode(&h->source, &g_frame, hlo_locs_pick(&h->frames, number), &frame));
    MP_RETURN_IF_ERROR(mp_hlo_decode(&h->source, &g_file_location,
                                     hlo_locs_pick(&h->frame_locations, frame.location), &at));
    MP_RETURN_IF_ERROR(
        hlo_locs_make_file(h, hlo_locs_pick(&h->file_names, at.file), &at, &made.loc));
    MP_RETURN_IF_ERROR(hlo_locs_read_frame(h, frame.parent, room - 1, &caller));
    if (caller.loc != NULL && caller.depth < MAX_FRAMES) {
      made.depth = caller.depth + 1;
      if (made.loc == NULL) {
        made.loc = caller.loc;
      } else {
        MP_RETURN_IF_ERROR(hlo_locs_make_call(h, made.loc, caller.loc, &made.loc));
      }
    }
    *known = made;
  }
  *out_frame = *known;
  return NULL;
}

// The instruction's stack if it has one, else the line in its metadata.
static mp_status_t hlo_locs_read_place(mp_hlo_t *h, const metadata_t *metadata,
                                       const mp_loc_t **out_loc) {
  mp_hlo_frame_t frame;
  MP_RETURN_IF_ERROR(hlo_locs_read_frame(h, metadata->frame, MAX_FRAMES, &frame));
  *out_loc = frame.loc;
  if (frame.loc != NULL) return NULL;
  const file_location_t at = {.line = metadata->line,
                              .column = metadata->column,
                              .end_line = metadata->end_line,
                              .end_column = metadata->end_column};
  return hlo_locs_make_file(h, metadata->source_file, &at, out_loc);
}

mp_status_t mp_hlo_read_loc(mp_hlo_t *h, mp_hlo_inst_t *inst) {
  mp_arena_t *arena = h->module->arena;
  metadata_t metadata = {0};
  MP_RETURN_IF_ERROR(mp_status_annotate(
      mp_hlo_decode(&h->source, &g_metadata, inst->metadata_bytes, &metadata), "metadata"));
  mp_loc_t *name = MP_ARENA_NEW(arena, mp_loc_t);
  const mp_loc_t **children = MP_ARENA_NEW(arena, const mp_loc_t *);
  if (name == NULL || children == NULL) return mp_status_out_of_memory();
  name->kind = MP_LOC_NAME;
  MP_RETURN_IF_ERROR(
      hlo_locs_copy(h, metadata.op_name.size != 0 ? metadata.op_name : inst->name, &name->text));
  MP_RETURN_IF_ERROR(
      mp_status_annotate(hlo_locs_read_place(h, &metadata, &children[0]), "metadata"));
  if (children[0] != NULL) {
    name->num_children = 1;
    name->children = children;
  }
  inst->loc = name;
  return NULL;
}
