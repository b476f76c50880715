import diffrax as dfx, jax, jax.numpy as jnp
def solve(y0):
  term = dfx.ODETerm(lambda t, y, args: jnp.array([y[1], -y[0]]))
  return dfx.diffeqsolve(term, dfx.Tsit5(), 0, 5, 0.1, y0,
                         saveat=dfx.SaveAt(ts=jnp.linspace(0, 5, 6)),
                         stepsize_controller=dfx.PIDController(rtol=1e-5, atol=1e-5)).ys
print(jax.jit(solve)(jnp.array([1.0, 0.0])))
print(jax.grad(lambda y: solve(y)[-1, 0])(jnp.array([1.0, 0.0])))
stiff = dfx.diffeqsolve(dfx.ODETerm(lambda t, y, args: -50 * (y - jnp.cos(t))),
                        dfx.Kvaerno3(), 0, 1, 0.01, jnp.array(0.0),
                        stepsize_controller=dfx.PIDController(rtol=1e-4, atol=1e-6))
print(stiff.ys)
motion = dfx.VirtualBrownianTree(0, 1, 1e-2, (), key=jax.random.key(0))
terms = dfx.MultiTerm(dfx.ODETerm(lambda t, y, a: -y),
                      dfx.ControlTerm(lambda t, y, a: 0.1, motion))
print(dfx.diffeqsolve(terms, dfx.Euler(), 0, 1, 0.05, jnp.array(1.0)).ys)
