// What a link is taken to be where the description of a pod leaves it open.
//
// The figures are round ones of today's machines, and serve for comparing programs on one pod
// rather than for predicting a machine, which requires its description.
#ifndef MINIPOD_SIM_MODEL_NETWORK_NETWORK_DEFAULTS_H_
#define MINIPOD_SIM_MODEL_NETWORK_NETWORK_DEFAULTS_H_

// Between neighbouring chips: one hop of a TPU's interconnect takes about a microsecond, and a link
// of TPU v5e carries 45 GB/s in each direction ("How to Scale Your Model", jax-ml.github.io/
// scaling-book, chapters "TPUs" and "Sharding").
#define MP_DEFAULT_ICI_LATENCY   1e-6
#define MP_DEFAULT_ICI_BANDWIDTH 45e9

// Between hosts: a 100 Gbit/s Ethernet port, and the time of some switches and of both network
// stacks.
#define MP_DEFAULT_DCN_LATENCY   10e-6
#define MP_DEFAULT_DCN_BANDWIDTH 12.5e9

// Between the leaves of a fat tree and the switches above, each way: what one more switch and its
// cable take. Switches of data centres are published with some hundred nanoseconds.
#define MP_DEFAULT_LEAF_LATENCY 0.5e-6

// Between a host and a device: PCI Express 3.0 with 16 lanes (8 GT/s each, 128 of 130 bits are
// data, of which packet headers take a few hundredths).
#define MP_DEFAULT_HOST_LATENCY   1e-6
#define MP_DEFAULT_HOST_BANDWIDTH 15e9

// Between the cores of a chip: a byte is read from the chip's memory and written to it, so that
// half of the memory's bandwidth counts; this much where that is not described either.
#define MP_DEFAULT_CHIP_BANDWIDTH 400e9

#endif  // MINIPOD_SIM_MODEL_NETWORK_NETWORK_DEFAULTS_H_
