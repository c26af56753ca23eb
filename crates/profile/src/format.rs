//! The file format of pprof: `profile.proto` of github.com/google/pprof, gzipped.
//! In: stacks of addresses with their values → out: the bytes of a file; names, files and lines are looked up here.
//! Uses prost, backtrace for the names, zlib-rs for gzip. Never: collects a stack.
//! Changed here: what a file contains. What is measured lives in `cpu` and `heap`.

use std::collections::HashMap;

use prost::Message;
use zlib_rs::{DeflateConfig, compress_bound, compress_slice};

use messages::{Function, Label, Line, Location, Mapping, Profile, Sample, ValueType};

pub(crate) mod messages;

/// Collects the samples of one profile.
pub(crate) struct ProfileBuilder {
    profile: Profile,
    strings: HashMap<String, i64>,
    /// Ids of locations, by address.
    locations: HashMap<u64, u64>,
    /// Ids of functions, by name and file.
    functions: HashMap<(i64, i64), u64>,
}

/// A quantity and its unit, such as `cpu` in `nanoseconds`.
#[derive(Clone, Copy)]
pub(crate) struct Quantity {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
}

impl ProfileBuilder {
    /// A profile whose samples have these quantities. One sample was taken each `period` of `period_of`.
    pub(crate) fn new(quantities: &[Quantity], period_of: Quantity, period: i64) -> Self {
        let mut builder = Self {
            profile: Profile::default(),
            strings: HashMap::new(),
            locations: HashMap::new(),
            functions: HashMap::new(),
        };
        builder.string(""); // The format reserves index 0 for it.
        builder.profile.sample_type =
            quantities.iter().map(|quantity| builder.value_type(*quantity)).collect();
        builder.profile.period_type = Some(builder.value_type(period_of));
        builder.profile.period = period;
        let binary = std::env::current_exe().unwrap_or_default();
        let filename = builder.string(&binary.to_string_lossy());
        // Readers look up names in the file unless the mapping has them.
        builder.profile.mapping.push(Mapping {
            id: MAPPING,
            memory_limit: u64::MAX,
            filename,
            has_functions: true,
            has_filenames: true,
            has_line_numbers: true,
            has_inline_frames: true,
            ..Mapping::default()
        });
        builder
    }

    /// Sets the start and the length of the measurement, in ns.
    pub(crate) fn set_time(&mut self, unix_ns: i64, duration_ns: i64) {
        self.profile.time_nanos = unix_ns;
        self.profile.duration_nanos = duration_ns;
    }

    /// Adds a text that `pprof -comments` prints.
    pub(crate) fn comment(&mut self, text: &str) {
        let text = self.string(text);
        self.profile.comment.push(text);
    }

    /// Adds a sample. The innermost address is the first one; of return addresses, it is the address before.
    pub(crate) fn sample(&mut self, stack: &[u64], value: Vec<i64>, thread: Option<&str>) {
        let location_id = stack.iter().map(|address| self.location(*address)).collect();
        let label = thread
            .map(|name| Label { key: self.string("thread"), str: self.string(name), num: 0 })
            .into_iter()
            .collect();
        self.profile.sample.push(Sample { location_id, value, label });
    }

    /// The gzipped file.
    pub(crate) fn finish(self) -> Vec<u8> {
        let bytes = self.profile.encode_to_vec();
        // zlib's manual, deflateInit2: 16 more window bits write a gzip header and trailer, which are 12 bytes longer.
        let config = DeflateConfig { window_bits: 16 + 15, ..DeflateConfig::default() };
        let mut file = vec![0; compress_bound(bytes.len()) + 12];
        let (written, _) = compress_slice(&mut file, &bytes, config);
        let file_bytes = written.len();
        file.truncate(file_bytes);
        file
    }

    fn value_type(&mut self, quantity: Quantity) -> ValueType {
        ValueType { r#type: self.string(quantity.name), unit: self.string(quantity.unit) }
    }

    fn string(&mut self, text: &str) -> i64 {
        if let Some(index) = self.strings.get(text) {
            return *index;
        }
        let index = self.strings.len() as i64;
        self.strings.insert(text.to_owned(), index);
        self.profile.string_table.push(text.to_owned());
        index
    }

    fn location(&mut self, address: u64) -> u64 {
        if let Some(id) = self.locations.get(&address) {
            return *id;
        }
        let id = self.locations.len() as u64 + 1;
        self.locations.insert(address, id);
        let mut line = Vec::new();
        for (name, file, number) in symbols(address) {
            let function_id = self.function(&name, &file);
            line.push(Line { function_id, line: number.into() });
        }
        self.profile.location.push(Location { id, mapping_id: MAPPING, address, line });
        id
    }

    fn function(&mut self, name: &str, file: &str) -> u64 {
        let key = (self.string(name), self.string(file));
        let id = self.functions.len() as u64 + 1;
        let known = *self.functions.entry(key).or_insert(id);
        if known == id {
            let (name, filename) = key;
            self.profile.function.push(Function { id, name, system_name: name, filename });
        }
        known
    }
}

/// Name, file and line of the functions at an address: inlined ones first, their caller last. One without a name if the
/// binary has no symbol there.
pub(crate) fn symbols(address: u64) -> Vec<(String, String, u32)> {
    let mut rows = Vec::new();
    // It looks up the address before, as of a return address.
    backtrace::resolve((address as usize + 1) as *mut _, |symbol| {
        if let Some(name) = symbol.name() {
            let file = symbol.filename().map(|path| path.to_string_lossy().into_owned());
            // The alternate form omits the hash.
            let row = (format!("{name:#}"), file.unwrap_or_default(), symbol.lineno().unwrap_or(0));
            rows.push(row);
        }
    });
    if rows.is_empty() {
        rows.push((format!("{address:#x}"), String::new(), 0));
    }
    rows
}

/// The number of the only mapping: names are looked up here, so readers need no other.
const MAPPING: u64 = 1;
