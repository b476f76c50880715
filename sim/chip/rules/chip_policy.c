#include "sim/chip/rules/chip_policy.h"

#define POLICY_OF_PLAIN(name, plain, tpu, gpu, why) .name = plain,
#define POLICY_OF_TPU(name, plain, tpu, gpu, why)   .name = tpu,
#define POLICY_OF_GPU(name, plain, tpu, gpu, why)   .name = gpu,

const mp_chip_policy_t mp_chip_policies[MP_CHIP_COMPILER_COUNT] = {
    [MP_CHIP_COMPILER_PLAIN] = {MP_CHIP_POLICY(POLICY_OF_PLAIN).allocation = 256},
    [MP_CHIP_COMPILER_TPU] = {MP_CHIP_POLICY(POLICY_OF_TPU).allocation = 512},
    [MP_CHIP_COMPILER_GPU] = {MP_CHIP_POLICY(POLICY_OF_GPU).allocation = 256},
};
