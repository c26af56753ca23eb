//! The memory map of the process: the unwind tables of its binary and libraries, and the ranges that may be stacks.
//! In: `/proc/self/maps` and the ELF files that it names → out: an unwinder that knows them, and ranges.
//! Uses object and framehop. Never: reads memory of the process by address.
//! Changed here: where unwind tables come from. `sampler` uses them.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use framehop::{
    ExplicitModuleSectionInfo, Module, MustNotAllocateDuringUnwind, Unwinder as _, UnwinderNative,
};
use object::{Object as _, ObjectSection as _, ObjectSegment as _};

pub(super) type NativeUnwinder = UnwinderNative<Vec<u8>, MustNotAllocateDuringUnwind>;

/// Memory that the process has mapped now. Threads and libraries of a later time are missing.
pub(super) struct MemoryMap {
    pub(super) unwinder: NativeUnwinder,
    /// Writable ranges without a file, in ascending order. The stack of each thread is within one.
    pub(super) stacks: Vec<Range<u64>>,
}

impl MemoryMap {
    pub(super) fn read() -> io::Result<Self> {
        let maps = std::fs::read_to_string("/proc/self/maps")?;
        let mut files = BTreeMap::<&str, Range<u64>>::new();
        let mut stacks = Vec::new();
        for (range, permissions, path) in maps.lines().filter_map(mapping) {
            if path.starts_with('/') {
                let file = files.entry(path).or_insert_with(|| range.clone());
                *file = file.start.min(range.start)..file.end.max(range.end);
            } else if permissions.starts_with("rw") {
                stacks.push(range);
            }
        }
        let mut unwinder = NativeUnwinder::new();
        for (path, range) in files {
            // A mapped file that is no ELF file, or was deleted, contains no code that could be unwound.
            if let Some(module) =
                std::fs::read(path).ok().and_then(|file| module(path, range, &file))
            {
                unwinder.add_module(module);
            }
        }
        Ok(Self { unwinder, stacks })
    }
}

/// Range, permissions and path of a line (proc_pid_maps(5)).
fn mapping(line: &str) -> Option<(Range<u64>, &str, &str)> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let range = u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?;
    let permissions = fields.next()?;
    // After offset, device and inode.
    Some((range, permissions, fields.nth(3).unwrap_or_default()))
}

/// The unwind tables of an ELF file that is mapped at `range`.
fn module(path: &str, range: Range<u64>, file: &[u8]) -> Option<Module<Vec<u8>>> {
    let file = object::File::parse(file).ok()?;
    let addresses = |name: &str| {
        let section = file.section_by_name(name)?;
        Some(section.address()..section.address() + section.size())
    };
    let bytes = |name: &str| Some(file.section_by_name(name)?.data().ok()?.to_vec());
    let sections = ExplicitModuleSectionInfo {
        base_svma: file.segments().map(|segment| segment.address()).min()? & !(PAGE_BYTES - 1),
        text_svma: addresses(".text"),
        text: bytes(".text"),
        got_svma: addresses(".got"),
        eh_frame_svma: addresses(".eh_frame"),
        eh_frame: bytes(".eh_frame"),
        eh_frame_hdr_svma: addresses(".eh_frame_hdr"),
        eh_frame_hdr: bytes(".eh_frame_hdr"),
        ..ExplicitModuleSectionInfo::default()
    };
    Some(Module::new(path.to_owned(), range.clone(), range.start, sections))
}

/// The smallest page: an ELF file is mapped at multiples of it.
const PAGE_BYTES: u64 = 4096;
