// How C code catches an exception: the function below, in assembler, has a personality routine. The
// unwinder asks it whether the exception is handled there. It answers yes, and the unwinder
// continues at the landing pad, with the exception in the first register. See "Exception Handling"
// in the Itanium C++ ABI, and the System V ABI for x86-64.
#include "sim/foreign/foreign_guard.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <unwind.h>

#ifdef __x86_64__

// Calls call(argument); returns NULL, or the exception that it threw.
struct _Unwind_Exception *foreign_guard_call(void (*call)(void *), void *argument);
extern const char foreign_guard_landing[];
_Unwind_Reason_Code foreign_guard_personality(int version, _Unwind_Action actions,
                                              _Unwind_Exception_Class class,
                                              struct _Unwind_Exception *exception,
                                              struct _Unwind_Context *context);

__asm__(
    ".text\n"
    ".p2align 4\n"
    ".hidden foreign_guard_call\n"
    ".globl foreign_guard_call\n"
    ".type foreign_guard_call, @function\n"
    "foreign_guard_call:\n"
    ".cfi_startproc\n"
    ".cfi_personality 0x9b, foreign_guard_personality_address\n"
    "  subq $8, %rsp\n"
    "  .cfi_adjust_cfa_offset 8\n"
    "  movq %rdi, %rax\n"
    "  movq %rsi, %rdi\n"
    "  call *%rax\n"
    "  xorl %eax, %eax\n"
    ".hidden foreign_guard_landing\n"
    ".globl foreign_guard_landing\n"
    "foreign_guard_landing:\n"
    "  addq $8, %rsp\n"
    "  .cfi_adjust_cfa_offset -8\n"
    "  ret\n"
    ".cfi_endproc\n"
    ".size foreign_guard_call, .-foreign_guard_call\n"
    ".section .data.rel.ro.foreign_guard, \"aw\"\n"
    ".p2align 3\n"
    ".hidden foreign_guard_personality_address\n"
    "foreign_guard_personality_address:\n"
    "  .quad foreign_guard_personality\n"
    ".text\n");

__attribute__((visibility("hidden"), used)) _Unwind_Reason_Code foreign_guard_personality(
    int version, _Unwind_Action actions, _Unwind_Exception_Class class,
    struct _Unwind_Exception *exception, struct _Unwind_Context *context) {
  (void)class;
  if (version != 1 || (actions & _UA_FORCE_UNWIND) != 0) return _URC_CONTINUE_UNWIND;
  if ((actions & _UA_SEARCH_PHASE) != 0) return _URC_HANDLER_FOUND;
  if ((actions & _UA_HANDLER_FRAME) == 0) return _URC_CONTINUE_UNWIND;
  _Unwind_SetGR(context, 0, (_Unwind_Word)(uintptr_t)exception);  // 0: the register rax
  _Unwind_SetIP(context, (_Unwind_Ptr)(uintptr_t)foreign_guard_landing);
  return _URC_INSTALL_CONTEXT;
}

// ---- The message of an exception ----

// Offsets in libstdc++: the type precedes the exception that the unwinder sees, the thrown object
// follows it.
enum { BYTES_FROM_TYPE = 80, BYTES_TO_OBJECT = 32 };
static const char k_gnu_class[8] = "GNUCC++";  // its bytes, from the highest to the lowest

static bool foreign_guard_is_gnu(const struct _Unwind_Exception *exception) {
  uint64_t class = 0;
  for (int i = 0; i < 8; ++i) class = class << 8 | (unsigned char)k_gnu_class[i];
  return exception->exception_class == class;
}

// The text of what() if the object is a std::exception; NULL if it is not, or libstdc++ is not
// loaded. DO_CATCH is the index, in a type's virtual table, of the function that tells whether a
// `catch` of the type takes an object, and returns the part of the object that it takes.
static const char *foreign_guard_what(void *library, struct _Unwind_Exception *exception) {
  enum { DO_CATCH = 4, WHAT = 2 };
  typedef bool do_catch_t(const void *self, const void *thrown, void **object, unsigned outer);
  typedef const char *what_t(const void *self);
  const void *wanted = dlsym(library, "_ZTISt9exception");
  if (wanted == NULL || !foreign_guard_is_gnu(exception)) return NULL;
  const void *type = *(void **)(void *)((char *)exception - BYTES_FROM_TYPE);
  void *object = (char *)exception + BYTES_TO_OBJECT;
  do_catch_t *do_catch = (*(do_catch_t ***)(uintptr_t)wanted)[DO_CATCH];
  if (!do_catch(wanted, type, &object, 1)) return NULL;
  return (*(what_t ***)object)[WHAT](object);
}

// Makes a status from an exception, and frees the exception.
static mp_status_t foreign_guard_status(struct _Unwind_Exception *exception) {
  void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_NOLOAD);
  if (library == NULL) {
    _Unwind_DeleteException(exception);
    return mp_status_make(MP_UNKNOWN, "it has thrown a C++ exception");
  }
  const char *what = foreign_guard_what(library, exception);
  mp_status_t status = what == NULL
                           ? mp_status_make(MP_UNKNOWN, "it has thrown a C++ exception")
                           : mp_status_make(MP_UNKNOWN, "it has thrown a C++ exception: %s", what);
  void *(*begin)(void *) = (void *(*)(void *))(uintptr_t)dlsym(library, "__cxa_begin_catch");
  void (*end)(void) = (void (*)(void))(uintptr_t)dlsym(library, "__cxa_end_catch");
  if (begin != NULL && end != NULL) {
    begin(exception);
    end();
  } else {
    _Unwind_DeleteException(exception);
  }
  dlclose(library);
  return status;
}

mp_status_t mp_foreign_guard(void (*call)(void *argument), void *argument) {
  struct _Unwind_Exception *exception = foreign_guard_call(call, argument);
  return exception == NULL ? NULL : foreign_guard_status(exception);
}

#else

mp_status_t mp_foreign_guard(void (*call)(void *argument), void *argument) {
  call(argument);
  return NULL;
}

#endif
