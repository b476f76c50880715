"""Running out of memory: which limit was exceeded, what the error says, and which exception it is."""

import scenario

# Each way to request memory, until none is left; prints the exception's name.
FILL = """
    E = jax.errors.JaxRuntimeError
    def fill(name, f, *args):
      kept = []
      try:
        for _ in range(60):
          kept.append(jax.block_until_ready(f(*args)))
        print(name, 'no error')
      except Exception as error:
        lines = str(error).splitlines()
        print(name, type(error).__name__, lines[0].startswith('RESOURCE_EXHAUSTED: out of memory:'))
    """


def test_it_is_always_a_jax_runtime_error():
  out = scenario.run(FILL + """
    devices = jax.devices()
    host, sharded_host = np.ones(1 << 18, np.float32), np.ones((4, 1 << 18), np.float32)
    mesh = Mesh(np.array(devices), 'x')
    parts, whole = NamedSharding(mesh, P('x')), NamedSharding(mesh, P())
    x, s = jnp.ones(1 << 18), jax.device_put(sharded_host, parts)
    add, twice = jax.jit(lambda v: v + 1), jax.pmap(lambda v: v * 2)
    psum = jax.shard_map(lambda v: v + lax.psum(v, 'x'), mesh=mesh, in_specs=P('x'),
                         out_specs=P('x'))
    fill('device_put', jax.device_put, host)
    fill('device_put_1', jax.device_put, host, devices[1])
    fill('device_put_parts', jax.device_put, sharded_host, parts)
    fill('copy_between_devices', jax.device_put, x, devices[1])
    fill('reshard', jax.device_put, s, whole)
    fill('asarray', jnp.asarray, host)
    fill('from_callback', lambda: jax.make_array_from_callback(
        sharded_host.shape, parts, lambda i: sharded_host[i]))
    fill('ones', jnp.ones, 1 << 18)
    fill('eager', jnp.add, x, x)
    fill('jit', add, x)
    fill('jit_of_host_array', add, host)
    fill('jit_sharded', add, s)
    fill('pmap', twice, s)
    fill('pmap_of_host_array', twice, sharded_host)
    fill('shard_map', jax.jit(psum), s)
    fill('temporaries', jax.jit(lambda v: jnp.sort(jnp.outer(v, v[:60]), axis=0).sum()), x)
    print(float(jnp.add(1, 1)))
    """, MINIPOD_DEVICE_MEMORY="24MiB")
  lines = out.splitlines()
  assert len(lines) == 17 and lines.pop() == "2.0"
  for line in lines:
    assert line.split()[1:] == ["JaxRuntimeError", "True"], line


def test_donated_arguments_are_kept_on_errors():
  out = scenario.run("""
    f = jax.jit(lambda v: (v + 1, jnp.stack([v, v, v])), donate_argnums=0)
    x = jnp.ones(5 << 20, jnp.float32)
    for _ in range(3):
      try:
        jax.block_until_ready(f(x))
        print('no error')
      except jax.errors.JaxRuntimeError:
        print(x.is_deleted(), float(x.sum()) == 5 << 20)
    """, MINIPOD_DEVICE_MEMORY="64MiB")
  assert out.splitlines() == ["False True"] * 3


def test_the_error_names_the_line_of_the_program():
  out = scenario.run("""
    def model(v):
      return lax.broadcast(v, (40,))
    def sorts(v):
      return jnp.sort(jnp.outer(v, v[:40]), axis=0).sum()
    for f in (model, sorts):
      try:
        jax.block_until_ready(jax.jit(f)(jnp.ones(1 << 20)))
      except jax.errors.JaxRuntimeError as error:
        print(str(error).splitlines()[-1])
    """, MINIPOD_DEVICE_MEMORY="64MiB")
  result, temporaries = out.splitlines()
  assert result.startswith("in the program: result 0 of jit_model is made by stablehlo.")
  assert "<string>:6" in result  # three lines of imports come first
  assert temporaries.startswith("in the program: the largest value of jit_sorts is tensor<1048576x40")
  assert "<string>:8" in temporaries


# A machine with 100 MiB, of which the devices share 70.
SMALL = {"MINIPOD_MACHINE": "numa:1(memory=104857600) core:2 pu:1"}


def test_a_machine_that_is_only_described_has_no_nodes_to_bind_to():
  out = scenario.run("""
    x = jax.block_until_ready(jnp.ones(1 << 20))
    print('pool_bytes' in jax.devices()[0].memory_stats())
    """, MINIPOD_MACHINE="numa:2 core:2 pu:1")
  assert out.split() == ["False"]


def test_devices_share_what_is_not_described():
  out = scenario.run("""
    devices = jax.devices()
    first = jax.device_put(np.ones((50, 1 << 18), np.float32), devices[1])
    stats = [device.memory_stats() for device in devices]
    print([s['bytes_limit'] >> 20 for s in stats])
    print([s['bytes_in_use'] >> 20 for s in stats])
    print([s['bytes_reservable_limit'] >> 20 for s in stats])
    print([s['largest_free_block_bytes'] >> 20 for s in stats])
    try:
      jax.device_put(np.ones((21, 1 << 18), np.float32), devices[2])
    except jax.errors.JaxRuntimeError as error:
      print('share a capacity of 73400320 bytes' in str(error), 'MINIPOD_DEVICE_MEMORY' in str(error),
            '52428800 bytes  device 1' in str(error), 'live buffers of device 1' in str(error))
    second = jax.device_put(np.ones((20, 1 << 18), np.float32), devices[2])
    del first
    third = jax.device_put(np.ones((50, 1 << 18), np.float32), devices[3])
    print(np.asarray(second).sum() + np.asarray(third).sum() == 70 << 18)
    """, **SMALL)
  assert out.splitlines() == ["[70, 70, 70, 70]", "[0, 50, 0, 0]", "[17, 17, 17, 17]",
                              "[20, 20, 20, 20]", "True True True True", "True"]


def test_a_described_capacity_is_each_devices_own():
  out = scenario.run("""
    arrays = [jax.device_put(np.ones((50, 1 << 18), np.float32), device)
              for device in jax.devices()]
    print([device.memory_stats()['bytes_limit'] >> 20 for device in jax.devices()])
    try:
      jax.device_put(np.ones((15, 1 << 18), np.float32), jax.devices()[2])
    except jax.errors.JaxRuntimeError as error:
      print("the capacity is the device's own" in str(error))
    """, MINIPOD_DEVICE_MEMORY="64MiB", **SMALL)
  assert out.splitlines() == ["[64, 64, 64, 64]", "True"]


def test_an_address_space_that_is_too_small():
  out = scenario.run("""
    import resource
    jax.block_until_ready(jnp.ones(1 << 18) + 1)
    used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (300 << 20), resource.RLIM_INFINITY))
    kept = []
    try:
      while True:
        kept.append(jax.block_until_ready(jnp.ones(16 << 20)))
    except jax.errors.JaxRuntimeError as error:
      text = str(error)
      print(len(kept) > 0, text.startswith('RESOURCE_EXHAUSTED: out of memory'),
            'ulimit -v' in text)
    kept.clear()
    print(float(jnp.ones(1 << 20).sum()) == 1 << 20)
    """, MINIPOD_DEVICE_MEMORY="64GiB")
  assert out.splitlines() == ["True True True", "True"]
