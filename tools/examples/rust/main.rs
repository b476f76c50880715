//! A client of the PJRT C API without any framework or crate: the same as `../c/sharded_matvec.c`.
//!
//!     rustc main.rs && ./main LIBRARY
//!
//! y = A x on four devices, each of which has two columns of A and the two elements of x that belong
//! to them; the partitioner adds the all-reduce.

#![allow(dead_code)] // fields of the interface that nobody here reads

use std::ffi::{c_void, CStr, CString};
use std::mem::{size_of, zeroed};
use std::os::raw::{c_char, c_int};
use std::ptr::null_mut;

const DEVICES: usize = 4;
const ROWS: usize = 3;
const COLUMNS: usize = 8;
const WIDTH: usize = COLUMNS / DEVICES;

const PROGRAM: &str = r#"module @matvec {
  sdy.mesh @pod = <["x"=4]>
  func.func public @main(
      %a: tensor<3x8xf32> {sdy.sharding = #sdy.sharding<@pod, [{}, {"x"}]>},
      %x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@pod, [{"x"}]>})
      -> (tensor<3xf32> {sdy.sharding = #sdy.sharding<@pod, [{}]>}) {
    %y = stablehlo.dot_general %a, %x, contracting_dims = [1] x [0]
        : (tensor<3x8xf32>, tensor<8xf32>) -> tensor<3xf32>
    return %y : tensor<3xf32>
  }
}"#;

/// A CompileOptionsProto: executable_build_options with device_ordinal -1, one replica, four
/// partitions, use_spmd_partitioning and use_shardy_partitioner. `../c` explains the bytes.
const OPTIONS: &[u8] = b"\x1a\x14\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\
                         \x20\x01\x28\x04\x30\x01\x98\x01\x01";

// ---- the interface: what of it is used here, as c_api.h has it ----

type Pointer = *mut c_void;
type Function = unsafe extern "C" fn(Pointer) -> Pointer;

/// The table; functions are known by their place in the list of c_api.h.
#[repr(C)]
struct Api {
    struct_size: usize,
    extensions: Pointer,
    version_size: usize,
    version_extensions: Pointer,
    major_version: c_int,
    minor_version: c_int,
    functions: [Function; 71],
}

/// What a function takes, and what it is given by pointers: structs that begin with their size and a list of extensions.
macro_rules! structs {
    ($($name:ident { $($field:ident: $kind:ty),* $(,)? })*) => {$(
        #[repr(C)]
        struct $name { struct_size: usize, extensions: Pointer, $($field: $kind),* }
    )*};
}

/// Arguments of a function, with its place. Out fields are read from it afterwards.
trait Call: Sized {
    const PLACE: usize;
}

macro_rules! calls {
    ($($name:ident = $place:literal { $($field:ident: $kind:ty),* })*) => {
        structs! { $($name { $($field: $kind),* })* }
        $(impl Call for $name { const PLACE: usize = $place; })*
    };
}

calls! {
    ErrorMessage = 1 { error: Pointer, message: *const u8, size: usize }
    PluginInitialize = 3 {}
    EventAwait = 8 { event: Pointer }
    ClientCreate = 10 { options: *const NamedValue, num_options: usize, kv: [Pointer; 4],
                        client: Pointer, kv_try: [Pointer; 2] }
    ClientCompile = 20 { client: Pointer, program: *const Program, options: *const u8,
                         options_size: usize, executable: Pointer }
    BufferFromHost = 22 { client: Pointer, data: *const f32, kind: c_int, dims: *const i64,
                          num_dims: usize, strides: *const i64, num_strides: usize,
                          semantics: c_int, device: Pointer, memory: Pointer, layout: Pointer,
                          done: Pointer, buffer: Pointer }
    ExecutableDevices = 52 { executable: Pointer, devices: *const Pointer, num_devices: usize }
    Execute = 55 { executable: Pointer, options: *const ExecuteOptions,
                   arguments: *const *const Pointer, num_devices: usize, num_arguments: usize,
                   results: *const *mut Pointer, done: *mut Pointer, device: Pointer }
    BufferToHost = 70 { buffer: Pointer, layout: Pointer, data: *mut f32, size: usize,
                        done: Pointer }
}

structs! {
    NamedValue { name: *const u8, name_size: usize, kind: c_int, value: i64, value_size: usize }
    Program { code: *const u8, code_size: usize, format: *const u8, format_size: usize }
    // As the oldest callers know them: they say how much that is.
    ExecuteOptions { callbacks: [Pointer; 2], num_callbacks: [usize; 2], launch_id: c_int,
                     not_donated: Pointer, num_not_donated: usize, context: Pointer }
    // The functions that destroy have arguments of one form.
    Destroy { object: Pointer }
}
const DESTROY_ERROR: usize = 0;
const DESTROY_EVENT: usize = 5;
const DESTROY_CLIENT: usize = 11;
const DESTROY_EXECUTABLE: usize = 50;
const DESTROY_BUFFER: usize = 58;

/// A struct of the interface with its size, 0 but for what `set` changes.
fn sized<T>(set: impl FnOnce(&mut T)) -> T {
    unsafe {
        let mut made: T = zeroed();
        *(&mut made as *mut T as *mut usize) = size_of::<T>();
        set(&mut made);
        made
    }
}

impl Api {
    /// Calls with the arguments that `set` makes; the error, where there is one, as its message.
    fn call<T: Call>(&self, set: impl FnOnce(&mut T)) -> Result<T, String> {
        unsafe {
            let mut arguments = sized(set);
            let error = self.functions[T::PLACE](&mut arguments as *mut T as Pointer);
            if error.is_null() {
                return Ok(arguments);
            }
            let error = self.own(DESTROY_ERROR, error);
            let mut message = sized(|m: &mut ErrorMessage| m.error = error.object);
            self.functions[ErrorMessage::PLACE](&mut message as *mut _ as Pointer);
            let text = std::slice::from_raw_parts(message.message, message.size);
            Err(String::from_utf8_lossy(text).into_owned())
        }
    }

    fn own(&self, place: usize, object: Pointer) -> Owned<'_> {
        Owned { api: self, place, object }
    }

    /// Waits for what is under way; its error is the event's.
    fn wait(&self, event: Pointer) -> Result<(), String> {
        let event = self.own(DESTROY_EVENT, event);
        self.call(|a: &mut EventAwait| a.event = event.object).map(|_| ())
    }
}

/// An object of the plugin, destroyed when it goes out of scope.
struct Owned<'a> {
    api: &'a Api,
    place: usize,
    object: Pointer,
}

impl Drop for Owned<'_> {
    fn drop(&mut self) {
        let mut arguments = sized(|a: &mut Destroy| a.object = self.object);
        // Of those that we may destroy none is refused.
        unsafe { self.api.functions[self.place](&mut arguments as *mut _ as Pointer) };
    }
}

// ---- the client ----

extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> Pointer;
    fn dlsym(library: Pointer, name: *const c_char) -> Pointer;
    fn dlerror() -> *const c_char;
}

fn open(path: &str) -> Result<&'static Api, String> {
    const RTLD_NOW: c_int = 2;
    let path = CString::new(path).map_err(|error| error.to_string())?;
    let name = CString::new("GetPjrtApi").unwrap();
    unsafe {
        let library = dlopen(path.as_ptr(), RTLD_NOW);
        let symbol = if library.is_null() { library } else { dlsym(library, name.as_ptr()) };
        if symbol.is_null() {
            return Err(CStr::from_ptr(dlerror()).to_string_lossy().into_owned());
        }
        let get: extern "C" fn() -> *const Api = std::mem::transmute(symbol);
        let api = &*get();
        if api.major_version != 0 {
            return Err("the library speaks another version of the interface".to_string());
        }
        api.call(|_: &mut PluginInitialize| ())?;
        Ok(api)
    }
}

fn make_client(api: &Api) -> Result<Owned<'_>, String> {
    let name = "num_devices";
    let option = sized(|option: &mut NamedValue| {
        option.name = name.as_ptr();
        option.name_size = name.len();
        option.kind = 1;
        option.value = DEVICES as i64;
        option.value_size = 1;
    });
    let made = api.call(|a: &mut ClientCreate| {
        a.options = &option;
        a.num_options = 1;
    })?;
    Ok(api.own(DESTROY_CLIENT, made.client))
}

fn compile<'a>(api: &'a Api, client: &Owned) -> Result<Owned<'a>, String> {
    let program = sized(|program: &mut Program| {
        program.code = PROGRAM.as_ptr();
        program.code_size = PROGRAM.len();
        program.format = "mlir".as_ptr();
        program.format_size = 4;
    });
    let made = api.call(|a: &mut ClientCompile| {
        a.client = client.object;
        a.program = &program;
        a.options = OPTIONS.as_ptr();
        a.options_size = OPTIONS.len();
    })?;
    Ok(api.own(DESTROY_EXECUTABLE, made.executable))
}

/// A device's part of an array of the host, from its first element on. The last dimension is cut.
fn put<'a>(
    api: &'a Api,
    client: &Owned,
    device: Pointer,
    from: &[f32],
    num_dims: usize,
) -> Result<Owned<'a>, String> {
    let (dims, strides) = ([ROWS as i64, WIDTH as i64], [COLUMNS as i64 * 4, 4]);
    let made = api.call(|a: &mut BufferFromHost| {
        a.client = client.object;
        a.device = device;
        a.data = from.as_ptr();
        a.kind = 11; // F32
        a.dims = dims[2 - num_dims..].as_ptr();
        a.strides = strides[2 - num_dims..].as_ptr();
        a.num_dims = num_dims;
        a.num_strides = num_dims;
        a.semantics = 1; // kImmutableUntilTransferCompletes
    })?;
    let buffer = api.own(DESTROY_BUFFER, made.buffer);
    api.wait(made.done)?;
    Ok(buffer)
}

fn get(api: &Api, buffer: &Owned) -> Result<[f32; ROWS], String> {
    let mut data = [0.0; ROWS];
    let got = api.call(|a: &mut BufferToHost| {
        a.buffer = buffer.object;
        a.data = data.as_mut_ptr();
        a.size = ROWS * 4;
    })?;
    api.wait(got.done)?;
    Ok(data)
}

/// Runs the program on all its devices; each has its list of arguments and of results.
fn execute<'a>(
    api: &'a Api,
    executable: &Owned,
    arguments: &[[Owned; 2]],
) -> Result<Vec<Owned<'a>>, String> {
    let options: ExecuteOptions = sized(|_| ());
    let lists: Vec<[Pointer; 2]> = arguments.iter().map(|l| [l[0].object, l[1].object]).collect();
    let lists: Vec<*const Pointer> = lists.iter().map(|list| list.as_ptr()).collect();
    let (mut results, mut done) = ([null_mut(); DEVICES], [null_mut(); DEVICES]);
    let places: Vec<*mut Pointer> = results.iter_mut().map(|place| place as *mut _).collect();
    api.call(|a: &mut Execute| {
        a.executable = executable.object;
        a.options = &options;
        a.arguments = lists.as_ptr();
        a.num_devices = DEVICES;
        a.num_arguments = 2;
        a.results = places.as_ptr();
        a.done = done.as_mut_ptr();
    })?;
    let results = results.iter().map(|object| api.own(DESTROY_BUFFER, *object)).collect();
    let ends: Vec<_> = done.iter().map(|event| api.wait(*event)).collect();
    ends.into_iter().collect::<Result<(), _>>().map(|_| results)
}

fn run(path: &str) -> Result<bool, String> {
    let mut a = [0.0f32; ROWS * COLUMNS];
    let mut x = [0.0f32; COLUMNS];
    let mut y = [0.0f32; ROWS];
    for c in 0..COLUMNS {
        x[c] = (c + 1) as f32;
        for r in 0..ROWS {
            a[r * COLUMNS + c] = (r * COLUMNS + c) as f32;
            y[r] += a[r * COLUMNS + c] * x[c];
        }
    }
    let api = open(path)?;
    let client = make_client(api)?;
    let executable = compile(api, &client)?;
    // In the order of partitions, which need not be that of the client's devices.
    let listed = api.call(|a: &mut ExecutableDevices| a.executable = executable.object)?;
    if listed.num_devices != DEVICES {
        return Err(format!("the program has {} devices", listed.num_devices));
    }
    let mut arguments = Vec::new();
    for d in 0..DEVICES {
        let device = unsafe { *listed.devices.add(d) };
        arguments.push([
            put(api, &client, device, &a[d * WIDTH..], 2)?,
            put(api, &client, device, &x[d * WIDTH..], 1)?,
        ]);
    }
    let mut is_right = true;
    for (d, result) in execute(api, &executable, &arguments)?.iter().enumerate() {
        let found = get(api, result)?;
        println!("device {}: y = {:?}", d, found);
        is_right &= found == y; // small whole numbers: no rounding
    }
    Ok(is_right)
}

fn main() {
    let path = std::env::args().nth(1).unwrap_or("./pjrt_c_api_minipod_plugin.so".to_string());
    match run(&path) {
        Ok(true) => return println!("right"),
        Ok(false) => println!("wrong"),
        Err(message) => eprintln!("{}", message),
    }
    std::process::exit(1)
}
