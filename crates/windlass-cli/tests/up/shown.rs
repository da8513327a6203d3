//! What a page shows: commands, and what they print. Ages, names and addresses differ from run to run and are not compared.

/// A command of a page and what the page says it prints.
#[derive(Debug)]
pub struct Shown {
    pub command: String,
    pub output: String,
}

/// A line that stands for any number of lines.
const ELIDED: &str = "…";

/// The commands of a page, in their order.
pub fn shown(markdown: &str) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    for line in
        windlass_tidy::papers::fenced_blocks(markdown, "console").iter().flat_map(|block| block.lines())
    {
        match (line.strip_prefix("$ "), all.last_mut()) {
            (Some(command), _) => all.push(Shown { command: command.to_owned(), output: String::new() }),
            (None, Some(last)) => {
                last.output.push_str(line);
                last.output.push('\n');
            }
            (None, None) => panic!("the walk-through starts with an output: {line}"),
        }
    }
    all
}

/// Whether a command printed what is shown, but for what differs from run to run.
pub fn is_as_shown(printed: &str, shown: &str) -> bool {
    let (printed, shown) = (normalised(printed), normalised(shown));
    let mut parts = shown.split(|line| line == ELIDED);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = printed.strip_prefix(first) else { return false };
    let mut is_open = false;
    for part in parts {
        is_open = true;
        if part.is_empty() {
            continue;
        }
        let Some(at) = rest.windows(part.len()).position(|lines| lines == part) else { return false };
        rest = &rest[at + part.len()..];
        is_open = false;
    }
    is_open || rest.is_empty()
}

/// The lines that are not empty, without widths of columns and with a word for what differs from run to run.
pub fn normalised(output: &str) -> Vec<String> {
    let line = |line: &str| line.split_whitespace().map(word).collect::<Vec<_>>().join(" ");
    output.lines().map(line).filter(|line| !line.is_empty()).collect()
}

/// A word, or what it stands for, with the punctuation around it.
fn word(word: &str) -> String {
    let is_around = |letter: char| "\"'():,;[]".contains(letter);
    let bare = word.trim_matches(is_around);
    let meant = if is_age(bare) {
        "<age>".to_owned()
    } else if is_id(bare) {
        "<id>".to_owned()
    } else if is_address(bare) {
        "<address>".to_owned()
    } else if is_time(bare) {
        "<time>".to_owned()
    } else if let Some(name) = of_member(bare) {
        name
    } else {
        return word.to_owned();
    };
    word.replacen(bare, &meant, 1)
}

/// `7s`, `2m5s`.
fn is_age(word: &str) -> bool {
    let mut digits = 0;
    word.chars().all(|c| {
        let unit = "smhd".contains(c) && digits > 0;
        digits = if c.is_ascii_digit() { digits + 1 } else { 0 };
        unit || digits > 0
    }) && word.ends_with(['s', 'm', 'h', 'd'])
}

/// `8211f1d0f64f3269`: an ID of etcd, which is random, with its leading zeros left out.
fn is_id(word: &str) -> bool {
    word.len() >= 12 && word.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c))
}

/// `10.244.0.7`.
fn is_address(word: &str) -> bool {
    word.parse::<std::net::Ipv4Addr>().is_ok()
}

/// `2026-11-16T02:34:40Z`.
fn is_time(word: &str) -> bool {
    let shape = |c: char| if c.is_ascii_digit() { '0' } else { c };
    word.chars().map(shape).eq("0000-00-00T00:00:00Z".chars())
}

/// `data-db-0laye` is `data-db-<member>`: the suffix of a member follows from the cluster's UID.
fn of_member(word: &str) -> Option<String> {
    let (cluster, suffix) = word.rsplit_once('-')?;
    let is_suffix = suffix.len() == 5 && suffix.chars().all(|c| c.is_ascii_digit() || c.is_ascii_lowercase());
    (is_suffix && suffix != "peers").then(|| format!("{cluster}-<member>"))
}

#[test]
fn what_differs_from_run_to_run_is_told_from_other_words() {
    for age in ["7s", "0s", "2m5s", "3d"] {
        assert_eq!(word(age), "<age>", "{age}");
    }
    for same in
        ["0/2", "s", "m5", "5", "test", "v1.36.4", "seconds", "3.7.3", "db-client", "db-peers", "deadbeef"]
    {
        assert_eq!(word(same), same);
    }
    assert_eq!(word("\"data-db-0laye\""), "\"data-db-<member>\"");
    assert_eq!(word("a266dbca368ca26,"), "<id>,");
    assert_eq!(word("10.244.0.7"), "<address>");
    assert_eq!(word("2026-11-16T02:34:40Z"), "<time>");
}

#[test]
fn what_is_left_out_may_be_anything_and_the_rest_may_not() {
    assert!(is_as_shown("a  1s\nb\n", "a 9s\n\nb\n"));
    assert!(!is_as_shown("a\nb\n", "a\n"), "something more is printed");
    assert!(!is_as_shown("a\n", "a\nb\n"), "something less is printed");
    assert!(is_as_shown("a\nx\ny\nb\nc\n", "a\n…\nb\nc\n"));
    assert!(is_as_shown("a\nb\nc\n", "a\n…\nb\nc\n"), "nothing is left out");
    assert!(is_as_shown("x\na\ny\n", "…\na\n…\n"));
    assert!(!is_as_shown("x\na\ny\n", "…\na\n"));
    assert!(!is_as_shown("b\na\n", "…\na\n…\nb\n…\n"), "their order counts");
}
