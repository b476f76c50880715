// Where things are in the picture of a pod, in pixels from its top left corner.
#ifndef MINIPOD_SIM_MODEL_PICTURE_PICTURE_LAYOUT_H_
#define MINIPOD_SIM_MODEL_PICTURE_PICTURE_LAYOUT_H_

#include "sim/base/arena.h"
#include "sim/model/network/network.h"

typedef struct {
  int x, y;
} mp_point_t;

typedef struct {
  int x, y, width, height;
} mp_area_t;

enum { MP_PICTURE_CHIP = 11 };  // radius of a chip

typedef struct {
  int width, height;
  // By vertex of the network: chips, hosts, what joins the hosts, other switches.
  uint32_t num_chips;
  uint32_t first_host;
  uint32_t core;  // the switch, or the upper switches, between hosts
  mp_point_t *vertices;
  mp_area_t *slices;  // [num_slices]
  // Areas around the chips of each host, or NULL where hosts are no boxes of the grid.
  mp_area_t *hosts;  // [num_hosts]
  bool has_hosts;    // whether hosts themselves are in the picture: there are several
} mp_picture_layout_t;

// Places everything; the arrays lie in `arena`.
MP_NODISCARD mp_status_t mp_picture_layout_make(const mp_network_t *network, bool with_hosts,
                                                mp_arena_t *arena, mp_picture_layout_t *out_layout);

#endif  // MINIPOD_SIM_MODEL_PICTURE_PICTURE_LAYOUT_H_
