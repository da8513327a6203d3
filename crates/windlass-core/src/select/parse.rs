//! Reading a label selector from its text.

use std::collections::BTreeSet;

use super::Error;
use super::label::{Operator, Requirement};
use super::names::label_key_faults;

/// Reads the requirements in the order in which they stand.
pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, Error> {
    let mut parser = Parser { tokens: tokens(text), position: 0 };
    let mut requirements = Vec::new();
    loop {
        match parser.peek() {
            Token::Word(_) | Token::Symbol("!") => {}
            Token::End => return Ok(requirements),
            other => {
                return Err(Error(format!(
                    "found '{}', expected: !, identifier, or 'end of string'",
                    other.literal()
                )));
            }
        }
        let requirement = parser.requirement();
        requirements
            .push(requirement.map_err(|error| Error(format!("unable to parse requirement: {}", error.0)))?);
        match parser.next() {
            Token::End => return Ok(requirements),
            Token::Symbol(",") => match parser.peek() {
                Token::Word(_) | Token::Symbol("!") => {}
                other => {
                    return Err(Error(format!(
                        "found '{}', expected: identifier after ','",
                        other.literal()
                    )));
                }
            },
            other => {
                return Err(Error(format!("found '{}', expected: ',' or 'end of string'", other.literal())));
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    End,
    /// A key, a value, `in` or `notin`.
    Word(&'a str),
    Symbol(&'a str),
}

impl<'a> Token<'a> {
    fn literal(self) -> &'a str {
        match self {
            Token::End => "",
            Token::Word(text) | Token::Symbol(text) => text,
        }
    }
}

/// Every special character begins a symbol, and two of them are one symbol where they can be.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let is_special = |c: char| matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<');
    let is_space = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n');
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while let Some(first) = rest.chars().next() {
        // A NUL ends the text for upstream's lexer.
        if first == '\0' {
            break;
        }
        let width = if is_special(first) {
            if rest.starts_with("==") || rest.starts_with("!=") { 2 } else { 1 }
        } else {
            rest.find(|c| is_special(c) || is_space(c) || c == '\0').unwrap_or(rest.len())
        };
        let (token, tail) = rest.split_at(width);
        tokens.push(if is_special(first) { Token::Symbol(token) } else { Token::Word(token) });
        rest = tail.trim_start_matches(is_space);
    }
    tokens
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    position: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens.get(self.position).copied().unwrap_or(Token::End)
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.position += 1;
        token
    }

    fn requirement(&mut self) -> Result<Requirement, Error> {
        let mut token = self.next();
        let negated = token == Token::Symbol("!");
        if negated {
            token = self.next();
        }
        let Token::Word(key) = token else {
            return Err(Error(format!("found '{}', expected: identifier", token.literal())));
        };
        let faults = label_key_faults(key);
        if !faults.is_empty() {
            // Upstream prints the path of a key, which it has none of.
            return Err(Error(format!("<nil>: Invalid value: {key:?}: {}", faults.join("; "))));
        }
        let ends = matches!(self.peek(), Token::End | Token::Symbol(","));
        if negated {
            return Requirement::new(key, Operator::DoesNotExist, Vec::new());
        }
        if ends {
            return Requirement::new(key, Operator::Exists, Vec::new());
        }
        let operator = self.operator()?;
        let values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => BTreeSet::from([self.exact_value()?]),
        };
        Requirement::new(key, operator, values.into_iter().map(str::to_owned).collect())
    }

    fn operator(&mut self) -> Result<Operator, Error> {
        Ok(match self.next() {
            Token::Word("in") => Operator::In,
            Token::Word("notin") => Operator::NotIn,
            Token::Symbol("=") => Operator::Equals,
            Token::Symbol("==") => Operator::DoubleEquals,
            Token::Symbol("!=") => Operator::NotEquals,
            Token::Symbol(">") => Operator::GreaterThan,
            Token::Symbol("<") => Operator::LessThan,
            other => {
                let literal = other.literal();
                return Err(Error(format!("found '{literal}', expected: in, notin, =, ==, !=, gt, lt")));
            }
        })
    }

    fn exact_value(&mut self) -> Result<&'a str, Error> {
        match self.peek() {
            Token::End | Token::Symbol(",") => Ok(""),
            Token::Word(value) => {
                self.next();
                Ok(value)
            }
            Token::Symbol(symbol) => Err(Error(format!("found '{symbol}', expected: identifier"))),
        }
    }

    /// `(a,b)`; an empty place between commas is the empty value.
    fn values(&mut self) -> Result<BTreeSet<&'a str>, Error> {
        let open = self.next();
        if open != Token::Symbol("(") {
            return Err(Error(format!("found '{}' expected: '('", open.literal())));
        }
        match self.peek() {
            Token::Word(_) | Token::Symbol(",") => {}
            Token::Symbol(")") => {
                self.next();
                return Ok(BTreeSet::from([""]));
            }
            other => {
                let literal = other.literal();
                return Err(Error(format!("found '{literal}', expected: ',', ')' or identifier")));
            }
        }
        let mut values = BTreeSet::new();
        loop {
            match self.next() {
                Token::Word(value) => {
                    values.insert(value);
                    match self.peek() {
                        Token::Symbol(",") => {}
                        Token::Symbol(")") => break,
                        other => {
                            return Err(Error(format!("found '{}', expected: ',' or ')'", other.literal())));
                        }
                    }
                }
                Token::Symbol(",") => {
                    if values.is_empty() {
                        values.insert("");
                    }
                    match self.peek() {
                        Token::Symbol(")") => {
                            values.insert("");
                            break;
                        }
                        Token::Symbol(",") => {
                            values.insert("");
                        }
                        _ => {}
                    }
                }
                other => {
                    return Err(Error(format!("found '{}', expected: ',', or identifier", other.literal())));
                }
            }
        }
        self.next();
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::super::LabelSelector;
    use super::*;

    #[test]
    fn canonical_text() {
        for (text, canonical) in [
            ("", ""),
            (" b = 2 , a==1 ", "a==1,b=2"),
            ("x in (foo,,baz),y,z notin ()", "x in (,baz,foo),y,z notin ()"),
            ("x in (,)", "x in ()"),
            ("x in (in,notin),in,notin=in", "in,notin=in,x in (in,notin)"),
            ("a!=,b=", "a!=,b="),
            ("!a,!example.com/b", "!a,!example.com/b"),
            ("a>1,b<2", "a>1,b<2"),
        ] {
            let selector = LabelSelector::parse(text).unwrap();
            assert_eq!(selector.to_string(), canonical, "{text}");
            assert_eq!(LabelSelector::parse(canonical).unwrap(), selector, "{canonical}");
        }
    }

    /// Recorded from kube-apiserver 1.36.
    #[test]
    fn faults_are_named_as_upstream_names_them() {
        for (text, message) in [
            ("a in", "unable to parse requirement: found '' expected: '('"),
            ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
            ("!", "unable to parse requirement: found '', expected: identifier"),
            (",a", "found ',', expected: !, identifier, or 'end of string'"),
            ("a,", "found '', expected: identifier after ','"),
            ("a=b c", "found 'c', expected: ',' or 'end of string'"),
            ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
            ("a=(", "unable to parse requirement: found '(', expected: identifier"),
            ("()", "found '(', expected: !, identifier, or 'end of string'"),
            ("a!b", "unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt"),
            ("a in (=)", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
            ("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier"),
            (
                "/x",
                "unable to parse requirement: <nil>: Invalid value: \"/x\": prefix part must be non-empty",
            ),
            (
                "a>b",
                "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer",
            ),
            (
                "x=-",
                "unable to parse requirement: values[0][x]: Invalid value: \"-\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
            ),
            (
                "a/b/c=d",
                "unable to parse requirement: <nil>: Invalid value: \"a/b/c\": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
            ),
            (
                "A_/x=1",
                "unable to parse requirement: <nil>: Invalid value: \"A_/x\": prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err().0, message, "{text}");
        }
    }

    #[test]
    fn operators_match_as_they_say() {
        let labels = [("a", "1"), ("b", "x"), ("e", "")];
        for (text, expected) in [
            ("a=1", true),
            ("a==2", false),
            ("a!=2", true),
            ("z!=2", true),
            ("b in (x,y)", true),
            ("b notin (x)", false),
            ("z notin (x)", true),
            ("e", true),
            ("e=", true),
            ("z=", false),
            ("!z", true),
            ("!a", false),
            ("a>0", true),
            ("a<1", false),
            ("b>0", false),
            ("a=1,b=y", false),
        ] {
            let selector = LabelSelector::parse(text).unwrap();
            assert_eq!(selector.matches(labels.as_slice()), expected, "{text}");
        }
    }
}
