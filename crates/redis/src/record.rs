//! The records in Redis and on its PUB/SUB: a version byte, then Protobuf; payloads are untouched.
//! In: publications, joins, leaves, members → out: records, and back; other bytes → an error value.
//! Uses: prost and the messages of the client protocol. Never: keys, commands, sockets.
//! Changed here: the format of a record, and with it `VERSION`. `script/*.lua` append fields to records and read the user of one.

use bytes::{Buf as _, BufMut, Bytes};
use fanwire_broker::{Change, ClientId, DeliveryClass, Delta, Epoch, Position, PublishOptions};
use fanwire_protocol::{ClientInfo, Publication, protobuf};
use prost::Message as _;

/// A message on a channel's PUB/SUB. A publication is also stored in the stream of its channel.
///
/// The script that stores a publication appends its position as field 15 to the message, and for a delta the record
/// stored before it as field 14.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Record {
    #[prost(message, optional, tag = "1")]
    publication: Option<Publication>,
    #[prost(message, optional, tag = "2")]
    joined: Option<ClientInfo>,
    #[prost(message, optional, tag = "3")]
    left: Option<ClientInfo>,
    /// 16 bytes, or empty.
    #[prost(bytes = "bytes", tag = "4")]
    excluded: Bytes,
    /// Whether subscribers with deltas may get a delta.
    #[prost(bool, tag = "5")]
    delta: bool,
    /// The class of delivery: 0 as the channel's namespace says, 1 reliable, 2 latest.
    #[prost(uint32, tag = "6")]
    delivery: u32,
    /// Number of the receipt; 0 = none.
    #[prost(uint64, tag = "7")]
    receipt: u64,
    /// The map was cleared; all other fields are missing then.
    #[prost(bool, tag = "8")]
    is_cleared: bool,
    /// The record of the previous publication, in a map of the same key; empty for none.
    #[prost(bytes = "bytes", tag = "14")]
    before: Bytes,
    /// Decimal offset, a space, the epoch; empty without a position in a stream.
    #[prost(bytes = "bytes", tag = "15")]
    position: Bytes,
}

/// A decoded record.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "one at a time, and nearly all are publications")]
pub(crate) enum Message {
    /// The offset is 0 without a position in a stream.
    Publication {
        publication: Publication,
        epoch: Epoch,
        delta: Delta,
        excluded: Option<ClientId>,
        class: Option<DeliveryClass>,
        receipt: u64,
    },
    Change(Change, ClientInfo),
    /// All entries of a map are gone, without a removal for each.
    Cleared,
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
    /// A record without a position. Copies no payload.
    pub(crate) fn of_publication(mut publication: Publication, options: &PublishOptions) -> Self {
        publication.offset = 0;
        publication.epoch.clear();
        publication.prev_data.clear();
        let excluded = options.exclude_client;
        let excluded = excluded.map(|client| Bytes::copy_from_slice(&client.to_bytes()));
        Self {
            publication: Some(publication),
            excluded: excluded.unwrap_or_default(),
            delta: options.delta,
            delivery: options.delivery.map_or(0, delivery_number),
            receipt: options.receipt,
            ..Self::default()
        }
    }

    pub(crate) fn of_change(change: Change, client: ClientInfo) -> Self {
        match change {
            Change::Join => Self { joined: Some(client), ..Self::default() },
            Change::Leave => Self { left: Some(client), ..Self::default() },
        }
    }

    pub(crate) fn of_clearing() -> Self {
        Self { is_cleared: true, ..Self::default() }
    }

    /// Decodes a PUB/SUB message. Payloads are slices of `bytes`.
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
                delivery,
                receipt,
                is_cleared: false,
                before,
                position,
            } => {
                let Position { offset, epoch } = read_position(&position)?;
                let publication = Publication { offset, ..publication };
                let excluded = read_client(&excluded)?;
                let delta = Delta::candidate(delta, data_of(before).as_ref());
                let class = read_delivery(delivery);
                Ok(Message::Publication { publication, epoch, delta, excluded, class, receipt })
            }
            Self { publication: None, joined: Some(client), left: None, .. } => {
                Ok(Message::Change(Change::Join, client))
            }
            Self { publication: None, joined: None, left: Some(client), .. } => {
                Ok(Message::Change(Change::Leave, client))
            }
            Self { publication: None, joined: None, left: None, is_cleared: true, .. } => {
                Ok(Message::Cleared)
            }
            _ => Err(Foreign::Malformed),
        }
    }

    /// Decodes an entry of a stream at `offset`. Payloads are slices of `bytes`.
    ///
    /// # Errors
    /// [`Foreign`] for bytes that are no publication of this version.
    pub(crate) fn read_stored(bytes: Bytes, offset: u64) -> Result<Publication, Foreign> {
        match Self::read(bytes)? {
            Message::Publication { publication, .. } => Ok(Publication { offset, ..publication }),
            Message::Change(..) | Message::Cleared => Err(Foreign::Malformed),
        }
    }
}

/// The payload of the previous record; `None` if this version cannot decode it, so that there is no base for a delta.
fn data_of(record: Bytes) -> Option<Bytes> {
    read::<Record>(record).ok()?.publication.map(|publication| publication.data)
}

/// The body of a record. A `ClientInfo` is the record of a member; its first field is the user, which the scripts of
/// presence read.
pub(crate) trait RecordBody {
    /// Bytes that [`put`](Self::put) writes.
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

/// Written by hand, because prost would compute each length three times. Fields that only scripts append are missing.
impl RecordBody for Record {
    fn length(&self) -> usize {
        let Some(publication) = &self.publication else { return 1 + self.encoded_len() };
        1 + protobuf::field_length(protobuf::publication_length(publication))
            + protobuf::text_length(&self.excluded)
            + protobuf::number_length(self.delta.into())
            + protobuf::number_length(self.delivery.into())
            + protobuf::number_length(self.receipt)
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
        protobuf::put_number(6, self.delivery.into(), out);
        protobuf::put_number(7, self.receipt, out);
    }
}

/// Decodes the record of a member.
///
/// # Errors
/// [`Foreign`] for bytes that are no member of this version.
pub(crate) fn read_member(bytes: Bytes) -> Result<ClientInfo, Foreign> {
    read(bytes)
}

/// Decodes "offset epoch", as the scripts write it; an empty text is the default position.
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

fn delivery_number(class: DeliveryClass) -> u32 {
    match class {
        DeliveryClass::Reliable => 1,
        DeliveryClass::Latest => 2,
    }
}

/// A number of a later version is read as none, because the publication itself is readable.
fn read_delivery(number: u32) -> Option<DeliveryClass> {
    match number {
        1 => Some(DeliveryClass::Reliable),
        2 => Some(DeliveryClass::Latest),
        _ => None,
    }
}

fn read_client(bytes: &[u8]) -> Result<Option<ClientId>, Foreign> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let bytes = bytes.try_into().map_err(|_| Foreign::Malformed)?;
    Ok(Some(ClientId::from_bytes(bytes)))
}

/// Decodes the Protobuf message of a record.
///
/// # Errors
/// [`Foreign`] for bytes that are none of this version.
pub(crate) fn read<M: prost::Message + Default>(mut bytes: Bytes) -> Result<M, Foreign> {
    match bytes.first() {
        Some(&VERSION) => bytes.advance(1),
        other => return Err(Foreign::Version(other.copied())),
    }
    M::decode(bytes).map_err(|_| Foreign::Malformed)
}

/// The first byte of every record. Records with another version are skipped.
pub(crate) const VERSION: u8 = 1;

#[cfg(test)]
mod tests;
