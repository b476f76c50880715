"""The cases of PyTorch's databases (databases.py): one op, module or optimizer with one dtype.

A case runs all its samples on the CPU and on the device "tpu", forward and backward, and compares the results.  Samples
that the CPU refuses are left out.
"""

import inspect
import re
import sys

import torch

# Devices draw different numbers, and memory that was never written has any value: only shapes and dtypes are compared.
_RANDOM = re.compile(r"rand|normal|bernoulli|multinomial|uniform|dropout|rrelu|exponential|cauchy|geometric|poisson|empty"
                     r"|fractional_max_pool", re.IGNORECASE)
_LIMITS = {torch.float16: 5e-3, torch.bfloat16: 3e-2, torch.float64: 1e-6, torch.complex128: 1e-6}
_LIMIT = 2e-4  # relative and absolute
_STEPS = 4  # of an optimizer
_WIDTHS = (torch.float32, torch.bfloat16, torch.float16, torch.float64)  # that modules and optimizers are run with


class Stopped(Exception):
  """The device raised an error where the CPU did not: (error,)."""


def tensors(value):
  """All tensors in nested lists, tuples and dicts."""
  if isinstance(value, torch.Tensor):
    return [value]
  if isinstance(value, (list, tuple)):
    return [tensor for each in value for tensor in tensors(each)]
  if isinstance(value, dict):
    return [tensor for each in value.values() for tensor in tensors(each)]
  return []


def moved(value, device):
  """A copy of the value with its tensors, and the devices that it names, on the device."""
  if isinstance(value, torch.nn.Module):
    return value.to(device)
  if isinstance(value, torch.Tensor):
    return value.detach().to(device).requires_grad_(value.requires_grad)
  if isinstance(value, (list, tuple)):
    items = [moved(each, device) for each in value]
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
  if isinstance(value, dict):
    return {key: moved(each, device) for key, each in value.items()}
  if isinstance(value, torch.device):
    return torch.device(device)
  return device if isinstance(value, str) and value == "cpu" else value


def _is_float(tensor):
  return tensor.is_floating_point() or tensor.is_complex()


def _values_differ(a, b):
  if a.layout != torch.strided or a.is_quantized or a.numel() == 0:
    return None
  if not _is_float(a):
    return None if torch.equal(a, b) else f"{(a != b).sum().item()} of {a.numel()} values"
  limit = _LIMITS.get(a.dtype, _LIMIT)
  wide = torch.complex128 if a.is_complex() else torch.float64
  a, b = a.to(wide), b.to(wide)
  if torch.allclose(a, b, rtol=limit, atol=limit, equal_nan=True):
    return None
  return f"off by {(a - b).abs().nan_to_num(float('inf')).max().item():.3g}"


def _difference(expected, actual, is_random):
  """What differs between two lists of tensors; None: nothing."""
  if len(expected) != len(actual):
    return f"{len(actual)} results and gradients for {len(expected)}"
  for a, b in zip(expected, actual):
    if a.shape != b.shape or a.dtype != b.dtype:
      return f"{b.dtype}{list(b.shape)} for {a.dtype}{list(a.shape)}"
    if not is_random and (what := _values_differ(a, b)):
      return what
  return None


def _with_gradients(outputs, differentiated, leaves, device):
  """The results on the host, and the gradients of the leaves for fixed cotangents."""
  found = [each.detach().cpu() for each in tensors(outputs)]
  differentiated = [each for each in tensors(differentiated) if each.requires_grad]
  if not differentiated or not leaves:
    return found
  torch.manual_seed(2)
  cotangents = [torch.randn(each.shape, dtype=each.dtype).to(device) for each in differentiated]
  gradients = torch.autograd.grad(differentiated, leaves, cotangents, allow_unused=True)
  return found + [each.detach().cpu() for each in gradients if each is not None]


def _compare(runs, most, is_random):
  """The outcome, its details and the number of samples, of pairs of functions (on the CPU, on the device)."""
  count = 0
  for on_cpu, on_device in runs:
    if count == most:
      break
    try:
      expected = on_cpu()
    except Exception:  # whatever PyTorch raises
      continue
    count += 1
    try:
      actual = on_device()
    except Exception as error:
      raise Stopped(error) from error
    if what := _difference(expected, actual, is_random):
      return "differs", f"sample {count}: {what}", count
  return ("same" if count else "no samples"), "", count


# ---- ops ----

def _run_sample(op, sample, device):
  torch.manual_seed(1)
  leaves = [each for each in tensors([sample.input, sample.args, sample.kwargs]) if each.requires_grad]
  outputs = op(sample.input, *sample.args, **sample.kwargs)
  return _with_gradients(outputs, sample.output_process_fn_grad(outputs) if leaves else [], leaves, device)


def op_samples(op, dtype):
  """Pairs of equal samples: some ops change their arguments, and some samples have generators of random numbers."""
  differentiable = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
  def make():
    torch.manual_seed(0)
    return op.sample_inputs("cpu", dtype, requires_grad=differentiable)
  return zip(make(), make())


def _run_op(op, dtype, most):
  def on_device(sample):
    there = type(sample)(moved(sample.input, "tpu"), args=moved(sample.args, "tpu"), kwargs=moved(sample.kwargs, "tpu"),
                         output_process_fn_grad=sample.output_process_fn_grad)
    return _run_sample(op, there, "tpu")
  runs = ((lambda here=here: _run_sample(op, here, "cpu"), lambda there=there: on_device(there))
          for here, there in op_samples(op, dtype))
  is_random = bool(_RANDOM.search(op.name)) or op.name.endswith("multi_head_attention_forward")  # it drops out
  return _compare(runs, most, is_random)


# ---- modules ----

def _build(info, made, dtype, device, training):
  torch.manual_seed(3)
  takes_dtype = "dtype" in inspect.signature(info.module_cls).parameters
  kwargs = {**made.kwargs, "dtype": dtype} if takes_dtype else made.kwargs
  return info.module_cls(*made.args, **kwargs).to(dtype).to(device).train(training)


def _run_forward(info, given, dtype, device, training):
  module = _build(info, given.constructor_input, dtype, device, training)
  torch.manual_seed(1)
  args, kwargs = moved(given.forward_input.args, device), moved(given.forward_input.kwargs, device)
  outputs = module(*args, **kwargs)
  leaves = [each for each in [*module.parameters(), *tensors([args, kwargs])] if each.requires_grad]
  return _with_gradients(outputs, outputs, leaves, device)


def _run_module(info, dtype, most):
  def runs():
    for training in (True, False) if info.train_and_eval_differ else (True,):
      torch.manual_seed(0)
      for given in info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training):
        if given.forward_input is not None:
          run = lambda device, given=given, training=training: _run_forward(info, given, dtype, device, training)
          yield (lambda run=run: run("cpu")), (lambda run=run: run("tpu"))
  return _compare(runs(), most, bool(_RANDOM.search(info.name)))


# ---- optimizers ----

def _train(info, kwargs, dtype, device):
  torch.manual_seed(0)
  weights = [torch.nn.Parameter(torch.randn(shape, dtype=dtype).to(device)) for shape in ((5, 4), (4,))]
  # Muon takes matrices alone.
  trained = weights[:1] if info.name == "Muon" else weights
  data = torch.randn(6, 5, dtype=dtype).to(device)
  optimizer = info.optim_cls(trained, **moved(kwargs, device))
  def closure():
    optimizer.zero_grad()
    error = data @ weights[0] + weights[1]
    loss = (error.abs() if dtype.is_complex else error).pow(2).mean()
    loss.backward()
    return loss
  for _ in range(_STEPS):
    closure()
    optimizer.step(closure if info.step_requires_closure else None)
  return [each.detach().cpu() for each in trained]


def _run_optimizer(info, dtype, most):
  runs = ((lambda given=given: _train(info, given.kwargs, dtype, "cpu"),
           lambda given=given: _train(info, given.kwargs, dtype, "tpu"))
          for given in info.optim_inputs_func(device="cpu", dtype=dtype))
  return _compare(runs, most, False)


# ---- databases ----

def _named(dtype):
  return str(dtype).removeprefix("torch.")


def database(name):
  """All cases by name: functions of the largest number of samples (-1: all)."""
  if name == "ops":
    from torch.testing._internal.common_methods_invocations import op_db
    run, rows = _run_op, [(f"{op.name}.{op.variant_test_name}".rstrip("."), op, op.dtypes) for op in op_db]
  elif name == "modules":
    from torch.testing._internal.common_modules import module_db
    run, rows = _run_module, [(info.name, info, {*info.dtypes, *_WIDTHS}) for info in module_db]
  else:
    from torch.testing._internal.common_optimizers import optim_db
    run, rows = _run_optimizer, [(info.name, info, (*_WIDTHS, torch.complex64)) for info in optim_db]
  return {f"{name}/{title}/{_named(dtype)}": lambda most, info=info, dtype=dtype: run(info, dtype, most)
          for title, info, dtypes in rows for dtype in sorted(dtypes, key=str)}


def load_device():
  """Makes the device "tpu" known.  PyTorch does it unless TORCH_DEVICE_BACKEND_AUTOLOAD=0."""
  if "torch_tpu" not in sys.modules:
    import torch_tpu  # noqa: F401
