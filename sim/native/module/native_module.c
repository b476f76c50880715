// The module: compiles code to functions by LLVM.
#include "sim/native/native_module.h"

#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/native/module/emit.h"

// Maps need few passes; loops keep their values in local variables, which must become registers.
#define MAP_PASSES  "early-cse"
#define LOOP_PASSES "sroa,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,early-cse"

// LLVM's objects register their destructors here, and none is ever called, because another thread
// may be compiling when the process ends.
__attribute__((visibility("hidden"))) int __cxa_atexit(void (*destroy)(void *), void *object,
                                                       void *library);
int __cxa_atexit(void (*destroy)(void *), void *object, void *library) {
  (void)destroy, (void)object, (void)library;
  return 0;
}

typedef struct {
  LLVMOrcLLJITRef jit;
  LLVMTargetMachineRef machine;
  unsigned num_functions;
} compiler_t;

static compiler_t g_compiler;

// False if there is an error, which is freed.
static bool native_module_is_ok(LLVMErrorRef error) {
  if (error == NULL) return true;
  LLVMConsumeError(error);
  return false;
}

static LLVMTargetMachineRef native_module_machine(void) {
  char *triple = LLVMGetDefaultTargetTriple(), *cpu = LLVMGetHostCPUName();
  char *features = LLVMGetHostCPUFeatures(), *error = NULL;
  LLVMTargetRef target = NULL;
  LLVMTargetMachineRef machine = NULL;
  if (!LLVMGetTargetFromTriple(triple, &target, &error)) {
    machine = LLVMCreateTargetMachine(target, triple, cpu, features, LLVMCodeGenLevelDefault,
                                      LLVMRelocPIC, LLVMCodeModelJITDefault);
  }
  LLVMDisposeMessage(error);
  LLVMDisposeMessage(features);
  LLVMDisposeMessage(cpu);
  LLVMDisposeMessage(triple);
  return machine;
}

static bool native_module_start(compiler_t *c) {
  if (LLVMInitializeNativeTarget() || LLVMInitializeNativeAsmPrinter()) return false;
  c->machine = native_module_machine();
  LLVMTargetMachineRef of_jit = native_module_machine();
  if (c->machine == NULL || of_jit == NULL)
    return false;  // they are never freed, like everything in the module
  LLVMOrcLLJITBuilderRef builder = LLVMOrcCreateLLJITBuilder();
  LLVMOrcLLJITBuilderSetJITTargetMachineBuilder(
      builder, LLVMOrcJITTargetMachineBuilderCreateFromTargetMachine(of_jit));
  if (!native_module_is_ok(LLVMOrcCreateLLJIT(&c->jit, builder))) return false;
  // The functions that code calls: memmove, and the mathematical functions that old machines lack.
  LLVMOrcDefinitionGeneratorRef symbols = NULL;
  if (!native_module_is_ok(LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(
          &symbols, LLVMOrcLLJITGetGlobalPrefix(c->jit), NULL, NULL))) {
    return false;
  }
  LLVMOrcJITDylibAddGenerator(LLVMOrcLLJITGetMainJITDylib(c->jit), symbols);
  return true;
}

static void native_module_set_attribute(const emit_t *e, const char *name, const char *value) {
  LLVMAttributeRef attribute = LLVMCreateStringAttribute(e->context, name, (unsigned)strlen(name),
                                                         value, (unsigned)strlen(value));
  LLVMAddAttributeAtIndex(e->function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, attribute);
}

// Begins a function of the module; the builder is in its first block.
static void native_module_begin(emit_t *e, const compiler_t *c, const char *name,
                                LLVMTypeRef type) {
  char *triple = LLVMGetTargetMachineTriple(c->machine);
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(c->machine);
  LLVMSetTarget(e->module, triple);
  LLVMSetModuleDataLayout(e->module, layout);
  LLVMDisposeTargetData(layout);
  LLVMDisposeMessage(triple);
  e->function = LLVMAddFunction(e->module, name, type);
  // Vectors of 512 bits if the machine has them, in spite of their cost: there is enough work.
  native_module_set_attribute(e, "prefer-vector-width", "512");
  native_module_set_attribute(e, "min-legal-vector-width", "512");
  LLVMPositionBuilderAtEnd(e->builder, LLVMAppendBasicBlockInContext(e->context, e->function, ""));
}

static bool native_module_optimise(const compiler_t *c, const emit_t *e, const char *passes) {
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  const bool is_ok = native_module_is_ok(LLVMRunPasses(e->module, passes, c->machine, options));
  LLVMDisposePassBuilderOptions(options);
  if (getenv("MINIPOD_NATIVE_DUMP") != NULL) LLVMDumpModule(e->module);
  return is_ok;
}

// Exactly one of the two is not NULL. Returns the function's address; 0 on failure.
static uint64_t native_module_compile(compiler_t *c, const mp_native_map_t *map,
                                      const mp_native_loop_t *loop) {
  LLVMOrcThreadSafeContextRef shared = LLVMOrcCreateNewThreadSafeContext();
  emit_t e = {.context = LLVMOrcThreadSafeContextGetContext(shared), .lanes = 1};
  char name[32];
  snprintf(name, sizeof(name), "code_%u", c->num_functions++);
  e.module = LLVMModuleCreateWithNameInContext(name, e.context);
  e.builder = LLVMCreateBuilderInContext(e.context);
  LLVMTypeRef pointer = LLVMPointerTypeInContext(e.context, 0);
  LLVMTypeRef of_map[] = {pointer, LLVMInt64TypeInContext(e.context)};
  LLVMTypeRef of_loop[] = {pointer, LLVMInt32TypeInContext(e.context)};
  LLVMTypeRef type = map != NULL
                         ? LLVMFunctionType(LLVMVoidTypeInContext(e.context), of_map, 2, false)
                         : LLVMFunctionType(LLVMInt64TypeInContext(e.context), of_loop, 2, false);
  native_module_begin(&e, c, name, type);
  const bool is_made = map != NULL ? emit_map(&e, map) : emit_loop(&e, loop);
  LLVMDisposeBuilder(e.builder);
  const bool is_ok =
      is_made && native_module_optimise(c, &e, map != NULL ? MAP_PASSES : LOOP_PASSES);
  LLVMOrcThreadSafeModuleRef module = LLVMOrcCreateNewThreadSafeModule(e.module, shared);
  LLVMOrcDisposeThreadSafeContext(shared);  // the module keeps it
  if (!is_ok) {
    LLVMOrcDisposeThreadSafeModule(module);
    return 0;
  }
  LLVMOrcJITDylibRef library = LLVMOrcLLJITGetMainJITDylib(c->jit);
  LLVMOrcExecutorAddress address = 0;
  if (!native_module_is_ok(LLVMOrcLLJITAddLLVMIRModule(c->jit, library, module)) ||
      !native_module_is_ok(LLVMOrcLLJITLookup(c->jit, &address, name))) {
    return 0;
  }
  return address;
}

static mp_native_map_fn_t native_module_compile_map(const mp_native_map_t *map) {
  return (mp_native_map_fn_t)(uintptr_t)native_module_compile(&g_compiler, map, NULL);
}

static mp_native_loop_fn_t native_module_compile_loop(const mp_native_loop_t *loop) {
  return (mp_native_loop_fn_t)(uintptr_t)native_module_compile(&g_compiler, NULL, loop);
}

__attribute__((visibility("default"))) mp_native_module_fn_t minipod_native_module;

const mp_native_module_t *minipod_native_module(void) {
  static const mp_native_module_t module = {MP_NATIVE_CONTRACT, native_module_compile_map,
                                            native_module_compile_loop};
  if (g_compiler.jit == NULL && !native_module_start(&g_compiler)) return NULL;
  return &module;
}
