"""Fine-tunes with Tunix as in its guides: a model of its own, PeftTrainer, AdamW.

    python train_tunix.py {tiny|8b} STEPS

`tiny` is a model of two layers on 8 devices.  `8b` is Tunix's llama3.1-8B on all devices of the pod: it trains all
weights, rematerializes the decoder's layers, and has 1 x 2,048 tokens per device.
"""

import dataclasses
import math
import sys

from absl import logging
from flax import nnx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from tunix.models.llama3 import model as llama
from tunix.sft import peft_trainer

TINY = llama.ModelConfig(num_layers=2, vocab_size=512, embed_dim=64, hidden_dim=128, num_heads=4,
                         head_dim=16, num_kv_heads=4, rope_theta=500_000, norm_eps=1e-5)
TENSOR_PARALLEL = 4


def config_of(size: str) -> llama.ModelConfig:
  if size == "tiny":
    return TINY
  return dataclasses.replace(llama.ModelConfig.llama3p1_8b(), remat_config=llama.RematConfig.DECODER)


def model_of(config: llama.ModelConfig, mesh: jax.sharding.Mesh) -> nnx.Module:
  """The model with weights that are drawn on their devices; no device ever has a whole one."""
  @nnx.jit
  def make():
    model = llama.Llama3(config, rngs=nnx.Rngs(0))
    state = nnx.state(model)
    nnx.update(model, jax.lax.with_sharding_constraint(state, nnx.get_partition_spec(state)))
    return model

  with mesh:
    return make()


def examples(config: llama.ModelConfig, batch: int, tokens: int, steps: int):
  generator = np.random.default_rng(0)
  for _ in range(steps):
    yield peft_trainer.TrainingInput(
        input_tokens=generator.integers(0, config.vocab_size, (batch, tokens), dtype=np.int32),
        input_mask=np.ones((batch, tokens), dtype=bool))


def model_input(example: peft_trainer.TrainingInput) -> dict:
  """The inputs that Tunix's guides pass to the model: positions, and a causal mask."""
  batch, tokens = example.input_tokens.shape
  mask = jnp.tril(jnp.ones((tokens, tokens), dtype=bool))
  return {"input_tokens": example.input_tokens, "input_mask": example.input_mask,
          "positions": jnp.broadcast_to(jnp.arange(tokens), (batch, tokens)),
          "attention_mask": jnp.broadcast_to(mask, (batch, tokens, tokens))}


def main() -> None:
  size, steps = sys.argv[1], int(sys.argv[2])
  logging.use_absl_handler()  # its lines begin with the time
  logging.set_verbosity(logging.INFO)
  config = config_of(size)
  devices = jax.device_count()
  mesh = jax.make_mesh((devices // TENSOR_PARALLEL, TENSOR_PARALLEL), ("fsdp", "tp"),
                       axis_types=(jax.sharding.AxisType.Auto,) * 2)
  model = model_of(config, mesh)
  weights = sum(math.prod(x.shape) for x in jax.tree.leaves(nnx.state(model, nnx.Param)))
  batch, tokens = (8, 128) if size == "tiny" else (devices, 2048)
  print(f"{devices} devices, {weights} weights, {batch} x {tokens} tokens a step", flush=True)
  trainer = peft_trainer.PeftTrainer(
      model, optax.adamw(1e-3), peft_trainer.TrainingConfig(eval_every_n_steps=1000, max_steps=steps))
  trainer = trainer.with_gen_model_input_fn(model_input)
  with mesh:
    trainer.train(examples(config, batch, tokens, steps))


if __name__ == "__main__":
  main()
