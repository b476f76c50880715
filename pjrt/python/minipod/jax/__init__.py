"""Features that minipod adds to JAX for the platform "minipod", one per file.

JAX supports some features only on platforms whose names it knows.  To add another name, minipod must use private names
of JAX (`jax._src`, `jaxlib`, underscores), which may change in any version.  So these rules apply:

- A step imports a private module only when it needs it, and looks up all private names that it will use later.  If a
  step fails, `guard.teach` turns off its feature.
- Code that runs later, inside JAX's own calls, is in a `guard.use`.  If it fails, JAX continues in its own way.  Both
  guards print one warning with the version of JAX.  Neither turns off the platform, and neither raises an error in the
  user's call.
- If a process has chosen other platforms, minipod changes nothing in JAX (`start`, `early`).
- Code uses the public name if one exists.

`tests/e2e/plugin/test_jax_private.py` finds every private name in the syntax trees of these files and checks it against
the installed JAX.  `tests/without_jax.py` removes the names one after the other.
"""

# This comes first: the end of this import (_minipod_start) uses these modules first.
import jax
