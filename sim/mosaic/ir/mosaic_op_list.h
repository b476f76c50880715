// The ops of Mosaic modules: those that JAX's Pallas and TorchTPU put into `tpu_custom_call`.
//
// A row: enum name; spelling without "stable_mosaic."; numbers of operands, results and regions
// (-1: any); class. Readers refuse every other name. Semantics: the MLIR dialects arith, math,
// vector, memref, scf and func, and the TPU dialect of jaxlib (jaxlib/mosaic/dialect/tpu).
//
// The class says what an op needs to be run or priced:
//   SCALAR_OR_VECTOR  elementwise: operands and results are all scalars, or vectors of one shape
//   VECTOR            makes vectors of vectors or scalars, without memory
//   READ, WRITE       reads or writes memory at indices
//   VIEW              makes a memref of another one; no element is read
//   FLOW              control flow and what ends regions
//   ASYNC             DMAs, semaphores, barriers
//   SCALAR            a scalar of the machine: ids, bounds
//   NOTE              has no effect on values: traces, logs
#ifndef MINIPOD_SIM_MOSAIC_IR_MOSAIC_OP_LIST_H_
#define MINIPOD_SIM_MOSAIC_IR_MOSAIC_OP_LIST_H_

#define MP_MOSAIC_BINARY(X)                                    \
  X(ADDF, "arith.addf", 2, 1, 0, SCALAR_OR_VECTOR)             \
  X(SUBF, "arith.subf", 2, 1, 0, SCALAR_OR_VECTOR)             \
  X(MULF, "arith.mulf", 2, 1, 0, SCALAR_OR_VECTOR)             \
  X(DIVF, "arith.divf", 2, 1, 0, SCALAR_OR_VECTOR)             \
  X(REMF, "arith.remf", 2, 1, 0, SCALAR_OR_VECTOR)             \
  X(MAXIMUMF, "arith.maximumf", 2, 1, 0, SCALAR_OR_VECTOR)     \
  X(MINIMUMF, "arith.minimumf", 2, 1, 0, SCALAR_OR_VECTOR)     \
  X(MAXNUMF, "arith.maxnumf", 2, 1, 0, SCALAR_OR_VECTOR)       \
  X(MINNUMF, "arith.minnumf", 2, 1, 0, SCALAR_OR_VECTOR)       \
  X(ADDI, "arith.addi", 2, 1, 0, SCALAR_OR_VECTOR)             \
  X(SUBI, "arith.subi", 2, 1, 0, SCALAR_OR_VECTOR)             \
  X(MULI, "arith.muli", 2, 1, 0, SCALAR_OR_VECTOR)             \
  X(DIVSI, "arith.divsi", 2, 1, 0, SCALAR_OR_VECTOR)           \
  X(DIVUI, "arith.divui", 2, 1, 0, SCALAR_OR_VECTOR)           \
  X(CEILDIVSI, "arith.ceildivsi", 2, 1, 0, SCALAR_OR_VECTOR)   \
  X(CEILDIVUI, "arith.ceildivui", 2, 1, 0, SCALAR_OR_VECTOR)   \
  X(FLOORDIVSI, "arith.floordivsi", 2, 1, 0, SCALAR_OR_VECTOR) \
  X(REMSI, "arith.remsi", 2, 1, 0, SCALAR_OR_VECTOR)           \
  X(REMUI, "arith.remui", 2, 1, 0, SCALAR_OR_VECTOR)           \
  X(MAXSI, "arith.maxsi", 2, 1, 0, SCALAR_OR_VECTOR)           \
  X(MINSI, "arith.minsi", 2, 1, 0, SCALAR_OR_VECTOR)           \
  X(MAXUI, "arith.maxui", 2, 1, 0, SCALAR_OR_VECTOR)           \
  X(MINUI, "arith.minui", 2, 1, 0, SCALAR_OR_VECTOR)           \
  X(ANDI, "arith.andi", 2, 1, 0, SCALAR_OR_VECTOR)             \
  X(ORI, "arith.ori", 2, 1, 0, SCALAR_OR_VECTOR)               \
  X(XORI, "arith.xori", 2, 1, 0, SCALAR_OR_VECTOR)             \
  X(SHLI, "arith.shli", 2, 1, 0, SCALAR_OR_VECTOR)             \
  X(SHRSI, "arith.shrsi", 2, 1, 0, SCALAR_OR_VECTOR)           \
  X(SHRUI, "arith.shrui", 2, 1, 0, SCALAR_OR_VECTOR)           \
  X(CMPF, "arith.cmpf", 2, 1, 0, SCALAR_OR_VECTOR)             \
  X(CMPI, "arith.cmpi", 2, 1, 0, SCALAR_OR_VECTOR)             \
  X(ATAN2, "math.atan2", 2, 1, 0, SCALAR_OR_VECTOR)            \
  X(COPYSIGN, "math.copysign", 2, 1, 0, SCALAR_OR_VECTOR)      \
  X(POWF, "math.powf", 2, 1, 0, SCALAR_OR_VECTOR)              \
  X(FPOWI, "math.fpowi", 2, 1, 0, SCALAR_OR_VECTOR)

#define MP_MOSAIC_UNARY(X)                                               \
  X(NEGF, "arith.negf", 1, 1, 0, SCALAR_OR_VECTOR)                       \
  X(ABSF, "math.absf", 1, 1, 0, SCALAR_OR_VECTOR)                        \
  X(ABSI, "math.absi", 1, 1, 0, SCALAR_OR_VECTOR)                        \
  X(ACOS, "math.acos", 1, 1, 0, SCALAR_OR_VECTOR)                        \
  X(ASIN, "math.asin", 1, 1, 0, SCALAR_OR_VECTOR)                        \
  X(ATAN, "math.atan", 1, 1, 0, SCALAR_OR_VECTOR)                        \
  X(CBRT, "math.cbrt", 1, 1, 0, SCALAR_OR_VECTOR)                        \
  X(CEIL, "math.ceil", 1, 1, 0, SCALAR_OR_VECTOR)                        \
  X(COS, "math.cos", 1, 1, 0, SCALAR_OR_VECTOR)                          \
  X(COSH, "math.cosh", 1, 1, 0, SCALAR_OR_VECTOR)                        \
  X(CTLZ, "math.ctlz", 1, 1, 0, SCALAR_OR_VECTOR)                        \
  X(CTTZ, "math.cttz", 1, 1, 0, SCALAR_OR_VECTOR)                        \
  X(CTPOP, "math.ctpop", 1, 1, 0, SCALAR_OR_VECTOR)                      \
  X(ERF, "math.erf", 1, 1, 0, SCALAR_OR_VECTOR)                          \
  X(EXP, "math.exp", 1, 1, 0, SCALAR_OR_VECTOR)                          \
  X(EXP2, "math.exp2", 1, 1, 0, SCALAR_OR_VECTOR)                        \
  X(EXPM1, "math.expm1", 1, 1, 0, SCALAR_OR_VECTOR)                      \
  X(FLOOR, "math.floor", 1, 1, 0, SCALAR_OR_VECTOR)                      \
  X(ISFINITE, "math.isfinite", 1, 1, 0, SCALAR_OR_VECTOR)                \
  X(ISINF, "math.isinf", 1, 1, 0, SCALAR_OR_VECTOR)                      \
  X(ISNAN, "math.isnan", 1, 1, 0, SCALAR_OR_VECTOR)                      \
  X(LOG, "math.log", 1, 1, 0, SCALAR_OR_VECTOR)                          \
  X(LOG1P, "math.log1p", 1, 1, 0, SCALAR_OR_VECTOR)                      \
  X(LOG2, "math.log2", 1, 1, 0, SCALAR_OR_VECTOR)                        \
  X(ROUND, "math.round", 1, 1, 0, SCALAR_OR_VECTOR)                      \
  X(ROUNDEVEN, "math.roundeven", 1, 1, 0, SCALAR_OR_VECTOR)              \
  X(RSQRT, "math.rsqrt", 1, 1, 0, SCALAR_OR_VECTOR)                      \
  X(SIN, "math.sin", 1, 1, 0, SCALAR_OR_VECTOR)                          \
  X(SINH, "math.sinh", 1, 1, 0, SCALAR_OR_VECTOR)                        \
  X(SQRT, "math.sqrt", 1, 1, 0, SCALAR_OR_VECTOR)                        \
  X(TAN, "math.tan", 1, 1, 0, SCALAR_OR_VECTOR)                          \
  X(TANH, "math.tanh", 1, 1, 0, SCALAR_OR_VECTOR)                        \
  X(TRUNC, "math.trunc", 1, 1, 0, SCALAR_OR_VECTOR)                      \
  X(LOGISTIC, "tpu.logistic", 1, 1, 0, SCALAR_OR_VECTOR)                 \
  X(RECIPROCAL, "tpu.reciprocal", 1, 1, 0, SCALAR_OR_VECTOR)             \
  X(REDUCE_PRECISION, "tpu.reduce_precision", 1, 1, 0, SCALAR_OR_VECTOR) \
  X(WEIRD, "tpu.weird", 1, 1, 0, SCALAR_OR_VECTOR)

#define MP_MOSAIC_CONVERSIONS(X)                                             \
  X(EXTF, "arith.extf", 1, 1, 0, SCALAR_OR_VECTOR)                           \
  X(TRUNCF, "arith.truncf", 1, 1, 0, SCALAR_OR_VECTOR)                       \
  X(EXTSI, "arith.extsi", 1, 1, 0, SCALAR_OR_VECTOR)                         \
  X(EXTUI, "arith.extui", 1, 1, 0, SCALAR_OR_VECTOR)                         \
  X(TRUNCI, "arith.trunci", 1, 1, 0, SCALAR_OR_VECTOR)                       \
  X(FPTOSI, "arith.fptosi", 1, 1, 0, SCALAR_OR_VECTOR)                       \
  X(FPTOUI, "arith.fptoui", 1, 1, 0, SCALAR_OR_VECTOR)                       \
  X(SITOFP, "arith.sitofp", 1, 1, 0, SCALAR_OR_VECTOR)                       \
  X(UITOFP, "arith.uitofp", 1, 1, 0, SCALAR_OR_VECTOR)                       \
  X(INDEX_CAST, "arith.index_cast", 1, 1, 0, SCALAR_OR_VECTOR)               \
  X(INDEX_CASTUI, "arith.index_castui", 1, 1, 0, SCALAR_OR_VECTOR)           \
  X(BITCAST, "arith.bitcast", 1, 1, 0, SCALAR_OR_VECTOR)                     \
  X(TPU_EXTF, "tpu.extf", 1, 1, 0, SCALAR_OR_VECTOR)                         \
  X(TPU_TRUNCF, "tpu.truncf", 1, 1, 0, SCALAR_OR_VECTOR)                     \
  X(TPU_FPTOSI, "tpu.fptosi", 1, 1, 0, SCALAR_OR_VECTOR)                     \
  X(TPU_FPTOUI, "tpu.fptoui", 1, 1, 0, SCALAR_OR_VECTOR)                     \
  X(TPU_SITOFP, "tpu.sitofp", 1, 1, 0, SCALAR_OR_VECTOR)                     \
  X(TPU_UITOFP, "tpu.uitofp", 1, 1, 0, SCALAR_OR_VECTOR)                     \
  X(STOCHASTIC_CONVERT, "tpu.stochastic_convert", 2, 1, 0, SCALAR_OR_VECTOR) \
  X(STOCHASTIC_CONVERT_ELEMENTWISE, "tpu.stochastic_convert_elementwise", 2, 1, 0, SCALAR_OR_VECTOR)

#define MP_MOSAIC_VECTORS(X)                                                \
  X(BROADCAST, "vector.broadcast", 1, 1, 0, VECTOR)                         \
  X(SHAPE_CAST, "vector.shape_cast", 1, 1, 0, VECTOR)                       \
  X(EXTRACT, "vector.extract", -1, 1, 0, VECTOR)                            \
  X(EXTRACT_STRIDED_SLICE, "vector.extract_strided_slice", 1, 1, 0, VECTOR) \
  X(INSERT, "vector.insert", -1, 1, 0, VECTOR)                              \
  X(INSERT_STRIDED_SLICE, "vector.insert_strided_slice", 2, 1, 0, VECTOR)   \
  X(MULTI_REDUCTION, "vector.multi_reduction", 2, 1, 0, VECTOR)             \
  X(VECTOR_TRANSPOSE, "vector.transpose", 1, 1, 0, VECTOR)                  \
  X(VECTOR_BITCAST, "vector.bitcast", 1, 1, 0, VECTOR)                      \
  X(CONTRACT, "vector.contract", -1, 1, 0, VECTOR)                          \
  X(TRANSPOSE, "tpu.transpose", 1, 1, 0, VECTOR)                            \
  X(RESHAPE, "tpu.reshape", 1, 1, 0, VECTOR)                                \
  X(RELAYOUT, "tpu.relayout", 1, 1, 0, VECTOR)                              \
  X(ASSUME_LAYOUT, "tpu.assume_layout", 1, 1, 0, VECTOR)                    \
  X(TPU_BITCAST, "tpu.bitcast", 1, 1, 0, VECTOR)                            \
  X(BITCAST_VREG, "tpu.bitcast_vreg", 1, 1, 0, VECTOR)                      \
  X(CONCATENATE, "tpu.concatenate", -1, 1, 0, VECTOR)                       \
  X(REPEAT, "tpu.repeat", 1, 1, 0, VECTOR)                                  \
  X(BROADCAST_IN_SUBLANES, "tpu.broadcast_in_sublanes", 1, 1, 0, VECTOR)    \
  X(IOTA, "tpu.iota", 0, 1, 0, VECTOR)                                      \
  X(MATMUL, "tpu.matmul", 3, 1, 0, VECTOR)                                  \
  X(MATMUL_PUSH_RHS, "tpu.matmul_push_rhs", 1, 0, 0, VECTOR)                \
  X(MATMUL_ACC_LHS, "tpu.matmul_acc_lhs", 1, 0, 0, VECTOR)                  \
  X(MATMUL_POP, "tpu.matmul_pop", 0, 1, 0, VECTOR)                          \
  X(ALL_REDUCE, "tpu.all_reduce", 1, 1, 0, VECTOR)                          \
  X(REDUCE_INDEX, "tpu.reduce_index", 1, 1, 0, VECTOR)                      \
  X(SCAN, "tpu.scan", -1, 1, 0, VECTOR)                                     \
  X(SCAN_COUNT, "tpu.scan_count", 2, 2, 0, VECTOR)                          \
  X(SORT, "tpu.sort", -1, 3, 0, VECTOR)                                     \
  X(DYNAMIC_GATHER, "tpu.dynamic_gather", 2, 1, 0, VECTOR)                  \
  X(GATHER, "tpu.gather", 1, 1, 0, VECTOR)                                  \
  X(DYNAMIC_ROTATE, "tpu.dynamic_rotate", 2, 1, 0, VECTOR)                  \
  X(SUBLANE_SHUFFLE, "tpu.sublane_shuffle", 2, 1, 0, VECTOR)                \
  X(ROLL_VECTORS, "tpu.roll_vectors", -1, 1, 0, VECTOR)                     \
  X(UNROLL_VECTORS, "tpu.unroll_vectors", 1, -1, 0, VECTOR)                 \
  X(PACK_ELEMENTWISE, "tpu.pack_elementwise", -1, 1, 0, VECTOR)             \
  X(UNPACK_ELEMENTWISE, "tpu.unpack_elementwise", 1, 1, 0, VECTOR)          \
  X(PACK_SUBELEMENTS, "tpu.pack_subelements", -1, 1, 0, VECTOR)             \
  X(UNPACK_SUBELEMENTS, "tpu.unpack_subelements", 1, 1, 0, VECTOR)          \
  X(PACK_VMSK, "tpu.pack_vmsk", -1, 1, 0, VECTOR)                           \
  X(MASK_CAST, "tpu.mask_cast", 1, 1, 0, VECTOR)                            \
  X(CREATE_MASK, "tpu.create_mask", -1, 1, 0, VECTOR)                       \
  X(CREATE_SUBELEMENT_MASK, "tpu.create_subelement_mask", 0, 1, 0, VECTOR)  \
  X(PRNG_SET_SEED, "tpu.prng_set_seed_32", -1, 0, 0, VECTOR)                \
  X(PRNG_RANDOM_BITS, "tpu.prng_random_bits", 0, 1, 0, VECTOR)

#define MP_MOSAIC_MEMORY(X)                                        \
  X(MEMREF_LOAD, "memref.load", -1, 1, 0, READ)                    \
  X(MEMREF_STORE, "memref.store", -1, 0, 0, WRITE)                 \
  X(VECTOR_LOAD, "vector.load", -1, 1, 0, READ)                    \
  X(VECTOR_STORE, "vector.store", -1, 0, 0, WRITE)                 \
  X(TPU_LOAD, "tpu.load", -1, 1, 0, READ)                          \
  X(TPU_STORE, "tpu.store", -1, 0, 0, WRITE)                       \
  X(TPU_VECTOR_LOAD, "tpu.vector_load", -1, 1, 0, READ)            \
  X(TPU_VECTOR_STORE, "tpu.vector_store", -1, 0, 0, WRITE)         \
  X(STRIDED_LOAD, "tpu.strided_load", -1, 1, 0, READ)              \
  X(STRIDED_STORE, "tpu.strided_store", -1, 0, 0, WRITE)           \
  X(SHUFFLED_LOAD, "tpu.shuffled_load", -1, 1, 0, READ)            \
  X(SHUFFLED_STORE, "tpu.shuffled_store", -1, 0, 0, WRITE)         \
  X(VECTOR_LOAD_IDX, "tpu.vector_load_idx", -1, 1, 0, READ)        \
  X(VECTOR_STORE_IDX, "tpu.vector_store_idx", -1, 0, 0, WRITE)     \
  X(MEMREF_SLICE, "tpu.memref_slice", -1, 1, 0, VIEW)              \
  X(MEMREF_SQUEEZE, "tpu.memref_squeeze", 1, 1, 0, VIEW)           \
  X(MEMREF_RESHAPE, "tpu.memref_reshape", 1, 1, 0, VIEW)           \
  X(MEMREF_BITCAST, "tpu.memref_bitcast", 1, 1, 0, VIEW)           \
  X(REINTERPRET_CAST, "tpu.reinterpret_cast", -1, 1, 0, VIEW)      \
  X(ERASE_MEMREF_LAYOUT, "tpu.erase_memref_layout", 1, 1, 0, VIEW) \
  X(MEMREF_CAST, "memref.cast", 1, 1, 0, VIEW)                     \
  X(MEMREF_DIM, "memref.dim", 2, 1, 0, SCALAR)                     \
  X(ALLOCA, "memref.alloca", -1, 1, 0, VIEW)                       \
  X(INTERNAL_SCRATCH, "tpu.internal_scratch", 0, 1, 0, VIEW)

#define MP_MOSAIC_ASYNC(X)                                             \
  X(SEM_ALLOC, "tpu.sem_alloc", 0, 1, 0, ASYNC)                        \
  X(SEM_BARRIER, "tpu.sem_barrier", 0, 1, 0, ASYNC)                    \
  X(SEM_READ, "tpu.sem_read", 1, 1, 0, ASYNC)                          \
  X(SEM_SIGNAL, "tpu.sem_signal", -1, 0, 0, ASYNC)                     \
  X(SEM_WAIT, "tpu.sem_wait", 2, 0, 0, ASYNC)                          \
  X(BARRIER, "tpu.barrier", 1, 0, 0, ASYNC)                            \
  X(ENQUEUE_DMA, "tpu.enqueue_dma", -1, 0, 0, ASYNC)                   \
  X(WAIT_DMA, "tpu.wait_dma", -1, 0, 0, ASYNC)                         \
  X(WAIT_DMA2, "tpu.wait_dma2", -1, 0, 0, ASYNC)                       \
  X(ENQUEUE_INDIRECT_DMA, "tpu.enqueue_indirect_dma", -1, 0, 0, ASYNC) \
  X(WAIT_INDIRECT_DMA, "tpu.wait_indirect_dma", 3, 0, 0, ASYNC)        \
  X(FETCH_AND_ADD_SYNC, "tpu.fetch_and_add_sync", -1, 1, 0, ASYNC)

#define MP_MOSAIC_SCALARS(X)                                 \
  X(DEVICE_ID, "tpu.device_id", 0, 1, 0, SCALAR)             \
  X(CORE_ID, "tpu.core_id", 0, 1, 0, SCALAR)                 \
  X(SUBCORE_ID, "tpu.subcore_id", 0, 1, 0, SCALAR)           \
  X(ITERATION_BOUND, "tpu.iteration_bound", 0, 1, 0, SCALAR) \
  X(ASSUME_MULTIPLE, "tpu.assume_multiple", 1, 1, 0, SCALAR) \
  X(DELAY, "tpu.delay", 1, 0, 0, NOTE)                       \
  X(LOG_VALUES, "tpu.log", -1, 0, 0, NOTE)                   \
  X(LOG_BUFFER, "tpu.log_buffer", 1, 0, 0, NOTE)             \
  X(TRACE_START, "tpu.trace_start", 0, 0, 0, NOTE)           \
  X(TRACE_STOP, "tpu.trace_stop", 0, 0, 0, NOTE)             \
  X(TRACE_VALUE, "tpu.trace_value", 1, 0, 0, NOTE)

#define MP_MOSAIC_FLOW(X)                              \
  X(RETURN, "func.return", -1, 0, 0, FLOW)             \
  X(CALL, "func.call", -1, -1, 0, FLOW)                \
  X(IF, "scf.if", 1, -1, 2, FLOW)                      \
  X(FOR, "scf.for", -1, -1, 1, FLOW)                   \
  X(WHILE, "scf.while", -1, -1, 2, FLOW)               \
  X(INDEX_SWITCH, "scf.index_switch", 1, -1, -1, FLOW) \
  X(CONDITION, "scf.condition", -1, 0, 0, FLOW)        \
  X(SCF_YIELD, "scf.yield", -1, 0, 0, FLOW)            \
  X(REGION, "tpu.region", 0, -1, 1, FLOW)              \
  X(TRACE, "tpu.trace", 0, -1, 1, FLOW)                \
  X(TPU_YIELD, "tpu.yield", -1, 0, 0, FLOW)            \
  X(ASSERT, "cf.assert", 1, 0, 0, FLOW)

#define MP_MOSAIC_OPS(X)                                               \
  X(CONSTANT, "arith.constant", 0, 1, 0, SCALAR_OR_VECTOR)             \
  X(SELECT, "arith.select", 3, 1, 0, SCALAR_OR_VECTOR)                 \
  X(FMA, "math.fma", 3, 1, 0, SCALAR_OR_VECTOR)                        \
  X(MULSI_EXTENDED, "arith.mulsi_extended", 2, 2, 0, SCALAR_OR_VECTOR) \
  X(MULUI_EXTENDED, "arith.mului_extended", 2, 2, 0, SCALAR_OR_VECTOR) \
  MP_MOSAIC_BINARY(X)                                                  \
  MP_MOSAIC_UNARY(X)                                                   \
  MP_MOSAIC_CONVERSIONS(X)                                             \
  MP_MOSAIC_VECTORS(X)                                                 \
  MP_MOSAIC_MEMORY(X)                                                  \
  MP_MOSAIC_ASYNC(X)                                                   \
  MP_MOSAIC_SCALARS(X)                                                 \
  MP_MOSAIC_FLOW(X)

#endif  // MINIPOD_SIM_MOSAIC_IR_MOSAIC_OP_LIST_H_
