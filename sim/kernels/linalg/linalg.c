#include "sim/kernels/linalg/linalg.h"

#include <stddef.h>
#include <string.h>

#include "sim/kernels/linalg/linalg_loops.h"

#define T    double
#define F(x) x##_d
#include "sim/kernels/linalg/linalg_template.h"
#undef T
#undef F
#define T    mp_complex_t
#define F(x) x##_z
#include "sim/kernels/linalg/linalg_template.h"
