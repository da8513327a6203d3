//! Questions and answers as bytes: RFC 1035, with SRV (RFC 2782) and the size of EDNS (RFC 6891).

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use thiserror::Error;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    id: u16,
    recursion: bool,
    /// The question as it was written: it is repeated in the answer.
    question: Vec<u8>,
    /// The labels of the name, in lower case.
    pub name: Vec<String>,
    /// Which records.
    pub kind: Kind,
    /// How many bytes the one who asks takes in a datagram; `None` where it does not speak EDNS.
    size: Option<u16>,
    /// Why it is not answered, if so.
    refused: Option<Code>,
}

/// The kinds of records that are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An IPv4 address.
    A,
    /// Another name.
    Cname,
    /// The start of a zone.
    Soa,
    /// The name of an address.
    Ptr,
    /// Host and port of a service.
    Srv,
    /// Something else, of which there is nothing.
    Other(u16),
}

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The name exists, whatever it has.
    Ok = 0,
    /// The question cannot be read.
    Malformed = 1,
    /// The name does not exist.
    NoSuchName = 3,
    /// Something that is not done here.
    NotImplemented = 4,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// How it went.
    pub code: Code,
    /// What was asked for.
    pub answers: Vec<Record>,
    /// Why there is nothing: the zone that would have it.
    pub authority: Vec<Record>,
    /// What the one who asks needs next.
    pub additional: Vec<Record>,
}

/// One record. Names are without the last dot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Of what name.
    pub name: String,
    /// For how many seconds it may be remembered.
    pub ttl: u32,
    /// What it says.
    pub data: Data,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// An address.
    A(Ipv4Addr),
    /// Another name.
    Cname(String),
    /// The name of an address.
    Ptr(String),
    /// Host and port of a service.
    Srv {
        /// The share among those of one service.
        weight: u16,
        /// The port.
        port: u16,
        /// The host.
        target: String,
    },
    /// The start of a zone.
    Soa {
        /// The first server.
        server: String,
        /// Who is responsible.
        mailbox: String,
        /// How long it may be remembered that something is not there.
        minimum: u32,
    },
}

/// Bytes that are no question. There is nobody to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no DNS question")]
pub struct Malformed;

/// The class of the Internet.
const INTERNET: u16 = 1;
/// What everybody takes in a datagram.
const SIZE: u16 = 512;
/// What we take in a datagram, and send at most.
const SIZE_MAX: u16 = 1232;
const OPT: u16 = 41;

impl Kind {
    fn of(number: u16) -> Kind {
        match number {
            1 => Kind::A,
            5 => Kind::Cname,
            6 => Kind::Soa,
            12 => Kind::Ptr,
            33 => Kind::Srv,
            other => Kind::Other(other),
        }
    }
}

impl Data {
    fn number(&self) -> u16 {
        match self {
            Data::A(_) => 1,
            Data::Cname(_) => 5,
            Data::Soa { .. } => 6,
            Data::Ptr(_) => 12,
            Data::Srv { .. } => 33,
        }
    }
}

impl Query {
    /// Reads a message. One whose head can be read is a question, if only to be refused.
    ///
    /// # Errors
    /// When there is nobody to answer.
    pub fn read(bytes: &[u8]) -> Result<Query, Malformed> {
        let word = |at: usize| Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
        let (id, flags) = (word(0).ok_or(Malformed)?, word(2).ok_or(Malformed)?);
        // An answer that is answered would go on for ever.
        if flags & 0x8000 != 0 || bytes.len() < HEAD {
            return Err(Malformed);
        }
        let refused = |code| Query {
            id,
            recursion: flags & 0x0100 != 0,
            question: Vec::new(),
            name: Vec::new(),
            kind: Kind::Other(0),
            size: None,
            refused: Some(code),
        };
        if flags >> 11 & 0xf != 0 {
            return Ok(refused(Code::NotImplemented));
        }
        let read = || {
            let (name, end) = name(bytes, HEAD)?;
            let (kind, class) = (word(end)?, word(end + 2)?);
            let counted = word(4)? == 1;
            Some((name, bytes.get(HEAD..end + 4)?.to_vec(), kind, class)).filter(|_| counted)
        };
        let Some((name, question, kind, class)) = read() else { return Ok(refused(Code::Malformed)) };
        if class != INTERNET {
            return Ok(refused(Code::NotImplemented));
        }
        let size = size(bytes, HEAD + question.len(), word(10).unwrap_or(0));
        let query = refused(Code::Ok);
        Ok(Query { question, name, kind: Kind::of(kind), size, refused: None, ..query })
    }

    /// What it has to be told before anything is looked up, if so.
    pub fn refused(&self) -> Option<Code> {
        self.refused
    }

    /// The most that a datagram may have.
    pub fn datagram(&self) -> usize {
        usize::from(self.size.unwrap_or(SIZE).clamp(SIZE, SIZE_MAX))
    }

    /// The answer as bytes, at most so many. What does not fit is left out, and the answer says so.
    pub fn reply(&self, reply: &Reply, limit: usize) -> Vec<u8> {
        let mut message = Message::new(self);
        let opt = if self.size.is_some() { OPT_BYTES } else { 0 };
        let mut truncated = false;
        let mut counts = [0u16; 3];
        let sections = [&reply.answers, &reply.authority, &reply.additional];
        'all: for (count, records) in counts.iter_mut().zip(sections) {
            for record in records {
                let length = message.bytes.len();
                message.record(record);
                if message.bytes.len() + opt > limit {
                    message.bytes.truncate(length);
                    truncated = true;
                    break 'all;
                }
                *count += 1;
            }
        }
        if self.size.is_some() {
            counts[2] += 1;
            message.bytes.push(0);
            message.words(&[OPT, SIZE_MAX, 0, 0, 0]);
        }
        // An answer, ours to give, of one who would ask others if there were any.
        let mut flags = 0x8480 | reply.code as u16;
        flags |= u16::from(self.recursion) << 8 | u16::from(truncated) << 9;
        let questions = u16::from(!self.question.is_empty());
        let head = [self.id, flags, questions, counts[0], counts[1], counts[2]];
        for (at, word) in head.iter().enumerate() {
            message.bytes[at * 2..at * 2 + 2].copy_from_slice(&word.to_be_bytes());
        }
        message.bytes
    }
}

/// The length of a message's head, and of an empty OPT record.
const HEAD: usize = 12;
const OPT_BYTES: usize = 11;

/// A name at a place, and where it ends. Names in questions are not compressed.
fn name(bytes: &[u8], mut at: usize) -> Option<(Vec<String>, usize)> {
    let (start, mut labels) = (at, Vec::new());
    loop {
        let length = usize::from(*bytes.get(at)?);
        at += 1;
        if length == 0 {
            return Some((labels, at));
        }
        if length > 63 || at + length - start > 254 {
            return None;
        }
        let label = bytes.get(at..at + length)?;
        labels.push(String::from_utf8_lossy(label).to_ascii_lowercase());
        at += length;
    }
}

/// What an OPT record right after the question says of datagrams. No client sends anything in between.
fn size(bytes: &[u8], at: usize, additional: u16) -> Option<u16> {
    let head = bytes.get(at..at + 5)?;
    let opt = additional > 0 && head[0] == 0 && u16::from_be_bytes([head[1], head[2]]) == OPT;
    opt.then(|| u16::from_be_bytes([head[3], head[4]]))
}

/// A message that is being written.
struct Message {
    bytes: Vec<u8>,
    /// Where names, and the ends of names, were written: they are not written twice.
    written: BTreeMap<String, u16>,
}

impl Message {
    fn new(query: &Query) -> Message {
        let mut bytes = vec![0; HEAD];
        bytes.extend_from_slice(&query.question);
        let mut written = BTreeMap::new();
        let mut at = HEAD;
        for (number, label) in query.name.iter().enumerate() {
            written.insert(query.name[number..].join("."), at as u16);
            at += 1 + label.len();
        }
        Message { bytes, written }
    }

    fn words(&mut self, words: &[u16]) {
        self.bytes.extend(words.iter().flat_map(|word| word.to_be_bytes()));
    }

    fn record(&mut self, record: &Record) {
        self.name(&record.name, true);
        let ttl = record.ttl.to_be_bytes();
        self.words(&[record.data.number(), INTERNET]);
        self.bytes.extend_from_slice(&ttl);
        let length = self.bytes.len();
        self.words(&[0]);
        match &record.data {
            Data::A(address) => self.bytes.extend_from_slice(&address.octets()),
            Data::Cname(name) | Data::Ptr(name) => self.name(name, true),
            Data::Srv { weight, port, target } => {
                self.words(&[0, *weight, *port]);
                // By its RFC this one is written out.
                self.name(target, false);
            }
            Data::Soa { server, mailbox, minimum } => {
                self.name(server, true);
                self.name(mailbox, true);
                for number in [1, 7200, 1800, 86400, *minimum] {
                    self.bytes.extend_from_slice(&number.to_be_bytes());
                }
            }
        }
        let data = (self.bytes.len() - length - 2) as u16;
        self.bytes[length..length + 2].copy_from_slice(&data.to_be_bytes());
    }

    fn name(&mut self, name: &str, compress: bool) {
        let mut rest = name;
        while !rest.is_empty() {
            if compress && let Some(at) = self.written.get(rest) {
                let at = *at;
                return self.words(&[0xc000 | at]);
            }
            if let Ok(at @ ..0x4000) = u16::try_from(self.bytes.len()) {
                self.written.entry(rest.to_owned()).or_insert(at);
            }
            let (label, tail) = rest.split_once('.').unwrap_or((rest, ""));
            // The names of objects have labels that fit.
            let label = &label.as_bytes()[..label.len().min(63)];
            self.bytes.push(label.len() as u8);
            self.bytes.extend_from_slice(label);
            rest = tail;
        }
        self.bytes.push(0);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A question as a resolver writes it.
    pub fn question(name: &str, kind: u16, edns: Option<u16>) -> Vec<u8> {
        let mut bytes = vec![0x12, 0x34, 0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, u8::from(edns.is_some())];
        for label in name.split('.').filter(|label| !label.is_empty()) {
            bytes.push(label.len() as u8);
            bytes.extend_from_slice(label.as_bytes());
        }
        bytes.extend([0, (kind >> 8) as u8, kind as u8, 0, 1]);
        if let Some(size) = edns {
            bytes.extend([0, 0, 41, (size >> 8) as u8, size as u8, 0, 0, 0, 0, 0, 0]);
        }
        bytes
    }

    fn reply(answers: usize) -> Reply {
        let record = |number: usize| Record {
            name: "web.default.svc.cluster.local".into(),
            ttl: 5,
            data: Data::A(Ipv4Addr::from(0x0af4_0000 + number as u32)),
        };
        Reply {
            code: Code::Ok,
            answers: (0..answers).map(record).collect(),
            authority: Vec::new(),
            additional: Vec::new(),
        }
    }

    #[test]
    fn a_question_is_read_whatever_its_case() {
        let query = Query::read(&question("Web.default.SVC.cluster.local", 1, None)).unwrap();
        assert_eq!(query.name, ["web", "default", "svc", "cluster", "local"]);
        assert_eq!((query.kind, query.datagram(), query.refused()), (Kind::A, 512, None));
        let query = Query::read(&question("a", 28, Some(4096))).unwrap();
        assert_eq!((query.kind, query.datagram()), (Kind::Other(28), 1232));
    }

    #[test]
    fn the_answer_repeats_the_question_and_its_name_once() {
        let asked = question("WEB.default.svc.cluster.local", 1, None);
        let bytes = Query::read(&asked).unwrap().reply(&reply(2), 512);
        assert_eq!(bytes[..12], [0x12, 0x34, 0x85, 0x80, 0, 1, 0, 2, 0, 0, 0, 0]);
        assert_eq!(bytes[12..asked.len()], asked[12..]);
        let record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 10, 244, 0, 0];
        assert_eq!(bytes[asked.len()..asked.len() + 16], record);
        assert_eq!(bytes.len(), asked.len() + 32);
    }

    #[test]
    fn what_does_not_fit_is_left_out_and_said_to_be() {
        let query = Query::read(&question("web.default.svc.cluster.local", 1, Some(1232))).unwrap();
        let bytes = query.reply(&reply(500), query.datagram());
        assert!(bytes.len() <= 1232);
        assert_eq!(bytes[2] & 0x02, 0x02, "it says that it is cut");
        let whole = query.reply(&reply(500), usize::from(u16::MAX));
        assert_eq!((whole[2] & 0x02, &whole[6..8]), (0, &500u16.to_be_bytes()[..]));
    }

    #[test]
    fn what_is_no_question_is_refused_or_left_alone() {
        for bytes in [&[][..], &[1], &[0; 11], &[0, 0, 0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0]] {
            assert_eq!(Query::read(bytes), Err(Malformed), "{bytes:?}");
        }
        let mut update = question("a", 1, None);
        update[2] = 0x28;
        assert_eq!(Query::read(&update).unwrap().refused(), Some(Code::NotImplemented));
        let good = question("a.b", 1, Some(1232));
        for length in 12..good.len() {
            // Nothing panics, whatever is cut off.
            let _ = Query::read(&good[..length]).map(|query| query.reply(&reply(1), 512));
        }
        let mut compressed = question("a", 1, None);
        compressed[12] = 0xc0;
        assert_eq!(Query::read(&compressed).unwrap().refused(), Some(Code::Malformed));
    }
}
