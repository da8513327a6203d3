//! From text to a syntax tree whose nodes know their places.
//!
//! The tree is the `cel` crate's. Its own parser forgets where a node came from and leaves some macros to be expanded
//! later, so that neither faults nor costs could be told as kube-apiserver tells them; it is asked only for the words
//! that describe a syntax error.

use cel::common::ast::{
    CallExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, ListExpr, LiteralValue, MapEntryExpr, MapExpr,
    SelectExpr, StructExpr, StructFieldExpr, operators,
};
use cel::parser::Parser as Grammar;

use super::depth;
use super::escape;
use super::issue::{self, Issue};
use super::lex::{Kind, Token, lex};
use super::macros;

/// How long an expression may be, in characters.
const SOURCE_MAX: usize = 100_000;

/// How many nodes a tree may have. Some macros write a part twice, and then those within it four times, and so on.
const NODES_MAX: usize = 200_000;

/// An expression, and where its parts stand.
#[derive(Clone, Debug)]
pub(super) struct Parsed {
    pub expr: IdedExpr,
    places: Vec<usize>,
}

impl Parsed {
    /// Where a node stands in the source.
    pub(super) fn place(&self, id: u64) -> usize {
        usize::try_from(id).ok().and_then(|id| self.places.get(id)).copied().unwrap_or_default()
    }
}

/// Parses an expression. The error is what the compiler would print.
pub(super) fn parse(source: &str) -> Result<Parsed, String> {
    let size = source.chars().count();
    if size > SOURCE_MAX {
        return Err(format!(
            "ERROR: <input>:-1:0: expression code point size exceeds limit: size: {size}, limit {SOURCE_MAX}"
        ));
    }
    let (tokens, is_whole) = lex(source);
    if depth::bound(&tokens) > depth::DEPTH_MAX {
        return Err("ERROR: <input>:-1:0: expression recursion limit exceeded: 250".to_owned());
    }
    let mut parser = Parser { tokens, next: 0, places: vec![0], issues: Vec::new(), wanted: None };
    let Some(expr) = parser.whole().filter(|_| is_whole) else {
        return Err(syntax_error(source, parser.wanted));
    };
    match parser.issues.is_empty() {
        true => Ok(Parsed { expr, places: parser.places }),
        false => Err(issue::print(source, &parser.issues)),
    }
}

/// What the grammar says of a text that it does not take. Where an expression could go on or end, it lists all that
/// could come; CEL names only what has to come in the end, which is `wanted`.
fn syntax_error(source: &str, wanted: Option<(usize, &str)>) -> String {
    let Err(errors) = Grammar::new().enable_optional_syntax(true).parse(source) else {
        return issue::print_at(source, (1, 0), "Syntax error");
    };
    let one = |error: &cel::parser::ParseError| {
        let part = |at: isize, base: isize| usize::try_from(at - base).unwrap_or_default();
        let place = (part(error.pos.0, 0), part(error.pos.1, 1));
        let message = match (wanted, error.msg.split_once(" expecting {")) {
            (Some((at, what)), Some((start, all)))
                if issue::place(source, at) == place
                    && all.contains("'=='")
                    && start.contains("mismatched") =>
            {
                format!("{start} expecting {what}")
            }
            _ => error.msg.clone(),
        };
        issue::print_at(source, place, &message)
    };
    // What the parser says of its own tree is nothing that CEL would say.
    let told = errors.errors.iter().filter(|error| !error.msg.starts_with("Incomplete"));
    told.map(one).collect::<Vec<_>>().join("\n")
}

/// Reads words and gives out ids.
pub(super) struct Parser {
    tokens: Vec<Token>,
    next: usize,
    places: Vec<usize>,
    issues: Vec<Issue>,
    /// What had to come where something else did.
    wanted: Option<(usize, &'static str)>,
}

impl Parser {
    /// An expression, and nothing after it.
    fn whole(&mut self) -> Option<IdedExpr> {
        let expr = self.expr()?;
        match self.peek() {
            Kind::End => Some(expr),
            _ => {
                self.wanted = Some((self.at(), "<EOF>"));
                None
            }
        }
    }

    /// A mark that has to come now.
    fn want(&mut self, mark: &'static str, shown: &'static str) -> Option<usize> {
        let at = self.at();
        let found = self.eat(mark);
        if found.is_none() {
            self.wanted = Some((at, shown));
        }
        found
    }

    /// A node at a place in the source.
    pub(super) fn node(&mut self, at: usize, expr: Expr) -> IdedExpr {
        self.places.push(at);
        IdedExpr { id: self.places.len() as u64 - 1, expr }
    }

    /// Whether the tree has grown too large to go on.
    pub(super) fn is_full(&self) -> bool {
        self.places.len() > NODES_MAX
    }

    /// Where a node stands.
    pub(super) fn place(&self, id: u64) -> usize {
        usize::try_from(id).ok().and_then(|id| self.places.get(id)).copied().unwrap_or_default()
    }

    /// Notes a fault; the node stands for what could not be read.
    pub(super) fn fault(&mut self, at: usize, message: impl Into<String>) -> IdedExpr {
        self.issues.push(Issue { at, message: message.into() });
        self.node(at, Expr::Unspecified)
    }

    fn peek(&self) -> &Kind {
        &self.tokens[self.next.min(self.tokens.len() - 1)].kind
    }

    fn at(&self) -> usize {
        self.tokens[self.next.min(self.tokens.len() - 1)].at
    }

    fn eat(&mut self, mark: &'static str) -> Option<usize> {
        let at = self.at();
        (self.peek() == &Kind::Mark(mark)).then(|| {
            self.next += 1;
            at
        })
    }

    fn eat_any(&mut self, marks: &[&'static str]) -> Option<(&'static str, usize)> {
        marks.iter().find_map(|mark| self.eat(mark).map(|at| (*mark, at)))
    }

    fn ident(&mut self) -> Option<(String, usize)> {
        let Kind::Ident(name) = self.peek() else { return None };
        let found = (name.clone(), self.at());
        self.next += 1;
        Some(found)
    }

    fn expr(&mut self) -> Option<IdedExpr> {
        let condition = self.or()?;
        let Some(at) = self.eat("?") else { return Some(condition) };
        let yes = self.or()?;
        self.want(":", "':'")?;
        let no = self.expr()?;
        Some(self.call(at, operators::CONDITIONAL, vec![condition, yes, no]))
    }

    fn call(&mut self, at: usize, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
        self.node(at, Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args }))
    }

    fn or(&mut self) -> Option<IdedExpr> {
        self.connected("||", operators::LOGICAL_OR, Parser::and)
    }

    fn and(&mut self) -> Option<IdedExpr> {
        self.connected("&&", operators::LOGICAL_AND, Parser::relation)
    }

    /// Terms of `&&` or `||`, which become a balanced tree.
    fn connected(
        &mut self,
        mark: &'static str,
        name: &str,
        term: fn(&mut Parser) -> Option<IdedExpr>,
    ) -> Option<IdedExpr> {
        let mut terms = vec![Some(term(self)?)];
        let mut places = Vec::new();
        while let Some(at) = self.eat(mark) {
            terms.push(Some(term(self)?));
            places.push(at);
        }
        match places.len() {
            0 => terms.pop().flatten(),
            count => self.balanced(name, &mut terms, &places, (0, count - 1)),
        }
    }

    fn balanced(
        &mut self,
        name: &str,
        terms: &mut [Option<IdedExpr>],
        places: &[usize],
        (low, high): (usize, usize),
    ) -> Option<IdedExpr> {
        let mid = (low + high).div_ceil(2);
        let left = match mid == low {
            true => terms[mid].take()?,
            false => self.balanced(name, terms, places, (low, mid - 1))?,
        };
        let right = match mid == high {
            true => terms[mid + 1].take()?,
            false => self.balanced(name, terms, places, (mid + 1, high))?,
        };
        Some(self.call(places[mid], name, vec![left, right]))
    }

    fn relation(&mut self) -> Option<IdedExpr> {
        const MARKS: [&str; 7] = ["<", "<=", ">=", ">", "==", "!=", "in"];
        let mut left = self.sum()?;
        while let Some((mark, at)) = self.eat_any(&MARKS) {
            let right = self.sum()?;
            let name = match mark {
                "<" => operators::LESS,
                "<=" => operators::LESS_EQUALS,
                ">" => operators::GREATER,
                ">=" => operators::GREATER_EQUALS,
                "==" => operators::EQUALS,
                "!=" => operators::NOT_EQUALS,
                _ => operators::IN,
            };
            left = self.call(at, name, vec![left, right]);
        }
        Some(left)
    }

    fn sum(&mut self) -> Option<IdedExpr> {
        let mut left = self.product()?;
        while let Some((mark, at)) = self.eat_any(&["+", "-"]) {
            let right = self.product()?;
            let name = if mark == "+" { operators::ADD } else { operators::SUBSTRACT };
            left = self.call(at, name, vec![left, right]);
        }
        Some(left)
    }

    fn product(&mut self) -> Option<IdedExpr> {
        let mut left = self.unary()?;
        while let Some((mark, at)) = self.eat_any(&["*", "/", "%"]) {
            let right = self.unary()?;
            let name = match mark {
                "*" => operators::MULTIPLY,
                "/" => operators::DIVIDE,
                _ => operators::MODULO,
            };
            left = self.call(at, name, vec![left, right]);
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<IdedExpr> {
        let at = self.at();
        for (mark, name) in [("!", operators::LOGICAL_NOT), ("-", operators::NEGATE)] {
            let is_number = matches!(
                self.tokens.get(self.next + 1),
                Some(Token { kind: Kind::Int(_) | Kind::Double(_), .. })
            );
            if mark == "-" && is_number {
                continue;
            }
            let mut count = 0;
            while self.eat(mark).is_some() {
                count += 1;
            }
            if count > 0 {
                let member = self.member()?;
                return Some(if count % 2 == 1 { self.call(at, name, vec![member]) } else { member });
            }
        }
        self.member()
    }

    fn member(&mut self) -> Option<IdedExpr> {
        let mut operand = self.primary()?;
        loop {
            if let Some(at) = self.eat(".") {
                let optional = self.eat("?").is_some();
                let (name, name_at) = self.ident()?;
                let open = if optional { None } else { self.eat("(") };
                operand = match open {
                    Some(open) => {
                        let args = self.list(")")?;
                        macros::method(self, open, name, operand, args)
                    }
                    None if optional => {
                        let name = self.node(name_at, Expr::Literal(LiteralValue::String(name.into())));
                        self.call(at, operators::OPT_SELECT, vec![operand, name])
                    }
                    None => {
                        let select = SelectExpr { operand: Box::new(operand), field: name, test: false };
                        self.node(at, Expr::Select(select))
                    }
                };
            } else if let Some(at) = self.eat("[") {
                let name = if self.eat("?").is_some() { operators::OPT_INDEX } else { operators::INDEX };
                let index = self.expr()?;
                self.want("]", "']'")?;
                operand = self.call(at, name, vec![operand, index]);
            } else {
                return Some(operand);
            }
        }
    }

    /// Arguments up to the closing bracket.
    fn list(&mut self, close: &'static str) -> Option<Vec<IdedExpr>> {
        let mut out = Vec::new();
        if self.eat(close).is_some() {
            return Some(out);
        }
        loop {
            out.push(self.expr()?);
            if self.eat(close).is_some() {
                return Some(out);
            }
            if self.eat(",").is_none() {
                self.wanted = Some((self.at(), "')'"));
                return None;
            }
        }
    }

    fn primary(&mut self) -> Option<IdedExpr> {
        let at = self.at();
        if self.eat("(").is_some() {
            let inner = self.expr()?;
            self.want(")", "')'")?;
            return Some(inner);
        }
        if self.eat("[").is_some() {
            return self.create_list(at);
        }
        if self.eat("{").is_some() {
            return self.create_map(at);
        }
        let dot = self.eat(".").map_or("", |_| ".");
        if let Some((name, name_at)) = self.ident() {
            return self.named(at, format!("{dot}{name}"), name_at);
        }
        if dot.is_empty() { self.literal() } else { None }
    }

    /// A variable, a function, or a message, all of which begin with a name.
    fn named(&mut self, at: usize, name: String, name_at: usize) -> Option<IdedExpr> {
        let is_reserved = escape::is_keyword(name.trim_start_matches('.'));
        if let Some(open) = self.eat("(") {
            let args = self.list(")")?;
            return Some(match is_reserved {
                true => self.fault(at, format!("reserved identifier: {}", name.trim_start_matches('.'))),
                false => macros::global(self, open, name, args),
            });
        }
        if let Some(message) = self.message(&name)? {
            return Some(message);
        }
        Some(match is_reserved {
            true => self.fault(at, format!("reserved identifier: {}", name.trim_start_matches('.'))),
            false => self.node(name_at, Expr::Ident(name)),
        })
    }

    /// `a.b.C{field: value}`. `Some(None)` if it is none, and nothing was read.
    #[expect(clippy::option_option, reason = "the outer one is the syntax error, as everywhere here")]
    fn message(&mut self, first: &str) -> Option<Option<IdedExpr>> {
        let start = self.next;
        let mut name = first.to_owned();
        while self.eat(".").is_some() {
            let Some((part, _)) = self.ident() else { break };
            name = format!("{name}.{part}");
        }
        let Some(open) = self.eat("{") else {
            self.next = start;
            return Some(None);
        };
        let mut entries = Vec::new();
        while self.eat("}").is_none() {
            let optional = self.eat("?").is_some();
            let (field, _) = self.ident()?;
            let at = self.eat(":")?;
            let value = self.expr()?;
            let id = self.node(at, Expr::Unspecified).id;
            entries.push(IdedEntryExpr {
                id,
                expr: EntryExpr::StructField(StructFieldExpr { field, value, optional }),
            });
            if self.eat(",").is_none() && self.peek() != &Kind::Mark("}") {
                return None;
            }
        }
        let message = StructExpr { type_name: name, entries };
        Some(Some(self.node(open, Expr::Struct(message))))
    }

    fn create_list(&mut self, at: usize) -> Option<IdedExpr> {
        let (mut elements, mut optional_indices) = (Vec::new(), Vec::new());
        while self.eat("]").is_none() {
            if self.eat("?").is_some() {
                optional_indices.push(elements.len());
            }
            elements.push(self.expr()?);
            if self.eat(",").is_none() && self.peek() != &Kind::Mark("]") {
                return None;
            }
        }
        Some(self.node(at, Expr::List(ListExpr { elements, optional_indices })))
    }

    fn create_map(&mut self, at: usize) -> Option<IdedExpr> {
        let mut entries = Vec::new();
        while self.eat("}").is_none() {
            let optional = self.eat("?").is_some();
            let key = self.expr()?;
            let colon = self.want(":", "':'")?;
            let value = self.expr()?;
            let id = self.node(colon, Expr::Unspecified).id;
            entries
                .push(IdedEntryExpr { id, expr: EntryExpr::MapEntry(MapEntryExpr { key, value, optional }) });
            if self.eat(",").is_none() && self.peek() != &Kind::Mark("}") {
                return None;
            }
        }
        Some(self.node(at, Expr::Map(MapExpr { entries })))
    }

    fn literal(&mut self) -> Option<IdedExpr> {
        let at = self.at();
        let sign = if self.eat("-").is_some() { "-" } else { "" };
        let kind = self.peek().clone();
        self.next += 1;
        let whole = |text: &str| match text.strip_prefix("0x") {
            Some(hex) => i64::from_str_radix(&format!("{sign}{hex}"), 16).ok(),
            None => format!("{sign}{text}").parse().ok(),
        };
        let literal = match kind {
            Kind::Int(text) => match whole(&text) {
                Some(value) => LiteralValue::Int(value.into()),
                None => return Some(self.fault(at, "invalid int literal")),
            },
            Kind::Double(text) => match format!("{sign}{text}").parse::<f64>() {
                Ok(value) if value.is_finite() => LiteralValue::Double(value.into()),
                _ => return Some(self.fault(at, "invalid double literal")),
            },
            _ if !sign.is_empty() => return None,
            Kind::UInt(text) => {
                let value = match text.strip_prefix("0x") {
                    Some(hex) => u64::from_str_radix(hex, 16).ok(),
                    None => text.parse().ok(),
                };
                match value {
                    Some(value) => LiteralValue::UInt(value.into()),
                    None => return Some(self.fault(at, "invalid uint literal")),
                }
            }
            Kind::Text(text) => LiteralValue::String(text.into()),
            Kind::Bytes(bytes) => LiteralValue::Bytes(bytes.into()),
            Kind::Bad(message) => return Some(self.fault(at, message)),
            Kind::Mark("true") => LiteralValue::Boolean(true.into()),
            Kind::Mark("false") => LiteralValue::Boolean(false.into()),
            Kind::Mark("null") => LiteralValue::Null,
            _ => return None,
        };
        Some(self.node(at, Expr::Literal(literal)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(source: &str) -> String {
        parse(source).expect_err(source)
    }

    #[test]
    fn every_node_knows_its_place() {
        let parsed = parse("self.a.all(x, x > -1)").unwrap();
        let Expr::Comprehension(all) = &parsed.expr.expr else { panic!("{parsed:?}") };
        assert_eq!(parsed.place(parsed.expr.id), 10);
        assert_eq!(parsed.place(all.iter_range.id), 4);
        let Expr::Call(and) = &all.loop_step.expr else { panic!("{parsed:?}") };
        assert_eq!(parsed.place(and.args[1].id), 16);
    }

    #[test]
    fn what_is_no_expression_is_refused_with_its_place() {
        assert_eq!(
            refused("self.a == namespace"),
            "ERROR: <input>:1:11: reserved identifier: namespace\n | self.a == namespace\n | ..........^"
        );
        assert!(refused("self.a ==").starts_with("ERROR: <input>:1:10: Syntax error: mismatched input"));
        assert!(refused("has(self)").contains("invalid argument to has() macro"));
        assert!(refused("self.all(1, true)").contains("argument must be a simple name"));
        assert!(refused("99999999999999999999 > 0").contains("invalid int literal"));
    }

    /// As kube-apiserver 1.36.4 has it. The escape was read, and then called one that cannot be undone.
    #[test]
    fn an_escape_that_is_none_breaks_the_text_off() {
        let want = [
            r"ERROR: <input>:1:29: Syntax error: token recognition error at: ''\d'",
            r" | self.e.substring(0).matches('\d{3}')",
            r" | ............................^",
            r"ERROR: <input>:1:34: Syntax error: mismatched input '}' expecting ':'",
            r" | self.e.substring(0).matches('\d{3}')",
            r" | .................................^",
            r"ERROR: <input>:1:35: Syntax error: token recognition error at: '')'",
            r" | self.e.substring(0).matches('\d{3}')",
            r" | ..................................^",
            r"ERROR: <input>:1:37: Syntax error: missing ')' at '<EOF>'",
            r" | self.e.substring(0).matches('\d{3}')",
            r" | ....................................^",
        ];
        assert_eq!(refused(r"self.e.substring(0).matches('\d{3}')"), want.join("\n"));
    }

    /// Brackets behind a text that does not end were not counted, and the error was told in words that are not CEL's.
    #[test]
    fn what_is_too_deep_is_refused_behind_broken_text_as_well() {
        let limit = "ERROR: <input>:-1:0: expression recursion limit exceeded: 250";
        assert_eq!(refused(&format!("'a\n{}", "(".repeat(90_000))), limit);
    }

    #[test]
    fn macros_within_macros_do_not_grow_without_end() {
        let source = format!("a{}", ".optMap(x, x)".repeat(60));
        assert!(refused(&source).contains("expression is too large"));
        assert!(parse(&format!("a{}", ".optMap(x, x)".repeat(8))).is_ok());
    }

    #[test]
    fn chains_become_balanced_trees() {
        let parsed = parse(&vec!["a"; 1000].join(" && ")).unwrap();
        fn depth(expr: &IdedExpr) -> usize {
            match &expr.expr {
                Expr::Call(call) => 1 + call.args.iter().map(depth).max().unwrap_or_default(),
                _ => 0,
            }
        }
        assert_eq!(depth(&parsed.expr), 10);
    }
}
