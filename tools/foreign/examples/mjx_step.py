import jax, jax.numpy as jnp, mujoco
from mujoco import mjx
model = mujoco.MjModel.from_xml_string('''<mujoco><worldbody><geom type="plane" size="2 2 .1"/>
  <body pos="0 0 .5"><freejoint/><geom type="sphere" size=".1" mass="1"/></body>
  <body pos="0 0 1"><joint type="hinge" axis="0 1 0"/><geom type="capsule" size=".05 .2"
  fromto="0 0 0 .4 0 0"/></body></worldbody></mujoco>''')
device = mjx.put_model(model, impl="jax")
data = mjx.make_data(device, impl="jax")  # mujoco itself accepts only cpu, gpu and tpu
step = jax.jit(mjx.step)
for _ in range(20):
  data = step(device, data)
print(data.qpos)
batch = jax.vmap(lambda v: data.replace(qvel=data.qvel.at[0].set(v)))(jnp.arange(4.0))
print(jax.jit(jax.vmap(mjx.step, in_axes=(None, 0)))(device, batch).qpos[:, 0])
