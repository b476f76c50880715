#!/usr/bin/env python3
"""Runs examples of libraries above JAX on its CPU backend and on minipod, and compares.

    python tools/neighbours.py [NAME…]

needs a Python with minipod and the libraries: flax optax equinox diffrax lineax numpyro keras
orbax-checkpoint mujoco-mjx; missing ones are reported and left out.  Each example runs with the
libraries' defaults in a process of its own per platform, with eight devices, and prints numbers;
they must agree up to the rounding of a training step.  The exit code is 1 if one does not.
"""

import importlib.util
import subprocess
import sys
import tempfile
import textwrap

import tutorials

EXAMPLES = {
    "flax nnx: training": ("flax", """
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
        """),
    "flax linen: attention, tabulate": ("flax", """
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
        """),
    "equinox: training, error_if": ("equinox", """
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
        """),
    "diffrax: ODE, SDE, adjoint": ("diffrax", """
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
        """),
    "lineax: solvers": ("lineax", """
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
        """),
    "numpyro: NUTS and SVI": ("numpyro", """
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
        """),
    "keras: fit": ("keras", """
        import os
        os.environ["KERAS_BACKEND"] = "jax"
        import keras, numpy as np
        keras.utils.set_random_seed(1)
        model = keras.Sequential([keras.layers.Input((8, 8, 1)), keras.layers.Conv2D(4, 3),
                                  keras.layers.BatchNormalization(), keras.layers.Flatten(),
                                  keras.layers.Dense(3, activation="softmax")])
        model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
        rng = np.random.default_rng(0)
        x, y = rng.normal(size=(64, 8, 8, 1)).astype("float32"), rng.integers(0, 3, 64)
        history = model.fit(x, y, epochs=2, batch_size=16, verbose=0, shuffle=False)
        print([round(v, 3) for v in history.history["loss"]])
        print(round(float(model.evaluate(x, y, verbose=0)[0]), 3))
        """),
    "orbax: sharded arrays": ("orbax", """
        import jax, numpy as np, orbax.checkpoint as ocp, tempfile
        from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
        mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
        tree = {"w": jax.device_put(np.arange(64.0).reshape(8, 8), NamedSharding(mesh, P("x", "y"))),
                "b": jax.device_put(np.arange(8), NamedSharding(mesh, P(None))), "n": 3}
        with tempfile.TemporaryDirectory() as folder:
          with ocp.StandardCheckpointer() as saver:
            saver.save(folder + "/c", tree)
            saver.wait_until_finished()
            shapes = jax.tree.map(ocp.utils.to_shape_dtype_struct, tree)
            other = NamedSharding(mesh, P("y", None))
            shapes["w"] = jax.ShapeDtypeStruct((8, 8), shapes["w"].dtype, sharding=other)
            back = saver.restore(folder + "/c", shapes)
        print(float(back["w"].sum()), back["w"].sharding == other, int(back["b"][5]), back["n"])
        """),
    "mujoco mjx: step": ("mujoco", """
        import jax, jax.numpy as jnp, mujoco
        from mujoco import mjx
        model = mujoco.MjModel.from_xml_string('''<mujoco><worldbody><geom type="plane" size="2 2 .1"/>
          <body pos="0 0 .5"><freejoint/><geom type="sphere" size=".1" mass="1"/></body>
          <body pos="0 0 1"><joint type="hinge" axis="0 1 0"/><geom type="capsule" size=".05 .2"
          fromto="0 0 0 .4 0 0"/></body></worldbody></mujoco>''')
        device = mjx.put_model(model, impl="jax")
        data = mjx.make_data(device, impl="jax")  # by itself it knows cpu, gpu and tpu only
        step = jax.jit(mjx.step)
        for _ in range(20):
          data = step(device, data)
        print(data.qpos)
        batch = jax.vmap(lambda v: data.replace(qvel=data.qvel.at[0].set(v)))(jnp.arange(4.0))
        print(jax.jit(jax.vmap(mjx.step, in_axes=(None, 0)))(device, batch).qpos[:, 0])
        """),
    "optax: optimizers": ("optax", """
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
        """),
}


def run(platform, source, folder):
  try:
    result = subprocess.run([sys.executable, "-c", textwrap.dedent(source)],
                            env=tutorials.environment_of(platform, 8), cwd=folder,
                            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900)
  except subprocess.TimeoutExpired:
    return 1, "", "more than 900 s"
  return result.returncode, result.stdout, result.stderr


def main() -> int:
  failures = 0
  for name, (module, source) in EXAMPLES.items():
    if sys.argv[1:] and not any(word in name for word in sys.argv[1:]):
      continue
    if importlib.util.find_spec(module) is None:
      print(f"{name}: {module} is not installed")
      continue
    with tempfile.TemporaryDirectory() as folder:
      cpu, pod = (run(platform, source, folder) for platform in ("cpu", "minipod"))
    if cpu[0] != 0:
      print(f"{name}: does not run on the CPU backend either: {cpu[2][-300:]}")
    elif pod[0] != 0 or not tutorials.same_text(cpu[1], pod[1]):
      failures += 1
      print(f"{name}: DIFFERS\nCPU:\n{cpu[1]}\nminipod:\n{pod[1]}\n{pod[2][-1500:]}")
    else:
      print(f"{name}: agrees", flush=True)
  return 1 if failures else 0


if __name__ == "__main__":
  sys.exit(main())
