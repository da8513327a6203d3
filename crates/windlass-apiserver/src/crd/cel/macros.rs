//! Macros: calls that are loops or tests in other words. They become what CEL makes of them, for costs and faults are
//! told by that.

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, ListExpr, LiteralValue, MapExpr,
    SelectExpr, operators,
};

use super::parse::Parser;

/// The variable that holds the result of a loop. No source can name it.
pub(super) const RESULT: &str = "@result";

/// The function that adds entries to the result of a loop.
pub(super) const MAP_INSERT: &str = "cel.@mapInsert";

/// The function that `sortBy` ends in.
pub(super) const SORT_BY_KEYS: &str = "@sortByAssociatedKeys";

const SORT_BY_INPUT: &str = "@__sortBy_input__";
const UNUSED: &str = "#unused";

/// A call without a target: `has(a.b)`, or a function.
pub(super) fn global(parser: &mut Parser, open: usize, name: String, mut args: Vec<IdedExpr>) -> IdedExpr {
    match (name.as_str(), args.len()) {
        ("has", 1) => {
            let arg = args.remove(0);
            match arg.expr {
                Expr::Select(select) if !select.test => {
                    parser.node(open, Expr::Select(SelectExpr { test: true, ..select }))
                }
                _ => {
                    let at = parser.place(arg.id);
                    parser.fault(at, "invalid argument to has() macro")
                }
            }
        }
        _ => parser.node(open, Expr::Call(CallExpr { func_name: name, target: None, args })),
    }
}

/// A call on a target: a macro, or a method.
pub(super) fn method(
    parser: &mut Parser,
    open: usize,
    name: String,
    target: IdedExpr,
    args: Vec<IdedExpr>,
) -> IdedExpr {
    let mut make = Maker { parser, at: open };
    let made = match (name.as_str(), args.len()) {
        ("all" | "exists" | "exists_one", 2) => make.quantifier(&name, target, args),
        ("map", 2 | 3) => make.map(target, args, false),
        ("filter", 2) => make.map(target, args, true),
        ("optMap" | "optFlatMap", 2) => make.opt_map(&name, target, args),
        ("all" | "exists" | "existsOne" | "exists_one", 3)
        | ("transformList" | "transformMap" | "transformMapEntry", 3 | 4) => {
            make.two_variables(&name, target, args)
        }
        ("sortBy", 2) => make.sort_by(target, args),
        _ => {
            let call = CallExpr { func_name: name, target: Some(Box::new(target)), args };
            return make.parser.node(open, Expr::Call(call));
        }
    };
    made.unwrap_or_else(|fault| fault)
}

/// A macro that was given the wrong thing: the node that stands for it.
type Made = Result<IdedExpr, IdedExpr>;

/// What a loop does: how it begins, whether it goes on, what each round makes of the result, and what comes of it.
struct Loop {
    accu_init: IdedExpr,
    loop_cond: IdedExpr,
    loop_step: IdedExpr,
    result: IdedExpr,
}

/// Makes nodes at the place of a macro.
struct Maker<'p> {
    parser: &'p mut Parser,
    at: usize,
}

impl Maker<'_> {
    fn node(&mut self, expr: Expr) -> IdedExpr {
        self.parser.node(self.at, expr)
    }

    fn ident(&mut self, name: &str) -> IdedExpr {
        self.node(Expr::Ident(name.to_owned()))
    }

    fn result(&mut self) -> IdedExpr {
        self.ident(RESULT)
    }

    fn literal(&mut self, literal: LiteralValue) -> IdedExpr {
        self.node(Expr::Literal(literal))
    }

    fn truth(&mut self, truth: bool) -> IdedExpr {
        self.literal(LiteralValue::Boolean(truth.into()))
    }

    fn call(&mut self, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
        self.node(Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args }))
    }

    fn member(&mut self, name: &str, target: IdedExpr, args: Vec<IdedExpr>) -> IdedExpr {
        let target = Some(Box::new(target));
        self.node(Expr::Call(CallExpr { func_name: name.to_owned(), target, args }))
    }

    /// A function with a qualified name, written as the parser would leave it.
    fn qualified(&mut self, space: &str, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
        let space = self.ident(space);
        self.member(name, space, args)
    }

    fn list(&mut self, elements: Vec<IdedExpr>) -> IdedExpr {
        self.node(Expr::List(ListExpr { elements, optional_indices: Vec::new() }))
    }

    fn fault(&mut self, arg: &IdedExpr, message: impl Into<String>) -> IdedExpr {
        let at = self.parser.place(arg.id);
        self.parser.fault(at, message)
    }

    /// A copy of an expression, with ids of its own at the same places.
    fn copy(&mut self, expr: &IdedExpr) -> IdedExpr {
        let at = self.parser.place(expr.id);
        if self.parser.is_full() {
            return self.parser.fault(at, "expression is too large");
        }
        let inner = match &expr.expr {
            Expr::Select(select) => Expr::Select(SelectExpr {
                operand: Box::new(self.copy(&select.operand)),
                field: select.field.clone(),
                test: select.test,
            }),
            Expr::Call(call) => Expr::Call(CallExpr {
                func_name: call.func_name.clone(),
                target: call.target.as_deref().map(|target| Box::new(self.copy(target))),
                args: call.args.iter().map(|arg| self.copy(arg)).collect(),
            }),
            Expr::List(list) => Expr::List(ListExpr {
                elements: list.elements.iter().map(|element| self.copy(element)).collect(),
                optional_indices: list.optional_indices.clone(),
            }),
            Expr::Map(map) => Expr::Map(MapExpr {
                entries: map.entries.iter().map(|entry| self.copy_entry(entry)).collect(),
            }),
            Expr::Comprehension(loop_) => Expr::Comprehension(Box::new(ComprehensionExpr {
                iter_range: self.copy(&loop_.iter_range),
                iter_var: loop_.iter_var.clone(),
                iter_var2: loop_.iter_var2.clone(),
                accu_var: loop_.accu_var.clone(),
                accu_init: self.copy(&loop_.accu_init),
                loop_cond: self.copy(&loop_.loop_cond),
                loop_step: self.copy(&loop_.loop_step),
                result: self.copy(&loop_.result),
            })),
            other => other.clone(),
        };
        self.parser.node(at, inner)
    }

    fn copy_entry(&mut self, entry: &IdedEntryExpr) -> IdedEntryExpr {
        let mut out = entry.clone();
        if let EntryExpr::MapEntry(entry) = &mut out.expr {
            entry.key = self.copy(&entry.key);
            entry.value = self.copy(&entry.value);
        }
        out
    }

    /// The name of a variable of a loop.
    fn variable(&mut self, arg: &IdedExpr, otherwise: &str) -> Result<String, IdedExpr> {
        match &arg.expr {
            Expr::Ident(name) if name == RESULT || name == "__result__" => {
                Err(self.fault(arg, "iteration variable overwrites accumulator variable"))
            }
            Expr::Ident(name) => Ok(name.clone()),
            _ => Err(self.fault(arg, otherwise)),
        }
    }

    fn quantifier(&mut self, name: &str, range: IdedExpr, mut args: Vec<IdedExpr>) -> Made {
        let var = self.variable(&args[0], "argument must be a simple name")?;
        let body = args.remove(1);
        Ok(self.quantified(name, range, (var, None), body))
    }

    fn quantified(
        &mut self,
        name: &str,
        iter_range: IdedExpr,
        (iter_var, iter_var2): (String, Option<String>),
        body: IdedExpr,
    ) -> IdedExpr {
        let one = || LiteralValue::Int(1.into());
        let (accu_init, loop_cond, loop_step, result);
        match name {
            "all" => {
                accu_init = self.truth(true);
                let so_far = self.result();
                loop_cond = self.call(operators::NOT_STRICTLY_FALSE, vec![so_far]);
                let so_far = self.result();
                loop_step = self.call(operators::LOGICAL_AND, vec![so_far, body]);
                result = self.result();
            }
            "exists" => {
                accu_init = self.truth(false);
                let so_far = self.result();
                let not_yet = self.call(operators::LOGICAL_NOT, vec![so_far]);
                loop_cond = self.call(operators::NOT_STRICTLY_FALSE, vec![not_yet]);
                let so_far = self.result();
                loop_step = self.call(operators::LOGICAL_OR, vec![so_far, body]);
                result = self.result();
            }
            _ => {
                accu_init = self.literal(LiteralValue::Int(0.into()));
                loop_cond = self.truth(true);
                let (so_far, step) = (self.result(), self.literal(one()));
                let more = self.call(operators::ADD, vec![so_far, step]);
                let same = self.result();
                loop_step = self.call(operators::CONDITIONAL, vec![body, more, same]);
                let (count, once) = (self.result(), self.literal(one()));
                result = self.call(operators::EQUALS, vec![count, once]);
            }
        }
        let loop_ = Loop { accu_init, loop_cond, loop_step, result };
        self.fold(iter_range, (iter_var, iter_var2), loop_)
    }

    /// A loop that leaves its result in [`RESULT`].
    fn fold(
        &mut self,
        iter_range: IdedExpr,
        (iter_var, iter_var2): (String, Option<String>),
        loop_: Loop,
    ) -> IdedExpr {
        let Loop { accu_init, loop_cond, loop_step, result } = loop_;
        let accu_var = RESULT.to_owned();
        self.node(Expr::Comprehension(Box::new(ComprehensionExpr {
            iter_range,
            iter_var,
            iter_var2,
            accu_var,
            accu_init,
            loop_cond,
            loop_step,
            result,
        })))
    }

    /// A loop that collects: it starts empty and takes in each round what `step` makes of the result so far.
    fn collected(
        &mut self,
        iter_range: IdedExpr,
        (iter_var, iter_var2): (String, Option<String>),
        accu_init: IdedExpr,
        filter: Option<IdedExpr>,
        step: IdedExpr,
    ) -> IdedExpr {
        let loop_cond = self.truth(true);
        let loop_step = match filter {
            Some(filter) => {
                let same = self.result();
                self.call(operators::CONDITIONAL, vec![filter, step, same])
            }
            None => step,
        };
        let result = self.result();
        let loop_ = Loop { accu_init, loop_cond, loop_step, result };
        self.fold(iter_range, (iter_var, iter_var2), loop_)
    }

    fn map(&mut self, range: IdedExpr, mut args: Vec<IdedExpr>, is_filter: bool) -> Made {
        let var = self.variable(&args[0], "argument is not an identifier")?;
        let (element, filter) = match (is_filter, args.len()) {
            (true, _) => {
                let filter = args.remove(1);
                (args.remove(0), Some(filter))
            }
            (false, 3) => {
                let element = args.remove(2);
                (element, Some(args.remove(1)))
            }
            (false, _) => (args.remove(1), None),
        };
        let empty = self.list(Vec::new());
        let (so_far, added) = (self.result(), self.list(vec![element]));
        let step = self.call(operators::ADD, vec![so_far, added]);
        Ok(self.collected(range, (var, None), empty, filter, step))
    }

    fn two_variables(&mut self, name: &str, range: IdedExpr, mut args: Vec<IdedExpr>) -> Made {
        let otherwise = "argument must be a simple name";
        let first = self.variable(&args[0], otherwise)?;
        let second = self.variable(&args[1], otherwise)?;
        if first == second {
            return Err(self.fault(&args[1], format!("duplicate variable name: {first}")));
        }
        let body = args.pop().expect("it has three arguments at least");
        let filter = (args.len() == 3).then(|| args.remove(2));
        let vars = (first.clone(), Some(second));
        let step = match name {
            "transformList" => {
                let (so_far, added) = (self.result(), self.list(vec![body]));
                self.call(operators::ADD, vec![so_far, added])
            }
            "transformMap" => {
                let (so_far, key) = (self.result(), self.ident(&first));
                self.call(MAP_INSERT, vec![so_far, key, body])
            }
            "transformMapEntry" => {
                let so_far = self.result();
                self.call(MAP_INSERT, vec![so_far, body])
            }
            _ => return Ok(self.quantified(name, range, vars, body)),
        };
        let empty = match name {
            "transformList" => self.list(Vec::new()),
            _ => self.node(Expr::Map(MapExpr { entries: Vec::new() })),
        };
        Ok(self.collected(range, vars, empty, filter, step))
    }

    /// A variable that holds a value: a loop that never runs.
    fn bind(&mut self, name: &str, value: IdedExpr, result: IdedExpr) -> IdedExpr {
        let (iter_range, loop_cond, loop_step) = (self.list(Vec::new()), self.truth(false), self.ident(name));
        self.node(Expr::Comprehension(Box::new(ComprehensionExpr {
            iter_range,
            iter_var: UNUSED.to_owned(),
            iter_var2: None,
            accu_var: name.to_owned(),
            accu_init: value,
            loop_cond,
            loop_step,
            result,
        })))
    }

    fn opt_map(&mut self, name: &str, target: IdedExpr, mut args: Vec<IdedExpr>) -> Made {
        let Expr::Ident(var) = args[0].expr.clone() else {
            let message = format!("{name}() variable name must be a simple identifier");
            return Err(self.fault(&args[0], message));
        };
        let body = args.remove(1);
        let again = self.copy(&target);
        let has_value = self.member("hasValue", target, Vec::new());
        let value = self.member("value", again, Vec::new());
        let bound = self.bind(&var, value, body);
        let mapped = match name {
            "optMap" => self.qualified("optional", "of", vec![bound]),
            _ => bound,
        };
        let none = self.qualified("optional", "none", Vec::new());
        Ok(self.call(operators::CONDITIONAL, vec![has_value, mapped, none]))
    }

    fn sort_by(&mut self, target: IdedExpr, args: Vec<IdedExpr>) -> Made {
        if matches!(target.expr, Expr::Literal(_) | Expr::Map(_) | Expr::Struct(_)) {
            let message =
                "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
            return Err(self.fault(&target, message));
        }
        let input = self.ident(SORT_BY_INPUT);
        let keys = self.map(input, args, false)?;
        let input = self.ident(SORT_BY_INPUT);
        let sorted = self.member(SORT_BY_KEYS, input, vec![keys]);
        Ok(self.bind(SORT_BY_INPUT, target, sorted))
    }
}
