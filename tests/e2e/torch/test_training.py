"""Models train to the losses of torch's CPU: on one device, and data-parallel with torch_xla.launch."""

import pytest

pytest.importorskip("torch_xla")

import models
import torch_scenario

TOLERANCE = 1e-4

ONE_DEVICE = """
    import models, torch.nn.functional as F
    model, inputs, targets = models.make({name!r})
    model = model.to("xla")
    optimizer = models.optimizer_of({name!r}, model)
    losses = []
    for x, y in zip(inputs, targets):
      with torch_xla.step():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x.to("xla")), y.to("xla"))
        loss.backward()
        optimizer.step()
      losses.append(loss)
    print("numbers", *(loss.item() for loss in losses))
    """

# Every device takes its part of the batch, and gradients are averaged.
REPLICAS = """
    import models, torch.nn.functional as F

    def train(index):
      model, inputs, targets = models.make("transformer")
      model = model.to("xla")
      optimizer = models.optimizer_of("transformer", model)
      count, rank, losses = xr.world_size(), xr.global_ordinal(), []
      for x, y in zip(inputs, targets):
        with torch_xla.step():
          optimizer.zero_grad()
          loss = F.cross_entropy(model(x.chunk(count)[rank].to("xla")),
                                 y.chunk(count)[rank].to("xla"))
          loss.backward()
          xm.optimizer_step(optimizer)
        losses.append(xm.all_reduce(xm.REDUCE_SUM, loss.detach(), scale=1 / count))
      losses = [loss.item() for loss in losses]
      if rank == 0:
        print("numbers", *losses, flush=True)

    def main():
      torch_xla.launch(train)
    """


@pytest.fixture(scope="module")
def expected():
  return {name: models.expected(name) for name in ("cnn", "transformer")}


@pytest.mark.parametrize("form", torch_scenario.FORMS)
@pytest.mark.parametrize("name", ["cnn", "transformer"])
def test_one_device(name, form, expected):
  out = torch_scenario.run(ONE_DEVICE.format(name=name), form=form, timeout=170)
  assert torch_scenario.numbers(out) == pytest.approx(expected[name], abs=TOLERANCE)


def test_replicas_of_a_launch(expected, tmp_path):
  out = torch_scenario.run_file(REPLICAS, tmp_path, timeout=170)
  assert torch_scenario.numbers(out) == pytest.approx(expected["transformer"], abs=TOLERANCE)
