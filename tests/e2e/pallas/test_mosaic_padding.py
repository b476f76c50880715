"""DMAs of Mosaic kernels that reach into the tile padding of arrays in HBM, which a TPU's compiler allows."""

import pathlib

import mosaic_padding
import pytest
import scenario

POD = {"devices": None, "MINIPOD_TOPOLOGY": "v6e:1x1", "PYTHONPATH": str(pathlib.Path(__file__).parent)}


@pytest.fixture(scope="module", params=["", "check"])
def said(request):
  out = scenario.run("import mosaic_padding; mosaic_padding.main()", MINIPOD_KERNELS=request.param, **POD)
  return dict(line.split(" | ", 1) for line in out.splitlines() if " | " in line)


@pytest.mark.parametrize("name", mosaic_padding.INSIDE)
def test_the_padding_is_not_the_array(said, name):
  assert said[name] == "right"


@pytest.mark.parametrize("name", mosaic_padding.OUTSIDE)
def test_behind_the_padding_nothing_is(said, name):
  assert said[name].startswith("OUT_OF_RANGE") and "are outside of its" in said[name], said[name]


def test_the_padding_holds_a_number(said):
  assert said["padding"] == "[2.]"
