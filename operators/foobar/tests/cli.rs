//! The program as somebody types it: what it prints, and what it exits with.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;

/// What came of a command line.
struct Typed {
    code: i32,
    output: String,
    error: String,
}

/// A home without a cluster. Each test has its own.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Home {
        let home = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("cli").join(name);
        std::fs::create_dir_all(&home).unwrap();
        Home(home)
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn types(&self, args: &[&str]) -> Typed {
        self.types_with(args, &[])
    }

    fn types_with(&self, args: &[&str], environment: &[(&str, &str)]) -> Typed {
        let mut command = Command::new(env!("CARGO_BIN_EXE_foobar-operator"));
        command
            .args(args)
            .current_dir(&self.0)
            .env_clear()
            .env("HOME", &self.0)
            .envs(environment.iter().copied());
        let output = command.output().unwrap();
        let home = self.0.to_str().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap().replace(home, "~");
        Typed { code: output.status.code().unwrap(), output: text(output.stdout), error: text(output.stderr) }
    }
}

/// What a good command line prints, without the version: a release is no reason to look at it again.
fn prints(args: &[&str]) -> String {
    let typed = Home::new("prints").types(args);
    assert_eq!((typed.code, &*typed.error), (0, ""));
    typed.output.replace(env!("CARGO_PKG_VERSION"), "VERSION")
}

/// A kubeconfig of a server that nobody is.
const NOBODY: &str = "
apiVersion: v1
kind: Config
current-context: nobody
contexts: [{name: nobody, context: {cluster: nobody, user: nobody}}]
clusters: [{name: nobody, cluster: {server: 'http://127.0.0.1:1'}}]
users: [{name: nobody, user: {}}]
";

#[test]
fn help_is_as_reviewed() {
    insta::assert_snapshot!("help", prints(&["--help"]));
    insta::assert_snapshot!("help_plan", prints(&["plan", "--help"]));
    insta::assert_snapshot!("help_manifests", prints(&["manifests", "--help"]));
}

#[test]
fn manifests_are_as_reviewed() {
    insta::assert_snapshot!("manifests", prints(&["manifests"]));
    let namespaced = [
        "manifests",
        "--namespaced",
        "--namespace",
        "foo",
        "--image",
        "example.com/foobar:1",
        "--replicas=2",
    ];
    insta::assert_snapshot!("manifests_namespaced", prints(&namespaced));
}

#[test]
fn the_version_is_printed() {
    assert_eq!(prints(&["version"]), "foobar-operator VERSION\n");
    assert_eq!(prints(&["--version"]), "foobar-operator VERSION\n");
}

#[test]
fn a_command_line_that_makes_no_sense_exits_with_2() {
    let home = Home::new("usage");
    for (args, says) in [
        (&["--bogus"][..], "unexpected argument '--bogus' found"),
        (&["--graceful-shutdown-timeout=soon"], "expected a duration such as 15s or 1m30s"),
        (&["--leader-elect=perhaps"], "[possible values: true, false]"),
        (&["plan"], "required arguments were not provided:\n  <FILE|NAME>"),
        (&["dance"], "'dance'"),
    ] {
        let typed = home.types(args);
        assert_eq!(typed.code, 2, "{args:?}: {}", typed.error);
        assert!(typed.error.contains(says), "{args:?}: {}", typed.error);
        assert_eq!(typed.output, "", "{args:?}");
    }
}

#[test]
fn a_kubeconfig_that_cannot_be_used_exits_with_1_and_says_which_and_why() {
    let home = Home::new("kubeconfig");
    home.file("broken", "not: [yaml");
    home.file("lost", "{apiVersion: v1, kind: Config, current-context: lost}");
    let named = "error: cannot use the kubeconfig";
    for (args, environment, says) in [
        (&["--kubeconfig", "missing"][..], &[][..], format!("{named} \"missing\" that --kubeconfig names: ")),
        (&["run", "--kubeconfig", "missing"], &[], format!("{named} \"missing\" that --kubeconfig names: ")),
        (
            &["plan", "one", "--kubeconfig", "missing"],
            &[],
            format!("{named} \"missing\" that --kubeconfig names: "),
        ),
        (
            &["--kubeconfig", "broken"],
            &[],
            format!("{named} \"broken\" that --kubeconfig names: failed to parse"),
        ),
        (
            &["--kubeconfig", "lost"],
            &[],
            format!("{named} \"lost\" that --kubeconfig names: failed to load current context"),
        ),
        (&[], &[("KUBECONFIG", "missing")], format!("{named} that $KUBECONFIG names: failed to read")),
        (&[], &[], "error: no cluster: name one by --kubeconfig or $KUBECONFIG; this is no pod (".to_owned()),
    ] {
        let typed = home.types_with(args, environment);
        assert_eq!(typed.code, 1, "{args:?}: {}", typed.error);
        assert!(typed.error.starts_with(&says), "{args:?}: {}", typed.error);
        assert_eq!(typed.output, "", "{args:?}");
    }
    let missing = home.types(&["--kubeconfig", "missing"]).error;
    assert!(missing.contains("No such file or directory"), "{missing}");
}

#[test]
fn a_port_that_is_taken_exits_with_1_and_says_what_chooses_another() {
    let home = Home::new("port");
    home.file("config", NOBODY);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (flag, serves) in [("--health-probe-bind-address", "probes"), ("--metrics-bind-address", "metrics")] {
        let other =
            if serves == "metrics" { "--health-probe-bind-address=0" } else { "--metrics-bind-address=0" };
        let typed = home.types(&["--kubeconfig=config", other, flag, &address]);
        assert_eq!(typed.code, 1, "{}", typed.error);
        let says = format!(
            "error: no address to serve {serves}: choose another by {flag}: \
             cannot listen on \"{address}\" for {serves}: Address already in use"
        );
        assert!(typed.error.contains(&says), "{}", typed.error);
    }
}

#[test]
fn what_cannot_be_planned_exits_with_1_and_says_why() {
    let home = Home::new("plan");
    home.file("config", NOBODY);
    home.file("list.yaml", "- 1\n- 2\n");
    home.file("other.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}");
    for (object, says) in [
        ("missing.yaml", "error: cannot read missing.yaml: No such file or directory"),
        ("list.yaml", "error: list.yaml has no `kind` and `metadata.name`: it is no Kubernetes object"),
        ("other.yaml", "error: foobar-operator has no controller for ConfigMap; it has: FooBar"),
    ] {
        let typed = home.types(&["plan", object, "--kubeconfig=config"]);
        assert_eq!(typed.code, 1, "{object}: {}", typed.error);
        assert!(typed.error.starts_with(says), "{object}: {}", typed.error);
    }
}
