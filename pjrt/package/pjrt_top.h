// What other processes may ask of this one: what its devices are doing (`minipod top`).
//
// Each process with a client listens on a socket in Linux's abstract namespace, which leaves no
// file behind, by the name "minipod-top-<pid>". A client of the same user, or root, gets one JSON
// object as a text and the end of the stream:
//
//   {"pid": 17, "virtual_seconds": 1.5, "clients": [
//     {"pod": "v5e:2x2", "process": 0, "processes": 1, "faults": false, "devices": [
//       {"id": 0, "state": "waiting", "program": "jit_f", "at": "psum (a.py:3:1)", "queued": 2,
//        "launches": 40, "bytes": 8, "peak": 8, "limit": 100}]}]}
//
// "virtual_seconds" is there with a model of time; "state" is as in sim/runtime/look/look.h. The
// thread that answers sleeps until a request, so it costs nothing before.
#ifndef MINIPOD_PJRT_PACKAGE_PJRT_TOP_H_
#define MINIPOD_PJRT_PACKAGE_PJRT_TOP_H_

// Has this process answer from now on; may be repeated, and by a forked child. Where the system has
// no such sockets, or no thread, requests are impossible: that is logged at the level debug, and no
// error.
void mp_pjrt_top_begin(void);

#endif  // MINIPOD_PJRT_PACKAGE_PJRT_TOP_H_
