#include "sim/readers/hlo/message/hlo_locs.h"

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
  int64_t location;
} frame_t;

MP_HLO_MESSAGE(g_frame, "StackFrameIndexProto.StackFrame", MP_HLO_FIELD(1, INT, frame_t, location));

mp_status_t mp_hlo_read_frames(mp_hlo_t *h) {
  frames_t frames = {0};
  MP_RETURN_IF_ERROR(mp_status_annotate(
      mp_hlo_decode(&h->source, &g_frames, h->proto.frames_bytes, &frames), "stack_frame_index"));
  h->frames = frames.frames;
  h->frame_locations = frames.locations;
  h->file_names = frames.files;
  return NULL;
}

// Numbers in the index begin with 1; what they name may be missing, because metadata are no part
// of what a program means.
static mp_str_t hlo_locs_pick(const mp_hlo_texts_t *texts, int64_t number) {
  return number >= 1 && number <= texts->count ? texts->items[number - 1] : (mp_str_t){0};
}

static mp_status_t hlo_locs_follow_frame(const mp_hlo_t *h, metadata_t *metadata) {
  frame_t frame = {0};
  file_location_t location = {0};
  MP_RETURN_IF_ERROR(
      mp_hlo_decode(&h->source, &g_frame, hlo_locs_pick(&h->frames, metadata->frame), &frame));
  MP_RETURN_IF_ERROR(mp_hlo_decode(&h->source, &g_file_location,
                                   hlo_locs_pick(&h->frame_locations, frame.location), &location));
  metadata->source_file = hlo_locs_pick(&h->file_names, location.file);
  metadata->line = location.line;
  metadata->column = location.column;
  metadata->end_line = location.end_line;
  metadata->end_column = location.end_column;
  return NULL;
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

mp_status_t mp_hlo_read_loc(mp_hlo_t *h, mp_hlo_inst_t *inst) {
  mp_arena_t *arena = h->module->arena;
  metadata_t metadata = {0};
  MP_RETURN_IF_ERROR(mp_status_annotate(
      mp_hlo_decode(&h->source, &g_metadata, inst->metadata_bytes, &metadata), "metadata"));
  if (metadata.source_file.size == 0 && metadata.frame != 0) {
    MP_RETURN_IF_ERROR(mp_status_annotate(hlo_locs_follow_frame(h, &metadata), "metadata"));
  }
  mp_loc_t *name = MP_ARENA_NEW(arena, mp_loc_t);
  MP_RETURN_IF_NULL(name);
  name->kind = MP_LOC_NAME;
  MP_RETURN_IF_ERROR(
      hlo_locs_copy(h, metadata.op_name.size != 0 ? metadata.op_name : inst->name, &name->text));
  inst->loc = name;
  if (metadata.source_file.size == 0) return NULL;
  mp_loc_t *file = MP_ARENA_NEW(arena, mp_loc_t);
  const mp_loc_t **children = MP_ARENA_NEW(arena, const mp_loc_t *);
  if (file == NULL || children == NULL) return mp_status_out_of_memory();
  file->kind = MP_LOC_FILE;
  MP_RETURN_IF_ERROR(hlo_locs_copy(h, metadata.source_file, &file->text));
  file->line = hlo_locs_number(metadata.line);
  file->column = hlo_locs_number(metadata.column);
  file->end_line = hlo_locs_number(metadata.end_line);
  file->end_column = hlo_locs_number(metadata.end_column);
  children[0] = file;
  name->num_children = 1;
  name->children = children;
  return NULL;
}
