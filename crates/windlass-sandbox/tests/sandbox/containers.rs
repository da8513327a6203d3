//! Containers as processes: how they start, what they are, how they end.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use windlass_sandbox::{Capabilities, Error, Exec, Exit, Limits, Size, Spec, Stdio, User};

use crate::world::{
    FORBIDDEN, Folder, Test, VICTIM, World, block_on, is_root, mounts_in, processes_of, wait_until,
};

pub const TESTS: &[Test] = &[
    ("exits_are_told_as_container_runtimes_do", || block_on(exits_are_told())),
    ("programs_that_cannot_run_are_named", || block_on(programs_that_cannot_run_are_named())),
    ("the_program_is_alone_and_process_1", || block_on(the_program_is_alone())),
    ("a_container_sees_its_user_and_powers", || block_on(a_container_sees_its_user())),
    ("exec_joins_a_container_and_ends_with_it", || block_on(exec_joins_a_container())),
    ("a_container_shares_the_processes_of_another", || block_on(shared_processes())),
    ("a_terminal_is_the_containers_own", || block_on(a_terminal_is_the_containers_own())),
    ("limits_are_kept_where_the_machine_allows", || block_on(limits_are_kept())),
    ("what_forbids_namespaces_is_said", what_forbids_namespaces_is_said),
    ("killing_the_caller_leaves_nothing", killing_the_caller_leaves_nothing),
    ("the_agents_end_is_told", || block_on(the_agents_end_is_told())),
    ("a_hundred_containers", || block_on(a_hundred_containers())),
];

fn exit(code: i32, signal: Option<i32>) -> Exit {
    Exit { code, signal, oom: false }
}

async fn exits_are_told() {
    let world = World::new("exits").await;
    assert_eq!(world.script("ok", "echo hello").await, (exit(0, None), "hello".to_owned()));
    assert_eq!(world.script("seven", "exit 7").await.0, exit(7, None));
    let sleep = world.start("sleep", world.spec("sleep", &["sleep", "1000"])).await;
    let twice = world.sandbox.run("sleep", Spec::new(["true"]), Stdio::null().expect("/dev/null")).await;
    assert!(matches!(twice, Err(Error::Exists { .. })), "{twice:?}");
    // The first process of a container that has no handler is deaf to SIGTERM.
    sleep.signal(15).await.expect("a signal");
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    assert_eq!(sleep.exit(), None);
    world.sandbox.signal("sleep", 9).await.expect("a signal");
    assert_eq!(sleep.exited().await, exit(137, Some(9)));
    assert!(matches!(world.sandbox.signal("sleep", 9).await, Err(Error::Unknown { .. })));
    let trap = world
        .start("trap", world.spec("trap", &["sh", "-c", "trap 'exit 3' TERM; while :; do sleep 0.01; done"]))
        .await;
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    trap.signal(15).await.expect("a signal");
    assert_eq!(trap.exited().await, exit(3, None));
    // The id is free again.
    assert_eq!(world.script("sleep", "exit 0").await.0, exit(0, None));
    world.end().await;
}

async fn programs_that_cannot_run_are_named() {
    let world = World::new("programs").await;
    for (argv, text) in [
        (&["nope"][..], "exec: \"nope\": executable file not found in $PATH"),
        (&["/nope"], "exec: \"/nope\": stat /nope: no such file or directory"),
        (&["/etc/passwd"], "exec: \"/etc/passwd\": permission denied"),
        (&["/etc"], "exec: \"/etc\": is a directory"),
    ] {
        let said = world.run("x", world.spec("x", argv)).await.expect_err("it cannot run");
        assert_eq!(said.to_string(), text);
        assert!(matches!(said, Error::Program(_)));
    }
    let absent =
        Spec { mounts: vec![windlass_sandbox::Mount::new("/nope", "/x")], ..world.spec("y", &["true"]) };
    let said = world.run("y", absent).await.expect_err("it cannot start");
    assert_eq!(said.to_string(), "cannot find /nope");
    world.end().await;
}

async fn the_program_is_alone() {
    let world = World::new("alone").await;
    let (_, said) =
        world.script("a", "echo $$; set -- /proc/[0-9]*; echo $#; ls /sys/class/net; hostname").await;
    assert_eq!(said, "1\n1\nlo\nwindlass");
    let env = Spec {
        env: vec![("A".to_owned(), "b c".to_owned())],
        cwd: "/made/for/it".into(),
        ..world.spec("e", &["/usr/bin/env"])
    };
    assert_eq!(world.run("e", env).await.expect("it runs").1, "A=b c\nHOME=/root");
    let cwd = Spec { cwd: "/made/for/it".into(), ..world.spec("cwd", &["/bin/pwd"]) };
    assert_eq!(world.run("cwd", cwd).await.expect("it runs").1, "/made/for/it");
    let blocked = world.spec("blocked", &["grep", "SigBlk", "/proc/self/status"]);
    let (_, said) = world.run("blocked", blocked).await.expect("it runs");
    assert_eq!(said, "SigBlk:\t0000000000000000", "no signal is kept from it");
    world.end().await;
}

async fn a_container_sees_its_user() {
    let world = World::new("users").await;
    let user = User { uid: 1234, gid: 4321, groups: vec![77] };
    let script = "id -u; id -g; touch /tmp/x; stat -c %u /tmp/x; grep CapEff /proc/self/status | cut -f2; echo > /dev/stdout";
    let spec = Spec { user, ..world.spec("a", &["sh", "-c", script]) };
    let (exit, said) = world.run("a", spec.clone()).await.expect("it runs");
    assert_eq!((exit.code, said.as_str()), (0, "1234\n4321\n1234\n0000000000000000"));
    if is_root() {
        let groups = Spec { argv: vec!["id".to_owned(), "-G".to_owned()], ..spec };
        assert_eq!(world.run("g", groups).await.expect("it runs").1, "4321 77");
    }
    let powers = |capabilities| Spec {
        capabilities,
        ..world.spec("c", &["sh", "-c", "grep CapEff /proc/self/status | cut -f2"])
    };
    assert_eq!(world.run("c", powers(Capabilities::default())).await.expect("it runs").1, "00000000a00425fb");
    let few = Capabilities { add: vec!["NET_BIND_SERVICE".to_owned()], drop: vec!["ALL".to_owned()] };
    assert_eq!(world.run("c", powers(few)).await.expect("it runs").1, "0000000000000400");
    world.end().await;
}

async fn exec_joins_a_container() {
    let world = World::new("exec").await;
    let user = User { uid: 1000, gid: 1000, groups: Vec::new() };
    for (id, user) in [("root", User::default()), ("user", user)] {
        let spec = Spec {
            user: user.clone(),
            ..world.spec(id, &["sh", "-c", "echo mark > /tmp/mark; exec sleep 1000"])
        };
        let container = world.start(id, spec.clone()).await;
        let script =
            "while ! test -s /tmp/mark; do sleep 0.01; done; cat /tmp/mark; id -u; cat /proc/1/comm; exit 5";
        let (exit, said) = world.exec(id, Exec::like(&spec, ["sh", "-c", script])).await.expect("it runs");
        assert_eq!((exit.code, said), (5, format!("mark\n{}\nsleep", user.uid)));
        let failed = world.exec(id, Exec::like(&spec, ["nope"])).await.expect_err("it cannot run");
        assert_eq!(failed.to_string(), "exec: \"nope\": executable file not found in $PATH");
        let long = Exec::like(&spec, ["sleep", "1000"]);
        let long = world.sandbox.exec(id, long, Stdio::null().expect("/dev/null")).await.expect("it runs");
        container.signal(9).await.expect("a signal");
        assert_eq!(long.exited().await.signal, Some(9));
        let late = world.exec(id, Exec::like(&spec, ["true"])).await;
        assert!(matches!(late, Err(Error::Unknown { .. })), "{late:?}");
    }
    world.end().await;
}

async fn shared_processes() {
    let world = World::new("shares").await;
    let target = world.start("target", world.spec("target", &["sleep", "3171"])).await;
    let beside = |id: &str, script: &str| Spec {
        processes_of: Some("target".to_owned()),
        ..world.spec(id, &["sh", "-c", script])
    };
    let script = "tr '\\0' ' ' < /proc/1/cmdline; [ $$ != 1 ] && echo beside it";
    let (ended, seen) = world.run("looks", beside("looks", script)).await.unwrap();
    assert_eq!((ended.code, seen.as_str()), (0, "sleep 3171 beside it"));
    // It ends with the one whose processes it shares.
    let watching = world.start("watching", beside("watching", "exec sleep 3172")).await;
    target.signal(9).await.unwrap();
    assert_eq!(target.exited().await, exit(137, Some(9)));
    assert_eq!(watching.exited().await, exit(137, Some(9)));
    let gone = world.run("late", beside("late", "true")).await.unwrap_err().to_string();
    assert!(gone.contains("target"), "{gone}");
    world.end().await;
}

async fn a_terminal_is_the_containers_own() {
    let world = World::new("terminal").await;
    let spec = world.spec("a", &["sleep", "1000"]);
    world.start("a", spec.clone()).await;
    let size = Size { rows: 33, columns: 77 };
    let exec =
        Exec::like(&spec, ["sh", "-c", "tty; stty size; read line; echo got $line; stty size; exit 4"]);
    let mut process = world.sandbox.exec("a", exec, Stdio::Terminal(size)).await.expect("it runs");
    let terminal = process.terminal().expect("a terminal");
    let terminal = std::fs::File::from(terminal);
    let read_until = |text: &str| {
        let mut said = String::new();
        while !said.contains(text) {
            let mut buffer = [0; 256];
            let read = (&terminal).read(&mut buffer).expect("the terminal speaks");
            said.push_str(&String::from_utf8_lossy(&buffer[..read]));
        }
        said
    };
    let said = read_until("33 77");
    assert!(said.starts_with("/dev/pts/0"), "{said}");
    windlass_sandbox::resize(&terminal, Size { rows: 10, columns: 20 }).expect("a size");
    (&terminal).write_all(b"hello\n").expect("the terminal hears");
    assert_eq!(process.exited().await.code, 4);
    let mut rest = String::new();
    // The end of a terminal is an error, after all that was said.
    let _ = (&terminal).read_to_string(&mut rest);
    assert!(rest.contains("got hello") && rest.contains("10 20"), "{rest}");
    world.end().await;
}

async fn limits_are_kept() {
    let world = World::new("limits").await;
    assert_eq!(world.sandbox.about().limits, is_root(), "root may write cgroups, others may not");
    let limits = Limits {
        memory: Some(32 << 20),
        cpu_millis: Some(500),
        cpu_request_millis: Some(100),
        pids: Some(20),
    };
    let eat = "b = bytearray(100 << 20); print(len(b))";
    let spec = Spec { limits, ..world.spec("eat", &["python3", "-c", eat]) };
    let (exit, said) = world.run("eat", spec).await.expect("it runs");
    if is_root() {
        assert_eq!((exit, said.as_str()), (Exit { code: 137, signal: Some(9), oom: true }, ""));
        let fork = "i=0; while [ $i -lt 40 ]; do sleep 1 & i=$((i+1)); done; echo all";
        let spec = Spec { limits, ..world.spec("fork", &["sh", "-c", fork]) };
        let (exit, said) = world.run("fork", spec).await.expect("it runs");
        assert!(exit.code != 0 && !said.contains("all"), "{exit:?} {said}");
    } else {
        assert_eq!((exit, said.as_str()), (Exit { code: 0, signal: None, oom: false }, "104857600"));
    }
    let outer =
        processes_of(world.folder.path()).into_iter().find(|line| line.contains("__windlass-sandbox"));
    let outer = outer.and_then(|line| line.split(' ').next().map(str::to_owned)).expect("the outer stage");
    let before = groups(&outer);
    let sleep = world.start("s", Spec { limits, ..world.spec("s", &["sleep", "1000"]) }).await;
    let during = groups(&outer);
    sleep.signal(9).await.expect("a signal");
    sleep.exited().await;
    assert_eq!(groups(&outer), before);
    assert_eq!(during.len() > before.len(), is_root(), "{during:?}");
    world.end().await;
    assert_eq!(groups(&outer), Vec::<PathBuf>::new());
}

/// The groups of the sandbox with this outer stage, of either version.
fn groups(outer: &str) -> Vec<PathBuf> {
    fn walk(folder: &Path, name: &str, depth: usize, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() && depth > 0 {
                if path.components().any(|part| part.as_os_str() == name) {
                    found.push(path.clone());
                }
                walk(&path, name, depth - 1, found);
            }
        }
    }
    let mut found = Vec::new();
    walk(Path::new("/sys/fs/cgroup"), &format!("windlass-{outer}"), 6, &mut found);
    found
}

fn what_forbids_namespaces_is_said() {
    let folder = Folder::new("forbidden");
    // A user namespace has limits of its own, which bind those in it who have no power over it.
    let script = "echo 0 > /proc/sys/user/max_user_namespaces; \
                  exec setpriv --bounding-set=-all --inh-caps=-all -- \"$0\"";
    let program = std::env::current_exe().expect("this program");
    let said = std::process::Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", script])
        .arg(program)
        .env(FORBIDDEN, folder.path())
        .output()
        .expect("unshare is part of util-linux");
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains("`sudo sysctl -w user.max_user_namespaces=65536`"), "{said}");
}

fn killing_the_caller_leaves_nothing() {
    let folder = Folder::new("victim");
    let mut victim = std::process::Command::new("/proc/self/exe")
        .env(VICTIM, folder.path())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("this program");
    let mut said = [0; 6];
    victim.stdout.as_mut().expect("a pipe").read_exact(&mut said).expect("it is ready");
    let before = processes_of(folder.path());
    assert!(before.len() >= 6, "two stages and two containers of two: {before:?}");
    victim.kill().expect("a signal");
    victim.wait().expect("its end");
    wait_until("the end of all processes", || processes_of(folder.path()).is_empty());
    assert_eq!(mounts_in(folder.path()), Vec::<String>::new());
    assert_eq!(std::fs::read_dir(folder.path().join("state")).expect("the folder").count(), 0);
}

async fn the_agents_end_is_told() {
    let world = World::new("agent").await;
    let process = world.start("a", world.spec("a", &["sleep", "1000"])).await;
    let agent = processes_of(world.folder.path()).into_iter().find(|line| line.contains("__windlass-agent"));
    let agent = agent.and_then(|line| line.split(' ').next().map(str::to_owned)).expect("the agent");
    let killed =
        std::process::Command::new("kill").args(["-9", &agent]).status().expect("kill is everywhere");
    assert!(killed.success());
    assert_eq!(process.exited().await, exit(137, Some(9)));
    world.sandbox.ended().await;
    assert!(matches!(world.sandbox.add_net("x", "x").await, Err(Error::Gone)));
    world.end().await;
}

async fn a_hundred_containers() {
    let world = World::new("hundred").await;
    let begin = Instant::now();
    let mut processes = Vec::new();
    for index in 0..100 {
        let id = format!("c{index}");
        processes.push(world.start(&id, world.spec(&id, &["sleep", "1000"])).await);
    }
    let one_by_one = begin.elapsed();
    let running = processes_of(world.folder.path());
    assert_eq!(running.iter().filter(|line| line.contains("sleep 1000")).count(), 100);
    let ours: Vec<&String> = running.iter().filter(|line| line.contains("__windlass")).collect();
    assert_eq!(ours.len(), 2, "no process of ours beside the containers: {ours:?}");
    let resident = ours.iter().map(|line| resident_kb(line)).sum::<u64>();
    let begin = Instant::now();
    for process in &processes {
        process.signal(9).await.expect("a signal");
    }
    for process in &processes {
        assert_eq!(process.exited().await.code, 137);
    }
    println!(
        "a hundred containers: {:.1} ms each to start, {:.1} ms each to kill, both stages {resident} kB resident",
        one_by_one.as_secs_f64() * 10.0,
        begin.elapsed().as_secs_f64() * 10.0
    );
    world.end().await;
}

/// The memory of a process that is its own.
fn resident_kb(line: &str) -> u64 {
    let pid = line.split(' ').next().expect("a number");
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    field.and_then(|field| field.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}
