import jax, jax.numpy as jnp, optax
f = lambda p: jnp.sum((p["w"] - 1) ** 2) + jnp.sum(p["b"] ** 4)
for make in (optax.sgd, optax.adam, optax.lion, optax.adafactor, optax.lamb, optax.lbfgs):
  p = {"w": jnp.arange(4.0), "b": jnp.ones((2, 3))}
  opt = optax.chain(optax.clip_by_global_norm(1.0), make(0.1))
  s = opt.init(p)
  @jax.jit
  def step(p, s):
    v, g = jax.value_and_grad(f)(p)
    u, s = opt.update(g, s, p, value=v, grad=g, value_fn=f)
    return optax.apply_updates(p, u), s
  for _ in range(5):
    p, s = step(p, s)
  print(make.__name__, float(f(p)))
