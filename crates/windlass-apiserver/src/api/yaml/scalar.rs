//! Texts and numbers in YAML: plain where they read back as themselves, a block where they have lines, else quoted.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::LazyLock;

use regex::Regex;

use crate::codec;

/// Where a scalar stands.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Place {
    /// Before a colon, in one line.
    Key,
    /// Anywhere else.
    Value,
}

/// Lines are folded at the first space after this column.
const WIDTH: usize = 80;

/// Writes a text where the line has come to; further lines of it begin in column `indent`.
pub(super) fn write(out: &mut String, text: &str, indent: usize, place: Place) {
    let text = &*as_read(text);
    let analysis = Analysis::of(text);
    let style = analysis.style(text, place);
    let column = out.rsplit('\n').next().map_or(0, |line| line.chars().count());
    let mut pen = Pen { out, column, indent, folds: place == Place::Value };
    match style {
        Style::Plain => pen.flow(text, false),
        Style::Single => {
            pen.put('\'');
            pen.flow(text, true);
            pen.put('\'');
        }
        Style::Double => pen.double(text),
        Style::Literal => pen.literal(text),
    }
}

/// The text after the detour that it takes: as JSON it is read as if it were YAML, where U+0085 ends a line, and a line
/// end between quotes is a space.
fn as_read(text: &str) -> Cow<'_, str> {
    const NEXT_LINE: char = '\u{85}';
    let Some((first, rest)) = text.split_once(NEXT_LINE) else { return Cow::Borrowed(text) };
    let mut out = first.trim_end_matches(' ').to_owned();
    let mut ends = 0;
    let mut lines = rest.split(NEXT_LINE).peekable();
    while let Some(line) = lines.next() {
        ends += 1;
        let (line, last) = (line.trim_start_matches(' '), lines.peek().is_none());
        if line.is_empty() && !last {
            continue;
        }
        match ends {
            1 => out.push(' '),
            more => out.extend(std::iter::repeat_n('\n', more - 1)),
        }
        out.push_str(if last { line } else { line.trim_end_matches(' ') });
        ends = 0;
    }
    Cow::Owned(out)
}

/// Whether the text has line ends of any kind.
pub(super) fn is_multiline(text: &str) -> bool {
    text.contains(is_break)
}

/// A float as `strconv.FormatFloat(f, 'g', -1, 64)` has it.
pub(super) fn float(value: f64) -> String {
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    // Go decides by the precision, which counts as six where there is none.
    if (-4..6).contains(&exponent) {
        return value.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

#[derive(Clone, Copy, PartialEq)]
enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

/// What a text may be written as.
struct Analysis {
    plain: bool,
    single: bool,
    literal: bool,
}

impl Analysis {
    fn of(text: &str) -> Analysis {
        let chars: Vec<char> = text.chars().collect();
        let (Some(&first), Some(&last)) = (chars.first(), chars.last()) else {
            return Analysis { plain: true, single: true, literal: false };
        };
        let marks = text.starts_with("---")
            || text.starts_with("...")
            || chars.iter().enumerate().any(|(i, &c)| {
                let before_blank = chars.get(i + 1).is_none_or(|c| matches!(c, ' ' | '\t'));
                let after_blank = i == 0 || matches!(chars[i - 1], ' ' | '\t') || is_break(chars[i - 1]);
                match c {
                    ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
                    | '`' => i == 0,
                    '#' => after_blank,
                    '?' | '-' => i == 0 && before_blank,
                    ':' => before_blank,
                    _ => false,
                }
            });
        let pairs = || chars.iter().zip(&chars[1..]);
        let break_space = pairs().any(|(a, b)| is_break(*a) && *b == ' ');
        let space_break = pairs().any(|(a, b)| *a == ' ' && is_break(*b));
        let special = space_break || !chars.iter().all(|c| is_printable(*c));
        let ends = |c: char| c == ' ' || is_break(c);
        Analysis {
            plain: !(marks
                || special
                || break_space
                || ends(first)
                || ends(last)
                || chars.iter().any(|c| is_break(*c))),
            single: !(break_space || special),
            literal: !(special || last == ' '),
        }
    }

    fn style(&self, text: &str, place: Place) -> Style {
        let wanted = if text.contains('\n') {
            Style::Literal
        } else if codec::yaml_is_text(text) && !is_time(text) && !BASE_60.is_match(text) {
            Style::Plain
        } else {
            Style::Double
        };
        match wanted {
            Style::Plain if self.plain => Style::Plain,
            Style::Plain if self.single => Style::Single,
            Style::Literal if self.literal && place == Place::Value => Style::Literal,
            _ => Style::Double,
        }
    }
}

/// Numbers in base 60 are not read any more, but still quoted for other readers.
static BASE_60: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$").expect("a fixed expression")
});

/// Whether go-yaml takes the text for a point in time.
fn is_time(text: &str) -> bool {
    static FORM: LazyLock<Regex> = LazyLock::new(|| {
        let form = r"^(\d{4})-(\d{1,2})-(\d{1,2})(?:(?:[Tt](\d{1,2}):(\d{1,2}):(\d{1,2})(?:[.,]\d+)?(?:Z|[+-](\d\d):(\d\d)))|(?: (\d{1,2}):(\d{1,2}):(\d{1,2})(?:[.,]\d+)?))?$";
        Regex::new(form).expect("a fixed expression")
    });
    let Some(found) = FORM.captures(text) else { return false };
    let number = |group: usize| found.get(group).map_or(0, |text| text.as_str().parse::<i16>().unwrap_or(0));
    let (month, day) = (i8::try_from(number(2)).unwrap_or(0), i8::try_from(number(3)).unwrap_or(0));
    let in_day = |hour: usize| number(hour) < 24 && number(hour + 1) < 60 && number(hour + 2) < 60;
    jiff::civil::Date::new(number(1), month, day).is_ok()
        && in_day(4)
        && in_day(9)
        && number(7) <= 24
        && number(8) < 60
}

fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Beyond the first plane nothing is, for go-yaml.
fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}') && c != '\u{feff}'
}

/// Writes the characters of one scalar.
struct Pen<'a> {
    out: &'a mut String,
    column: usize,
    indent: usize,
    folds: bool,
}

impl Pen<'_> {
    fn put(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
    }

    fn new_line(&mut self) {
        self.out.push('\n');
        self.column = 0;
        self.pad();
    }

    fn pad(&mut self) {
        while self.column < self.indent {
            self.put(' ');
        }
    }

    /// Plain or in single quotes. Line ends other than `\n` are the only ones there can be.
    fn flow(&mut self, text: &str, quoted: bool) {
        let chars: Vec<char> = text.chars().collect();
        let (mut after_space, mut after_break) = (false, false);
        for (i, &c) in chars.iter().enumerate() {
            if is_break(c) {
                self.out.push(c);
                self.column = 0;
                after_break = true;
                continue;
            }
            if c == ' ' {
                let inside = !quoted || (i > 0 && i + 1 < chars.len());
                let alone = !after_space && chars.get(i + 1) != Some(&' ');
                if self.folds && alone && inside && self.column > WIDTH {
                    self.new_line();
                } else {
                    self.put(' ');
                }
                after_space = true;
                continue;
            }
            if after_break {
                self.pad();
            }
            if quoted && c == '\'' {
                self.put('\'');
            }
            self.put(c);
            (after_space, after_break) = (false, false);
        }
    }

    fn double(&mut self, text: &str) {
        let chars: Vec<char> = text.chars().collect();
        let mut after_space = false;
        // For go-yaml, which looks in the wrong place, everything is a byte order mark after one at the beginning.
        let marked = text.starts_with('\u{feff}');
        self.put('"');
        for (i, &c) in chars.iter().enumerate() {
            if marked || !is_printable(c) || is_break(c) || matches!(c, '"' | '\\') {
                self.escape(c);
                after_space = false;
            } else if c == ' ' {
                let inside = i > 0 && i + 1 < chars.len();
                if self.folds && !after_space && inside && self.column > WIDTH {
                    self.new_line();
                    if chars[i + 1] == ' ' {
                        self.put('\\');
                    }
                } else {
                    self.put(' ');
                }
                after_space = true;
            } else {
                self.put(c);
                after_space = false;
            }
        }
        self.put('"');
    }

    fn escape(&mut self, c: char) {
        let start = self.out.len();
        let short = match c {
            '\0' => '0',
            '\u{7}' => 'a',
            '\u{8}' => 'b',
            '\t' => 't',
            '\n' => 'n',
            '\u{b}' => 'v',
            '\u{c}' => 'f',
            '\r' => 'r',
            '\u{1b}' => 'e',
            '"' | '\\' => c,
            '\u{85}' => 'N',
            '\u{a0}' => '_',
            '\u{2028}' => 'L',
            '\u{2029}' => 'P',
            _ => '\0',
        };
        let code = u32::from(c);
        let written = match short {
            '\0' if code <= 0xff => write!(self.out, "\\x{code:02X}"),
            '\0' if code <= 0xffff => write!(self.out, "\\u{code:04X}"),
            '\0' => write!(self.out, "\\U{code:08X}"),
            short => write!(self.out, "\\{short}"),
        };
        written.expect("a String takes all");
        self.column += self.out.len() - start;
    }

    /// A block, with its last line end. Without a final line end in the text the block does not keep it either.
    fn literal(&mut self, text: &str) {
        self.put('|');
        if text.starts_with(|c| c == ' ' || is_break(c)) {
            self.put('2');
        }
        let mut back = text.chars().rev();
        match (back.next().is_some_and(is_break), back.next().is_none_or(is_break)) {
            (false, _) => self.put('-'),
            (true, true) => self.put('+'),
            (true, false) => {}
        }
        self.out.push('\n');
        self.column = 0;
        let mut after_break = true;
        for c in text.chars() {
            if is_break(c) {
                self.out.push(c);
                self.column = 0;
                after_break = true;
            } else {
                if after_break {
                    self.pad();
                }
                self.put(c);
                after_break = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_quoted() {
        for text in [
            "2026-01-02",
            "2026-1-2",
            "2026-01-02T03:04:05Z",
            "2026-01-02t3:4:5.5+01:00",
            "2026-01-02 03:04:05",
        ] {
            assert!(is_time(text), "{text}");
        }
        for text in [
            "2026-13-02",
            "2026-02-30",
            "2026-01-02T03:04:05",
            "2026-01-02T25:04:05Z",
            "026-01-02",
            "2026-01",
        ] {
            assert!(!is_time(text), "{text}");
        }
    }

    #[test]
    fn floats_as_go_prints_them() {
        for (value, want) in
            [(0.5, "0.5"), (1e21, "1e+21"), (1e-6, "1e-06"), (1e-4, "0.0001"), (1_234_567.5, "1.2345675e+06")]
        {
            assert_eq!(float(value), want);
        }
    }
}
