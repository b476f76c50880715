// The passes of a transform, once for floats and once for doubles. No include guard: fft_plan.c
// includes it with R (the real type) and F(name) (the name for that type) defined.

// ---- Passes: n = m * radix points remain, s lines lie side by side ----
//
// y[q + s * (radix * p + k)] = w^(p k) * sum over j of root^(j k) * x[q + s * (p + m * j)]

typedef struct {
  int64_t m, s;
  uint32_t radix;
  const R *w, *roots;
  const R *xr, *xi;
  R *yr, *yi;
} F(pass_t);

#define IN(j)                                          \
  const R *restrict ar##j = t->xr + s * (p + m * (j)); \
  const R *restrict ai##j = t->xi + s * (p + m * (j))
#define OUT(k)                                       \
  R *restrict br##k = t->yr + s * (radix * p + (k)); \
  R *restrict bi##k = t->yi + s * (radix * p + (k))
// b[k] = (re + im i) * w^(p k)
#define PUT(k, re, im)                                  \
  do {                                                  \
    R re_ = (re), im_ = (im);                           \
    br##k[q] = re_ * w[2 * (k)-2] - im_ * w[2 * (k)-1]; \
    bi##k[q] = re_ * w[2 * (k)-1] + im_ * w[2 * (k)-2]; \
  } while (0)

MP_VECTOR static void F(pass2)(const F(pass_t) * t) {
  enum { radix = 2 };
  int64_t m = t->m, s = t->s;
  for (int64_t p = 0; p < m; ++p) {
    const R *w = t->w + 2 * p;
    IN(0);
    IN(1);
    OUT(0);
    OUT(1);
    MP_INDEPENDENT for (int64_t q = 0; q < s; ++q) {
      R dr = ar0[q] - ar1[q], di = ai0[q] - ai1[q];
      br0[q] = ar0[q] + ar1[q];
      bi0[q] = ai0[q] + ai1[q];
      PUT(1, dr, di);
    }
  }
}

MP_VECTOR static void F(pass3)(const F(pass_t) * t) {
  enum { radix = 3 };
  const R sine = (R)0.86602540378443864676;
  int64_t m = t->m, s = t->s;
  for (int64_t p = 0; p < m; ++p) {
    const R *w = t->w + 4 * p;
    IN(0);
    IN(1);
    IN(2);
    OUT(0);
    OUT(1);
    OUT(2);
    MP_INDEPENDENT for (int64_t q = 0; q < s; ++q) {
      R sr = ar1[q] + ar2[q], si = ai1[q] + ai2[q];
      R dr = sine * (ai1[q] - ai2[q]), di = sine * (ar2[q] - ar1[q]);
      R cr = ar0[q] - (R)0.5 * sr, ci = ai0[q] - (R)0.5 * si;
      br0[q] = ar0[q] + sr;
      bi0[q] = ai0[q] + si;
      PUT(1, cr + dr, ci + di);
      PUT(2, cr - dr, ci - di);
    }
  }
}

MP_VECTOR static void F(pass4)(const F(pass_t) * t) {
  enum { radix = 4 };
  int64_t m = t->m, s = t->s;
  for (int64_t p = 0; p < m; ++p) {
    const R *w = t->w + 6 * p;
    IN(0);
    IN(1);
    IN(2);
    IN(3);
    OUT(0);
    OUT(1);
    OUT(2);
    OUT(3);
    MP_INDEPENDENT for (int64_t q = 0; q < s; ++q) {
      R er = ar0[q] + ar2[q], ei = ai0[q] + ai2[q];
      R fr = ar0[q] - ar2[q], fi = ai0[q] - ai2[q];
      R gr = ar1[q] + ar3[q], gi = ai1[q] + ai3[q];
      R hr = ai1[q] - ai3[q], hi = ar3[q] - ar1[q];  // -i * (a1 - a3)
      br0[q] = er + gr;
      bi0[q] = ei + gi;
      PUT(1, fr + hr, fi + hi);
      PUT(2, er - gr, ei - gi);
      PUT(3, fr - hr, fi - hi);
    }
  }
}

MP_VECTOR static void F(pass5)(const F(pass_t) * t) {
  enum { radix = 5 };
  const R c1 = (R)0.30901699437494742410, c2 = (R)-0.80901699437494742410;
  const R s1 = (R)0.95105651629515357212, s2 = (R)0.58778525229247312917;
  int64_t m = t->m, s = t->s;
  for (int64_t p = 0; p < m; ++p) {
    const R *w = t->w + 8 * p;
    IN(0);
    IN(1);
    IN(2);
    IN(3);
    IN(4);
    OUT(0);
    OUT(1);
    OUT(2);
    OUT(3);
    OUT(4);
    MP_INDEPENDENT for (int64_t q = 0; q < s; ++q) {
      R er = ar1[q] + ar4[q], ei = ai1[q] + ai4[q];
      R fr = ar2[q] + ar3[q], fi = ai2[q] + ai3[q];
      R gr = ai1[q] - ai4[q], gi = ar4[q] - ar1[q];  // -i * (a1 - a4)
      R hr = ai2[q] - ai3[q], hi = ar3[q] - ar2[q];  // -i * (a2 - a3)
      R ur = ar0[q] + c1 * er + c2 * fr, ui = ai0[q] + c1 * ei + c2 * fi;
      R vr = ar0[q] + c2 * er + c1 * fr, vi = ai0[q] + c2 * ei + c1 * fi;
      R xr = s1 * gr + s2 * hr, xi = s1 * gi + s2 * hi;
      R yr = s2 * gr - s1 * hr, yi = s2 * gi - s1 * hi;
      br0[q] = ar0[q] + er + fr;
      bi0[q] = ai0[q] + ei + fi;
      PUT(1, ur + xr, ui + xi);
      PUT(2, vr + yr, vi + yi);
      PUT(3, vr - yr, vi - yi);
      PUT(4, ur - xr, ui - xi);
    }
  }
}

MP_VECTOR static void F(pass8)(const F(pass_t) * t) {
  enum { radix = 8 };
  const R root = (R)0.70710678118654752440;
  int64_t m = t->m, s = t->s;
  for (int64_t p = 0; p < m; ++p) {
    const R *w = t->w + 14 * p;
    IN(0);
    IN(1);
    IN(2);
    IN(3);
    IN(4);
    IN(5);
    IN(6);
    IN(7);
    OUT(0);
    OUT(1);
    OUT(2);
    OUT(3);
    OUT(4);
    OUT(5);
    OUT(6);
    OUT(7);
    MP_INDEPENDENT for (int64_t q = 0; q < s; ++q) {
      // The four of even number,
      R cr = ar0[q] + ar4[q], ci = ai0[q] + ai4[q], dr = ar0[q] - ar4[q], di = ai0[q] - ai4[q];
      R er = ar2[q] + ar6[q], ei = ai2[q] + ai6[q];
      R fr = ai2[q] - ai6[q], fi = ar6[q] - ar2[q];  // -i * (a2 - a6)
      R even0r = cr + er, even0i = ci + ei, even1r = dr + fr, even1i = di + fi;
      R even2r = cr - er, even2i = ci - ei, even3r = dr - fr, even3i = di - fi;
      // the four of odd number, times the powers of (1 - i) / sqrt(2),
      cr = ar1[q] + ar5[q], ci = ai1[q] + ai5[q], dr = ar1[q] - ar5[q], di = ai1[q] - ai5[q];
      er = ar3[q] + ar7[q], ei = ai3[q] + ai7[q];
      fr = ai3[q] - ai7[q], fi = ar7[q] - ar3[q];
      R gr = dr + fr, gi = di + fi, hr = dr - fr, hi = di - fi;
      R odd0r = cr + er, odd0i = ci + ei, odd1r = root * (gr + gi), odd1i = root * (gi - gr);
      R odd2r = ci - ei, odd2i = er - cr, odd3r = root * (hi - hr), odd3i = -root * (hr + hi);
      // and their sums and differences.
      br0[q] = even0r + odd0r;
      bi0[q] = even0i + odd0i;
      PUT(1, even1r + odd1r, even1i + odd1i);
      PUT(2, even2r + odd2r, even2i + odd2i);
      PUT(3, even3r + odd3r, even3i + odd3i);
      PUT(4, even0r - odd0r, even0i - odd0i);
      PUT(5, even1r - odd1r, even1i - odd1i);
      PUT(6, even2r - odd2r, even2i - odd2i);
      PUT(7, even3r - odd3r, even3i - odd3i);
    }
  }
}

MP_VECTOR static void F(pass_any)(const F(pass_t) * t) {
  int64_t m = t->m, s = t->s, radix = t->radix;
  for (int64_t p = 0; p < m; ++p) {
    for (int64_t k = 0; k < radix; ++k) {
      OUT(0);
      R *restrict br = br0 + s * k, *restrict bi = bi0 + s * k;
      R vr = 1, vi = 0;
      if (k > 0) {
        const R *w = t->w + 2 * ((radix - 1) * p + k - 1);
        vr = w[0];
        vi = w[1];
      }
      memset(br, 0, (size_t)s * sizeof(R));
      memset(bi, 0, (size_t)s * sizeof(R));
      for (int64_t j = 0; j < radix; ++j) {
        IN(j);
        const R *root = t->roots + 2 * (j * k % radix);
        R cr = root[0] * vr - root[1] * vi, ci = root[0] * vi + root[1] * vr;
        MP_INDEPENDENT for (int64_t q = 0; q < s; ++q) {
          br[q] += arj[q] * cr - aij[q] * ci;
          bi[q] += arj[q] * ci + aij[q] * cr;
        }
      }
    }
  }
}

static void F(run_pass)(const F(pass_t) * pass) {
  switch (pass->radix) {
    case 2:
      F(pass2)(pass);
      break;
    case 3:
      F(pass3)(pass);
      break;
    case 4:
      F(pass4)(pass);
      break;
    case 5:
      F(pass5)(pass);
      break;
    case 8:
      F(pass8)(pass);
      break;
    default:
      F(pass_any)(pass);
      break;
  }
}

static void F(run_smooth)(const mp_fft_plan_t *plan, int64_t lines, R *re, R *im, R *scratch) {
  R *xr = re, *xi = im, *yr = scratch, *yi = scratch + plan->n * lines;
  int64_t m = plan->n, s = lines;
  for (uint32_t i = 0; i < plan->num_factors; ++i) {
    uint32_t radix = plan->factors[i];
    m /= radix;
    F(pass_t) pass = {m, s, radix, plan->twiddles[i], plan->roots[i], xr, xi, yr, yi};
    F(run_pass)(&pass);
    R *kept_r = xr, *kept_i = xi;
    xr = yr, xi = yi, yr = kept_r, yi = kept_i;
    s *= radix;
  }
  if (xr != re) {
    memcpy(re, xr, (size_t)(plan->n * lines) * sizeof(R));
    memcpy(im, xi, (size_t)(plan->n * lines) * sizeof(R));
  }
}

#undef PUT
#undef OUT
#undef IN
