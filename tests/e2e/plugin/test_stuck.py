"""Collectives that can never complete, and other failures inside programs."""

import scenario

SKIPPING = """
    import time
    mesh = Mesh(np.array(jax.devices()), ('i',))

    def skip(x):
      return lax.cond(lax.axis_index('i') == 2, lambda v: v,
                      lambda v: lax.psum(v, 'i'), x)  # the psum that is skipped

    f = jax.jit(jax.shard_map(skip, mesh=mesh, in_specs=P('i'), out_specs=P('i'), check_vma=False))
    compiled = f.lower(np.arange(4.)).compile()
    start = time.perf_counter()
    try:
      jax.block_until_ready(compiled(np.arange(4.)))
      print('no error')
    except Exception as error:
      print(time.perf_counter() - start < 1)
      print(str(error))
    print('AFTERWARDS')
    print(jax.jit(jax.shard_map(lambda x: lax.psum(x, 'i'), mesh=mesh, in_specs=P('i'),
                                out_specs=P()))(np.arange(4.)))
    print(jax.pmap(lambda x: x + lax.psum(x, 'i'), axis_name='i')(np.arange(4)))
    """


def test_skipped_psum_is_reported_at_once():
  out = scenario.run(SKIPPING)
  error, afterwards = out.split("AFTERWARDS\n")
  line = next(i for i, text in enumerate((scenario.PRELUDE + SKIPPING).splitlines(), 1)
              if "the psum that is skipped" in text)
  assert error.startswith("True\n"), error
  assert "all_reduce" in error and "2" in error and f"<string>:{line}" in error, error
  assert afterwards.splitlines() == ["[6.]", "[6 7 8 9]"]


def test_results_of_a_failed_run_tell_the_first_cause():
  out = scenario.run(SKIPPING.split("    start =")[0] + """
    bad = None
    try:
      bad = compiled(np.arange(4.))
    except Exception as error:
      print(type(error).__name__)
    for use in (lambda: np.asarray(bad), lambda: jax.block_until_ready(bad + 1)):
      try:
        use()
        print('no error')
      except Exception as error:
        print('all_reduce' in str(error) or bad is None)
    """)
  assert "no error" not in out and "False" not in out


def test_permute_in_an_endless_disagreement_of_loops():
  out = scenario.run("""
    mesh = Mesh(np.array(jax.devices()), ('i',))
    def uneven(x):
      steps = jnp.where(lax.axis_index('i') == 0, 3, 2)
      return lax.fori_loop(0, steps, lambda i, v: lax.psum(v, 'i'), x)
    f = jax.jit(jax.shard_map(uneven, mesh=mesh, in_specs=P('i'), out_specs=P('i'),
                              check_vma=False))
    try:
      jax.block_until_ready(f(np.arange(4.)))
      print('no error')
    except Exception as error:
      print('error', 'all_reduce' in str(error))
    print(float(jnp.add(1., 1.)))
    """)
  assert out.splitlines() == ["error True", "2.0"]
