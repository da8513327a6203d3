//! How deep the syntax tree of an expression can become, seen from its words.
//!
//! The parser and all that walks its tree recurse as deep as the tree is, so that a long chain such as `1 + 1 + …`
//! must be refused before it is parsed.

use super::lex::{Kind, Token};

/// How deep a tree may be.
pub(super) const DEPTH_MAX: usize = 200;

/// An upper bound of the depth of the tree: for each open bracket the operators that chain before it.
pub(super) fn bound(tokens: &[Token]) -> usize {
    let (mut open, mut depth, mut deepest) = (vec![0usize], 0, 0);
    for token in tokens {
        let Kind::Mark(mark) = token.kind else { continue };
        let chained = open.last_mut().expect("one is always open");
        match mark {
            ")" | "]" | "}" => {
                if open.len() > 1 {
                    depth -= open.pop().unwrap_or_default();
                }
            }
            // These do not chain: the operands of `&&` and `||` are kept in balance, those of `,` stand side by side.
            "&&" | "||" | "," => depth -= std::mem::take(chained),
            ":" | "true" | "false" | "null" => {}
            _ => {
                *chained += 1;
                depth += 1;
                if matches!(mark, "(" | "[" | "{") {
                    open.push(0);
                }
            }
        }
        deepest = deepest.max(depth);
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::super::lex::lex;

    fn bound(source: &str) -> usize {
        super::bound(&lex(source).0)
    }

    #[test]
    fn chains_and_brackets_count_and_text_does_not() {
        assert_eq!(bound("self.a.b == 1"), 3);
        assert_eq!(bound("a && b && c && d"), 0);
        assert!(bound("self.l.all(x, x.y > 0)") >= 5);
        assert_eq!(bound("'a.b.c.(((' == r\"\\\" || '''it's ...''' != ''"), 1);
        assert!(bound(&vec!["1"; 1000].join("+")) >= 999);
        assert!(bound(&"(".repeat(1000)) >= 1000);
        assert!(bound(&vec!["a ? b"; 500].join(" : ")) >= 499);
        assert_eq!(bound("'never closed \\"), 0);
    }

    /// Text that is none is read on behind where it broke off, by the grammar too: it hid how deep that is.
    #[test]
    fn what_follows_broken_text_counts() {
        for broken in ["'a\n", "'\\d", "b'\\400"] {
            assert!(bound(&format!("{broken}{}'", "(".repeat(1000))) >= 1000, "{broken}");
        }
    }
}
