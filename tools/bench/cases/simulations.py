"""Programs of many small operations: physics, integrators, small loops under vmap, loops unrolled by Python.

Times are per step.
"""

import jax
import jax.numpy as jnp
from jax import lax

from cases.case import integers, jitted, normal, uniform

STEPS = 5


def repeated(step, length=STEPS):
  return lambda state, *rest: lax.scan(lambda s, _: (step(s, *rest), None), state, None, length)[0]


# ---- Rigid bodies in a tree, as MJX and brax have them ----

PARENTS = (-1, 0, 1, 2, 1, 4, 1, 6, 7, 1, 9, 10)  # a torso, a head, two arms and two legs


def quaternion_product(a, b):
  return jnp.stack([a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
                    a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
                    a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
                    a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0]])


def rotated(q, v):
  s, u = q[0], q[1:]
  return 2 * jnp.dot(u, v) * u + (s * s - jnp.dot(u, u)) * v + 2 * s * jnp.cross(u, v)


def joint_rotation(axis, angle):
  return jnp.concatenate([jnp.cos(angle / 2)[None], axis * jnp.sin(angle / 2)])


def kinematics(angles, axes, offsets):
  """The position and rotation of each body, computed from its parent's, one body after the other."""
  places, rotations = [], []
  for body, parent in enumerate(PARENTS):
    place = jnp.zeros(3) if parent < 0 else places[parent]
    rotation = jnp.array([1.0, 0, 0, 0]) if parent < 0 else rotations[parent]
    places.append(place + rotated(rotation, offsets[body]))
    rotations.append(quaternion_product(rotation, joint_rotation(axes[body], angles[body])))
  return jnp.stack(places), jnp.stack(rotations)


def jacobian(angles, axes, offsets):
  places, rotations = kinematics(angles, axes, offsets)
  lines = jax.vmap(rotated)(rotations, axes)
  return jax.vmap(lambda p: jax.vmap(lambda line, at: jnp.cross(line, p - at))(lines, places))(places)


def body_step(state, axes, offsets):
  """One step of a tree of bodies on a floor: forces of contact, mass matrix, solve, integrate."""
  angles, speeds = state
  arms = jacobian(angles, axes, offsets)  # [bodies, joints, 3]
  mass = jnp.einsum("bjd,bkd->jk", arms, arms) + 0.1 * jnp.eye(len(PARENTS))
  places, _ = kinematics(angles, axes, offsets)
  depth = jnp.maximum(-1.0 - places[:, 2], 0.0)
  push = jnp.stack([jnp.zeros_like(depth), jnp.zeros_like(depth), 30 * depth - 1], 1)
  force = jnp.einsum("bjd,bd->j", arms, push) - 0.5 * speeds
  factor = jax.scipy.linalg.cho_factor(mass)
  speeds = speeds + 0.01 * jax.scipy.linalg.cho_solve(factor, force)
  return angles + 0.01 * speeds, speeds


def bodies(worlds):
  return repeated(jax.vmap(body_step, ((0, 0), None, None)))


def spring_step(state, pairs):
  """Particles, springs between neighbours and a floor, in substeps."""
  def substep(_, state):
    places, speeds = state
    ends = places[pairs[:, 0]] - places[pairs[:, 1]]
    length = jnp.sqrt(jnp.sum(ends * ends, 1, keepdims=True) + 1e-6)
    pull = -40 * (length - 1) * ends / length
    force = jnp.zeros_like(places).at[pairs[:, 0]].add(pull).at[pairs[:, 1]].add(-pull)
    force = force + jnp.where(places[:, 2:] < 0, -100 * places[:, 2:], 0.0) * jnp.array([0.0, 0, 1])
    speeds = 0.999 * (speeds + 0.002 * (force - jnp.array([0.0, 0, 9.8])))
    return places + 0.002 * speeds, speeds
  return lax.fori_loop(0, 10, substep, state)


# ---- Integrators ----

def lorenz(y):
  return jnp.stack([10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])


def runge_kutta(y, rate=lorenz, dt=0.01):
  a = rate(y)
  b = rate(y + dt / 2 * a)
  c = rate(y + dt / 2 * b)
  d = rate(y + dt * c)
  return y + dt / 6 * (a + 2 * b + 2 * c + d)


FEHLBERG = ((), (1 / 4,), (3 / 32, 9 / 32), (1932 / 2197, -7200 / 2197, 7296 / 2197),
            (439 / 216, -8, 3680 / 513, -845 / 4104),
            (-8 / 27, 2, -3544 / 2565, 1859 / 4104, -11 / 40))
FIFTH = (16 / 135, 0, 6656 / 12825, 28561 / 56430, -9 / 50, 2 / 55)
FOURTH = (25 / 216, 0, 1408 / 2565, 2197 / 4104, -1 / 5, 0)


def adaptive(y):
  """Integrates from 0 to 1 with steps whose size depends on the error."""
  def turn(state):
    t, dt, y = state
    stages = []
    for weights in FEHLBERG:
      stages.append(lorenz(y + dt * sum((w * s for w, s in zip(weights, stages)), jnp.zeros_like(y))))
    error = dt * jnp.linalg.norm(sum((a - b) * s for a, b, s in zip(FIFTH, FOURTH, stages)))
    is_good = error < 1e-4
    new = y + dt * sum(w * s for w, s in zip(FIFTH, stages))
    factor = jnp.clip(0.9 * (1e-4 / jnp.maximum(error, 1e-12))**0.2, 0.2, 5.0)
    return (jnp.where(is_good, t + dt, t), jnp.minimum(dt * factor, 0.1), jnp.where(is_good, new, y))
  return lax.while_loop(lambda s: s[0] < 1.0, turn, (0.0, 0.01, y))[2]


def shallow_water(state):
  """A step of a small periodic grid, in spectral space, as weather models do it."""
  height, u, v = state
  waves = jnp.fft.fftfreq(32, 1 / 32.0)

  def slope(x, axis):
    shape = [1, 1]
    shape[axis] = 32
    return jnp.fft.ifft(1j * waves.reshape(shape) * jnp.fft.fft(x, axis=axis), axis=axis).real
  flow = lambda s: (-(slope(s[0] * s[1], 0) + slope(s[0] * s[2], 1)),
                    -(s[1] * slope(s[1], 0) + s[2] * slope(s[1], 1) + slope(s[0], 0) - s[2]),
                    -(s[1] * slope(s[2], 0) + s[2] * slope(s[2], 1) + slope(s[0], 1) + s[1]))
  half = jax.tree.map(lambda x, d: x + 5e-4 * d, (height, u, v), flow((height, u, v)))
  return jax.tree.map(lambda x, d: x + 1e-3 * d, (height, u, v), flow(half))


# ---- Small loops under vmap, loops unrolled by Python ----

def line_search(x):
  """Newton's method for one number per lane, with a limit on iterations, as in contact solvers."""
  def turn(state):
    at, low, high, count = state
    value, slope = at**3 - x, 3 * at * at
    low, high = jnp.where(value < 0, at, low), jnp.where(value < 0, high, at)
    new = at - value / slope
    return jnp.where((new > low) & (new < high), new, (low + high) / 2), low, high, count + 1
  rest = lambda s: (jnp.abs(s[0]**3 - x) > 1e-4 * x) & (s[3] < 20)
  return lax.while_loop(rest, turn, (x, 0.0 * x, x + 1, 0))[0]


def unrolled_filter(samples, weights):
  """A filter of ten sections over 40 samples; Python's loops unroll every operation."""
  states, out = [jnp.zeros(8)] * 10, []
  for t in range(40):
    x = samples[t]
    for k in range(10):
      x, states[k] = weights[k, 0] * x + states[k], weights[k, 1] * x - weights[k, 2] * states[k]
    out.append(x)
  return jnp.stack(out)


def unrolled_tree(x):
  """Matmuls of small matrices in a tree."""
  level = [x[i] for i in range(x.shape[0])]
  while len(level) > 1:
    level = [jnp.tanh(a @ b) for a, b in zip(level[::2], level[1::2])]
  return level[0]


SPRINGS = 24
WORLDS = 16
NUM_BODIES = len(PARENTS)


def tree_arguments(worlds):
  return ((lambda: (uniform(worlds, NUM_BODIES)(), normal(worlds, NUM_BODIES, scale=0.1)())),
          normal(NUM_BODIES, 3, scale=0.5), normal(NUM_BODIES, 3, scale=0.3))


CASES = [
    jitted("bodies_16_worlds", bodies(WORLDS), *tree_arguments(WORLDS), per=STEPS),
    jitted("bodies_1_world", bodies(1), *tree_arguments(1), per=STEPS),
    jitted("springs_16_worlds", repeated(jax.vmap(spring_step, ((0, 0), None))),
           lambda: (normal(WORLDS, 16, 3)(), normal(WORLDS, 16, 3, scale=0.1)()),
           integers(16, SPRINGS, 2), per=STEPS),
    jitted("runge_kutta_lorenz", repeated(runge_kutta, 100), normal(3), per=100),
    jitted("runge_kutta_lorenz_64", repeated(jax.vmap(runge_kutta), 100), normal(64, 3), per=100),
    jitted("adaptive_lorenz", adaptive, normal(3)),
    jitted("adaptive_lorenz_vmap_16", jax.vmap(adaptive), normal(16, 3)),
    jitted("shallow_water_32", repeated(shallow_water),
           lambda: (1 + uniform(32, 32)(), normal(32, 32, scale=0.1)(),
                    normal(32, 32, scale=0.1)()), per=STEPS),
    jitted("line_search_vmap_64", jax.vmap(line_search), uniform(64, low=1, high=50)),
    jitted("unrolled_filter_40x10", unrolled_filter, normal(40, 8), normal(10, 3, scale=0.3)),
    jitted("unrolled_tree_32x4x4", unrolled_tree, normal(32, 4, 4)),
]
