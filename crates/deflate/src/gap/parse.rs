//! A publication as bits, from which payloads for any positions of its sources are made.
//! Sequences → codes, once, and all bits but the distances; then gaps → payload (RFC 7692 §7.2.1).
//! Immutable; allocates only in the making.
//! Changed here: the work for each gap. Which codes are chosen is `block`.

use std::iter::once;

use crate::bits::{BITS_MAX, BitWriter, SLACK_BYTES};
use crate::block::{FIXED_HEAD, HEAD_BITS, Histogram, Plan, room, write_flush};
use crate::tables::{Code, Codes, DISTANCES, END_OF_BLOCK, STATIC, distance_symbol};
use crate::token::{Gaps, Sequence, Token, runs};

/// One publication parsed against some of the publications before it.
pub struct Parse(pub(super) Box<ParseBody>);

pub(super) enum ParseBody {
    /// The same payload for every peer.
    Payload(Box<[u8]>),
    /// All bits are fixed except those of distances to other publications.
    Steps(Steps),
}

pub(super) struct Steps {
    steps: Vec<Step>,
    /// The distinct distances, as copies that have them; the first one means none.
    ///
    /// Messages change in few places and are aligned in between, so they are few.
    distances: Vec<Token>,
    /// Codes of distances, if they were made for the message.
    codes: Option<Box<[Code; DISTANCES]>>,
    pub(super) room: usize,
}

/// The unit of output: some bits, and perhaps a distance after them.
#[derive(Clone, Copy, Default)]
pub(super) struct Step {
    /// Bits of the block's head, of literals and of lengths.
    bits: u64,
    count: u32,
    /// Index of the distance; 0 for none.
    distance: u32,
}

/// The code of a distance and its extra bits.
#[derive(Clone, Copy, Default)]
struct Pattern {
    bits: u32,
    count: u32,
}

impl Parse {
    /// Parse with copies whose distances are the same for every peer.
    pub(super) fn exact(sequences: &[Sequence], message: &[u8]) -> Self {
        let plan = Plan::new(&Histogram::new(sequences, message), message.len());
        Self::payload(&plan, sequences, message)
    }

    /// Parse with copies that name their sources, by a plan for all gaps that a peer can have.
    pub(super) fn for_any_gaps(plan: &Plan, sequences: &[Sequence], message: &[u8]) -> Self {
        match plan.codes() {
            Some(codes) => {
                Self(ParseBody::Steps(Steps::new(plan, codes, sequences, message)).into())
            }
            None => Self::payload(plan, sequences, message),
        }
    }

    /// Appends the payload for a peer with these gaps to `out`.
    ///
    /// `gaps[i]` is the number of plaintext bytes from the start of the publication `i` + 1 before
    /// the message to the start of the message, in the peer's window. A parse that stands alone or
    /// refers to a run ignores them. Peers with equal gaps may share the bytes.
    pub fn emit(&self, gaps: &[u32], out: &mut Vec<u8>) {
        match &*self.0 {
            ParseBody::Payload(payload) => out.extend_from_slice(payload),
            ParseBody::Steps(steps) => append(out, steps.room, |writer| {
                steps.write(gaps, writer);
                write_flush(writer);
            }),
        }
    }

    fn payload(plan: &Plan, sequences: &[Sequence], message: &[u8]) -> Self {
        let mut payload = Vec::new();
        append(&mut payload, room(message.len(), message.len().max(1)), |writer| {
            plan.write(sequences, message, &Gaps::NONE, writer);
            write_flush(writer);
        });
        Self(ParseBody::Payload(payload.into()).into())
    }
}

impl Steps {
    fn new(plan: &Plan, codes: &Codes, sequences: &[Sequence], message: &[u8]) -> Self {
        let mut assembly = Assembly::new(plan, codes, sequences.len());
        let mut pending = assembly.head(plan);
        for (literals, token) in runs(sequences, message) {
            for byte in literals {
                pending = assembly.literal(*byte, pending);
            }
            pending = assembly.token(token, pending);
        }
        assembly.finish(plan)
    }

    /// Writes the whole block.
    pub(super) fn write(&self, gaps: &[u32], writer: &mut BitWriter<'_>) {
        self.write_steps(self.steps.iter().copied(), gaps, writer);
    }

    /// Whether the block has the static codes.
    pub(super) fn is_fixed(&self) -> bool {
        self.codes.is_none()
    }

    /// Writes the symbols of a [fixed](Self::is_fixed) block without its head and its end.
    pub(super) fn write_symbols(&self, gaps: &[u32], writer: &mut BitWriter<'_>) {
        let (first, rest) = self.steps.split_first().expect("a block has a head and an end");
        let steps = once(first.without_head());
        match rest.split_last() {
            Some((last, middle)) => {
                let steps = steps.chain(middle.iter().copied()).chain([last.without_end()]);
                self.write_steps(steps, gaps, writer);
            }
            None => self.write_steps(steps.map(|step| step.without_end()), gaps, writer),
        }
    }

    #[inline(always)] // for each kind of iterators
    fn write_steps(
        &self,
        steps: impl Iterator<Item = Step>,
        gaps: &[u32],
        writer: &mut BitWriter<'_>,
    ) {
        let gaps = Gaps::new(gaps);
        let mut few = [Pattern::default(); PATTERNS];
        if self.distances.len() <= PATTERNS {
            self.fill(&mut few[..self.distances.len()], &gaps);
            // The remainder avoids a bounds check: an eighth less time.
            let pattern = |step: Step| few[step.distance as usize % PATTERNS];
            writer.put_all(steps.map(|step| step.with(pattern(step))));
        } else {
            let mut many = vec![Pattern::default(); self.distances.len()];
            self.fill(&mut many, &gaps);
            writer.put_all(steps.map(|step| step.with(many[step.distance as usize])));
        }
    }

    /// Sets the patterns of all distances except the first one, which means none.
    fn fill(&self, patterns: &mut [Pattern], gaps: &Gaps) {
        let codes = self.codes.as_deref().unwrap_or(&STATIC.distances);
        for (slot, token) in patterns[1..].iter_mut().zip(&self.distances[1..]) {
            *slot = pattern(*token, gaps, codes);
        }
    }
}

impl Step {
    /// The step without the head of its fixed block.
    fn without_head(self) -> Self {
        Self { bits: self.bits >> HEAD_BITS, count: self.count - HEAD_BITS, ..self }
    }

    /// The step without the end of its fixed block, which is zeros.
    fn without_end(self) -> Self {
        let end = STATIC.literals[END_OF_BLOCK];
        Self { count: self.count - end.count(), ..self }
    }

    /// Its bits and their number, with the pattern of its distance.
    #[inline(always)] // once per step
    fn with(self, pattern: Pattern) -> (u64, u32) {
        (self.bits | u64::from(pattern.bits) << self.count, self.count + pattern.count)
    }
}

/// Steps while they are being made.
struct Assembly<'a> {
    codes: &'a Codes,
    steps: Vec<Step>,
    distances: Vec<Token>,
    /// Some of the distances, by hash: their indices in the list; 0 for none.
    recent: [u16; RECENT],
    /// Largest pattern of a distance; a step with it fits one write.
    distance_bits_max: u32,
    /// The sum over all steps in the list.
    bits_max: u32,
}

/// The bits of the next step.
#[derive(Clone, Copy, Default)]
struct Pending {
    bits: u64,
    count: u32,
}

impl<'a> Assembly<'a> {
    /// Creates an assembly with space for about `sequences` steps.
    fn new(plan: &Plan, codes: &'a Codes, sequences: usize) -> Self {
        let mut distances = Vec::with_capacity(DISTANCES_LIKELY);
        distances.push(Token::END);
        Self {
            codes,
            steps: Vec::with_capacity(sequences * 3 / 2 + plan.head_bits() as usize / 32 + 2),
            distances,
            recent: [0; RECENT],
            distance_bits_max: plan.distance_bits_max(),
            bits_max: 0,
        }
    }

    /// Returns the bits before the first symbol.
    fn head(&mut self, plan: &Plan) -> Pending {
        let mut rest = plan.head_bits();
        let Plan::Dynamic(_) = plan else { return Pending { bits: FIXED_HEAD, count: rest } };
        let mut head = vec![0; rest as usize / 8 + 1 + SLACK_BYTES];
        let mut writer = BitWriter::new(&mut head);
        plan.write_head(&mut writer);
        writer.align();
        let mut pending = Pending::default();
        for bytes in head.as_chunks::<4>().0 {
            let count = rest.min(32);
            pending = self.put(pending, u32::from_le_bytes(*bytes).into(), count, BITS_MAX);
            rest -= count;
            if rest == 0 {
                break;
            }
        }
        pending
    }

    #[inline(always)] // once per literal
    fn literal(&mut self, byte: u8, pending: Pending) -> Pending {
        let code = self.codes.literals[usize::from(byte)];
        self.put(pending, code.bits(), code.count(), BITS_MAX)
    }

    #[inline(always)] // once per sequence
    fn token(&mut self, token: Token, pending: Pending) -> Pending {
        let entry = token.entry();
        let code = self.codes.literals[entry as usize & 0x1ff];
        let bits = code.bits() | u64::from(entry >> 24) << code.count();
        let count = code.count() + (entry >> 16 & 0xff);
        if token.names_source() {
            let pending = self.put(pending, bits, count, BITS_MAX - self.distance_bits_max);
            let distance = self.index(token.shortest());
            self.end_step(pending, distance)
        } else if token.is_copy() {
            let pattern = pattern(token, &Gaps::NONE, &self.codes.distances);
            let bits = bits | u64::from(pattern.bits) << count;
            self.put(pending, bits, count + pattern.count, BITS_MAX)
        } else {
            let pending = self.put(pending, bits, count, BITS_MAX);
            self.end_step(pending, 0)
        }
    }

    /// The bits of the next step with `more` appended, if they are at most `most`; otherwise these alone.
    #[inline(always)] // once per literal and sequence
    fn put(&mut self, pending: Pending, bits: u64, count: u32, most: u32) -> Pending {
        let mut pending = pending;
        if pending.count + count > most {
            pending = self.end_step(pending, 0);
        }
        Pending { bits: pending.bits | bits << pending.count, count: pending.count + count }
    }

    #[inline(always)] // once per step
    fn end_step(&mut self, Pending { bits, count }: Pending, distance: u32) -> Pending {
        self.steps.push(Step { bits, count, distance });
        self.bits_max += count + if distance > 0 { self.distance_bits_max } else { 0 };
        Pending::default()
    }

    /// The index of `distance` in the list; appended if it was not found.
    fn index(&mut self, distance: Token) -> u32 {
        let slot = &mut self.recent[distance.hash() % RECENT];
        let known = usize::from(*slot);
        let len = self.distances.len();
        // Without a branch: processors cannot predict which distances are new.
        let is_new = self.distances[known] != distance;
        let index = if is_new { len } else { known };
        self.distances.push(distance);
        self.distances.truncate(len + usize::from(is_new));
        *slot = index as u16;
        index as u32
    }

    fn finish(self, plan: &Plan) -> Steps {
        let room = self.bits_max as usize / 8 + 2 + SLACK_BYTES;
        let Self { steps, distances, codes, .. } = self;
        let made = matches!(plan, Plan::Dynamic(_));
        Steps { steps, distances, codes: made.then(|| codes.distances.into()), room }
    }
}

/// Appends a message, which `write` writes, to `out`.
pub(super) fn append(out: &mut Vec<u8>, room: usize, write: impl FnOnce(&mut BitWriter<'_>)) {
    let start = out.len();
    out.resize(start + room, 0);
    let mut writer = BitWriter::new(&mut out[start..]);
    write(&mut writer);
    let len = writer.finish();
    out.truncate(start + len);
}

fn pattern(token: Token, gaps: &Gaps, codes: &[Code; DISTANCES]) -> Pattern {
    let (symbol, extra, value) = distance_symbol(token.distance(gaps));
    let code = codes[symbol];
    debug_assert!(code.count() > 0, "a gap is smaller than the least");
    let bits = code.bits() | value << code.count();
    Pattern { bits: bits as u32, count: code.count() + extra }
}

/// Distances that fit on the stack, a power of two; enough for nearly all messages of up to 2 KB.
const PATTERNS: usize = 64;

/// Enough for most messages.
const DISTANCES_LIKELY: usize = 16;

/// Number of distances that are searched for equal ones.
const RECENT: usize = 32;
