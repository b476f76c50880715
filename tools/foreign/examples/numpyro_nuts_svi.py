import jax, jax.numpy as jnp, numpyro, numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, SVI, Trace_ELBO, autoguide
def model(x, y=None):
  a, b = (numpyro.sample(n, dist.Normal(0, 2)) for n in "ab")
  s = numpyro.sample("s", dist.HalfNormal(1))
  numpyro.sample("y", dist.Normal(a + b * x, s), obs=y)
x = jnp.linspace(-1, 1, 20)
y = 1 + 2 * x + 0.1 * jax.random.normal(jax.random.key(0), (20,))
mcmc = MCMC(NUTS(model), num_warmup=100, num_samples=100, progress_bar=False)
mcmc.run(jax.random.key(1), x, y)
print(bool(abs(mcmc.get_samples()["b"].mean() - 2) < 0.2))
svi = SVI(model, autoguide.AutoNormal(model), numpyro.optim.Adam(0.02), Trace_ELBO())
losses = svi.run(jax.random.key(2), 200, x, y, progress_bar=False).losses
print(bool(losses[-1] < losses[0]), bool(jnp.isfinite(losses).all()))
