"""Linear algebra, Fourier transforms, complex numbers."""

import jax
import jax.numpy as jnp

from .program import C64, F32, A, of_class

opened, new = of_class("linalg")

opened("fft_64x1024", jnp.fft.fft, A((64, 1024), C64))
opened("rfft2_16x512", jnp.fft.rfft2, A((16, 512, 512), F32))
opened("cholesky_512", jnp.linalg.cholesky, A((512, 512), F32))
opened("triangular_solve_512", lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True), A((512, 512), F32),
       A((512, 256), F32))

# ---- transforms ----

new("fft_complex_256x4096", jnp.fft.fft, A((256, 4096), C64),
    shows="twin_complex and irregular_cost: lengths beyond 256")
new("fft2_complex_16x256", jnp.fft.fft2, A((16, 256, 256), C64), shows="two dimensions")
new("rfft_audio_64x16384", jnp.fft.rfft, A((64, 16384), F32), shows="a real side")
new("fft_filter_real_part_128x2048", lambda x, h: jnp.fft.ifft(jnp.fft.fft(x) * h).real, A((128, 2048), F32),
    A((2048,), C64), shows="irregular_cost: real before, real part after")
new("long_convolution_hyena_b2_d64_l512", lambda x, h: jnp.fft.irfft(jnp.fft.rfft(x, 1024) * jnp.fft.rfft(h, 1024),
    1024)[..., :512],
    A((2, 64, 512), F32), A((64, 512), F32), shows="pads, transforms, elementwise products of complex numbers")
new("spectrogram_mel_b16", lambda x, window, mel: jnp.log(jnp.abs(jnp.fft.rfft(x * window)) ** 2 @ mel + 1e-6),
    A((16, 1000, 400), F32), A((400,), F32), A((201, 80), F32), shows="a transform of 400, then a matmul")
new("poisson_fft_512", lambda f: (lambda k: jnp.fft.ifft2(jnp.fft.fft2(f) / jnp.where(k == 0, 1, -k)).real)(
    (jnp.fft.fftfreq(512)[:, None] ** 2 + jnp.fft.fftfreq(512) ** 2) * 39.5), A((512, 512), F32),
    shows="a solver by transforms")
new("fftshift_2048", lambda z: jnp.fft.fftshift(z) * 2, A((2048, 2048), C64), shows="complex numbers that move")


def gates(state, gate):
  for qubit in (0, 7, 13, 19):
    state = jnp.moveaxis(jnp.tensordot(gate, state.reshape(2 ** qubit, 2, -1), ((1,), (1,))), 0, 1).reshape(-1)
  return state


new("quantum_gates_20_qubits", gates, A((1 << 20,), C64), A((2, 2), C64),
    shows="complex numbers by matrices of two, rows of any length")

# ---- solvers ----

new("cholesky_batched_64x128", jnp.linalg.cholesky, A((64, 128, 128), F32), shows="decompositions of a batch")
new("lu_solve_512", jnp.linalg.solve, A((512, 512), F32), A((512, 64), F32),
    shows="a decomposition with pivots, two triangles")
new("qr_1024x128", lambda x: jnp.linalg.qr(x), A((1024, 128), F32), shows="Householder columns")
new("inverse_batched_1024x16", jnp.linalg.inv, A((1024, 16, 16), F32), shows="a batch of small inverses")
new("slogdet_batched_256x32", jnp.linalg.slogdet, A((256, 32, 32), F32), shows="products of diagonals")
new("conjugate_gradient_50_dense_4096", lambda a, b: jax.scipy.sparse.linalg.cg(lambda x: a @ x + x, b, maxiter=50,
    tol=0)[0], A((4096, 4096), F32), A((4096,), F32),
    shows="vectors by a matrix in a while loop, dots between")
new("conjugate_gradient_stencil_1024", lambda b: jax.scipy.sparse.linalg.cg(lambda x: 4.1 * x - sum(jnp.roll(x, s, d)
    for d in (0, 1) for s in (1, -1)), b,
                                                                           maxiter=30, tol=0)[0],
                                                                           A((1024, 1024), F32),
                                                                           shows="rolls and dots in a loop")
new("gaussian_process_posterior_1024", lambda x, y, z: (lambda k: k(z,
    x) @ jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(k(x, x) + jnp.eye(1024)), True), y))(
    lambda a, b: jnp.exp(-((a[:, None] - b) ** 2).sum(-1))), A((1024, 8), F32), A((1024,), F32), A((2048, 8), F32),
    shows="distances, a decomposition, a matmul")
new("expm_batched_64x32", jax.vmap(jax.scipy.linalg.expm), A((64, 32, 32), F32),
    shows="squarings in a loop of unknown length")
new("kron_matvec_64x64", lambda a, b, x: jnp.einsum("ij,kl,njl->nik", a, b, x), A((64, 64), F32), A((64, 64), F32),
    A((4096, 64, 64), F32), shows="three factors, small matrices")
