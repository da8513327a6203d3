//! How deep the syntax tree of an expression can become, seen from its text.
//!
//! The parser and all that walks its tree recurse as deep as the tree is, so that a long chain such as `1 + 1 + …`
//! must be refused before it is parsed.

/// How deep a tree may be.
pub(super) const DEPTH_MAX: usize = 200;

/// An upper bound of the depth of the tree: for each open bracket the operators that chain before it.
pub(super) fn bound(source: &str) -> usize {
    let bytes = source.as_bytes();
    let (mut open, mut deepest, mut i) = (vec![0usize], 0, 0);
    while i < bytes.len() {
        match bytes[i] {
            b'"' | b'\'' => {
                i = string_end(bytes, i);
                continue;
            }
            b'/' if bytes.get(i + 1) == Some(&b'/') => {
                i = bytes[i..].iter().position(|b| *b == b'\n').map_or(bytes.len(), |end| i + end);
                continue;
            }
            b'(' | b'[' | b'{' => {
                chain(&mut open);
                open.push(0);
            }
            b')' | b']' | b'}' if open.len() > 1 => drop(open.pop()),
            // These do not chain: the operands of `&&` and `||` are kept in balance, those of `,` stand side by side.
            b'&' | b'|' | b',' => *open.last_mut().expect("one is always open") = 0,
            b'+' | b'-' | b'*' | b'/' | b'%' | b'=' | b'!' | b'<' | b'>' | b'.' | b'?' => chain(&mut open),
            b'i' if bytes[i..].starts_with(b"in ") => chain(&mut open),
            _ => {}
        }
        deepest = deepest.max(open.iter().sum());
        i += 1;
    }
    deepest
}

fn chain(open: &mut [usize]) {
    *open.last_mut().expect("one is always open") += 1;
}

/// Where the string ends that starts at `start`: after its closing quotes, or at the end of the text.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let quote = bytes[start];
    let triple = bytes[start..].starts_with(&[quote; 3]);
    let raw = start > 0 && matches!(bytes[start - 1], b'r' | b'R');
    let mut i = start + if triple { 3 } else { 1 };
    while i < bytes.len() {
        match bytes[i] {
            b'\\' if !raw => i += 2,
            b if b == quote && !triple => return i + 1,
            b if b == quote && bytes[i..].starts_with(&[quote; 3]) => return i + 3,
            _ => i += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_and_brackets_count_and_text_does_not() {
        assert_eq!(bound("self.a.b == 1"), 4);
        assert_eq!(bound("a && b && c && d"), 0);
        assert!(bound("self.l.all(x, x.y > 0)") >= 5);
        assert_eq!(bound("'a.b.c.(((' == r\"\\\" || '''it's ...''' != ''"), 2);
        assert!(bound(&vec!["1"; 1000].join("+")) >= 999);
        assert!(bound(&"(".repeat(1000)) >= 1000);
        assert!(bound(&vec!["a ? b"; 500].join(" : ")) >= 499);
        assert_eq!(bound("'never closed \\"), 0);
    }
}
