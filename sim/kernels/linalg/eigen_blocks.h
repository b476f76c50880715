// The independent blocks of a Hermitian matrix: a matrix that is block diagonal, perhaps after a
// permutation, has eigenvectors each of which lies in one block.
#ifndef MINIPOD_SIM_KERNELS_LINALG_EIGEN_BLOCKS_H_
#define MINIPOD_SIM_KERNELS_LINALG_EIGEN_BLOCKS_H_

#include <stdbool.h>
#include <stdint.h>

// Writes to block[i] the least row of the block that row i belongs to. Of the matrix (n x n, of
// complex numbers if so said) only the lower triangle is read. Returns whether there are several.
bool mp_eigen_blocks(int64_t n, const void *a, bool is_complex, int64_t *block);

#endif  // MINIPOD_SIM_KERNELS_LINALG_EIGEN_BLOCKS_H_
