import jax, jax.numpy as jnp, lineax as lx
a = jax.random.normal(jax.random.key(0), (6, 6))
spd = a @ a.T + 6 * jnp.eye(6)
b = jax.random.normal(jax.random.key(1), (6,))
for solver in (lx.AutoLinearSolver(well_posed=True), lx.LU(), lx.QR(), lx.SVD()):
  print(lx.linear_solve(lx.MatrixLinearOperator(spd), b, solver).value)
positive = lx.MatrixLinearOperator(spd, lx.positive_semidefinite_tag)
for solver in (lx.Cholesky(), lx.CG(rtol=1e-6, atol=1e-6)):
  print(lx.linear_solve(positive, b, solver).value)
print(lx.linear_solve(lx.MatrixLinearOperator(a), b, lx.GMRES(rtol=1e-5, atol=1e-5)).value)
tall = jax.random.normal(jax.random.key(2), (9, 4))
print(lx.linear_solve(lx.MatrixLinearOperator(tall), jnp.ones(9),
                      lx.AutoLinearSolver(well_posed=False)).value)
