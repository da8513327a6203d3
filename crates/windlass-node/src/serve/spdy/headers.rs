//! Header blocks: names and values, compressed over the whole life of a connection.

use std::collections::BTreeMap;
use std::io;

use bytes::{Buf as _, BufMut as _, Bytes};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};

use super::frame::invalid;

/// The headers of a stream. Names are lower-case.
pub type Headers = BTreeMap<String, String>;

/// The words that both ends have in mind before the first header, in the order of the specification. Each stands behind
/// its length of four bytes.
const WORDS: &str = "options head post put delete trace accept accept-charset accept-encoding accept-language \
    accept-ranges age allow authorization cache-control connection content-base content-encoding content-language \
    content-length content-location content-md5 content-range content-type date etag expect expires from host if-match \
    if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma \
    proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade \
    user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie \
    keep-alive origin";

/// What follows the words.
const TAIL: &str = "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505\
    203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden\
    404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable\
    Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT\
    chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,\
    publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

/// More than any stream of Kubernetes has in headers; a block that unfolds beyond it is an attack.
const BLOCK_MAX: usize = 256 << 10;

fn dictionary() -> Vec<u8> {
    let mut all = Vec::new();
    for word in WORDS.split_whitespace() {
        all.put_u32(word.len() as u32);
        all.extend(word.bytes().map(|byte| if byte == b'_' { b' ' } else { byte }));
    }
    all.extend_from_slice(TAIL.as_bytes());
    all
}

/// Reads the blocks of one connection, in their order.
pub(super) struct Reader {
    inflate: Decompress,
    /// Whether the peer's first block, which begins with zlib's own words, has been read.
    begun: bool,
}

impl Reader {
    pub fn new() -> Reader {
        // The dictionary is what the stream may refer back to. Without zlib's own call for it, it is given to the
        // decompressor as the first block of the stream, uncompressed; what comes out is the dictionary, and is dropped.
        let dictionary = dictionary();
        let length = dictionary.len() as u16;
        let mut first = vec![0];
        first.extend_from_slice(&length.to_le_bytes());
        first.extend_from_slice(&(!length).to_le_bytes());
        first.extend_from_slice(&dictionary);
        let mut inflate = Decompress::new(false);
        let mut out = Vec::with_capacity(dictionary.len() + 64);
        inflate
            .decompress_vec(&first, &mut out, FlushDecompress::Sync)
            .expect("an uncompressed block is always well-formed");
        assert_eq!(out, dictionary, "the decompressor has taken all of it");
        Reader { inflate, begun: false }
    }

    /// The headers of the next block.
    pub fn read(&mut self, block: &Bytes) -> io::Result<Headers> {
        let mut block = &block[..];
        if !std::mem::replace(&mut self.begun, true) {
            // Two bytes of zlib's, and the dictionary's checksum if the peer uses it.
            let has_dictionary = block.get(1).is_some_and(|flags| flags & 0x20 != 0);
            let preamble = if has_dictionary { 6 } else { 2 };
            block = block.get(preamble..).ok_or_else(|| invalid("a header block is too short"))?;
        }
        let mut all = Vec::new();
        loop {
            all.reserve(1024);
            let before = (self.inflate.total_in(), self.inflate.total_out());
            self.inflate
                .decompress_vec(block, &mut all, FlushDecompress::Sync)
                .map_err(|_| invalid("a header block does not decompress"))?;
            block = &block[(self.inflate.total_in() - before.0) as usize..];
            // What was taken in may come out later: the block is over when nothing moves any more.
            if before == (self.inflate.total_in(), self.inflate.total_out()) {
                break;
            }
            if all.len() > BLOCK_MAX {
                return Err(invalid("a header block is too long"));
            }
        }
        if !block.is_empty() {
            return Err(invalid("a header block does not decompress"));
        }
        parse(&all)
    }
}

fn parse(mut block: &[u8]) -> io::Result<Headers> {
    let short = || invalid("a header block is too short");
    let mut headers = Headers::new();
    let count = block.try_get_u32().map_err(|_| short())?;
    for _ in 0..count {
        let mut text = || {
            let length = block.try_get_u32().map_err(|_| short())? as usize;
            let (text, rest) = block.split_at_checked(length).ok_or_else(short)?;
            block = rest;
            Ok::<_, io::Error>(String::from_utf8_lossy(text).into_owned())
        };
        let (name, value) = (text()?, text()?);
        headers.insert(name.to_ascii_lowercase(), value);
    }
    Ok(headers)
}

/// Writes the blocks of one connection.
pub struct Writer {
    deflate: Compress,
}

impl Writer {
    pub fn new() -> Writer {
        // The dictionary is an offer that a writer need not take.
        Writer { deflate: Compress::new(Compression::fast(), true) }
    }

    pub fn write(&mut self, headers: &Headers) -> Bytes {
        let mut plain = Vec::new();
        plain.put_u32(headers.len() as u32);
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            plain.put_u32(text.len() as u32);
            plain.extend_from_slice(text.as_bytes());
        }
        // Room for all that cannot be compressed, and for the flush.
        let mut block = Vec::with_capacity(plain.len() + plain.len() / 8 + 128);
        self.deflate
            .compress_vec(&plain, &mut block, FlushCompress::Sync)
            .expect("compressing into enough room does not fail");
        block.into()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The blocks of a connection are compressed together: one that is damaged spoils those behind it, and no more.
        #[test]
        fn any_blocks_are_read_as_they_were_written_until_one_is_damaged(
            blocks in prop::collection::vec(prop::collection::btree_map("[a-z-]{1,12}", ".{0,40}", 0..6), 1..6),
            harm in prop::option::of((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>())),
        ) {
            let (mut reader, mut writer) = (Reader::new(), Writer::new());
            let mut written: Vec<Vec<u8>> = blocks.iter().map(|block| writer.write(block).to_vec()).collect();
            let damaged = harm.map(|(block, at, byte)| {
                let block = block.index(written.len());
                let at = at.index(written[block].len());
                written[block][at] = byte;
                block
            });
            for (index, (block, written)) in blocks.iter().zip(written).enumerate() {
                let read = reader.read(&Bytes::from(written));
                if damaged.is_none_or(|damaged| index < damaged) {
                    prop_assert_eq!(&read.unwrap(), block);
                }
            }
        }
    }

    #[test]
    fn the_dictionary_is_that_of_the_specification() {
        let dictionary = dictionary();
        assert_eq!(dictionary.len(), 1423);
        // Adler-32, which zlib names it by.
        let (mut low, mut high) = (1u32, 0u32);
        for byte in dictionary {
            low = (low + u32::from(byte)) % 65521;
            high = (high + low) % 65521;
        }
        assert_eq!(high << 16 | low, 0xe3c6_a7c2);
    }

    #[test]
    fn blocks_are_read_as_they_were_written() {
        let (mut reader, mut writer) = (Reader::new(), Writer::new());
        for number in 0..50 {
            let mut headers = Headers::new();
            headers.insert("streamtype".into(), "data".into());
            headers.insert("port".into(), "80".into());
            headers.insert("requestid".into(), number.to_string());
            headers.insert("long".into(), "x".repeat(number * 100));
            let block = writer.write(&headers);
            assert_eq!(reader.read(&block).unwrap(), headers);
        }
    }

    /// What moby/spdystream's framer writes for the first two streams of a connection, with the dictionary.
    #[test]
    fn blocks_of_the_real_peer_are_read() {
        let blocks = include!("recorded.in");
        let mut reader = Reader::new();
        for (block, stream_type) in blocks {
            let headers = reader.read(&Bytes::from_static(block)).unwrap();
            assert_eq!(headers["streamtype"], stream_type);
            assert_eq!(headers["port"], "8080");
            assert_eq!(headers["requestid"], "0");
        }
    }

    #[test]
    fn damage_is_an_error_and_not_a_panic() {
        for bytes in [&b""[..], b"x", b"\x78\xbb", b"\x78\xbb\xe3\xc6\xa7\xc2\xff\xff\xff", &[0x78; 40]] {
            assert!(Reader::new().read(&Bytes::copy_from_slice(bytes)).is_err(), "{bytes:?}");
        }
    }
}
