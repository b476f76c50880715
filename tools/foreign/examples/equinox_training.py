import equinox as eqx, jax, jax.numpy as jnp, optax
model = eqx.nn.MLP(3, 1, 32, 2, key=jax.random.key(0))
optimizer = optax.adam(1e-2)
state = optimizer.init(eqx.filter(model, eqx.is_array))
@eqx.filter_jit
def step(model, state, x):
  loss, grads = eqx.filter_value_and_grad(
      lambda m: jnp.mean((jax.vmap(m)(x)[:, 0] - x.sum(1)) ** 2))(model)
  updates, state = optimizer.update(grads, state)
  return eqx.apply_updates(model, updates), state, loss
x = jax.random.normal(jax.random.key(1), (32, 3))
for _ in range(5):
  model, state, loss = step(model, state, x)
  print(float(loss))
@jax.jit
def checked(x):
  return eqx.error_if(x, x < 0, "it is negative") * 2
print(float(checked(jnp.float32(3))))
try:
  checked(jnp.float32(-1)).block_until_ready()
except Exception as error:
  print("it is negative" in str(error))
