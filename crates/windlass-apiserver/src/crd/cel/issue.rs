//! What is wrong with an expression, printed as CEL prints it: with the place, the line, and a mark below it.

/// One fault, at a place in the source.
#[derive(Clone, Debug)]
pub(super) struct Issue {
    /// Where it is, in bytes from the start.
    pub at: usize,
    pub message: String,
}

/// How many faults are printed.
const ISSUES_MAX: usize = 100;

/// All faults of an expression, in the order of the source.
pub(super) fn print(source: &str, issues: &[Issue]) -> String {
    let mut placed: Vec<((usize, usize), &str)> = issues
        .iter()
        .take(ISSUES_MAX)
        .map(|issue| (place(source, issue.at), issue.message.as_str()))
        .collect();
    placed.sort_by_key(|(place, _)| *place);
    let mut out: Vec<String> =
        placed.iter().map(|(place, message)| print_at(source, *place, message)).collect();
    if issues.len() > ISSUES_MAX {
        out.push(format!("{} more errors were truncated", issues.len() - ISSUES_MAX));
    }
    out.join("\n")
}

/// One fault whose line (from 1) and column (from 0, in characters) are known.
pub(super) fn print_at(source: &str, (line, column): (usize, usize), message: &str) -> String {
    let text = source.split('\n').nth(line.saturating_sub(1)).unwrap_or_default().replace('\t', " ");
    let mark = |c: Option<char>, narrow: char, wide: char| match c {
        Some(c) if c.len_utf8() > 1 => wide,
        _ => narrow,
    };
    let mut below: String = text.chars().take(column).map(|c| mark(Some(c), '.', '\u{ff0e}')).collect();
    below.push(mark(text.chars().nth(column), '^', '\u{ff3e}'));
    format!("ERROR: <input>:{line}:{}: {message}\n | {text}\n | {below}", column + 1)
}

/// The line (from 1) and the column (from 0, in characters) of a byte.
pub(super) fn place(source: &str, at: usize) -> (usize, usize) {
    let before = &source[..at.min(source.len())];
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[start..].chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_printed_in_order_with_their_lines() {
        let issue = |at, message: &str| Issue { at, message: message.into() };
        let printed = print("a &&\n\tb.ü", &[issue(8, "second"), issue(2, "first")]);
        let expected = "ERROR: <input>:1:3: first\n | a &&\n | ..^\n\
                        ERROR: <input>:2:4: second\n |  b.ü\n | ...\u{ff3e}";
        assert_eq!(printed, expected);
    }
}
