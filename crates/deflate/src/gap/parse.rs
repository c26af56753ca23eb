//! A publication as bits, ready to be put out for any position of its sources.
//! Tokens → codes, once, and all bits but the distances; then gaps → payload (RFC 7692 §7.2.1).
//! Immutable; allocates only in the making.
//! Change here: how codes are chosen when distances are not known yet. The bits are `block`.

use super::DEPTH_MAX;
use crate::bits::{BITS_MAX, BitWriter, SLACK_BYTES};
use crate::block::{Histogram, Plan, room, write_flush};
use crate::tables::{END_OF_BLOCK, distance_symbol};
use crate::token::{Gaps, Token};

/// One publication parsed against some of the publications before it.
pub struct Parse(Form);

enum Form {
    /// The same payload for every peer.
    Payload(Box<[u8]>),
    /// All bits are known but those of distances.
    Steps { plan: Plan, steps: Box<[Step]>, room: usize },
}

/// Some literals, and perhaps a copy: what can be written at once.
#[derive(Clone, Copy)]
struct Step {
    /// Bits of the block's head, or of literals and the length of the copy.
    bits: u64,
    count: u32,
    /// The copy; a literal stands for none.
    token: Token,
}

impl Parse {
    /// For tokens whose distances are the same for every peer.
    pub(super) fn exact(tokens: &[Token], message: &[u8]) -> Self {
        let plan = Plan::new(&Histogram::new(tokens, &Gaps::NONE), message.len());
        Self::payload(&plan, tokens, message)
    }

    /// For tokens that name their sources; `gaps` are the smallest that a peer can have.
    pub(super) fn for_any_gaps(tokens: &[Token], message: &[u8], gaps: &[u32]) -> Self {
        // Other traffic makes gaps wider, so codes are made for such ones.
        let mut wider = [0; DEPTH_MAX];
        wider.iter_mut().zip(gaps).for_each(|(wide, gap)| *wide = (gap * 3).min(GAP_MAX));
        let histogram = Histogram::new(tokens, &Gaps::new(&wider[..gaps.len()]));
        let plan = Plan::for_any_gaps(&histogram, message.len());
        if matches!(plan, Plan::Stored) {
            return Self::payload(&plan, tokens, message);
        }
        let steps = steps(&plan, tokens);
        let bits: u32 = steps.iter().map(|step| step.count + DISTANCE_BITS_MAX).sum();
        let room = bits as usize / 8 + 2 + SLACK_BYTES;
        Self(Form::Steps { plan, steps, room })
    }

    /// Appends the payload for a peer with these gaps to `out`.
    ///
    /// `gaps[i]` is the number of plaintext bytes from the start of the publication `i` + 1 before
    /// the message to the start of the message, as the peer's window has them; they do not matter
    /// to a parse that stands alone or refers to a run. Peers with equal gaps may share the bytes.
    pub fn emit(&self, gaps: &[u32], out: &mut Vec<u8>) {
        match &self.0 {
            Form::Payload(payload) => out.extend_from_slice(payload),
            Form::Steps { plan, steps, room } => {
                append(out, *room, |writer| write_steps(plan, steps, &Gaps::new(gaps), writer));
            }
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

/// Joins literals, and the copy behind them, to as few steps as can be.
fn steps(plan: &Plan, tokens: &[Token]) -> Box<[Step]> {
    let codes = plan.codes().expect("stored blocks have no tokens");
    let none = Token::literal(0);
    let mut steps = head_steps(plan);
    steps.reserve(tokens.len() / 2 + 2);
    let mut step = Step { bits: 0, count: 0, token: none };
    let end = codes.literals[END_OF_BLOCK];
    let symbols = tokens.iter().map(|token| {
        let entry = token.entry();
        let code = codes.literals[entry as usize & 0x1ff];
        let bits = code.bits() | u64::from(entry >> 24) << code.count();
        (*token, bits, code.count() + (entry >> 16 & 0xff))
    });
    for (token, bits, count) in symbols.chain([(none, end.bits(), end.count())]) {
        let most = if token.is_literal() { BITS_MAX } else { BITS_MAX - DISTANCE_BITS_MAX };
        if step.count + count > most || !step.token.is_literal() {
            steps.push(step);
            step = Step { bits: 0, count: 0, token: none };
        }
        step.bits |= bits << step.count;
        step.count += count;
        step.token = token;
    }
    steps.push(step);
    steps.into()
}

/// The bits in front of the first symbol.
fn head_steps(plan: &Plan) -> Vec<Step> {
    let mut rest = plan.head_bits();
    let mut head = vec![0; rest as usize / 8 + 1 + SLACK_BYTES];
    let mut writer = BitWriter::new(&mut head);
    plan.write_head(&mut writer);
    writer.align();
    let mut steps = Vec::new();
    for bytes in head.as_chunks::<4>().0 {
        let count = rest.min(32);
        let bits = u32::from_le_bytes(*bytes).into();
        steps.push(Step { bits, count, token: Token::literal(0) });
        rest -= count;
        if rest == 0 {
            break;
        }
    }
    steps
}

fn write_steps(plan: &Plan, steps: &[Step], gaps: &Gaps, writer: &mut BitWriter<'_>) {
    let codes = plan.codes().expect("stored blocks have no steps");
    writer.put_all(steps.iter().map(|step| {
        let (symbol, extra, value) = distance_symbol(step.token.distance(gaps));
        let code = codes.distances[symbol];
        let distance = code.bits() | value << code.count();
        // Without a branch, because not every step has a copy.
        let is_copy = u64::from(step.token.is_literal()).wrapping_sub(1);
        let count = (code.count() + extra) & is_copy as u32;
        (step.bits | (distance & is_copy) << step.count, step.count + count)
    }));
}

/// Wide enough that no distance in a message at this gap exceeds the largest window.
const GAP_MAX: u32 = 16 << 10;

/// With them, a step is at most as much as the writer takes at once.
const DISTANCE_BITS_MAX: u32 = 15 + 13;
