//! Just enough reading of Rust source to search it: code without comments, string contents and test modules, on the
//! lines where it stood; and the full paths that `use` brings in.

/// The code of a source file: comments, the contents of strings and characters, and `#[cfg(test)]` items are blanked
/// out. Newlines stay, so a line number in the result is one in the file.
pub fn code_of(text: &str) -> String {
    without_test_items(&blank_comments_and_literals(text))
}

/// The modules that a file declares as `#[cfg(test)] mod name;`: they lie in files of their own.
pub fn test_modules_of(text: &str) -> Vec<String> {
    let code = blank_comments_and_literals(text);
    test_items(&code)
        .filter_map(|(start, end)| {
            let item = code[start..end].trim_start_matches(CFG_TEST).trim();
            let name = item.strip_suffix(';')?.trim_start_matches("pub ").strip_prefix("mod ")?;
            Some(name.trim().to_owned())
        })
        .collect()
}

/// Every path that a `use` declaration in the code names, written out, with its line: `use std::{fs, net::TcpStream}`
/// gives `std::fs` and `std::net::TcpStream`.
pub fn imports_of(code: &str) -> Vec<(usize, String)> {
    let mut imports = Vec::new();
    for (start, _) in code.match_indices("use ") {
        // What stands before it: the end of another item, `pub(…)` or `pub`. Anything else is the tail of a name.
        let starts_item = code[..start].trim_end_matches([' ', '\t']).chars().next_back();
        if !matches!(starts_item, None | Some('\n' | ';' | '{' | '}' | ')' | 'b')) {
            continue;
        }
        let Some(end) = code[start..].find(';') else { continue };
        let tree: String =
            code[start + "use ".len()..start + end].split_whitespace().collect::<Vec<_>>().join(" ");
        expand("", &tree, line_of(code, start), &mut imports);
    }
    imports
}

/// The 1-based line of a byte offset.
pub fn line_of(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

fn expand(prefix: &str, tree: &str, line: usize, imports: &mut Vec<(usize, String)>) {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        let path = tree.split(" as ").next().unwrap_or(tree).trim();
        if !path.is_empty() {
            imports.push((line, format!("{prefix}{path}").trim_end_matches("::self").to_owned()));
        }
        return;
    };
    let prefix = format!("{prefix}{}", &tree[..open]);
    let close = tree.rfind('}').unwrap_or(tree.len());
    let (mut depth, mut start) = (0, open + 1);
    for (at, c) in tree[..close].char_indices().filter(|(at, _)| *at > open) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(&prefix, &tree[start..at], line, imports);
                start = at + 1;
            }
            _ => {}
        }
    }
    expand(&prefix, &tree[start..close], line, imports);
}

const CFG_TEST: &str = "#[cfg(test)]";

fn without_test_items(code: &str) -> String {
    let mut result = code.to_owned();
    for (start, end) in test_items(code) {
        result.replace_range(start..end, &blank(&code[start..end]));
    }
    result
}

/// Where the items under `#[cfg(test)]` start and end: at their `;`, at the brace that closes their body, or where what
/// they stand in ends.
fn test_items(code: &str) -> impl Iterator<Item = (usize, usize)> + '_ {
    code.match_indices(CFG_TEST).map(|(start, _)| {
        let mut depth = 0_usize;
        for (at, c) in code[start..].char_indices() {
            match c {
                '{' | '(' | '[' => depth += 1,
                '}' | ')' | ']' if depth == 0 => return (start, start + at),
                '}' | ')' | ']' => {
                    depth -= 1;
                    if c == '}' && depth == 0 {
                        return (start, start + at + 1);
                    }
                }
                ';' if depth == 0 => return (start, start + at + 1),
                _ => {}
            }
        }
        (start, code.len())
    })
}

fn blank(text: &str) -> String {
    // As many bytes as before, so that offsets stay.
    text.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect()
}

fn blank_comments_and_literals(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let length = match literal_or_comment(rest, result.chars().next_back()) {
            Some(length) => {
                result.push_str(&blank(&rest[..length]));
                length
            }
            None => {
                let c = rest.chars().next().expect("at is within the text");
                result.push(c);
                c.len_utf8()
            }
        };
        at += length;
    }
    result
}

/// The length of the comment, string or character that the text starts with.
fn literal_or_comment(text: &str, before: Option<char>) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        return Some(block_comment(text));
    }
    if text.starts_with('"') {
        return Some(quoted(text, '"'));
    }
    // `r"…"` and `r#"…"#` (the b of `br` was code already); an `r` at the end of a name is none.
    if text.starts_with('r') && !before.is_some_and(|c| c.is_alphanumeric() && c != 'b' || c == '_') {
        let hashes = text[1..].chars().take_while(|c| *c == '#').count();
        if text[1 + hashes..].starts_with('"') {
            let close = format!("\"{}", "#".repeat(hashes));
            let body = 2 + hashes;
            return Some(text[body..].find(&close).map_or(text.len(), |end| body + end + close.len()));
        }
    }
    // A quote starts a character, or a lifetime: `'a'` and `'\n'` are closed, `'a` is not.
    if let Some(inside) = text.strip_prefix('\'') {
        let mut chars = inside.chars();
        match (chars.next(), chars.next()) {
            (Some('\\'), _) => return Some(quoted(text, '\'')),
            (Some(c), Some('\'')) => return Some(2 + c.len_utf8()),
            _ => {}
        }
    }
    None
}

fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_are_blank_and_lines_stay() {
        let code = code_of("a /* b /* c */\nd */ e // f\n\"g \\\" h\" i r#\"j \" k\"# 'l' '\\'' m\n");
        assert_eq!(code.split_whitespace().collect::<String>(), "aeim");
        assert_eq!(code.matches('\n').count(), 3);
    }

    #[test]
    fn lifetimes_and_names_that_end_in_r_are_code() {
        assert_eq!(code_of("fn f<'a>(x: &'a str) { br\"x\"; for\"y\" }").matches("'a").count(), 2);
        assert!(code_of("let c = 'a'; tokio").contains("tokio"));
    }

    #[test]
    fn non_ascii_text_keeps_the_lines() {
        let code = code_of("// größer → kleiner\nlet x = \"ö\"; 'ö'; y\n");
        assert_eq!(line_of(&code, code.find('y').unwrap()), 2);
    }

    #[test]
    fn test_items_are_blank_and_what_follows_is_not() {
        let code = code_of("a;\n#[cfg(test)]\nmod tests {\n fn f() { b }\n}\nc;\n#[cfg(test)]\nuse d;\ne");
        assert_eq!(code.split_whitespace().collect::<String>(), "a;c;e");
    }

    #[test]
    fn a_test_item_ends_where_its_body_ends() {
        let code = code_of("#[cfg(test)]\nfn f(a: [u8; 3]) -> [u8; 3] { b }\nc; { #[cfg(test)] d } e");
        assert_eq!(code.split_whitespace().collect::<String>(), "c;{}e");
    }

    #[test]
    fn test_modules_in_files_of_their_own_are_named() {
        let text =
            "mod a;\n#[cfg(test)]\nmod tests;\n#[cfg(test)]\nmod inline { }\n// #[cfg(test)] mod no;\n";
        assert_eq!(test_modules_of(text), ["tests"]);
    }

    #[test]
    fn grouped_imports_are_written_out() {
        let code = "pub use std::{fs, io::{self, Read as R}, net::TcpStream};\nfn f() { use a::b; }\nlet because = 1;";
        let paths: Vec<String> = imports_of(code).into_iter().map(|(_, path)| path).collect();
        assert_eq!(paths, ["std::fs", "std::io", "std::io::Read", "std::net::TcpStream", "a::b"]);
    }

    #[test]
    fn an_import_over_several_lines_has_the_line_of_its_use() {
        assert_eq!(imports_of("\nuse std::{\n    fs,\n};\n"), [(2, "std::fs".to_owned())]);
    }
}
