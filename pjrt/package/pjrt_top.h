// Answers other processes that ask what this process's devices are doing (`minipod top`).
//
// Each process with a client listens on a socket in Linux's abstract namespace, which leaves no
// file behind, by the name "minipod-top-<pid>". A client of the same user, or root, gets one JSON
// object as text, then the end of the stream:
//
//   {"pid": 17, "virtual_seconds": 1.5, "clients": [
//     {"pod": "v5e:2x2", "process": 0, "processes": 1, "faults": false, "devices": [
//       {"id": 0, "state": "waiting", "program": "jit_f", "at": "psum (a.py:3:1)", "queued": 2,
//        "launches": 40, "bytes": 8, "peak": 8, "limit": 100}]}]}
//
// "virtual_seconds" is present with a model of time; "state" is as in sim/runtime/look/look.h. The
// thread that answers sleeps until a request, so it costs nothing before.
#ifndef MINIPOD_PJRT_PACKAGE_PJRT_TOP_H_
#define MINIPOD_PJRT_PACKAGE_PJRT_TOP_H_

// Makes this process answer from now on; may be repeated, also by a forked child. If the system has
// no such sockets, or no thread, requests are impossible: that is logged at level debug, and is no
// error.
void mp_pjrt_top_begin(void);

#endif  // MINIPOD_PJRT_PACKAGE_PJRT_TOP_H_
