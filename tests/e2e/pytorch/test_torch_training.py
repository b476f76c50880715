"""Models train to the same losses as on torch's CPU: on one device, and data-parallel with torch_xla.launch."""

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
    import replica

    def train(index):
      losses, _ = replica.train({name!r})
      if xr.global_ordinal() == 0:
        print("numbers", *losses, flush=True)

    def main():
      torch_xla.launch(train)
    """


@pytest.mark.parametrize("form", torch_scenario.FORMS)
@pytest.mark.parametrize("name", ["cnn", "transformer"])
def test_one_device(name, form):
  out = torch_scenario.run(ONE_DEVICE.format(name=name), form=form, timeout=170)
  losses, _ = models.expected(name)
  assert torch_scenario.numbers(out) == pytest.approx(losses, abs=TOLERANCE)


@pytest.mark.parametrize("name", ["cnn", "transformer"])
def test_replicas_of_a_launch(name, tmp_path):
  out = torch_scenario.run_file(REPLICAS.format(name=name), tmp_path, timeout=170)
  losses, _ = models.expected(name, count=4)
  assert torch_scenario.numbers(out) == pytest.approx(losses, abs=TOLERANCE)
