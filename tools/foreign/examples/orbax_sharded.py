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
