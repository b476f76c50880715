// Tables: how many rows they have, for checks at compile time.
//
// A table that is indexed by an enum is made from the X-macro that makes the enum wherever that can
// be; otherwise it says below its last row that it has one for each:
//
//   _Static_assert(MP_COUNT_OF(g_rows) == MP_KIND_COUNT, "a row for each kind");
#ifndef MINIPOD_SIM_BASE_TABLE_H_
#define MINIPOD_SIM_BASE_TABLE_H_

// The elements of an array, which must not be a pointer.
#define MP_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

// The rows of an X-macro.
#define MP_ROWS(list)      (0 list(MP_ROW_COUNTS))
#define MP_ROW_COUNTS(...) +1

#endif  // MINIPOD_SIM_BASE_TABLE_H_
