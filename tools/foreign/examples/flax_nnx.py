import jax, jax.numpy as jnp, optax
from flax import nnx
class Net(nnx.Module):
  def __init__(self, rngs):
    self.a, self.b = nnx.Linear(4, 32, rngs=rngs), nnx.Linear(32, 2, rngs=rngs)
    self.norm, self.drop = nnx.BatchNorm(32, rngs=rngs), nnx.Dropout(0.1, rngs=rngs)
  def __call__(self, x):
    return self.b(self.drop(nnx.gelu(self.norm(self.a(x)))))
net = Net(nnx.Rngs(0))
optimizer = nnx.Optimizer(net, optax.adamw(1e-2), wrt=nnx.Param)
@nnx.jit
def step(net, optimizer, x, y):
  loss, grads = nnx.value_and_grad(lambda n: jnp.mean((n(x) - y) ** 2))(net)
  optimizer.update(net, grads)
  return loss
x = jax.random.normal(jax.random.key(1), (64, 4))
for _ in range(5):
  print(float(step(net, optimizer, x, x[:, :2] * 3)))
