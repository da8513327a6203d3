//! Tables recorded from kube-apiserver (`tools/record/tables.py`), printed again.

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_apiserver::print::{cells, custom_cells, custom_columns, name_column, row_conditions};

fn rows(file: &str) -> Vec<Value> {
    let path = format!("{}/tests/data/print/{file}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let rows = std::fs::read_to_string(path).expect("the recorded tables are there");
    rows.lines().map(|line| serde_json::from_str(line).expect("a recorded row")).collect()
}

fn now(row: &Value) -> Timestamp {
    row["now"].as_str().expect("a time").parse().expect("a time")
}

fn replay(file: &str, at_least: usize) {
    let rows = rows(file);
    assert!(rows.len() >= at_least, "{file}: {} rows", rows.len());
    let mut faults = Vec::new();
    for row in &rows {
        let (group, kind) = (row["group"].as_str().expect("a group"), row["kind"].as_str().expect("a kind"));
        let printed = Value::Array(cells(group, kind, &row["object"], now(row)));
        if printed != row["cells"] {
            faults.push(format!("{kind}: {printed}\n is not {}\n for {}", row["cells"], row["object"]));
        }
        let conditions = row_conditions(group, kind, &row["object"]).unwrap_or_default();
        if conditions != row["conditions"] {
            faults.push(format!("{kind}: {conditions} is not {}", row["conditions"]));
        }
    }
    assert!(faults.is_empty(), "{} of {} differ:\n{}", faults.len(), rows.len(), faults.join("\n"));
}

#[test]
fn workloads_print_as_upstream() {
    replay("workloads", 55);
}

#[test]
fn networking_prints_as_upstream() {
    replay("network", 25);
}

#[test]
fn storage_prints_as_upstream() {
    replay("storage", 15);
}

#[test]
fn core_kinds_print_as_upstream() {
    replay("core", 18);
}

#[test]
fn cluster_kinds_print_as_upstream() {
    replay("cluster", 35);
}

#[test]
fn kinds_that_are_not_served_by_default_print_as_upstream() {
    replay("early", 28);
}

#[test]
fn custom_columns_print_as_upstream() {
    let rows = rows("custom");
    assert!(rows.len() >= 8, "{} rows", rows.len());
    for row in &rows {
        let columns = custom_columns(row["declared"].as_array().expect("a list"));
        let definitions = columns.iter().map(|column| column.definition.clone());
        let definitions = std::iter::once(name_column()).chain(definitions).collect::<Value>();
        assert_eq!(definitions, row["definitions"]);
        let printed = custom_cells(&columns, &row["object"], now(row));
        let named = |cells: &[Value]| {
            let names =
                row["definitions"].as_array().expect("a list").iter().map(|column| column["name"].clone());
            names.zip(cells.iter().cloned()).map(|(name, cell)| json!([name, cell])).collect::<Vec<_>>()
        };
        assert_eq!(named(&printed), named(row["cells"].as_array().expect("a list")), "{}", row["object"]);
    }
}

/// Objects of the built-in kinds are validated before they are printed, but a printer must not rely on it.
#[test]
fn no_printer_panics_whatever_stands_where() {
    for row in ["workloads", "network", "storage", "core", "cluster", "early"].into_iter().flat_map(rows) {
        let (group, kind) = (row["group"].as_str().expect("a group"), row["kind"].as_str().expect("a kind"));
        let columns = row["cells"].as_array().expect("a list").len();
        let mut object = row["object"].clone();
        for pointer in pointers(&object) {
            let place = object.pointer_mut(&pointer).expect("it is there");
            let before = place.clone();
            for odd in
                [Value::Null, json!([]), json!([[1]]), json!({"a": {}}), json!(-1), json!(1.5), json!("é")]
            {
                *object.pointer_mut(&pointer).expect("it is there") = odd;
                assert_eq!(cells(group, kind, &object, now(&row)).len(), columns, "{kind} {pointer}");
            }
            *object.pointer_mut(&pointer).expect("it is there") = before;
        }
    }
}

/// The places of all values of a tree, its root included.
fn pointers(value: &Value) -> Vec<String> {
    let below = |key: &str, value: &Value| {
        let key = key.replace('~', "~0").replace('/', "~1");
        pointers(value).into_iter().map(move |rest| format!("/{key}{rest}")).collect::<Vec<_>>()
    };
    let mut all = vec![String::new()];
    match value {
        Value::Object(map) => all.extend(map.iter().flat_map(|(key, value)| below(key, value))),
        Value::Array(list) => {
            all.extend(list.iter().enumerate().flat_map(|(i, value)| below(&i.to_string(), value)))
        }
        _ => {}
    }
    all
}
