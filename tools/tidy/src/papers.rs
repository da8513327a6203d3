//! The two READMEs show the same commands.

/// The fenced blocks of a language in a Markdown text, in order.
pub fn fenced_blocks(markdown: &str, language: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<(bool, String)> = None;
    for line in markdown.lines() {
        match (&mut open, line.trim_start().strip_prefix("```")) {
            (None, Some(info)) => open = Some((info.trim() == language, String::new())),
            (Some(_), Some(_)) => {
                blocks.extend(open.take().filter(|(wanted, _)| *wanted).map(|(_, block)| block));
            }
            (Some((_, block)), None) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, None) => {}
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_blocks_of_the_language_and_their_inside() {
        let text = "a\n```console\n$ one\n1\n```\n```yaml\nx: y\n```\n  ```console\n$ two\n  ```\n";
        assert_eq!(fenced_blocks(text, "console"), ["$ one\n1\n", "$ two\n"]);
    }
}
