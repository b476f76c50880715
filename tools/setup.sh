# shellcheck shell=bash
# Sourced by tools/demo and tools/test: brings a Debian 12 machine and this clone into the state
# both need.  Every step is skipped when its result is already there, so that a second run takes
# seconds and needs no network.
#
# Leaves behind: build/pjrt_c_api_minipod_plugin.so, and .venv/ with JAX and the package minipod;
# after use_jax the folder of that version in place of .venv/, after use_torch .venv-torch/ or
# .venv-torch-tpu/.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
library=$root/build/pjrt_c_api_minipod_plugin.so
venv=$root/.venv
python=$venv/bin/python
jax_version='' base_python='' torch=''
started=$SECONDS

# use_jax VERSION [PYTHON]: that version of JAX, on that Python, in an environment of its own.
use_jax() {
  jax_version=$1 base_python=${2:-}
  venv=$root/.venv-$jax_version
  python=$venv/bin/python
}

# use_torch NAME [PYTHON]: PyTorch with torch_xla ("torch") or with TorchTPU ("torch-tpu") in an
# environment of its own.
use_torch() {
  torch=$1 base_python=${2:-}
  venv=$root/.venv-$torch
  python=$venv/bin/python
}

packages=(build-essential cmake ninja-build pkg-config libhwloc-dev libyaml-dev
          libcmocka-dev libopenmpi-dev openmpi-bin libucx-dev libucx0 libnuma-dev libnuma1 clang libclang-rt-14-dev lld llvm-14
          clang-format python3-venv git)
# For the module that makes machine code; without them everything works, and loops are slower.
native_packages=(llvm-19-dev libzstd-dev zlib1g-dev)
# For single tests; without them these are skipped. tools/test adds to it.
optional_packages=()

# One line per step, with the seconds since the start.
say() { printf '==> [%4d s] %s\n' $((SECONDS - started)) "$*"; }

die() {
  printf '\nminipod cannot go on: %s\n' "$1" >&2
  shift
  for line in "$@"; do printf '  %s\n' "$line" >&2; done
  exit 1
}

# Runs a command with its output in a log, which is shown only when it fails.
quietly() {
  local log=$1
  shift
  mkdir -p "$(dirname "$log")"
  if ! "$@" >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    return 1
  fi
}

# missing_packages PACKAGE…: those that are not installed.
missing_packages() {
  local package
  for package in "$@"; do
    # Either architecture-qualified or not, "ok installed" is the only good state.
    dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q 'ok installed' || echo "$package"
  done
}

# apt_install LOG PACKAGE…: for install_packages, which chooses `as_root`.
apt_install() {
  local log=$root/build/log/$1.log
  shift
  [ $# -eq 0 ] || quietly "$log" "${as_root[@]}" apt-get install -y --no-install-recommends -o Dpkg::Use-Pty=0 "$@"
}

install_packages() {
  local missing missing_native missing_optional all_missing as_root=()
  if ! command -v dpkg-query >/dev/null; then
    check_tools
    return
  fi
  mapfile -t missing < <(missing_packages "${packages[@]}")
  mapfile -t missing_native < <(missing_packages "${native_packages[@]}")
  mapfile -t missing_optional < <(missing_packages "${optional_packages[@]}")
  all_missing="${missing[*]} ${missing_native[*]} ${missing_optional[*]}"
  if [ -z "${all_missing// /}" ]; then
    say "Debian packages: all there"
    return
  fi
  if ! grep -q '^VERSION_ID="12"' /etc/os-release || ! grep -q '^ID=debian' /etc/os-release; then
    say "not Debian 12 ($(. /etc/os-release && echo "$PRETTY_NAME")): package names may differ"
  fi
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null ||
      die "these Debian packages are missing, and there is neither root nor sudo to install them:" \
          "$all_missing"
    as_root=(sudo)
  fi
  say "Debian packages: installing $all_missing"
  export DEBIAN_FRONTEND=noninteractive
  quietly "$root/build/log/apt-update.log" "${as_root[@]}" apt-get update -q ||
    die "apt-get update failed (above): is there a network, and is a package mirror configured?" \
        "missing packages: $all_missing"
  apt_install apt-install "${missing[@]}" ||
    die "apt-get install failed (above)" "missing packages: ${missing[*]}"
  apt_install apt-install-native "${missing_native[@]}" ||
    say "Debian packages: no ${missing_native[*]} here, so no machine code"
  apt_install apt-install-optional "${missing_optional[@]}" ||
    say "Debian packages: no ${missing_optional[*]} here, so tests that need it are skipped"
}

# Where there is no dpkg: the same needs by the names of the commands.
check_tools() {
  local tool missing=()
  for tool in gcc clang clang-format cmake ninja pkg-config git python3.11; do
    command -v "$tool" >/dev/null || missing+=("$tool")
  done
  for tool in hwloc yaml-0.1 cmocka; do
    pkg-config --exists "$tool" 2>/dev/null || missing+=("the library $tool (with headers)")
  done
  [ ${#missing[@]} -eq 0 ] ||
    die "this is no Debian system, so nothing was installed, and these are missing:" "${missing[@]}"
}

# A Python from 3.12 on: TorchTPU needs one, which Debian 12 lacks.
find_newer_python() {
  local candidate
  for candidate in python3.12 python3.13 python3.14 python3 \
      "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[2-4].*/bin/python; do
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 12))' \
        2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  die "torch_tpu needs Python 3.12 or later with the modules venv and ensurepip, and there is none" \
      "looked for: python3.12, python3.13, python3.14, python3, and those of pyenv" \
      "'pyenv install 3.12' makes one; or name one: tools/test --torch-tpu --python PATH"
}

# A Python that can make environments: the one asked for; else a 3.11, Debian's own or the first on
# PATH.
find_python() {
  local candidate
  if [ -n "$base_python" ]; then
    "$base_python" -c 'import venv, ensurepip' ||
      die "$base_python is no Python with the modules venv and ensurepip (above)"
    if [ "$torch" = torch-tpu ]; then
      "$base_python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' ||
        die "torch_tpu needs Python 3.12 or later; $base_python is $("$base_python" --version)"
    fi
    command -v "$base_python"
    return
  fi
  if [ "$torch" = torch-tpu ]; then
    find_newer_python
    return
  fi
  for candidate in /usr/bin/python3.11 python3.11 python3; do
    if command -v "$candidate" >/dev/null &&
       "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info[:2] != (3, 11))' \
           2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  die "no Python 3.11 with the modules venv and ensurepip" \
      "Debian 12 has it as python3 and python3-venv"
}

# What the environment holds; another JAX than the pinned one brings the jaxlib that it needs.
requirements() {
  if [ -n "$torch" ]; then
    cat "$root/tests/requirements-$torch.txt"
  elif [ -z "$jax_version" ]; then
    cat "$root/tests/requirements.txt" "$root/tools/site/requirements.txt"
  else
    sed "s/^jax==.*/jax==$jax_version/; /^jaxlib==/d" "$root/tests/requirements.txt"
  fi
}

# torch's wheel is linked to CUDA's libraries, which are wheels of several GB, and calls them only
# where there is a GPU.  One library with all the functions that it names stands in for them, under
# the name of each; every function traps.
stub_cuda_libraries() {
  local site folder name names
  site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
  if [ "$torch" = torch ]; then
    folder=$site/nvidia/cublas/lib
    names=(cublas.so.12 cublasLt.so.12 cudnn.so.9 cufft.so.11 curand.so.10 cusparse.so.12)
  else
    folder=$site/nvidia/cu13/lib
    names=(cublas.so.13 cublasLt.so.13 cudnn.so.9 cufft.so.12 curand.so.10 cusparse.so.12
           cusolver.so.12 nvrtc.so.13)
  fi
  mkdir -p "$folder"
  for name in cuda cuda_linalg nvshmem python; do
    nm -D --undefined-only "$site/torch/lib/libtorch_$name.so"
  done |
    sed -nE 's/.* ((cublas|cudnn|cufft|curand|cusparse|cusolver|p?nccl|nvshmem|nvrtc|nvJitLink)[^@]*).*/void \1(void) { __builtin_trap(); }/p' |
    sort -u | cc -w -shared -x c - -o "$folder/libminipod_stubs.so"
  for name in "${names[@]}" cusparseLt.so.0 nccl.so.2 nvshmem_host.so.3; do
    cc -shared -x c /dev/null -o "$folder/lib$name" -Wl,-soname,"lib$name" -Wl,--no-as-needed \
        -L"$folder" -lminipod_stubs -Wl,-rpath,'$ORIGIN'
  done
}

# For the line about an environment.
framework() {
  case $torch in
    torch) echo PyTorch/XLA ;;
    torch-tpu) echo TorchTPU ;;
    *) echo JAX ;;
  esac
}

make_environment() {
  local base stamp wanted name=${venv##*/}
  stamp=$venv/requirements.sha256
  wanted=$({ requirements; echo "$base_python"; } | sha256sum)
  if [ -x "$python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
    say "Python environment: $name is up to date"
    return
  fi
  base=$(find_python) || exit 1
  say "Python environment: $name with $("$base" --version)," \
      "$(framework) and the test tools"
  # --clear: an environment that was left half made, or that moved with its folder, is of no use.
  if [ -n "$base_python" ] || ! "$python" -c '' 2>/dev/null; then "$base" -m venv --clear "$venv"; fi
  requirements >"$venv/requirements.txt"
  # The list for torch is complete, and leaves out the CUDA wheels on purpose.
  quietly "$root/build/log/pip.log" "$python" -m pip install --disable-pip-version-check \
      ${torch:+--no-deps} -r "$venv/requirements.txt" ||
    die "pip could not install the requirements (above, $venv/requirements.txt): is there a network?"
  if [ -n "$torch" ]; then
    quietly "$root/build/log/stubs.log" stub_cuda_libraries ||
      die "the libraries that stand in for CUDA's could not be made (above)"
  fi
  echo "$wanted" >"$stamp"
}

# [target=NAME] build_tree PRESET [OPTION…]: configures once, then builds all (or what NAME needs);
# the tree is build/ or build-PRESET/.
build_tree() {
  local preset=$1 tree=$root/build-$1
  shift
  [ "$preset" = release ] && tree=$root/build
  # The build of a wheel leaves the tests out of build/.
  if [ ! -f "$tree/build.ninja" ] || ! grep -q '^MINIPOD_TESTS:BOOL=ON' "$tree/CMakeCache.txt"; then
    quietly "$tree/log/configure.log" \
        cmake -S "$root" --preset "$preset" -DMINIPOD_TESTS=ON "$@" ||
      die "cmake could not configure the preset $preset (above)"
  fi
  quietly "$tree/log/build.log" cmake --build "$tree" ${target:+--target "$target"} ||
    die "the build in $tree failed (above)"
}

build_library() {
  say "building the library into build/"
  (cd "$root" && build_tree release -DMINIPOD_WERROR=ON)
  [ -f "$library" ] || die "the build made no ${library#"$root"/}"
}

# The package with the library inside; installed again only when one of its files has changed.
install_package() {
  local stamp=$venv/package.sha256 wanted
  wanted=$(cd "$root" && { find build -maxdepth 1 -name 'minipod_*.so' -exec cat {} + &&
      cat build/"${library##*/}" pyproject.toml pjrt/python/*.py configs/* 2>/dev/null
      find pjrt/python/minipod -name '*.py' -exec cat {} +; } | sha256sum)
  if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
    say "package minipod: up to date in ${venv##*/}"
    return
  fi
  say "package minipod: installing it into ${venv##*/}"
  # No index: the build backend is in the tree and the package needs nothing else.
  quietly "$root/build/log/wheel.log" "$python" -m pip install --disable-pip-version-check \
      --no-index --no-deps --force-reinstall "$root" ||
    die "pip could not build or install the package (above)"
  echo "$wanted" >"$stamp"
}

set_up() {
  [ "$(uname -s)" = Linux ] || die "minipod runs on Linux; this is $(uname -s)"
  install_packages
  # The environment comes from the network, and the compiler need not wait for it. What runs in the
  # background does not hear Ctrl-C by itself.
  local parts=() part failed=0
  trap 'trap - INT; kill 0' INT
  make_environment & parts+=($!)
  build_library & parts+=($!)
  for part in "${parts[@]}"; do wait "$part" || failed=1; done
  trap - INT
  [ $failed -eq 0 ] || exit 1
  install_package
}
