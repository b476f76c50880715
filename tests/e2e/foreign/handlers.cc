// Foreign functions as a user writes them, against the headers that jaxlib ships. test_handlers.py
// compiles and registers them.

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

// ---- Arguments, results, attributes ----

static ffi::Error Scale(float factor, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y) {
  const float *in = x.typed_data<float>();
  float *out = y->typed_data<float>();
  for (size_t i = 0; i < x.element_count(); ++i) out[i] = factor * in[i];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    ScaleHandler, Scale,
    ffi::Ffi::Bind().Attr<float>("factor").Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>());

// On how many cores a thread may run that the function starts.
static ffi::Error Cores(ffi::AnyBuffer, ffi::Result<ffi::BufferR0<ffi::S32>> cores) {
  std::thread([&] {
    cpu_set_t set;
    sched_getaffinity(0, sizeof(set), &set);
    *cores->typed_data() = CPU_COUNT(&set);
  }).join();
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    CoresHandler, Cores, ffi::Ffi::Bind().Arg<ffi::AnyBuffer>().Ret<ffi::BufferR0<ffi::S32>>());

// Writes what it sees of its attributes as text into a buffer of bytes.
static void Say(std::string &text, const char *name, int64_t value) {
  text += std::string(name) + "=" + std::to_string(value) + ";";
}
static ffi::Error Attributes(bool b, int8_t i8, uint8_t u8, int16_t i16, uint16_t u16, int32_t i32,
                             uint32_t u32, int64_t i64, uint64_t u64, float f32, double f64,
                             std::string_view text, ffi::Span<const int64_t> list,
                             ffi::Span<const float> floats, ffi::Dictionary dict,
                             ffi::ResultBuffer<ffi::U8> out) {
  std::string all;
  Say(all, "b", b);
  Say(all, "i8", i8);
  Say(all, "u8", u8);
  Say(all, "i16", i16);
  Say(all, "u16", u16);
  Say(all, "i32", i32);
  Say(all, "u32", u32);
  Say(all, "i64", i64);
  all += "u64=" + std::to_string(u64) + ";";
  Say(all, "f32", static_cast<int64_t>(f32 * 1000));
  Say(all, "f64", static_cast<int64_t>(f64 * 1000));
  all += "text=" + std::string(text) + ";";
  for (int64_t item : list) Say(all, "list", item);
  for (float item : floats) Say(all, "floats", static_cast<int64_t>(item * 10));
  Say(all, "dict", static_cast<int64_t>(dict.size()));
  auto inner = dict.get<int64_t>("inner");
  if (!inner.has_value()) return inner.error();
  Say(all, "inner", *inner);
  if (all.size() > out->element_count()) return ffi::Error::InvalidArgument("too long: " + all);
  std::memset(out->typed_data(), 0, out->element_count());
  std::memcpy(out->typed_data(), all.data(), all.size());
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(AttributesHandler, Attributes,
                              ffi::Ffi::Bind()
                                  .Attr<bool>("b")
                                  .Attr<int8_t>("i8")
                                  .Attr<uint8_t>("u8")
                                  .Attr<int16_t>("i16")
                                  .Attr<uint16_t>("u16")
                                  .Attr<int32_t>("i32")
                                  .Attr<uint32_t>("u32")
                                  .Attr<int64_t>("i64")
                                  .Attr<uint64_t>("u64")
                                  .Attr<float>("f32")
                                  .Attr<double>("f64")
                                  .Attr<std::string_view>("text")
                                  .Attr<ffi::Span<const int64_t>>("list")
                                  .Attr<ffi::Span<const float>>("floats")
                                  .Attr<ffi::Dictionary>("dict")
                                  .Ret<ffi::Buffer<ffi::U8>>());

// The dimensions and the first elements in memory order of a matrix.
static ffi::Error Look(ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  auto dims = x.dimensions();
  for (size_t i = 0; i < dims.size(); ++i) y->typed_data()[i] = static_cast<float>(dims[i]);
  std::memcpy(y->typed_data() + dims.size(), x.typed_data(), 4 * sizeof(float));
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    LookHandler, Look, ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());

// Adds one to the first element of a result that has its operand's memory, and to nothing else.
static ffi::Error AddFirst(ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  if (x.typed_data() != y->typed_data()) return ffi::Error::Internal("the memory is not shared");
  y->typed_data()[0] += 1;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    AddFirstHandler, AddFirst,
    ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());

// ---- Errors ----

static ffi::Error Fail(int64_t code, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y) {
  if (x.typed_data<float>()[0] < 0) {
    return ffi::Error(static_cast<ffi::ErrorCode>(code), "negative number, says the handler");
  }
  std::memcpy(y->untyped_data(), x.untyped_data(), x.size_bytes());
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    FailHandler, Fail,
    ffi::Ffi::Bind().Attr<int64_t>("code").Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>());

static ffi::Error Throw(int64_t kind, ffi::ResultBufferR0<ffi::S32> out) {
  std::vector<int> on_the_stack(100);
  if (kind == 1) throw std::runtime_error("thrown by the handler");
  if (kind == 2) throw 17;
  *out->typed_data() = static_cast<int32_t>(on_the_stack.size());
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    ThrowHandler, Throw,
    ffi::Ffi::Bind().Attr<int64_t>("kind").Ret<ffi::BufferR0<ffi::S32>>());

// ---- State ----

struct Counter {
  static ffi::TypeId id;
  static ffi::TypeInfo info;
  explicit Counter(int64_t begin) : value(begin) { ++alive; }
  ~Counter() { --alive; }
  std::atomic<int64_t> value;
  static std::atomic<int64_t> alive;
};
ffi::TypeId Counter::id = {};
ffi::TypeInfo Counter::info = ffi::MakeTypeInfo<Counter>();
std::atomic<int64_t> Counter::alive{0};

extern "C" void *CounterId() { return &Counter::id; }
extern "C" void *CounterInfo() { return &Counter::info; }
extern "C" int64_t CountersAlive() { return Counter::alive; }

static ffi::ErrorOr<std::unique_ptr<Counter>> CountInstantiate(int64_t begin) {
  if (begin < 0) return ffi::Unexpected(ffi::Error::InvalidArgument("it must not begin below 0"));
  return std::make_unique<Counter>(begin);
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(CountInstantiateHandler, CountInstantiate,
                              ffi::Ffi::BindInstantiate().Attr<int64_t>("begin"));
static ffi::Error CountExecute(Counter *counter, ffi::ResultBufferR0<ffi::S32> out) {
  *out->typed_data() = static_cast<int32_t>(counter->value++);
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(CountExecuteHandler, CountExecute,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::State<Counter>>()
                                  .Ret<ffi::BufferR0<ffi::S32>>());

// The stages before execute, once per run: each leaves a counter, and execute adds to both.
static ffi::ErrorOr<std::unique_ptr<Counter>> StagePrepare() {
  return std::make_unique<Counter>(100);
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(StagePrepareHandler, StagePrepare, ffi::Ffi::BindPrepare());
static ffi::ErrorOr<std::unique_ptr<Counter>> StageInitialize(Counter *prepared) {
  return std::make_unique<Counter>(prepared->value + 1000);
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(StageInitializeHandler, StageInitialize,
                              ffi::Ffi::BindInitialize().Ctx<ffi::Prepared<Counter>>());
static ffi::Error StageExecute(Counter *initialized, ffi::BufferR0<ffi::S32> x,
                               ffi::ResultBufferR0<ffi::S32> out) {
  *out->typed_data() = *x.typed_data() + static_cast<int32_t>(initialized->value++);
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(StageExecuteHandler, StageExecute,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::Initialized<Counter>>()
                                  .Arg<ffi::BufferR0<ffi::S32>>()
                                  .Ret<ffi::BufferR0<ffi::S32>>());

// ---- Results that come later, tasks, memory ----

static ffi::Future Later(ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  ffi::Promise promise;
  ffi::Future future(promise);
  std::thread([x, y, promise = std::move(promise)]() mutable {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (x.typed_data()[0] < 0) {
      promise.SetError(ffi::Error(ffi::ErrorCode::kOutOfRange, "negative number, found later"));
      return;
    }
    for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] = x.typed_data()[i] + 1;
    promise.SetAvailable();
  }).detach();
  return future;
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    LaterHandler, Later,
    ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());

// Each element is the work of one task; the handler waits for all of them.
static ffi::Error Tasks(ffi::ThreadPool pool, ffi::ScratchAllocator scratch,
                        ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  const size_t count = x.element_count();
  auto memory = scratch.Allocate(count * sizeof(float), 16);
  if (!memory.has_value()) return ffi::Error::Internal("no scratch memory");
  if (reinterpret_cast<uintptr_t>(*memory) % 16 != 0) return ffi::Error::Internal("not aligned");
  if (pool.num_threads() < 1) return ffi::Error::Internal("no threads");
  float *partial = static_cast<float *>(*memory);
  std::atomic<size_t> left{count};
  for (size_t i = 0; i < count; ++i) {
    pool.Schedule([&, i] {
      partial[i] = 2 * x.typed_data()[i];
      --left;
    });
  }
  while (left != 0) std::this_thread::yield();
  std::memcpy(y->typed_data(), partial, count * sizeof(float));
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(TasksHandler, Tasks,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::ThreadPool>()
                                  .Ctx<ffi::ScratchAllocator>()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>());

// A future whose result the tasks make.
static ffi::Future TasksLater(ffi::ThreadPool pool, ffi::Buffer<ffi::F32> x,
                              ffi::ResultBuffer<ffi::F32> y) {
  auto left = std::make_shared<std::atomic<size_t>>(x.element_count());
  auto promise = std::make_shared<ffi::Promise>();
  ffi::Future future(*promise);
  for (size_t i = 0; i < x.element_count(); ++i) {
    pool.Schedule([=]() mutable {
      y->typed_data()[i] = 3 * x.typed_data()[i];
      if (--*left == 0) promise->SetAvailable();
    });
  }
  return future;
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(TasksLaterHandler, TasksLater,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::ThreadPool>()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>());

// Asks for more memory than there is.
static ffi::Error Greedy(ffi::ScratchAllocator scratch, ffi::ResultBufferR0<ffi::S32> out) {
  *out->typed_data() = scratch.Allocate(size_t{1} << 60).has_value();
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    GreedyHandler, Greedy,
    ffi::Ffi::Bind().Ctx<ffi::ScratchAllocator>().Ret<ffi::BufferR0<ffi::S32>>());

// Which device and run it is called for.
static ffi::Error Where(ffi::RunId run, int32_t device, ffi::ResultBuffer<ffi::S32> out) {
  out->typed_data()[0] = device;
  out->typed_data()[1] = static_cast<int32_t>(run.run_id);
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(WhereHandler, Where,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::RunId>()
                                  .Ctx<ffi::DeviceOrdinal>()
                                  .Ret<ffi::Buffer<ffi::S32>>());

// ---- The interface before FFI ----

extern "C" void OldAdd(void *out, const void **in) {
  *static_cast<float *>(out) =
      *static_cast<const float *>(in[0]) + *static_cast<const float *>(in[1]);
}
extern "C" void OldOpaque(void *out, const void **in, const char *opaque, size_t size, void *) {
  void **outs = static_cast<void **>(out);
  *static_cast<float *>(outs[0]) = *static_cast<const float *>(in[0]);
  *static_cast<int32_t *>(outs[1]) = static_cast<int32_t>(size) * 1000 + opaque[0];
}
