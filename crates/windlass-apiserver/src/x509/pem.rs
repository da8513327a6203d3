//! Blocks of PEM, as Go's `encoding/pem` finds them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The type and the content of the first block.
pub(crate) fn first(mut rest: &[u8]) -> Option<(&[u8], Vec<u8>)> {
    const BEGIN: &[u8] = b"-----BEGIN ";
    const END: &[u8] = b"\n-----END ";
    loop {
        // The last line that begins a block before the first that ends one.
        let end = find(rest, END)?;
        let (before, after) = (&rest[..=end], &rest[end + END.len()..]);
        rest = after;
        let Some(begin) = before.windows(BEGIN.len()).rposition(|window| window == BEGIN) else { continue };
        if begin > 0 && before[begin - 1] != b'\n' {
            continue;
        }
        let (head, mut body) = line(&before[begin + BEGIN.len()..]);
        let Some(kind) = head.strip_suffix(b"-----") else { continue };
        while let (head, more) = line(body)
            && head.contains(&b':')
        {
            body = more;
        }
        let Some(trailer) = after.strip_prefix(kind).and_then(|after| after.strip_prefix(b"-----")) else {
            continue;
        };
        let text: Vec<u8> = body.iter().copied().filter(|byte| !b" \t\r\n".contains(byte)).collect();
        if let (true, Ok(content)) = (line(trailer).0.is_empty(), STANDARD.decode(text)) {
            return Some((kind, content));
        }
    }
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

/// The first line, without the blanks at its end, and the rest.
fn line(text: &[u8]) -> (&[u8], &[u8]) {
    let (line, rest) = match text.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&text[..end], &text[end + 1..]),
        None => (text, &[][..]),
    };
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let end = line.iter().rposition(|byte| !b" \t".contains(byte)).map_or(0, |last| last + 1);
    (&line[..end], rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_whole_block_is_found() {
        for (text, found) in [
            ("-----BEGIN A-----\nAAEC\n-----END A-----\n", Some(("A", vec![0, 1, 2]))),
            ("words\n-----BEGIN A-----\r\nAA\r\nEC\r\n-----END A-----", Some(("A", vec![0, 1, 2]))),
            ("-----BEGIN A-----\nB: C\n\nAAEC\n-----END A-----\n", Some(("A", vec![0, 1, 2]))),
            ("-----BEGIN A-----\n-----END A-----\n", Some(("A", vec![]))),
            (
                "-----BEGIN A-----\n!\n-----END A-----\n-----BEGIN B-----\nAAEC\n-----END B-----\n",
                Some(("B", vec![0, 1, 2])),
            ),
            ("-----BEGIN A-----\nAAEC\n-----END B-----\n", None),
            ("-----BEGIN A-----\nAAEC\n", None),
            ("-----BEGIN A-----", None),
            ("", None),
        ] {
            let found = found.map(|(kind, content)| (kind.as_bytes(), content));
            assert_eq!(first(text.as_bytes()), found, "{text}");
        }
    }
}
