//! A check of the checks: what a server says of the calls it got is true.

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;

use super::calls::{Call, lines};
use super::kubectl::Kubectl;
use super::run::Check;
use super::scene::{SOON, Scene};
use super::server::RESTRICTED;

/// Every suite has it: where it fails, the silence of the others says nothing.
pub const CHECK: Check = Check {
    name: "control",
    shows: "the server tells who asked for what, and refuses whom it should",
    alone: false,
    run: check,
};

fn check(scene: &Scene<'_>) -> Result<String> {
    let since = Timestamp::now();
    let user = scene.user("a");
    let folder = scene.file("home", "")?.with_file_name("home-of-a");
    let kubectl = Kubectl::new(&scene.server.user(&user)?, &scene.namespace, &folder)?;
    kubectl.run(&["create", "configmap", "one", "--from-literal=a=b"])?;
    let no_change = ["patch", "configmap", "one", "--type=merge", "-p", r#"{"data":{"a":"b"}}"#];
    kubectl.run(&no_change)?;
    kubectl.run(&["delete", "configmap", "one", "--wait=false"])?;
    kubectl.fail(&["delete", "configmap", "one"], "")?;
    let expected = ["create 201", "patch 200", "delete 200", "delete 404"];
    let calls = scene.until("all calls are told of", SOON, || {
        let mut calls = scene.calls(&user, since)?;
        calls.retain(Call::is_work);
        Ok(if calls.len() >= expected.len() { Ok(calls) } else { Err(lines(&calls)) })
    })?;
    let told: Vec<String> = calls.iter().map(|call| format!("{} {}", call.verb, call.code)).collect();
    ensure!(told == expected, "{told:?}{}", lines(&calls));
    for call in &calls {
        ensure!(call.resource == "configmaps" && call.namespace == scene.namespace, "{call}");
    }

    let folder = folder.with_file_name("home-of-restricted");
    let restricted = Kubectl::new(&scene.server.user(RESTRICTED)?, &scene.namespace, &folder)?;
    restricted.run(&["get", "--raw", "/api"])?;
    scene.kubectl.run(&["create", "configmap", "two"])?;
    restricted.get("configmap", "two")?.context("one ConfigMap may be read")?;
    let error = restricted.fail(&["get", "configmaps"], "")?;
    let forbidden = format!("User {RESTRICTED:?} cannot list resource \"configmaps\"");
    ensure!(error.contains(&forbidden), "all ConfigMaps: {error}");
    let refused = scene.until("the refusal is told of", SOON, || {
        let calls = scene.calls(RESTRICTED, since)?;
        let mut here = calls.into_iter().filter(|call| call.namespace == scene.namespace);
        Ok(here.find(|call| call.code == 403).ok_or_else(|| "nothing".to_owned()))
    })?;
    ensure!(refused.verb == "list" && refused.resource == "configmaps", "{refused}");
    Ok(format!("{} calls, each told of once", told.len()))
}
