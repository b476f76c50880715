#!/usr/bin/env python3
"""Runs projects of others unchanged on minipod, and compares with JAX's CPU backend.

    .venv/bin/python tools/foreign/run.py documents [DIR] [--only TEXT] [--devices 8] [--seconds 900] [--jobs 1]
    python3 tools/foreign/run.py frameworks [NAME…] [--folder build/frameworks] [--part values|pod] [--torch DIR]

`documents` runs the code of Markdown files, notebooks and programs below DIR, such as JAX's documentation.  By default
DIR is examples/, programs of libraries that are built on JAX.  Run it with a Python that has minipod and the
libraries.  A table counts the cells of every document, and the cells that lack a package.

`frameworks` trains with maxtext, tunix, levanter and easydel, each in its own environment.  The exit code is 1 if
something differs.
"""

import argparse
import pathlib
import sys

import documents
import frameworks


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  kinds = parser.add_subparsers(dest="kind", required=True)
  kind = kinds.add_parser("documents", help=documents.__doc__.split("\n")[0])
  kind.add_argument("folder", nargs="?", type=pathlib.Path, metavar="DIR", default=frameworks.HERE / "examples")
  kind.add_argument("--only", default="", help="documents whose path contains this")
  kind.add_argument("--devices", type=int, default=8)
  kind.add_argument("--seconds", type=int, default=900, help="per document and platform")
  kind.add_argument("--jobs", type=int, default=1, help="documents at a time")
  kind.set_defaults(run=documents.compare_all)
  kind = kinds.add_parser("frameworks", help=frameworks.__doc__.split("\n")[0])
  kind.add_argument("names", nargs="*", metavar="NAME", help="frameworks; all if there are none")
  kind.add_argument("--folder", type=pathlib.Path, default=frameworks.ROOT / "build" / "frameworks")
  kind.add_argument("--part", choices=("values", "pod"), help="only this part")
  kind.add_argument("--torch", type=pathlib.Path, help="a folder of packages with torch, for EasyDeL; by default that of "
                    ".venv-torch, which tools/test --torch makes")
  kind.set_defaults(run=frameworks.run_all)
  options = vars(parser.parse_args())
  known = [framework.name for framework in frameworks.FRAMEWORKS]
  if options.pop("kind") == "frameworks" and (unknown := set(options["names"]) - set(known)):
    parser.error(f"{', '.join(sorted(unknown))}: known are {', '.join(known)}")
  return options.pop("run")(**options)


if __name__ == "__main__":
  sys.exit(main())
