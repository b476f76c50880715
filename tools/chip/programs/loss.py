"""Losses and their gradients."""

import jax
import jax.numpy as jnp
from jax import lax

from .blocks import xent
from .program import F32, I32, A, of_class

opened, new = of_class("loss")


def xent_onehot(logits, labels):
  return -(jax.nn.one_hot(labels, logits.shape[-1]) * jax.nn.log_softmax(logits.astype(F32))).sum(-1).mean()


opened("xent_32000", xent, A((8192, 32000)), A((8192,), I32))
opened("xent_grad_32000", jax.value_and_grad(xent), A((4096, 32000)), A((4096,), I32))
opened("xent_onehot_grad", jax.value_and_grad(xent_onehot), A((4096, 32000)), A((4096,), I32))
opened("lm_head_loss_grad", jax.grad(lambda w, x, y: xent(x @ w, y), (0, 1)), A((2048, 32000)), A((4096, 2048)),
       A((4096,), I32))


def smoothed(logits, labels, alpha=0.1):
  """Label smoothing as in optax."""
  n = logits.shape[-1]
  target = jax.nn.one_hot(labels, n) * (1 - alpha) + alpha / n
  return -(target * jax.nn.log_softmax(logits.astype(F32))).sum(-1).mean()


def z_loss(logits, labels, weights):
  """T5X: with the square of the log normaliser, masked."""
  logits = logits.astype(F32)
  top = lax.stop_gradient(logits.max(-1, keepdims=True))
  shifted = logits - top
  z = jnp.log(jnp.exp(shifted).sum(-1))
  at = (jax.nn.one_hot(labels, logits.shape[-1]) * shifted).sum(-1)
  total = z + top[..., 0]
  return ((z - at + 1e-4 * total * total) * weights).sum() / weights.sum()


LOGITS = (A((8, 512, 32128)), A((8, 512), I32))
new("xent_smoothed_grad_b4096_v32000", jax.value_and_grad(smoothed), A((4096, 32000)), A((4096,), I32),
    shows="a target without a lookup")
new("xent_z_loss_grad_t5x_b8_l512_v32128", jax.value_and_grad(z_loss), *LOGITS, A((8, 512), F32),
    shows="rows beyond fusion.row, several sums")
new("xent_imagenet_grad_b1024_v1000", jax.value_and_grad(xent), A((1024, 1000), F32), A((1024,), I32),
    shows="rows of 1,000: padding of lanes")
new("xent_chunked_vocab_lm_head_b2048_v50304", lambda w, x, y: jax.grad(lambda w, x: lax.map(
    jax.checkpoint(lambda xy: xent(xy[0] @ w, xy[1])), (x.reshape(8, 256, 1024), y.reshape(8, 256))).mean(),
    (0, 1))(w, x), A((1024, 50304)), A((2048, 1024)),
    A((2048,), I32), shows="logits in chunks, made again for the gradient")


def info_nce(x, y):
  x, y = (z / jnp.linalg.norm(z, axis=-1, keepdims=True) for z in (x, y))
  logits = x @ y.T * 14.3
  diagonal = jnp.diagonal(logits)
  return ((jax.nn.logsumexp(logits, 0) - diagonal).mean() + (jax.nn.logsumexp(logits, 1) - diagonal).mean()) / 2


new("clip_contrastive_grad_b4096_d512", jax.value_and_grad(info_nce, (0, 1)), A((4096, 512), F32),
    A((4096, 512), F32), shows="rows and columns of one matmul, its diagonal")


def ctc(logits, labels):
  """The forward pass over blanks and labels, as in optax, without lengths."""
  logp = jax.nn.log_softmax(logits)
  blank = logp[..., 0]
  label = jnp.take_along_axis(logp, labels[:, None], 2)
  repeat = jnp.pad(labels[:, 1:] == labels[:, :-1], ((0, 0), (1, 0)))

  def turn(c, t):
    phi, emit = c
    blank, label = t
    emit_next = jnp.logaddexp(jnp.logaddexp(phi[:, :-1], emit),
        jnp.where(repeat, -1e5, jnp.pad(emit, ((0, 0), (1, 0)), constant_values=-1e5)[:, :-1])) + label
    phi_next = jnp.logaddexp(phi, jnp.pad(emit, ((0, 0), (1, 0)), constant_values=-1e5)) + blank[:, None]
    return (phi_next, emit_next), None
  b, n = labels.shape
  start = (jnp.full((b, n + 1), -1e5).at[:, 0].set(0), jnp.full((b, n), -1e5))
  phi, emit = lax.scan(turn, start, (blank.T, label.swapaxes(0, 1)))[0]
  return -jnp.logaddexp(phi[:, -1], emit[:, -1]).mean()


new("ctc_loss_b64_t256_n64_v128", ctc, A((64, 256, 128), F32), A((64, 64), I32),
    shows="a loop of small kernels, lookups along rows")
new("ctc_loss_grad_b16_t128_n32_v128", jax.grad(ctc), A((16, 128, 128), F32), A((16, 32), I32), shows="its way back")


new("distill_kl_grad_b2048_v32000", jax.grad(lambda s, t: (jax.nn.softmax(t.astype(F32) / 2) * (
    jax.nn.log_softmax(t.astype(F32) / 2) - jax.nn.log_softmax(s.astype(F32) / 2))).sum(-1).mean()),
    A((2048, 32000)), A((2048, 32000)), shows="three softmaxes over two arrays")
new("logistic_loss_grad_4096x4096", jax.value_and_grad(lambda x, y: jnp.log1p(jnp.exp(-x * y)).mean()),
    A((4096, 4096), F32), A((4096, 4096), F32),
    shows="exponentials of a loss and of its gradient, computed once or twice")
