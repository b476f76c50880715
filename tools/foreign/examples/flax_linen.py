import jax, jax.numpy as jnp
import flax.linen as nn
class Block(nn.Module):
  @nn.compact
  def __call__(self, x):
    x = x + nn.MultiHeadDotProductAttention(num_heads=4)(nn.LayerNorm()(x))
    return nn.Dense(3)(nn.gelu(nn.Dense(64)(x)))
x = jax.random.normal(jax.random.key(0), (2, 8, 16))
params = Block().init(jax.random.key(1), x)
print(float(jnp.sum(jnp.abs(jax.jit(Block().apply)(params, x)))))
text = nn.tabulate(Block(), jax.random.key(0), compute_flops=True)(x)
print(len(text.splitlines()) > 10, "flops" in text)
