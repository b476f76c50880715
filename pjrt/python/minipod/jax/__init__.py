"""What minipod adds to JAX for the platform "minipod", one subject to a file.

JAX knows some features only for platform names it has heard of, and promises nothing about the
names that it takes to teach it another (`jax._src`, `jaxlib`, underscores).  So:

- A private module is imported inside the step that needs it, and a step looks up all the private
  names that it has a use for later.  `guard.teach` has a step that fails cost its feature.
- What runs later, inside JAX's own calls, is in a `guard.use`: where it cannot work, JAX's own way
  is taken.  Either prints one warning, with the version of JAX; neither costs the platform or reaches the
  user's call as an error.
- Nothing of JAX is changed in a process that has chosen other platforms (`start`, `early`).
- The public name is taken where there is one.

`tests/e2e/plugin/test_jax_private.py` finds every private name in the syntax trees of these files
and checks it against the installed JAX; `tests/without_jax.py` takes one after the other away.
"""

# First of all: what comes at the end of this import (_minipod_start) begins with these modules.
import jax
