//! The examples are programs that check what they tell. They run here, too, so that they stay true.

/// One test each, and none forgotten.
macro_rules! examples {
    ($($name:ident = $path:literal,)*) => {
        $(#[path = $path]
        mod $name;)*

        mod runs {
            $(#[test]
            fn $name() {
                super::$name::main().unwrap();
            })*
        }

        #[test]
        fn every_example_is_a_test() {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
            let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name());
            let mut files: Vec<String> = files.map(|name| name.into_string().unwrap()).collect();
            files.sort();
            assert_eq!(files, [$(concat!(stringify!($name), ".rs")),*]);
        }
    };
}

examples! {
    beside = "../examples/beside.rs",
    dynamic = "../examples/dynamic.rs",
    effects = "../examples/effects.rs",
    errors = "../examples/errors.rs",
    migrate = "../examples/migrate.rs",
    namespaces = "../examples/namespaces.rs",
    optional = "../examples/optional.rs",
    planner = "../examples/planner.rs",
    raw = "../examples/raw.rs",
    replicas = "../examples/replicas.rs",
    watches = "../examples/watches.rs",
}
