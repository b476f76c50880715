#include "sim/model/picture/picture_rates.h"

#include <math.h>

typedef enum { RATES_CHIPS, RATES_HOST, RATES_HOSTS, RATES_COUNT } joined_t;

typedef struct {
  double least, most;
} rates_t;

// What a link joins; switches belong to what is at them.
static joined_t picture_rates_joined(const mp_picture_layout_t *layout,
                                     const mp_network_link_t *link) {
  const uint32_t low = link->from < link->to ? link->from : link->to;
  const uint32_t high = link->from < link->to ? link->to : link->from;
  if (low >= layout->first_host) return RATES_HOSTS;
  return high >= layout->first_host && high < layout->core ? RATES_HOST : RATES_CHIPS;
}

static void picture_rates_put(double rate, mp_strbuf_t *out) {
  mp_strbuf_put_double(out, round(rate / 1e7) / 1e2);
}

void mp_picture_put_rates(const mp_network_t *network, const mp_picture_layout_t *layout,
                          mp_strbuf_t *out) {
  static const char *const names[] = {"between chips", "between chip and host", "between hosts"};
  rates_t rates[RATES_COUNT] = {{0, 0}};
  for (uint32_t i = 0; i < mp_network_num_links(network); ++i) {
    const mp_network_link_t *link = mp_network_link(network, i);
    if (link->from == link->to || !(link->bandwidth > 0)) continue;
    rates_t *rate = &rates[picture_rates_joined(layout, link)];
    if (rate->most == 0 || link->bandwidth < rate->least) rate->least = link->bandwidth;
    if (link->bandwidth > rate->most) rate->most = link->bandwidth;
  }
  bool is_first = true;
  for (int joined = 0; joined < RATES_COUNT; ++joined) {
    if (rates[joined].most == 0) continue;
    if (!is_first) mp_strbuf_puts(out, ", ");
    is_first = false;
    picture_rates_put(rates[joined].least, out);
    if (rates[joined].least < rates[joined].most) {
      mp_strbuf_puts(out, " to ");
      picture_rates_put(rates[joined].most, out);
    }
    mp_strbuf_printf(out, " GB/s %s", names[joined]);
  }
  if (!is_first) mp_strbuf_puts(out, ", per direction");
}
