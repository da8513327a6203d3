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
    assert!(rows.len() >= at_least, "{} rows", rows.len());
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
