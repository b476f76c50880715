"""The ops of random programs: a function for each, which adds it to a program with random shapes and attributes.

They are in random_rows_*.py, by subject.
"""

import functools

OPS = {}


def row(*names):
  def add(f):
    for name in names:
      OPS[name] = functools.partial(f, name=name)
    return f
  return add
