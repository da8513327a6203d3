//! The operator killed again and again while it works.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{BufRead as _, BufReader};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::etcd::{Etcd, Healing, LIMIT};
use crate::random::Random;
use crate::world::World;

/// What the operator is doing when it is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// From nothing to three members.
    Bootstrap,
    /// A member is replaced, because its EtcdMember was deleted.
    Replacement,
    /// From three members to five.
    Grow,
    /// From five members to one.
    Shrink,
}

impl Course {
    pub(crate) const ALL: [Course; 4] =
        [Course::Bootstrap, Course::Replacement, Course::Grow, Course::Shrink];

    /// How many members there are in the end, and how many have ever been made by then: one more would be one too many.
    fn end(self) -> (usize, u64) {
        match self {
            Course::Bootstrap => (3, 3),
            Course::Replacement => (3, 4),
            Course::Grow => (5, 6),
            Course::Shrink => (1, 6),
        }
    }

    /// About how many steps it has.
    pub(crate) fn steps(self) -> usize {
        match self {
            Course::Bootstrap | Course::Grow => 14,
            Course::Replacement | Course::Shrink => 8,
        }
    }
}

/// Kills the operator at so many random moments of each course, always right after one of its steps was told of. It goes on
/// each time, and in the end there are as many members as asked for, each with its pod, and none was made in vain.
///
/// # Errors
/// That is not so.
pub fn killed(world: &World, name: &str, kills: usize, random: &mut Random) -> Result<Vec<String>> {
    world.hurry_election()?;
    let mut told = Vec::new();
    for course in Course::ALL {
        let mut points = BTreeSet::from([1 + random.below(3)]);
        while points.len() < kills.min(course.steps()) {
            points.insert(1 + random.below(course.steps()));
        }
        let at = during(world, name, points, random, || go(world, name, course, LIMIT))?;
        ensure!(!at.is_empty(), "{course}: the operator was never killed");
        told.push(format!("{course}: killed {} times: {}", at.len(), at.join("; ")));
    }
    Etcd::there(world, name, Healing::DEFAULT)?.delete()?;
    Ok(told)
}

/// Begins a course, waits for its end for so long, and checks that no member was made in vain.
pub(crate) fn go(world: &World, name: &str, course: Course, limit: Duration) -> Result<()> {
    let (size, made) = course.end();
    let etcd = Etcd::create(world, name, size, Healing::DEFAULT)?.patient(limit);
    if course == Course::Replacement {
        let members = etcd.members()?;
        let oldest = &members.first().context("a cluster has members")?.name;
        world.kubectl.run(&["delete", "etcdmember", oldest, "--wait=false"])?;
        etcd.until_so(size, |etcd| match etcd.names("etcdmembers")?.contains(oldest) {
            true => Ok(Err(format!("{oldest} is still there"))),
            false => etcd.look(size, None, true),
        })?;
    }
    etcd.until_healthy(size).with_context(|| format!("{course}, with the operator killed on the way"))?;
    let serial = etcd.serial()?;
    ensure!(serial == made, "{course}: {serial} members were made where {made} are enough");
    Ok(())
}

/// Does something, and kills the operator after the steps of these numbers meanwhile. After which steps that was.
fn during(
    world: &World,
    name: &str,
    points: BTreeSet<usize>,
    random: &mut Random,
    course: impl FnOnce() -> Result<()>,
) -> Result<Vec<String>> {
    // A step that was taken before is none of this course.
    let before = world.kubectl.get("etcdcluster", name)?;
    let mut last =
        before.and_then(|object| Some(object["status"]["lastAction"]["action"].as_str()?.to_owned()));
    let selector = format!("--field-selector=metadata.name={name}");
    let path = "jsonpath={.status.lastAction.action}{\"\\n\"}";
    let mut watch =
        world.kubectl.follow(&["get", "etcdclusters", &selector, "--watch", "-o", path]).spawn()?;
    let lines = BufReader::new(watch.stdout.take().context("it is piped")?).lines();
    std::thread::scope(|scope| {
        let killer = scope.spawn(move || -> Result<Vec<String>> {
            let (mut steps, mut killed) = (0, Vec::new());
            for line in lines.map_while(Result::ok).filter(|line| !line.is_empty()) {
                if last.replace(line.clone()).is_some_and(|last| last == line) {
                    continue;
                }
                steps += 1;
                if points.contains(&steps) {
                    std::thread::sleep(random.milliseconds(300));
                    world.kill_operator()?;
                    killed.push(line);
                }
            }
            Ok(killed)
        });
        let done = course();
        // The watch may have ended with a killed connection.
        let _ = watch.kill();
        let _ = watch.wait();
        let killed = killer.join().expect("the killer does not panic");
        done?;
        killed
    })
}

impl fmt::Display for Course {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Course::Bootstrap => "bootstrap",
            Course::Replacement => "replacement",
            Course::Grow => "3 → 5",
            Course::Shrink => "5 → 1",
        })
    }
}
