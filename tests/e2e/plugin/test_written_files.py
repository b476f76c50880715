"""Errors when minipod writes files to folders or files that the user has named."""

import re

import pytest

import scenario

USE = "print(float(jax.jit(lambda x: (x * 2).sum())(jnp.ones(4))))"


def test_a_dump_that_cannot_be_written_is_named_once(tmp_path):
  (tmp_path / "file").write_text("")
  _, _, err = scenario.finish(scenario.start(USE, MINIPOD_DUMP=tmp_path / "file"))
  lines = [line for line in err.splitlines() if line.startswith("minipod:")]
  assert len(lines) == 1 and re.match(
      r"minipod: warning: cannot write dump file .*/file/\d+\.0000\.input\.\w+: Not a directory"
      r" \(more are not reported\)$", lines[0]), lines


@pytest.mark.parametrize("link_at", ["t.json", "chakra/minipod.0.et", "dump"])
def test_files_are_not_written_through_links(tmp_path, link_at):
  """In a folder that several users share, a link with the right name would make this process overwrite another user's
  file.
  """
  precious = tmp_path / "precious"
  precious.write_text("mine")
  (tmp_path / "chakra").mkdir()
  (tmp_path / "dump").mkdir()
  if link_at != "dump":
    (tmp_path / link_at).symlink_to(precious)
    code = USE
  else:
    code = f"""
      import os
      os.symlink({str(precious)!r}, f"{tmp_path}/dump/{{os.getpid()}}.0000.input.mlirbc")
      {USE}"""
  variables = {"MINIPOD_TRACE": tmp_path / "t.json", "MINIPOD_CHAKRA": tmp_path / "chakra"}
  returncode, _, err = scenario.finish(scenario.start(
      code, MINIPOD_TIME="model", MINIPOD_DUMP=tmp_path / "dump", **variables))
  assert "it is a symbolic link, which is not followed" in err
  assert precious.read_text() == "mine"
  assert (returncode == 0) == (link_at == "dump")
