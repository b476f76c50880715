"""Data-parallel training by one replica of a job, with any launcher."""

import models
import torch.nn.functional as F
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.runtime as xr


def train(name):
  """(losses of all replicas together, step by step; the running statistics of this one's batch norm)."""
  model, inputs, targets = models.make(name)
  model = model.to("xla")
  optimizer = models.optimizer_of(name, model)
  count, rank, means = xr.world_size(), xr.global_ordinal(), []
  for x, y in zip(inputs, targets):
    with torch_xla.step():
      optimizer.zero_grad()
      loss = F.cross_entropy(model(x.chunk(count)[rank].to("xla")),
                             y.chunk(count)[rank].to("xla"))
      loss.backward()
      xm.optimizer_step(optimizer)
    means.append(xm.all_reduce(xm.REDUCE_SUM, loss.detach(), scale=1 / count))
  return [mean.item() for mean in means], models.statistics(model)
