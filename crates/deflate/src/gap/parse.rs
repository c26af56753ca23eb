//! A publication as bits, ready to be put out for any position of its sources.
//! Tokens → codes, once, and all bits but the distances; then gaps → payload (RFC 7692 §7.2.1).
//! Immutable; allocates only in the making.
//! Change here: how little is left to do for each gap. Which codes are chosen is `block`.

use crate::bits::{BITS_MAX, BitWriter, SLACK_BYTES};
use crate::block::{Histogram, Plan, room, write_flush};
use crate::tables::{Code, Codes, DISTANCES, END_OF_BLOCK, distance_symbol};
use crate::token::{Gaps, Token};

/// One publication parsed against some of the publications before it.
pub struct Parse(Form);

enum Form {
    /// The same payload for every peer.
    Payload(Box<[u8]>),
    /// All bits are known but those of distances to other publications.
    Steps(Box<Steps>),
}

struct Steps {
    steps: Vec<Step>,
    /// The distinct distances, as copies that have them; the first one stands for none.
    ///
    /// Messages change in few places and are aligned in between, so they are few.
    distances: Vec<Token>,
    codes: [Code; DISTANCES],
    room: usize,
}

/// What can be written at once: some bits, and perhaps a distance behind them.
#[derive(Clone, Copy, Default)]
struct Step {
    /// Of the block's head, of literals and of lengths.
    bits: u64,
    count: u32,
    /// Its index; 0 for none.
    distance: u32,
}

/// The code of a distance and its extra bits.
#[derive(Clone, Copy, Default)]
struct Pattern {
    bits: u32,
    count: u32,
}

impl Parse {
    /// For tokens whose distances are the same for every peer.
    pub(super) fn exact(tokens: &[Token], message: &[u8]) -> Self {
        let plan = Plan::new(&Histogram::new(tokens), message.len());
        Self::payload(&plan, tokens, message)
    }

    /// For tokens that name their sources; `gaps` are the smallest that a peer can have.
    pub(super) fn for_any_gaps(tokens: &[Token], message: &[u8], gaps: &[u32]) -> Self {
        let plan = Plan::for_gaps_from(gaps, tokens, message.len());
        match plan.codes() {
            Some(codes) => Self(Form::Steps(Steps::new(&plan, codes, tokens).into())),
            None => Self::payload(&plan, tokens, message),
        }
    }

    /// Appends the payload for a peer with these gaps to `out`.
    ///
    /// `gaps[i]` is the number of plaintext bytes from the start of the publication `i` + 1 before
    /// the message to the start of the message, as the peer's window has them; they do not matter
    /// to a parse that stands alone or refers to a run. Peers with equal gaps may share the bytes.
    pub fn emit(&self, gaps: &[u32], out: &mut Vec<u8>) {
        match &self.0 {
            Form::Payload(payload) => out.extend_from_slice(payload),
            Form::Steps(steps) => append(out, steps.room, |writer| steps.write(gaps, writer)),
        }
    }

    fn payload(plan: &Plan, tokens: &[Token], message: &[u8]) -> Self {
        let mut payload = Vec::new();
        append(&mut payload, room(message.len(), message.len().max(1)), |writer| {
            plan.write(tokens, message, &Gaps::NONE, writer);
        });
        Self(Form::Payload(payload.into()))
    }
}

impl Steps {
    fn new(plan: &Plan, codes: &Codes, tokens: &[Token]) -> Self {
        let mut steps = head_steps(plan, tokens.len());
        let mut distances = Vec::with_capacity(DISTANCES_LIKELY);
        distances.push(Token::literal(0));
        let mut last = steps.pop().expect("three bits at least");
        let end = codes.literals[END_OF_BLOCK];
        let end = Step { bits: end.bits(), count: end.count(), distance: 0 };
        let next = tokens.iter().map(|token| Step::new(*token, codes, &mut distances));
        for step in next.chain([end]) {
            let most = if step.distance > 0 { BITS_MAX - DISTANCE_BITS_MAX } else { BITS_MAX };
            if last.distance > 0 || last.count + step.count > most {
                steps.push(last);
                last = step;
            } else {
                last.bits |= step.bits << last.count;
                last.count += step.count;
                last.distance = step.distance;
            }
        }
        steps.push(last);
        let bits = |step: &Step| step.count + if step.distance > 0 { DISTANCE_BITS_MAX } else { 0 };
        let bits: u32 = steps.iter().map(bits).sum();
        let room = bits as usize / 8 + 2 + SLACK_BYTES;
        Self { steps, distances, codes: codes.distances, room }
    }

    fn write(&self, gaps: &[u32], writer: &mut BitWriter<'_>) {
        let gaps = Gaps::new(gaps);
        let mut few = [Pattern::default(); PATTERNS];
        let mut many = Vec::new();
        let patterns = if self.distances.len() <= PATTERNS {
            &mut few[..self.distances.len()]
        } else {
            many.resize(self.distances.len(), Pattern::default());
            &mut many
        };
        for (slot, token) in patterns[1..].iter_mut().zip(&self.distances[1..]) {
            *slot = pattern(*token, &gaps, &self.codes);
        }
        writer.put_all(self.steps.iter().map(|step| {
            let pattern = patterns[step.distance as usize];
            (step.bits | u64::from(pattern.bits) << step.count, step.count + pattern.count)
        }));
    }
}

impl Step {
    /// A token by itself; its distance is added to `distances` if it is a new one.
    #[inline(always)] // once per token, and most of it is known of a literal
    fn new(token: Token, codes: &Codes, distances: &mut Vec<Token>) -> Self {
        let entry = token.entry();
        let code = codes.literals[entry as usize & 0x1ff];
        if token.is_literal() {
            return Self { bits: code.bits(), count: code.count(), distance: 0 };
        }
        let bits = code.bits() | u64::from(entry >> 24) << code.count();
        let count = code.count() + (entry >> 16 & 0xff);
        if token.names_source() {
            return Self { bits, count, distance: index(token.shortest(), distances) };
        }
        let pattern = pattern(token, &Gaps::NONE, &codes.distances);
        let bits = bits | u64::from(pattern.bits) << count;
        Self { bits, count: count + pattern.count, distance: 0 }
    }
}

/// Where `distance` is in the list; at the end if it was not among the last ones.
fn index(distance: Token, distances: &mut Vec<Token>) -> u32 {
    let recent = distances.len().saturating_sub(DISTANCES_COMPARED);
    let known = distances[recent..].iter().rposition(|other| *other == distance);
    let index = known.map_or(distances.len(), |at| recent + at);
    if known.is_none() {
        distances.push(distance);
    }
    index as u32
}

/// Appends a message of one block, which `write` writes, to `out`.
fn append(out: &mut Vec<u8>, room: usize, write: impl FnOnce(&mut BitWriter<'_>)) {
    let start = out.len();
    out.resize(start + room, 0);
    let mut writer = BitWriter::new(&mut out[start..]);
    write(&mut writer);
    write_flush(&mut writer);
    let len = writer.finish();
    out.truncate(start + len);
}

/// The bits in front of the first symbol, in a list with room for about `tokens` steps.
fn head_steps(plan: &Plan, tokens: usize) -> Vec<Step> {
    let mut rest = plan.head_bits();
    let room = rest as usize / 8 + 1 + SLACK_BYTES;
    let (mut few, mut many) = ([0; 1 + SLACK_BYTES], Vec::new());
    let head = if room <= few.len() {
        &mut few[..]
    } else {
        many.resize(room, 0);
        &mut many
    };
    let mut writer = BitWriter::new(head);
    plan.write_head(&mut writer);
    writer.align();
    let mut steps = Vec::with_capacity(tokens / 2 + rest as usize / 32 + 2);
    for bytes in head.as_chunks::<4>().0 {
        let count = rest.min(32);
        let bits = u32::from_le_bytes(*bytes).into();
        steps.push(Step { bits, count, distance: 0 });
        rest -= count;
        if rest == 0 {
            break;
        }
    }
    steps
}

fn pattern(token: Token, gaps: &Gaps, codes: &[Code; DISTANCES]) -> Pattern {
    let (symbol, extra, value) = distance_symbol(token.distance(gaps));
    let code = codes[symbol];
    debug_assert!(code.count() > 0, "a gap is smaller than the least");
    let bits = code.bits() | value << code.count();
    Pattern { bits: bits as u32, count: code.count() + extra }
}

/// With them, a step is at most as much as the writer takes at once.
const DISTANCE_BITS_MAX: u32 = 15 + 13;

/// As many distances as have room on the stack: of nearly all messages of up to 1 KB.
const PATTERNS: usize = 48;

/// What most messages have at most.
const DISTANCES_LIKELY: usize = 16;

/// How many of the last distances are looked at for an equal one.
const DISTANCES_COMPARED: usize = 8;
