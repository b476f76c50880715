"""Compiles the handlers of handlers.cc, once per run of the tests, and registers them."""

import ctypes
import shutil
import subprocess

import jax
import pytest

HERE = __file__.rpartition("/")[0]


@pytest.fixture(scope="session")
def handlers(tmp_path_factory):
  compiler = shutil.which("c++") or shutil.which("clang++")
  if compiler is None:
    pytest.skip("no C++ compiler")
  target = tmp_path_factory.mktemp("handlers") / "libhandlers.so"
  subprocess.run([compiler, "-std=c++17", "-O0", "-shared", "-fPIC", "-pthread",
                  "-I" + jax.ffi.include_dir(), "-o", target, HERE + "/handlers.cc"], check=True)
  library = ctypes.CDLL(str(target))

  def capsule(name):
    return jax.ffi.pycapsule(getattr(library, name))

  library.CounterId.restype = library.CounterInfo.restype = ctypes.c_void_p
  library.CountersAlive.restype = ctypes.c_int64
  for platform in ("cpu", "minipod"):
    jax.ffi.register_ffi_type("test_counter", {
        "type_id": jax.ffi.pycapsule(library.CounterId()),
        "type_info": jax.ffi.pycapsule(library.CounterInfo())}, platform=platform)
  for name in ("Scale", "Attributes", "Look", "AddFirst", "Fail", "Throw", "Later", "Tasks", "TasksLater",
               "Greedy", "Where", "Cores"):
    jax.ffi.register_ffi_target("test_" + name, capsule(name + "Handler"), platform="cpu")
  jax.ffi.register_ffi_target("test_Count", {"instantiate": capsule("CountInstantiateHandler"),
                                             "execute": capsule("CountExecuteHandler")})
  jax.ffi.register_ffi_target("test_Stages", {"prepare": capsule("StagePrepareHandler"),
                                              "initialize": capsule("StageInitializeHandler"),
                                              "execute": capsule("StageExecuteHandler")})
  jax.ffi.register_ffi_target("test_OnlyHere", capsule("ScaleHandler"), platform="minipod")
  for name in ("OldAdd", "OldOpaque"):
    jax.ffi.register_ffi_target("test_" + name, capsule(name), api_version=0)
  return library
