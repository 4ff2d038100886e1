//! CUDA C++ source of a kernel, compiled for the processor and run there.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use burn_cubecl::cubecl::{Compiler, CubeKernel, define_kernel};
use cubecl_cpp::shared::{CompilationOptions, CppCompiler};
use cubecl_cpp::target::Cuda;

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
}

const NOW: c_int = 2;

type EntryPoint = unsafe extern "C" fn(*const *mut f32, *const u32, *const f32, *const u32);

/// Numbers that a launch passes: sizes, then factors.
#[derive(Debug, Clone, Copy)]
pub(in crate::kernels::gpu) struct Scalars<'a> {
    pub(in crate::kernels::gpu) sizes: &'a [usize],
    pub(in crate::kernels::gpu) factors: &'a [f32],
}

/// Kernel compiled for the processor.
pub(in crate::kernels::gpu) struct CompiledKernel {
    run: EntryPoint,
}

/// Temporary folder that is removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("cores-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Replaces inline PTX by calls of functions that are named after the instruction and take its operands in order.
fn without_ptx(line: &str) -> String {
    let Some((before, statement)) = line.split_once("asm ") else { return line.to_owned() };
    let (_, statement) = statement.split_once("(\"").expect("the instruction");
    let (instruction, operands) = statement.split_once('"').expect("its end");
    let name = instruction.split_whitespace().next().expect("its name").replace(['.', ':'], "_");
    let operands = operands.split("\"(").skip(1).map(|operand| {
        let (operand, _) = operand.split_once(')').expect("its end");
        operand
    });
    format!("{before}{name}({});", operands.collect::<Vec<_>>().join(", "))
}

/// Statement that copies the numbers of a launch to the argument that the kernel reads them from.
fn copy(field: &str, from: &str, count: usize) -> String {
    if count == 0 {
        return String::new();
    }
    format!("std::memcpy(numbers.{field}, {from}, {count} * sizeof *{from});")
}

/// Returns a complete program around a kernel's source.
fn program(text: &str, shared_bytes: usize) -> String {
    let (_, head) = text.split_once("extern \"C\" __global__").expect("a kernel");
    let (_, head) = head.split_once("  ").expect("its name");
    let (name, head) = head.split_once('(').expect("its parameters");
    let (parameters, _) = head.split_once(") {").expect("its body");
    let buffers = parameters.split(',').count() - 1;
    let kept = |line: &&str| {
        !(line.starts_with("#include")
            || line.starts_with("typedef un")
            || line.starts_with("typedef si"))
    };
    let body = text.lines().filter(kept).map(without_ptx).collect::<Vec<_>>().join("\n");
    // A kernel without shared memory declares none.
    let body = match body.split_once("extern __shared__ ") {
        None => body,
        Some((before, after)) => {
            let (_, after) = after.split_once(" char ").expect("its alignment");
            let (shared, after) = after.split_once("[];").expect("its name");
            format!("{before}char *{shared} = shared_memory;{after}")
        }
    };
    let arguments = (0..buffers).map(|i| format!("any{{buffers[{i}]}}")).collect::<Vec<_>>();
    let count = |field: &str| {
        let declared = text.split_once(&format!(" {field}[")).map(|(_, rest)| rest);
        declared
            .and_then(|rest| rest.split_once(']'))
            .map_or(0, |(count, _)| count.parse().expect("the number of scalars"))
    };
    let sizes = copy("scalars_usize", "sizes", count("scalars_usize"));
    let factors = copy("scalars_f32", "factors", count("scalars_f32"));
    let arguments = arguments.join(", ");
    let header =
        concat!(env!("CARGO_MANIFEST_DIR"), "/src/kernels/gpu/testing/simulated/device.hpp");
    format!(
        r#"#include "{header}"
{body}
static float *const *buffers;
static info_st numbers;
struct any {{ void *to; template <class T> operator T *() const {{ return static_cast<T *>(to); }} }};
static void body() {{ {name}({arguments}, &numbers); }}
extern "C" void run(float *const *all, const uint32_t *sizes, const float *factors, const uint32_t *grid) {{
    buffers = all;
    {sizes}
    {factors}
    run_blocks(body, {{grid[0], grid[1], 1}}, {{grid[2], grid[3], 1}}, {shared_bytes});
}}
"#
    )
}

fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_encoded_bytes()).unwrap()
}

impl CompiledKernel {
    /// Compiles the kernel with `c++`, or with the compiler that `CXX` names.
    pub(in crate::kernels::gpu) fn build(kernel: &dyn CubeKernel) -> Self {
        let definition = define_kernel(kernel).unwrap();
        let options = CompilationOptions::default();
        let text = CppCompiler::<Cuda>::default().compile(definition, &options).unwrap();
        let folder = Folder::new();
        let (source, library) = (folder.at("kernel.cpp"), folder.at("kernel.so"));
        fs::write(&source, program(&text.to_string(), text.shared_memory_size)).unwrap();
        let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
        let output = Command::new(&compiler)
            .args(["-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-o"])
            .args([&library, &source])
            .output()
            .unwrap_or_else(|error| panic!("{compiler} cannot be started: {error}; set CXX"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let path = c_path(&library);
        // SAFETY: the library is the one that was compiled above, whose `run` has this type; it is never
        // unloaded.
        unsafe {
            let library = dlopen(path.as_ptr(), NOW);
            assert!(!library.is_null(), "{:?}", CStr::from_ptr(dlerror()));
            let run = dlsym(library, c"run".as_ptr());
            assert!(!run.is_null(), "the library has no `run`");
            Self { run: std::mem::transmute::<*mut c_void, EntryPoint>(run) }
        }
    }

    /// Runs `grid` blocks of `block` units on the given buffers.
    pub(in crate::kernels::gpu) fn run(
        &self,
        buffers: &mut [Vec<f32>],
        Scalars { sizes, factors }: Scalars<'_>,
        grid: [usize; 2],
        block: [usize; 2],
    ) {
        let pointers = buffers.iter_mut().map(Vec::as_mut_ptr).collect::<Vec<_>>();
        let sizes = sizes.iter().map(|size| *size as u32).collect::<Vec<_>>();
        let grid = [grid[0], grid[1], block[0], block[1]].map(|count| count as u32);
        // SAFETY: the kernel takes as many buffers as there are, each as long as the launch would have it.
        unsafe { (self.run)(pointers.as_ptr(), sizes.as_ptr(), factors.as_ptr(), grid.as_ptr()) }
    }
}
