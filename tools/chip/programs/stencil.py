"""Stencils on grids: finite differences, lattice Boltzmann, cellular automata, as solvers in JAX have them."""

import jax
import jax.numpy as jnp
from jax import lax

from .program import BF, F32, A, of_class

opened, new = of_class("stencil")


def repeat(count, turn):
  return lambda *state: lax.fori_loop(0, count, lambda i, s: turn(*s), state)


def laplacian(u):
  """Of a periodic grid, by rolls."""
  return sum(jnp.roll(u, s, d) for d in range(u.ndim) for s in (1, -1)) - 2 * u.ndim * u


def inner_laplacian(u):
  """Of the points inside, by slices."""
  return u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]


# ---- heat and waves ----

GRID = A((1024, 1024), F32)
new("heat2d_roll_2048_x50", repeat(50, lambda u: (u + 0.1 * laplacian(u),)), A((2048, 2048), F32),
    shows="rolls inside VMEM; a loop whose state stays there (cluster_bytes)")
new("heat2d_roll_8192", lambda u: u + 0.1 * laplacian(u), A((8192, 8192), F32),
    shows="rolls of an array larger than VMEM")
new("heat2d_set_inner_2048_x20", repeat(20, lambda u: (u.at[1:-1, 1:-1].add(0.1 * inner_laplacian(u)),)),
    A((2048, 2048), F32), shows="cluster_updates: an update of an array that it reads in other places")
new("heat2d_pad_4096_x4", repeat(4, lambda u: (u + 0.1 * inner_laplacian(jnp.pad(u, 1, mode="edge")),)),
    A((4096, 4096), F32), shows="pads and slices by one in lanes and sublanes")
new("heat3d_roll_256", lambda u: u + 0.1 * laplacian(u), A((256, 256, 256), F32),
    shows="rolls along three dimensions")
new("heat2d_bf16_roll_4096", lambda u: u + (0.1 * laplacian(u)).astype(BF), A((4096, 4096)),
    shows="rolls of packed bf16")
new("wave2d_roll_1024_x100", repeat(100, lambda u, v: (2 * u - v + 0.2 * laplacian(u), u)), GRID, GRID,
    shows="a leapfrog whose two fields change places in each round (twin_rounds)")


def wave_absorbing(u, v, c, damping):
  def turn(i, s):
    u, v = s
    new = (2 - damping) * u - (1 - damping) * v + c * jnp.pad(inner_laplacian(u), 1)
    return new.at[512, 512].add(jnp.sin(0.1 * i)), u
  return lax.fori_loop(0, 30, turn, (u, v))[0]


new("wave2d_source_damping_1024_x30", wave_absorbing, GRID, GRID, GRID, GRID,
    shows="an update of one element in each round")


def acoustic_8th_order(u, v, c):
  weights = (-2.847222, 1.6, -0.2, 0.025396825, -0.0017857143)
  far = lambda d: weights[0] * u + sum(w * (jnp.roll(u, k, d) + jnp.roll(u, -k, d)) for k,
      w in enumerate(weights) if k)
  return 2 * u - v + c * (far(0) + far(1)), u


new("acoustic_8th_order_2048_x10", lambda u, v, c: repeat(10, lambda u, v: acoustic_8th_order(u, v, c))(u, v),
    A((2048, 2048), F32), A((2048, 2048), F32), A((2048, 2048), F32),
    shows="17-point star; its velocity is read in each round")


def heat_adjoint(u, source):
  def loss(source):
    return (lax.scan(lambda u, s: (u + 0.1 * laplacian(u) + s, None), u, source)[0] ** 2).sum()
  return jax.grad(loss)(source)


new("heat2d_adjoint_512_x16", heat_adjoint, A((512, 512), F32), A((16, 512, 512), F32),
    shows="the gradient of a scan of rolls: rolls back")

# ---- fluids ----

D2Q9 = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]


def lattice_boltzmann(f, steps):
  weights = jnp.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4, F32)[:, None, None]
  cx, cy = (jnp.array([c[k] for c in D2Q9], F32)[:, None, None] for k in (0, 1))

  def turn(f, _):
    f = jnp.stack([jnp.roll(f[k], c, (0, 1)) for k, c in enumerate(D2Q9)])
    rho = f.sum(0)
    ux, uy = (cx * f).sum(0) / rho, (cy * f).sum(0) / rho
    cu = cx * ux + cy * uy
    equal = weights * rho * (1 + 3 * cu + 4.5 * cu * cu - 1.5 * (ux * ux + uy * uy))
    return f + 0.6 * (equal - f), None
  return lax.scan(turn, f, None, length=steps)[0]


new("lbm_d2q9_512x1024_x10", lambda f: lattice_boltzmann(f, 10), A((9, 512, 1024), F32),
    shows="nine rolls that are stacked; sums over an outer dimension")
new("lbm_d2q9_2048x2048", lambda f: lattice_boltzmann(f, 1), A((9, 2048, 2048), F32), donate=(0,),
    shows="the same beyond VMEM")


def gray_scott(u, v):
  reaction = u * v * v
  return u + 0.16 * laplacian(u) - reaction + 0.035 * (1 - u), v + 0.08 * laplacian(v) + reaction - 0.1 * v


new("gray_scott_1024_x40", repeat(40, gray_scott), GRID, GRID, shows="two fields in VMEM, products between rolls")


def shallow_water(h, u, v):
  dx, dy = (lambda f, d=d: 0.5 * (jnp.roll(f, -1, d) - jnp.roll(f, 1, d)) for d in (1, 0))
  du = -u * dx(u) - v * dy(u) - 9.81 * dx(h) + 1e-4 * v
  dv = -u * dx(v) - v * dy(v) - 9.81 * dy(h) - 1e-4 * u
  return h - 0.01 * (dx(h * u) + dy(h * v)), u + 0.01 * du, v + 0.01 * dv


GLOBE = A((720, 1440), F32)
new("shallow_water_720x1440_x10", repeat(10, shallow_water), GLOBE, GLOBE, GLOBE,
    shows="lanes of 1440: no whole tiles")


def maxwell(ex, ey, hz):
  hz = hz - 0.5 * (jnp.diff(ey, axis=0) - jnp.diff(ex, axis=1))
  ex = ex.at[:, 1:-1].add(0.5 * jnp.diff(hz, axis=1))
  return ex, ey.at[1:-1, :].add(-0.5 * jnp.diff(hz, axis=0)), hz


new("maxwell_fdtd_1024_x20", repeat(20, maxwell), A((1024, 1025), F32), A((1025, 1024), F32), GRID,
    shows="staggered grids, one element longer")


def pressure(divergence):
  pad = lambda p: jnp.pad(p, 1, mode="edge")
  def turn(p, _):
    q = pad(p)
    return 0.25 * (q[2:, 1:-1] + q[:-2, 1:-1] + q[1:-1, 2:] + q[1:-1, :-2] - divergence), None
  return lax.scan(turn, jnp.zeros_like(divergence), None, length=30)[0]


new("pressure_jacobi_512_x30", pressure, A((512, 512), F32), shows="many small rounds with pads, one carried array")


def advect(field, u, v):
  y, x = jnp.meshgrid(jnp.arange(512.0), jnp.arange(512.0), indexing="ij")
  return jax.scipy.ndimage.map_coordinates(field, [y - 0.1 * u, x - 0.1 * v], order=1, mode="wrap")


new("advect_bilinear_512", advect, *[A((512, 512), F32)] * 3, shows="indexed_cost: four gathers of single elements")
new("burgers_upwind_64x65536_x10", repeat(10, lambda u: (
    u - 0.1 * jnp.where(u > 0, u * (u - jnp.roll(u, 1, 1)), u * (jnp.roll(u, -1, 1) - u)),)), A((64, 65536), F32),
    shows="rolls along the lanes alone")

# ---- grids of small numbers; images ----


def life(x):
  n = sum(jnp.roll(x, (a, b), (0, 1)) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b)
  return ((n == 3) | ((x == 1) & (n == 2))).astype(jnp.uint8)


new("life_uint8_4096_x10", repeat(10, lambda x: (life(x),)), A((4096, 4096), jnp.uint8),
    shows="rolls of bytes, diagonal ones")


def sobel(x):
  p = jnp.pad(x, ((0, 0), (1, 1), (1, 1)))
  at = lambda i, j: p[:, i:i + x.shape[1], j:j + x.shape[2]]
  gx = at(0, 2) + 2 * at(1, 2) + at(2, 2) - at(0, 0) - 2 * at(1, 0) - at(2, 0)
  gy = at(2, 0) + 2 * at(2, 1) + at(2, 2) - at(0, 0) - 2 * at(0, 1) - at(0, 2)
  return jnp.sqrt(gx * gx + gy * gy)


new("sobel_16x1080x1920", sobel, A((16, 1080, 1920), F32),
    shows="nine shifted reads of one array: one kernel or several")


def total_variation(x):
  return (jnp.abs(jnp.diff(x, axis=1)).sum() + jnp.abs(jnp.diff(x, axis=2)).sum())


new("total_variation_grad_16x512", jax.grad(total_variation), A((16, 512, 512, 3), F32),
    shows="differences with three channels last: layout of narrow arrays")
new("box_blur_separable_4096", lambda x: sum(jnp.roll(sum(jnp.roll(x, i, 0) for i in range(-4, 5)), j, 1)
                                             for j in range(-4, 5)) / 81, A((4096, 4096), F32),
    shows="eighteen rolls of two arrays")
