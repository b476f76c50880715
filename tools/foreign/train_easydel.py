"""Trains with EasyDeL as in its guides: a Llama of its own, Trainer, AdamW.

    python train_easydel.py STEPS FOLDER

The model has two layers.  It trains on all available devices, with rows of random tokens.
"""

import sys

import easydel as ed
import jax
import jax.numpy as jnp
import numpy as np
from datasets import Dataset
from flax import nnx

BATCH, TOKENS, VOCABULARY = 8, 128, 512


def rows(count: int) -> Dataset:
  generator = np.random.default_rng(0)
  tokens = generator.integers(0, VOCABULARY, (count, TOKENS), dtype=np.int32)
  return Dataset.from_dict({"input_ids": tokens, "attention_mask": np.ones_like(tokens)})


def model() -> ed.LlamaForCausalLM:
  config = ed.LlamaConfig(vocab_size=VOCABULARY, hidden_size=64, intermediate_size=128,
                          num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4,
                          max_position_embeddings=TOKENS, attn_mechanism="vanilla")
  return ed.LlamaForCausalLM(config=config, dtype=jnp.float32, param_dtype=jnp.float32,
                             rngs=nnx.Rngs(0)).shard_model()


def main() -> None:
  steps, folder = int(sys.argv[1]), sys.argv[2]
  arguments = ed.TrainingArguments(
      model_name="tiny", save_directory=folder, num_train_epochs=1, total_batch_size=BATCH,
      max_training_steps=steps, learning_rate=1e-3, max_length=TOKENS, use_wandb=False,
      log_steps=1, report_steps=1, progress_bar_type="json", do_last_save=False,
      save_optimizer_state=False, shuffle_train_dataset=False, track_memory=False)
  trainer = ed.Trainer(arguments=arguments, model=model(), dataset_train=rows(steps * BATCH))
  print(f"{jax.device_count()} devices", flush=True)
  trainer.train()


if __name__ == "__main__":
  main()
