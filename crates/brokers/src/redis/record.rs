//! What is stored in Redis and sent through it: a version byte, then Protobuf; payloads inside are untouched.
//! In: publications, joins, leaves, members → out: records, and the same again; any other bytes → an error value.
//! Uses: prost and the messages of the client protocol. Never: keys, commands, sockets.
//! Change here: the shape of a record, and with it `VERSION`. `script/*.lua` append to records and read the user of one.

use bytes::{Buf as _, BufMut, Bytes};
use fanwire_broker::{Change, ClientId, Delta, Epoch, Position};
use fanwire_protocol::{ClientInfo, Publication, protobuf};
use prost::Message as _;

/// What travels through a channel's PUB/SUB, and, when it is a publication, is stored in its stream.
///
/// The script that stores a publication appends its position as field 15, which makes the stored record a sent one, and
/// behind a delta the record stored before it as field 14.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Record {
    #[prost(message, optional, tag = "1")]
    publication: Option<Publication>,
    #[prost(message, optional, tag = "2")]
    joined: Option<ClientInfo>,
    #[prost(message, optional, tag = "3")]
    left: Option<ClientInfo>,
    /// 16 bytes, or none.
    #[prost(bytes = "bytes", tag = "4")]
    excluded: Bytes,
    /// Subscribers that agreed to deltas may get it as one.
    #[prost(bool, tag = "5")]
    delta: bool,
    /// The record of the publication before it; empty for none.
    #[prost(bytes = "bytes", tag = "14")]
    before: Bytes,
    /// Decimal offset, a blank, the epoch; empty without a place in a stream.
    #[prost(bytes = "bytes", tag = "15")]
    position: Bytes,
}

/// A record that was understood.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "one at a time, and nearly all are publications")]
pub(crate) enum Message {
    /// With its offset, 0 when it has no place in a stream.
    Publication {
        publication: Publication,
        epoch: Epoch,
        delta: Delta,
        excluded: Option<ClientId>,
    },
    Change(Change, ClientInfo),
}

/// Bytes that this version did not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Foreign {
    /// Another version byte, or none.
    Version(Option<u8>),
    /// Truncated or garbage.
    Malformed,
}

impl Record {
    /// Of a publication that has no place yet. Copies no payload.
    pub(crate) fn of_publication(
        mut publication: Publication,
        excluded: Option<ClientId>,
        delta: bool,
    ) -> Self {
        publication.offset = 0;
        publication.epoch.clear();
        publication.prev_data.clear();
        let excluded = excluded.map(|client| Bytes::copy_from_slice(&client.to_bytes()));
        Self {
            publication: Some(publication),
            excluded: excluded.unwrap_or_default(),
            delta,
            ..Self::default()
        }
    }

    pub(crate) fn of_change(change: Change, client: ClientInfo) -> Self {
        match change {
            Change::Join => Self { joined: Some(client), ..Self::default() },
            Change::Leave => Self { left: Some(client), ..Self::default() },
        }
    }

    /// Reads what came through PUB/SUB. Payloads are slices of `bytes`.
    ///
    /// # Errors
    /// [`Foreign`] for bytes that are no record of this version.
    pub(crate) fn read(bytes: Bytes) -> Result<Message, Foreign> {
        match read::<Self>(bytes)? {
            Self {
                publication: Some(publication),
                joined: None,
                left: None,
                excluded,
                delta,
                before,
                position,
            } => {
                let Position { offset, epoch } = read_position(&position)?;
                let publication = Publication { offset, ..publication };
                let excluded = read_client(&excluded)?;
                let delta = Delta::candidate(delta, data_of(before).as_ref());
                Ok(Message::Publication { publication, epoch, delta, excluded })
            }
            Self { publication: None, joined: Some(client), left: None, .. } => {
                Ok(Message::Change(Change::Join, client))
            }
            Self { publication: None, joined: None, left: Some(client), .. } => {
                Ok(Message::Change(Change::Leave, client))
            }
            _ => Err(Foreign::Malformed),
        }
    }

    /// Reads what a stream holds at `offset`. Payloads are slices of `bytes`.
    ///
    /// # Errors
    /// [`Foreign`] for bytes that are no publication of this version.
    pub(crate) fn read_stored(bytes: Bytes, offset: u64) -> Result<Publication, Foreign> {
        match Self::read(bytes)? {
            Message::Publication { publication, .. } => Ok(Publication { offset, ..publication }),
            Message::Change(..) => Err(Foreign::Malformed),
        }
    }
}

/// The payload in the record of another publication; one that is foreign is no base of a delta.
fn data_of(record: Bytes) -> Option<Bytes> {
    read::<Record>(record).ok()?.publication.map(|publication| publication.data)
}

/// What is written behind a version byte. A `ClientInfo` is the record of a member: its first field is the user, which the
/// scripts of presence read.
pub(crate) trait RecordBody {
    /// Bytes that [`put`](Self::put) puts.
    fn length(&self) -> usize;

    fn put(&self, out: &mut impl BufMut);
}

impl RecordBody for ClientInfo {
    fn length(&self) -> usize {
        1 + self.encoded_len()
    }

    fn put(&self, out: &mut impl BufMut) {
        out.put_u8(VERSION);
        self.encode(out).expect("commands grow");
    }
}

/// Publications are written by hand: prost would measure each three times. Fields that only scripts append are not there.
impl RecordBody for Record {
    fn length(&self) -> usize {
        let Some(publication) = &self.publication else { return 1 + self.encoded_len() };
        1 + protobuf::field_length(protobuf::publication_length(publication))
            + protobuf::text_length(&self.excluded)
            + protobuf::number_length(self.delta.into())
    }

    fn put(&self, out: &mut impl BufMut) {
        out.put_u8(VERSION);
        let Some(publication) = &self.publication else {
            return self.encode(out).expect("commands grow");
        };
        protobuf::put_head(1, protobuf::publication_length(publication), out);
        protobuf::put_publication(publication, out);
        protobuf::put_text(4, &self.excluded, out);
        protobuf::put_number(5, self.delta.into(), out);
    }
}

/// Reads the record of a member.
///
/// # Errors
/// [`Foreign`] for bytes that are no member of this version.
pub(crate) fn read_member(bytes: Bytes) -> Result<ClientInfo, Foreign> {
    read(bytes)
}

/// "offset epoch", as the scripts write it; nothing is no position.
///
/// # Errors
/// [`Foreign::Malformed`] for anything else.
pub(crate) fn read_position(text: &[u8]) -> Result<Position, Foreign> {
    if text.is_empty() {
        return Ok(Position::default());
    }
    let text = str::from_utf8(text).map_err(|_| Foreign::Malformed)?;
    let (offset, epoch) = text.split_once(' ').ok_or(Foreign::Malformed)?;
    let offset = offset.parse().map_err(|_| Foreign::Malformed)?;
    let epoch = Epoch::parse(epoch).ok_or(Foreign::Malformed)?;
    Ok(Position { offset, epoch })
}

fn read_client(bytes: &[u8]) -> Result<Option<ClientId>, Foreign> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let bytes = bytes.try_into().map_err(|_| Foreign::Malformed)?;
    Ok(Some(ClientId::from_bytes(bytes)))
}

fn read<M: prost::Message + Default>(mut bytes: Bytes) -> Result<M, Foreign> {
    match bytes.first() {
        Some(&VERSION) => bytes.advance(1),
        other => return Err(Foreign::Version(other.copied())),
    }
    M::decode(bytes).map_err(|_| Foreign::Malformed)
}

/// The first byte of every record. Another one is another shape, of an older or newer server, and is skipped.
pub(crate) const VERSION: u8 = 1;

#[cfg(test)]
mod tests;
