//! The wire format of protocol buffers: tags, variable-length integers, lengths.

use super::DecodeError;

/// One field of a message as it stands on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Item<'a> {
    /// Wire type 0.
    Varint(u64),
    /// Wire type 1.
    Fixed64(u64),
    /// Wire type 2.
    Bytes(&'a [u8]),
    /// Wire type 5, which no Kubernetes type uses.
    Fixed32,
}

impl<'a> Item<'a> {
    fn wire_type(self) -> u8 {
        match self {
            Item::Varint(_) => 0,
            Item::Fixed64(_) => 1,
            Item::Bytes(_) => 2,
            Item::Fixed32 => 5,
        }
    }

    /// The number of a variable-length integer.
    pub fn varint(self, field: &str) -> Result<u64, DecodeError> {
        match self {
            Item::Varint(value) => Ok(value),
            other => Err(other.wrong(field)),
        }
    }

    /// The bytes of a length-delimited field.
    pub fn bytes(self, field: &str) -> Result<&'a [u8], DecodeError> {
        match self {
            Item::Bytes(bytes) => Ok(bytes),
            other => Err(other.wrong(field)),
        }
    }

    /// The text of a length-delimited field. Go does not check it, and its JSON replaces what is not UTF-8.
    pub fn text(self, field: &str) -> Result<String, DecodeError> {
        Ok(String::from_utf8_lossy(self.bytes(field)?).into_owned())
    }

    pub fn wrong(self, field: &str) -> DecodeError {
        DecodeError::new(format!("proto: wrong wireType = {} for field {field}", self.wire_type()))
    }
}

/// Reads a message field by field.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// The next field number and its content; `None` at the end.
    pub fn next(&mut self) -> Result<Option<(u32, Item<'a>)>, DecodeError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).ok().filter(|&n| n > 0 && n < 1 << 29);
        let number = number.ok_or_else(|| DecodeError::new(format!("proto: illegal tag {}", tag >> 3)))?;
        let item = match tag & 7 {
            0 => Item::Varint(self.varint()?),
            1 => Item::Fixed64(u64::from_le_bytes(self.take(8)?.try_into().expect("took eight"))),
            2 => {
                let length = self.varint()?;
                Item::Bytes(self.take(usize::try_from(length).unwrap_or(usize::MAX))?)
            }
            5 => {
                self.take(4)?;
                Item::Fixed32
            }
            // Groups have been deprecated since before Kubernetes; nothing writes them.
            other => return Err(DecodeError::new(format!("proto: illegal wireType {other}"))),
        };
        Ok(Some((number, item)))
    }

    /// Whether everything is read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// A variable-length integer.
    pub fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(DecodeError::new("proto: integer overflow"))
    }

    /// Eight bytes, the least significant first.
    pub fn fixed64(&mut self) -> Result<u64, DecodeError> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into().expect("took eight")))
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) =
            self.rest.split_at_checked(count).ok_or_else(|| DecodeError::new("unexpected EOF"))?;
        self.rest = rest;
        Ok(taken)
    }
}
