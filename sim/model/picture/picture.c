#include "sim/model/picture/picture.h"

#include <math.h>
#include <stdlib.h>

#include "sim/model/picture/picture_layout.h"
#include "sim/model/picture/picture_rates.h"

enum {
  PICTURE_LANE = 4,    // between the two directions of a link, twice
  PICTURE_SHADES = 8,  // of loads
};

// From idle to busy. The first is that of links without load as well.
static const char *const g_shades[PICTURE_SHADES] = {"#c3ccd6", "#f6d992", "#f9c15d", "#f8a13f",
                                                     "#f27b35", "#e5522f", "#cb2b28", "#a00d1f"};

typedef struct {
  const mp_network_t *network;
  const mp_pod_t *pod;
  const mp_pod_info_t *info;
  const double *loads;  // or NULL
  mp_picture_layout_t layout;
  mp_strbuf_t *out;
} picture_t;

// Text between tags.
static void picture_escape(mp_strbuf_t *out, const char *text) {
  for (; *text != '\0'; ++text) {
    if (*text == '<') {
      mp_strbuf_puts(out, "&lt;");
    } else if (*text == '>') {
      mp_strbuf_puts(out, "&gt;");
    } else if (*text == '&') {
      mp_strbuf_puts(out, "&amp;");
    } else {
      mp_strbuf_putc(out, *text);
    }
  }
}

static double picture_load_of(const picture_t *picture, uint32_t link) {
  const double load = picture->loads == NULL ? 0 : picture->loads[link];
  return load > 0 ? (load < 1 ? load : 1) : 0;
}

// ---- The document ----

static void picture_write_style(mp_strbuf_t *out) {
  mp_strbuf_puts(out,
                 "<style>\n.page{fill:#fff}.slice{fill:#f6f8fa;stroke:#9aa7b4}"
                 ".box{fill:#e3ebf3;stroke:none}.chip{fill:#fff;stroke:#2f3e4e}"
                 ".host{fill:#4a6178}.switch{fill:#2f3e4e}"
                 "text{fill:#2f3e4e}.id{text-anchor:middle;font-size:9px}"
                 ".of{font-size:8px}.in{fill:#fff;text-anchor:middle}.head{font-size:13px;font-"
                 "weight:bold}\n");
  // The busier, the wider.
  for (int shade = 0; shade < PICTURE_SHADES; ++shade) {
    mp_strbuf_printf(out, ".l%d{stroke:%s;fill:%s;stroke-width:%d}", shade, g_shades[shade],
                     g_shades[shade], 2 + shade / 3);
  }
  mp_strbuf_puts(out, ".link{fill:none}\n</style>\n");
}

static void picture_begin(const picture_t *picture) {
  const mp_picture_layout_t *layout = &picture->layout;
  mp_strbuf_t *out = picture->out;
  mp_strbuf_printf(out,
                   "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                   "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"10\">\n<title>",
                   layout->width, layout->height, layout->width, layout->height);
  picture_escape(out, picture->info->name);
  mp_strbuf_puts(out, "</title>\n");
  picture_write_style(out);
  mp_strbuf_printf(out, "<rect class=\"page\" width=\"%d\" height=\"%d\"/>\n", layout->width,
                   layout->height);
  mp_strbuf_puts(out, "<text class=\"head\" x=\"28\" y=\"24\">");
  picture_escape(out, picture->info->name);
  mp_strbuf_printf(out, ": %d device%s, ", picture->info->num_devices,
                   picture->info->num_devices == 1 ? "" : "s");
  picture_escape(out, picture->info->kind);
  mp_strbuf_puts(out, "</text>\n<text x=\"28\" y=\"36\">");
  mp_picture_put_rates(picture->network, layout, out);
  mp_strbuf_puts(out, "</text>\n");
}

// What the shades mean, in the top right corner.
static void picture_write_legend(const picture_t *picture) {
  enum { WIDTH = 14 };
  if (picture->loads == NULL) return;
  const int x = picture->layout.width - PICTURE_SHADES * WIDTH - 90;
  mp_strbuf_printf(picture->out, "<g><text x=\"%d\" y=\"49\">load 0</text>", x);
  for (int shade = 0; shade < PICTURE_SHADES; ++shade) {
    mp_strbuf_printf(picture->out,
                     "<rect class=\"l%d\" x=\"%d\" y=\"42\" width=\"%d\" height=\"7\"/>", shade,
                     x + 34 + shade * WIDTH, WIDTH);
  }
  mp_strbuf_printf(picture->out, "<text x=\"%d\" y=\"49\">100 %%</text></g>\n",
                   x + 38 + PICTURE_SHADES * WIDTH);
}

static void picture_write_area(const picture_t *picture, const mp_area_t *area, const char *class,
                               const char *what, int number) {
  mp_strbuf_printf(picture->out,
                   "<g><title>%s %d</title><rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" "
                   "height=\"%d\" rx=\"6\"/>",
                   what, number, class, area->x, area->y, area->width, area->height);
}

// Above all areas, which may overlap, and beside the links of the first chip. A slice that is a
// host says so itself.
static void picture_write_host_names(const picture_t *picture) {
  const mp_pod_info_t *info = picture->info;
  if (picture->layout.hosts == NULL || info->num_hosts == info->num_slices) return;
  for (int32_t h = 0; h < info->num_hosts; ++h) {
    const mp_area_t *area = &picture->layout.hosts[h];
    mp_strbuf_printf(picture->out, "<text class=\"of\" x=\"%d\" y=\"%d\">host %d</text>\n",
                     area->x + 22, area->y - 2, h);
  }
}

static void picture_write_slices(const picture_t *picture) {
  for (int32_t s = 0; s < picture->info->num_slices; ++s) {
    const mp_area_t *area = &picture->layout.slices[s];
    picture_write_area(picture, area, "slice", "slice", s);
    mp_strbuf_printf(picture->out, "<text x=\"%d\" y=\"%d\">slice %d", area->x + 6, area->y + 13,
                     s);
    if (picture->layout.has_hosts && picture->info->num_hosts == picture->info->num_slices) {
      mp_strbuf_printf(picture->out, ", host %d", s);
    }
    mp_strbuf_puts(picture->out, "</text></g>\n");
  }
  for (int32_t h = 0; picture->layout.hosts != NULL && h < picture->info->num_hosts; ++h) {
    picture_write_area(picture, &picture->layout.hosts[h], "box", "host", h);
    mp_strbuf_puts(picture->out, "</g>\n");
  }
  picture_write_host_names(picture);
}

// ---- Links ----

typedef enum {
  PICTURE_STRAIGHT,
  PICTURE_BENT,   // past the chips between its ends
  PICTURE_STUBS,  // what closes a ring, in a grid: it leaves at one end and comes in at the other
} form_t;

// What a link between two chips looks like, from the dimension in which they differ.
static form_t picture_form_of(const picture_t *picture, const mp_network_link_t *link) {
  const mp_pod_info_t *info = picture->info;
  const bool is_between_chips =
      link->from < picture->layout.num_chips && link->to < picture->layout.num_chips;
  if (!is_between_chips) return PICTURE_STRAIGHT;
  int32_t a = (int32_t)(link->from % (uint32_t)info->chips_per_slice);
  int32_t b = (int32_t)(link->to % (uint32_t)info->chips_per_slice);
  int32_t long_sides = 0;
  form_t form = PICTURE_STRAIGHT;
  for (int32_t dim = 0; dim < info->num_dims; ++dim) {
    const int32_t apart = abs(a % info->shape[dim] - b % info->shape[dim]);
    if (info->shape[dim] > 1) ++long_sides;
    if (apart > 1) form = info->dims[dim].wiring == MP_WIRING_RING ? PICTURE_STUBS : PICTURE_BENT;
    a /= info->shape[dim];
    b /= info->shape[dim];
  }
  return form == PICTURE_STUBS && long_sides == 1 ? PICTURE_BENT : form;
}

// A point so far aside of the middle of a way. Both directions have theirs on the same side.
static mp_point_t picture_aside(mp_point_t from, mp_point_t to, double at, double aside) {
  const bool is_back = to.x < from.x || (to.x == from.x && to.y < from.y);
  const double dx = to.x - from.x, dy = to.y - from.y;
  const double length = hypot(dx, dy);
  const double side = length == 0 ? 0 : (is_back ? -aside : aside) / length;
  return (mp_point_t){(int)lround(from.x + at * dx + side * dy),
                      (int)lround(from.y + at * dy - side * dx)};
}

static void picture_write_way(mp_strbuf_t *out, mp_point_t from, mp_point_t to, form_t form,
                              double lane) {
  enum { STUB = 20, BULGE = 80 };
  const mp_point_t begin = picture_aside(from, to, 0, lane);
  const mp_point_t end = picture_aside(from, to, 1, lane);
  const double length = hypot(to.x - from.x, to.y - from.y);
  if (form == PICTURE_STUBS) {
    const double part = (MP_PICTURE_CHIP + STUB) / length;
    const mp_point_t before = picture_aside(from, to, -part, lane);
    const mp_point_t after = picture_aside(from, to, 1 + part, lane);
    mp_strbuf_printf(out, "M%d %dL%d %dM%d %dL%d %d", begin.x, begin.y, before.x, before.y, after.x,
                     after.y, end.x, end.y);
    return;
  }
  mp_strbuf_printf(out, "M%d %d", begin.x, begin.y);
  if (form == PICTURE_BENT) {
    const mp_point_t middle = picture_aside(from, to, 0.5, fmin(BULGE, length / 2) + 2 * lane);
    mp_strbuf_printf(out, "Q%d %d %d %d", middle.x, middle.y, end.x, end.y);
  } else {
    mp_strbuf_printf(out, "L%d %d", end.x, end.y);
  }
}

static void picture_write_link(const picture_t *picture, uint32_t index) {
  const mp_network_link_t *link = mp_network_link(picture->network, index);
  const mp_point_t from = picture->layout.vertices[link->from];
  const mp_point_t to = picture->layout.vertices[link->to];
  const double load = picture_load_of(picture, index);
  const int shade = load == 0 ? 0 : 1 + (int)(load * (PICTURE_SHADES - 1.001));
  mp_strbuf_printf(picture->out, "<path class=\"link l%d\" d=\"", shade);
  // The way there is beside the way back.
  picture_write_way(picture->out, from, to, picture_form_of(picture, link),
                    (link->from < link->to ? 1 : -1) * PICTURE_LANE / 2.0);
  mp_strbuf_puts(picture->out, "\"><title>");
  picture_escape(picture->out, link->name);
  mp_strbuf_puts(picture->out, ": ");
  mp_strbuf_put_double(picture->out, round(link->bandwidth / 1e7) / 1e2);
  mp_strbuf_puts(picture->out, " GB/s");
  if (picture->loads != NULL) {
    mp_strbuf_printf(picture->out, ", load %d %%", (int)lround(100 * load));
  }
  mp_strbuf_puts(picture->out, "</title></path>\n");
}

// If the link lies in one of the slices (or between hosts).
static bool picture_is_in_slice(const picture_t *picture, const mp_network_link_t *link) {
  const mp_picture_layout_t *layout = &picture->layout;
  const bool is_chip = link->from < layout->num_chips || link->to < layout->num_chips;
  const bool is_host = (link->from >= layout->first_host && link->from < layout->core) ||
                       (link->to >= layout->first_host && link->to < layout->core);
  return is_chip && !is_host;
}

// Links inside of chips have no way to be drawn; those of devices and hosts only with a load.
static bool picture_shows(const picture_t *picture, uint32_t index) {
  const mp_network_link_t *link = mp_network_link(picture->network, index);
  const mp_picture_layout_t *layout = &picture->layout;
  if (link->from == link->to) return false;
  const bool is_chip = link->from < layout->num_chips || link->to < layout->num_chips;
  return !is_chip || picture_is_in_slice(picture, link) || picture_load_of(picture, index) > 0;
}

static void picture_write_links(const picture_t *picture, bool in_slices) {
  mp_strbuf_puts(picture->out, "<g>\n");
  // The busiest come last, so that nothing hides them.
  for (int busy = 0; busy < 2; ++busy) {
    for (uint32_t i = 0; i < mp_network_num_links(picture->network); ++i) {
      const mp_network_link_t *link = mp_network_link(picture->network, i);
      if (picture_is_in_slice(picture, link) != in_slices || !picture_shows(picture, i)) continue;
      if ((picture_load_of(picture, i) > 0.5) == (busy == 1)) picture_write_link(picture, i);
    }
  }
  mp_strbuf_puts(picture->out, "</g>\n");
}

// ---- Chips, hosts and switches ----

static void picture_write_chips(const picture_t *picture) {
  const mp_pod_info_t *info = picture->info;
  for (int32_t id = 0; id < info->num_devices; ++id) {
    const mp_pod_device_t *device = mp_pod_device(picture->pod, id);
    if (device->core_on_chip != 0) continue;  // its chip has been drawn
    const int32_t chip = device->slice_index * info->chips_per_slice + device->chip_index;
    const mp_point_t at = picture->layout.vertices[chip];
    mp_strbuf_printf(picture->out, "<g><title>device %d", id);
    if (info->cores_per_chip > 1) {
      mp_strbuf_printf(picture->out, " to %d", id + info->cores_per_chip - 1);
    }
    mp_strbuf_puts(picture->out, ": (");
    for (int32_t i = 0; i < info->num_dims; ++i) {
      mp_strbuf_printf(picture->out, "%s%d", i == 0 ? "" : ",", device->coords[i]);
    }
    mp_strbuf_printf(picture->out,
                     "), slice %d, host %d</title><circle class=\"chip\" cx=\"%d\" cy=\"%d\" "
                     "r=\"%d\"/><text class=\"id\" x=\"%d\" y=\"%d\">%d</text></g>\n",
                     device->slice_index, device->host_index, at.x, at.y, MP_PICTURE_CHIP, at.x,
                     at.y + 3, id);
  }
}

static void picture_write_hosts(const picture_t *picture) {
  for (int32_t h = 0; picture->layout.has_hosts && h < picture->info->num_hosts; ++h) {
    const mp_point_t at = picture->layout.vertices[picture->layout.first_host + (uint32_t)h];
    mp_strbuf_printf(
        picture->out,
        "<g><title>host %d</title><rect class=\"host\" x=\"%d\" y=\"%d\" width=\"50\" "
        "height=\"14\" rx=\"2\"/><text class=\"in\" x=\"%d\" y=\"%d\">host %d</text></g>\n",
        h, at.x - 25, at.y - 7, at.x, at.y + 4, h);
  }
}

static void picture_write_switches(const picture_t *picture) {
  const mp_picture_layout_t *layout = &picture->layout;
  if (picture->info->num_hosts > 1) {
    const mp_point_t at = layout->vertices[layout->core];
    mp_strbuf_printf(picture->out,
                     "<g><title>network between hosts</title><rect class=\"switch\" x=\"%d\" "
                     "y=\"%d\" width=\"120\" height=\"18\" rx=\"4\"/><text class=\"in\" x=\"%d\" "
                     "y=\"%d\">network</text></g>\n",
                     at.x - 60, at.y - 9, at.x, at.y + 4);
  }
  for (uint32_t v = layout->core + 1; v < mp_network_num_vertices(picture->network); ++v) {
    const mp_point_t at = layout->vertices[v];
    mp_strbuf_printf(picture->out,
                     "<g><title>switch</title><rect class=\"switch\" x=\"%d\" y=\"%d\" "
                     "width=\"14\" height=\"10\" rx=\"2\"/></g>\n",
                     at.x - 7, at.y - 5);
  }
}

static bool picture_has_host_loads(const picture_t *picture, const mp_pod_info_t *info) {
  const uint32_t first_host = (uint32_t)(info->num_slices * info->chips_per_slice);
  for (uint32_t i = 0; i < mp_network_num_links(picture->network); ++i) {
    const mp_network_link_t *link = mp_network_link(picture->network, i);
    const uint32_t far = link->from > link->to ? link->from : link->to;
    const uint32_t near = link->from > link->to ? link->to : link->from;
    const bool is_host = far >= first_host && far < first_host + (uint32_t)info->num_hosts;
    if (is_host && near < first_host && picture_load_of(picture, i) > 0) return true;
  }
  return false;
}

mp_status_t mp_picture_write(const mp_network_t *network, const double *loads,
                             mp_strbuf_t *out_svg) {
  picture_t picture = {.network = network,
                       .pod = mp_network_pod(network),
                       .info = mp_pod_info(mp_network_pod(network)),
                       .loads = loads,
                       .out = out_svg};
  mp_arena_t *arena = NULL;
  MP_RETURN_IF_ERROR(mp_arena_create(&arena));
  mp_status_t status = mp_picture_layout_make(
      network, picture_has_host_loads(&picture, picture.info), arena, &picture.layout);
  if (status == NULL) {
    picture_begin(&picture);
    picture_write_legend(&picture);
    picture_write_slices(&picture);
    picture_write_links(&picture, false);
    picture_write_links(&picture, true);
    picture_write_chips(&picture);
    picture_write_hosts(&picture);
    picture_write_switches(&picture);
    mp_strbuf_puts(out_svg, "</svg>\n");
    status = mp_strbuf_status(out_svg);
  }
  mp_arena_release(arena);
  return status;
}
