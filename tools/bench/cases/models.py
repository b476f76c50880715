"""Training steps, on one device and on four."""

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

from cases import nets
from cases.case import Case, Work, integers, normal, stepped

IMAGES = (normal(8, 32, 32, 3), integers(10, 8))
DIGITS = (normal(256, 784), integers(10, 256))
TEXT = integers(512, 8, 65)  # sentences of 64 words, and the next word


def adam_of(weights):
  return lambda: nets.adam_state(weights())


def on_devices(name, loss, weights, batch, divide, devices=4):
  """A step whose batch is divided among the devices; optionally the last axis of its weights is, too."""
  def build():
    mesh = Mesh(jax.devices()[:devices], ("d",))
    first = weights()

    def sharding(w):
      return NamedSharding(mesh, P(*[None] * (w.ndim - 1), "d") if divide and w.ndim > 1 else P())
    shardings = jax.tree.map(sharding, first)
    rows = NamedSharding(mesh, P("d"))
    values = [jax.device_put(argument(), rows) for argument in batch]
    held = jax.device_put(first, shardings)
    f = jax.jit(nets.training(loss), donate_argnums=0, out_shardings=shardings)
    compiled = f.lower(held, *values).compile()

    def call():
      nonlocal held
      held = jax.block_until_ready(f(held, *values))
    return Work(call, compiled)
  return Case(name, build, devices=devices)


CASES = [
    stepped("perceptron", nets.training(nets.perceptron_loss), nets.perceptron_weights,
            *DIGITS),
    stepped("perceptron_adam", nets.adam_training(nets.perceptron_loss),
            adam_of(nets.perceptron_weights), *DIGITS),
    stepped("transformer_adam", nets.adam_training(nets.transformer_loss),
            adam_of(nets.transformer_weights), TEXT),
    stepped("residual", nets.training(nets.residual_loss), nets.residual_weights,
            *IMAGES),
    on_devices("perceptron_data_parallel", nets.perceptron_loss, nets.perceptron_weights,
               DIGITS, divide=False),
    on_devices("transformer_sharded_weights", nets.transformer_loss, nets.transformer_weights,
               [TEXT], divide=True),
]
