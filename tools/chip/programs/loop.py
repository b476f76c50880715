"""Loops."""

import jax
import jax.numpy as jnp
from jax import lax

from .blocks import grad_of
from .program import BF, F32, I8, I32, A, of_class

opened, new = of_class("loop")


def lstm(w, u, b, x):
  def cell(c, x):
    h, s = c
    i, f, g, o = jnp.split(x @ w + h @ u + b, 4, -1)
    s = jax.nn.sigmoid(f) * s + jax.nn.sigmoid(i) * jnp.tanh(g)
    h = jax.nn.sigmoid(o) * jnp.tanh(s)
    return (h, s), h
  zero = jnp.zeros((x.shape[1], u.shape[0]), x.dtype)
  return lax.scan(cell, (zero, zero), x)[1]


def power_iteration(a, v):
  def turn(i, v):
    u = a @ v
    return u / jnp.sqrt((u * u).sum())
  return lax.fori_loop(0, 20, turn, v)


LSTM = (A((512, 2048)), A((512, 2048)), A((2048,)))
opened("lstm_128_steps", lstm, *LSTM, A((128, 64, 512)))
opened("lstm_grad", jax.grad(lambda p, x: lstm(*p, x).astype(F32).sum()), LSTM, A((64, 64, 512)))
opened("fori_matmul_16", lambda x, y: lax.fori_loop(0, 16, lambda i, c: jnp.tanh(c @ y), x), A((1024, 1024)),
       A((1024, 1024)))
opened("fori_small_1000", lambda x: lax.fori_loop(0, 1000, lambda i, c: c * 0.99 + i, x), A((8, 128), F32))
opened("power_iteration_20", power_iteration, A((4096, 4096), F32), A((4096,), F32))
opened("map_rows_32", lambda x, w: lax.map(lambda r: jax.nn.relu(r @ w), x), A((32, 256, 1024)), A((1024, 1024)))

# ---- weights of layers, casts, many small kernels ----


def layers_cast(w, x):
  """Master weights in f32, cast in each round: compilers cast the whole stack before the loop."""
  def one(x, w):
    return x + jax.nn.gelu(x @ w["up"].astype(BF)) @ w["down"].astype(BF), None
  return lax.scan(one, x, w)[0]


def masters(layers, e, f):
  return {"up": A((layers, e, f), F32), "down": A((layers, f, e), F32)}


new("scan_12_f32_weights_cast_b8_l512_e768", layers_cast, masters(12, 768, 3072), A((4096, 768)),
    shows="hoisted casts of scanned weights: temporaries")
new("scan_8_f32_weights_cast_e2048", layers_cast, masters(8, 2048, 8192), A((2048, 2048)),
    shows="the same with 1 GiB of weights")
new("scan_8_f32_weights_cast_grad_e1024", grad_of(layers_cast), masters(8, 1024, 4096), A((2048, 1024)),
    shows="its gradient: stacks in f32")
new("scan_8_f32_weights_cast_remat_e1024", grad_of(lambda w, x: lax.scan(jax.checkpoint(lambda x, w: (
    x + jax.nn.gelu(x @ w["up"].astype(BF)) @ w["down"].astype(BF), None)), x, w)[0]), masters(8, 1024, 4096),
    A((4096, 1024)), shows="the same with a checkpoint")
new("scan_16_int8_weights_e2048", lambda w, s, x: lax.scan(lambda x, ws: (jax.nn.relu((x @ ws[0].astype(BF)) * ws[1]),
    None), x, (w, s))[0], A((16, 2048, 2048), I8),
    A((16, 2048)), A((256, 2048)), shows="int8 weights of layers, whether their casts are hoisted")
new("scan_unroll_2_of_12_e1024", lambda w, x: lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, w, unroll=2)[0],
    A((12, 1024, 1024)), A((1024, 1024)), shows="two layers in a round")
new("scan_shared_weights_universal_6", lambda w, x: lax.scan(lambda x, _: (x + jax.nn.relu(x @ w[0]) @ w[1], None), x,
    None, length=6)[0],
    [A((1024, 4096)), A((4096, 1024))], A((2048, 1024)), shows="weights that all rounds read")
new("loop_small_kernels_chain_500", lambda x, w: lax.fori_loop(0, 500, lambda i, x: jnp.sin(x @ w) * 0.5 + x, x),
    A((64, 64), F32), A((64, 64), F32), shows="500 rounds of a few small kernels")
new("ode_rk4_mlp_100", lambda w, x: lax.fori_loop(0, 100, lambda i, x: rk4(lambda x: jnp.tanh(x @ w[0]) @ w[1], x),
    x), [A((64, 256), F32), A((256, 64), F32)], A((1024, 64), F32),
    shows="four small networks in each round")


def rk4(f, x, h=0.01):
  a = f(x)
  b = f(x + h / 2 * a)
  c = f(x + h / 2 * b)
  return x + h / 6 * (a + 2 * b + 2 * c + f(x + h * c))


def pendulums(state, steps=256):
  """brax-like: many environments, small vectors, a policy of three layers."""
  def turn(s, _):
    q, v, w = s
    torque = jnp.tanh(jnp.tanh(jnp.stack([jnp.sin(q), jnp.cos(q), v], -1) @ w[0]) @ w[1])[..., 0]
    v = jnp.clip(v + 0.05 * (15 * jnp.sin(q) + 3 * torque), -8, 8)
    q = q + 0.05 * v
    return (q, v, w), -(q * q + 0.1 * v * v)
  return lax.scan(turn, state, None, length=steps)[1]


new("rollout_pendulum_4096_envs_256", pendulums, (A((4096,), F32), A((4096,), F32),
    [A((3, 64), F32), A((64, 1), F32)]), shows="states of a number for each environment")


def rigid_bodies(q, v, steps=50):
  """Quaternions of bodies that turn."""
  def turn(s, _):
    q, v = s
    w, x, y, z = (q[..., i] for i in range(4))
    a, b, c = (v[..., i] for i in range(3))
    d = jnp.stack([-x * a - y * b - z * c, w * a + y * c - z * b, w * b - x * c + z * a, w * c + x * b - y * a], -1)
    q = q + 0.005 * d
    return (q / jnp.linalg.norm(q, axis=-1, keepdims=True), v * 0.999), None
  return lax.scan(turn, (q, v), None, length=steps)[0]


new("rigid_body_quaternions_8192x16_50", rigid_bodies, A((8192, 16, 4), F32), A((8192, 16, 3), F32),
    shows="four and three numbers in the lanes: stacks and slices")
new("kmeans_10_rounds_64K_k256", lambda x, c: lax.fori_loop(0, 10, lambda i,
    c: (lambda a: (jax.ops.segment_sum(x, a, 256) / (
    jax.ops.segment_sum(jnp.ones(65536), a, 256) + 1e-6)[:, None]))((jnp.sum(c * c, 1) - 2 * x @ c.T).argmin(1)), c),
    A((65536, 64), F32), A((256, 64), F32), shows="matmuls, minima and sums by scatter in a loop")
new("sinkhorn_20_4096", lambda m: lax.fori_loop(0, 20, lambda i,
    m: (lambda m: m - jax.nn.logsumexp(m, 0))(m - jax.nn.logsumexp(m, 1, keepdims=True)), m), A((4096, 4096), F32),
    shows="rows and columns in turns, an array larger than half of VMEM")
new("belief_propagation_512x512_s8_20", lambda u, c: lax.fori_loop(0, 20, lambda i,
    m: jax.nn.log_softmax(u + jax.nn.logsumexp(jnp.roll(m, 1, 0)[..., None] + c, -2), -1), u),
    A((512, 512, 8), F32), A((8, 8), F32), shows="eight numbers in the lanes, in each round")
new("while_until_small_newton_4096", lambda x: lax.while_loop(lambda s: (s[1] > 1e-12) & (s[2] < 40),
    lambda s: (lambda y: (y, jnp.abs(y - s[0]).max(), s[2] + 1))(
    0.5 * (s[0] + x / s[0])), (x, jnp.float32(1), 0))[0], A((2048, 2048), F32),
    shows="a condition that needs the values")
new("map_images_augment_64", lambda x: lax.map(lambda x: jnp.rot90(x) * 0.5 + x.transpose(1, 0, 2), x),
    A((64, 224, 224, 3), F32), shows="rounds that write their part of a result")
new("cond_skip_layer_in_scan_8", lambda w, keep, x: lax.scan(lambda x,
    wk: (lax.cond(wk[1] > 0, lambda x: x + jnp.tanh(x @ wk[0]), lambda x: x, x), None), x, (w, keep))[0],
    A((8, 1024, 1024)), A((8,), I32), A((2048, 1024)), shows="mp_twin_copy_chosen: a branch that hands its argument on")
new("switch_experts_4_in_turn", lambda i, ws, x: lax.switch(i,
    [lambda x, w=w: jax.nn.relu(x @ w) for w in ws] + [lambda x: x], x), A((), I32), [A((2048, 2048))] * 3,
    A((4096, 2048)), shows="mp_twin_copy_chosen: branches of a switch")
new("carry_swapped_pairs_40", lambda a, b: lax.fori_loop(0, 40, lambda i, s: (s[1] * 0.99 + 1, s[0]), (a, b)),
    A((4096, 2048), F32), A((4096, 2048), F32), shows="mp_twin_copy_carried: values that change places")
new("stack_history_donated_64", lambda h, x: lax.fori_loop(0, 64, lambda i,
    s: (s[0].at[i].set(s[1]), jnp.tanh(s[1]) * 1.01), (h, x))[0], A((64, 512, 1024), F32), A((512, 1024), F32),
    donate=(0,), shows="a loop that fills a stack")
