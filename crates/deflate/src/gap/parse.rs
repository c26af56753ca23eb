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
    Steps(Steps),
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
            Some(codes) => Self(Form::Steps(Steps::new(&plan, codes, tokens))),
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
        let mut steps = Self {
            steps: head_steps(plan, tokens.len()),
            distances: vec![Token::literal(0)],
            codes: codes.distances,
            room: 0,
        };
        for token in tokens {
            steps.push(*token, codes);
        }
        let end = codes.literals[END_OF_BLOCK];
        steps.push_bits(end.bits(), end.count(), 0);
        let bits = |step: &Step| step.count + if step.distance > 0 { DISTANCE_BITS_MAX } else { 0 };
        let bits: u32 = steps.steps.iter().map(bits).sum();
        steps.room = bits as usize / 8 + 2 + SLACK_BYTES;
        steps
    }

    fn push(&mut self, token: Token, codes: &Codes) {
        let entry = token.entry();
        let code = codes.literals[entry as usize & 0x1ff];
        let mut bits = code.bits() | u64::from(entry >> 24) << code.count();
        let mut count = code.count() + (entry >> 16 & 0xff);
        let mut distance = 0;
        if token.names_source() {
            distance = self.distance_index(token);
        } else if !token.is_literal() {
            let pattern = pattern(token, &Gaps::NONE, &self.codes);
            bits |= u64::from(pattern.bits) << count;
            count += pattern.count;
        }
        self.push_bits(bits, count, distance);
    }

    /// Joins the bits to the last step if it can take them.
    fn push_bits(&mut self, bits: u64, count: u32, distance: u32) {
        let most = if distance > 0 { BITS_MAX - DISTANCE_BITS_MAX } else { BITS_MAX };
        let last = self.steps.last_mut().expect("the head is the first one");
        if last.distance > 0 || last.count + count > most {
            self.steps.push(Step { bits, count, distance });
        } else {
            last.bits |= bits << last.count;
            last.count += count;
            last.distance = distance;
        }
    }

    fn distance_index(&mut self, token: Token) -> u32 {
        let token = token.shortest();
        let recent = self.distances.len().saturating_sub(DISTANCES_COMPARED);
        let known = self.distances[recent..].iter().rposition(|other| *other == token);
        let index = known.map_or(self.distances.len(), |at| recent + at);
        if known.is_none() {
            self.distances.push(token);
        }
        index as u32
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
    let mut head = vec![0; rest as usize / 8 + 1 + SLACK_BYTES];
    let mut writer = BitWriter::new(&mut head);
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

/// How many of the last distances are looked at for an equal one.
const DISTANCES_COMPARED: usize = 8;
