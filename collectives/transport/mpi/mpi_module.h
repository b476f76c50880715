// The MPI module: the few MPI calls that minipod makes, behind a table of functions.
//
// MPI's binary interfaces differ, so each implementation has a module of its own, compiled from
// mpi_module.c and linked with that MPI: minipod_mpi_ompi.so for Open MPI, minipod_mpi_mpich.so for
// MPICH and MPIs derived from it. The plugin opens one at run time, when a launcher started the
// process. This header is all that plugin and module know of each other; it is compiled into both.
//
// Only point-to-point messages: time limits, matching and collectives are minipod's own. All calls
// that return an int return 0, or -1 with the reason in `error`. init() asks for
// MPI_THREAD_MULTIPLE; any thread may call, but only one at a time for one request.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_MPI_MPI_MODULE_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_MPI_MPI_MODULE_H_

#include <stddef.h>
#include <stdint.h>

enum { MP_MPI_MODULE_VERSION = 1, MP_MPI_ERROR_BYTES = 512, MP_MPI_ANY = -1 };
#define MP_MPI_MODULE_SYMBOL "minipod_mpi_module"

typedef char mp_mpi_error_t[MP_MPI_ERROR_BYTES];

// Asked of MPI each time and never kept, because the program may start and finalize MPI itself.
typedef enum {
  MP_MPI_NOT_STARTED,
  MP_MPI_RUNNING,
  MP_MPI_FINALIZED,
} mp_mpi_state_t;

// An MPI_Request of any implementation.
typedef struct {
  uint64_t opaque;
} mp_mpi_request_t;

// This process among those of the job.
typedef struct {
  int rank, size;
  int leader;    // the lowest rank that shares memory with this one
  int num_near;  // how many ranks share memory with this one, itself included
} mp_mpi_who_t;

typedef struct {
  uint32_t version;  // MP_MPI_MODULE_VERSION
  // Whether MPI was initialized or finalized in this process, by whomever.
  mp_mpi_state_t (*state)(void);
  // Writes "Open MPI v4.1.4, ..." to `out_text`.
  void (*describe)(mp_mpi_error_t out_text);
  // Initializes MPI unless it is initialized. *out_is_ours: this library did, and must finalize it.
  int (*init)(int *out_is_ours, mp_mpi_error_t error);
  // Begins to make a communicator of our own; all processes of the job call it. Then `join_test` is
  // called until *out_done.
  int (*join_begin)(mp_mpi_error_t error);
  // When *out_done, *out_who says which process this is.
  int (*join_test)(int *out_done, mp_mpi_who_t *out_who, mp_mpi_error_t error);
  // Makes MPI call `stop` with `context` when it is finalized, while MPI still works.
  int (*on_finalize)(void (*stop)(void *context), void *context, mp_mpi_error_t error);

  // Begin to send and to receive on our communicator; `data` must stay until `test` says that the
  // request is done. `bytes` is below 2^31. `from` may be MP_MPI_ANY.
  int (*send)(const void *data, size_t bytes, int to, int tag, mp_mpi_request_t *out_request,
              mp_mpi_error_t error);
  int (*receive)(void *data, size_t bytes, int from, int tag, mp_mpi_request_t *out_request,
                 mp_mpi_error_t error);
  // *out_done: the request is done and gone. *out_from, *out_bytes: what a receive got.
  int (*test)(mp_mpi_request_t *request, int *out_done, int *out_from, size_t *out_bytes,
              mp_mpi_error_t error);
  // Ends a receive, whether something has come for it or not.
  void (*cancel)(mp_mpi_request_t *request);

  void (*finalize)(void);
  // Ends the job with this exit status; returns only if MPI cannot.
  void (*abort)(int status);
} mp_mpi_module_t;

// The one symbol of a module.
typedef const mp_mpi_module_t *mp_mpi_module_fn(void);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_MPI_MPI_MODULE_H_
