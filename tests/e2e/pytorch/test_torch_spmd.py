"""SPMD: the transformer, sharded over 4 and 8 devices by annotations, trains to the same losses."""

import pytest

pytest.importorskip("torch_xla")

import models
import torch_scenario

TRAIN = """
    import models, torch.nn.functional as F
    import torch_xla.distributed.spmd as xs
    xr.use_spmd()
    count = xr.global_runtime_device_count()
    model, inputs, targets = models.make("transformer")
    {prepare}
    optimizer = models.optimizer_of("transformer", model)
    losses = []
    for x, y in zip(inputs, targets):
      with torch_xla.step():
        x, y = x.to("xla"), y.to("xla")
        {place}
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
      losses.append(loss)
    specs = [torch_xla._XLAC._get_xla_sharding_spec(p) for p in model.parameters()]
    print("cut", sum("devices" in spec for spec in specs))
    print("numbers", *(loss.item() for loss in losses))
    """
# Shardings of the model, and of each batch.
WAYS = {
    "data": ("""
    mesh = xs.Mesh(np.arange(count), (count,), ("data",))
    model = model.to("xla")
    """, 'xs.mark_sharding(x, mesh, ("data", None)); xs.mark_sharding(y, mesh, ("data",))'),
    "tensor": ("""
    mesh = xs.Mesh(np.arange(count), (2, count // 2), ("data", "model"))
    model = model.to("xla")
    for layer in model.layers:
      for name in ("qkv", "up"):
        xs.mark_sharding(layer[name].weight, mesh, ("model", None))
      for name in ("out", "down"):
        xs.mark_sharding(layer[name].weight, mesh, (None, "model"))
    """, 'xs.mark_sharding(x, mesh, ("data", None))'),
    "fsdp": ("""
    from torch_xla.experimental.spmd_fully_sharded_data_parallel import (
        SpmdFullyShardedDataParallel)
    mesh = xs.Mesh(np.arange(count), (count, 1), ("fsdp", "model"))
    xs.set_global_mesh(mesh)
    model = SpmdFullyShardedDataParallel(
        model.to("xla"),
        shard_output=lambda y, mesh: xs.mark_sharding(y, mesh, ("fsdp", None)))
    """, 'xs.mark_sharding(x, mesh, ("fsdp", None))'),
}
CUT = {"data": 0, "tensor": 8, "fsdp": 20}  # at least this many parameters


@pytest.fixture(scope="module")
def expected():
  losses, _ = models.expected("transformer")
  return losses


@pytest.mark.parametrize("form", torch_scenario.FORMS)
@pytest.mark.parametrize("devices", [4, 8])
@pytest.mark.parametrize("way", WAYS)
def test_training(way, devices, form, expected):
  prepare, place = WAYS[way]
  out = torch_scenario.run(TRAIN.format(prepare=prepare, place=place), devices, form, timeout=170)
  assert torch_scenario.numbers(out) == pytest.approx(expected, abs=1e-4)
  assert int(out.split("cut ")[1].split()[0]) >= CUT[way]


HYBRID = """
    import torch_xla.distributed.spmd as xs
    xr.use_spmd()
    mesh = xs.HybridMesh(ici_mesh_shape=(2, 4), dcn_mesh_shape=(2, 1), axis_names=("a", "b"))
    order = mesh.get_logical_mesh()
    if not (order // 8 == [[0] * 4] * 2 + [[1] * 4] * 2).all(): raise SystemExit(str(order))
    x = torch.arange(64.).reshape(8, 8)
    cut = xs.mark_sharding(x.to("xla"), mesh, ("a", "b"))
    if not torch.equal((cut.global_tensor * 2).cpu(), x * 2): raise SystemExit("wrong")
    """
TWO_SLICES = {"MINIPOD_TOPOLOGY": "v4-megacore:2x2x2 slices:2", "devices": None}


def test_hybrid_mesh_asserts_a_tpu():
  """A pod of several slices has everything that HybridMesh requires, except the name, which it asserts."""
  assert "AssertionError" in torch_scenario.run(HYBRID, fails=True, **TWO_SLICES)
  torch_scenario.run(HYBRID, PYTHONOPTIMIZE="1", **TWO_SLICES)


def test_shards_are_where_the_mesh_says():
  torch_scenario.run("""
      import torch_xla.distributed.spmd as xs
      xr.use_spmd()
      mesh = xs.Mesh(np.arange(4)[::-1], (2, 2), ("a", "b"))
      x = torch.arange(32.).reshape(4, 8)
      cut = xs.mark_sharding(x.to("xla"), mesh, ("a", "b"))
      y = cut.global_tensor @ cut.global_tensor.t()
      torch_xla.sync()
      assert torch.equal(y.cpu(), x @ x.t())
      parts = [shard.data for shard in cut.local_shards]
      assert [tuple(part.shape) for part in parts] == [(2, 4)] * 4
      wanted = [x[2:, 4:], x[2:, :4], x[:2, 4:], x[:2, :4]]
      assert all(torch.equal(part.cpu(), want) for part, want in zip(parts, wanted))
      """)


@pytest.mark.parametrize("form", torch_scenario.FORMS)
def test_manual_regions(form):
  torch_scenario.run("""
      import torch_xla.distributed.spmd as xs
      xr.use_spmd()
      count = xr.global_runtime_device_count()
      mesh = xs.Mesh(np.arange(count), (1, count))
      xs.set_global_mesh(mesh)
      x = torch.arange(64.).reshape(8, 8)
      part = xs.enable_manual_sharding(x.to("xla"), (0, 1))
      assert tuple(part.shape) == (8, 2)
      part = part.global_tensor * 2 + part.global_tensor.sum(1, keepdim=True)
      whole = xs.disable_manual_sharding(part, (0, 1), x.shape)
      sums = x.reshape(8, count, 2).sum(2).repeat_interleave(2, dim=1)
      assert torch.equal(whole.global_tensor.cpu(), x * 2 + sums)
      """, form=form)
