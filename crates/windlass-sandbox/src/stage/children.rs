//! The processes that the agent started: containers, further programs in them, tools.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use crate::error::Failure;
use crate::spec::{Exit, Tool};
use crate::stage::cgroups::Group;
use crate::wire::{Answer, Birth, Inbox, Named};

/// Every child that has not been reaped.
#[derive(Default)]
pub(super) struct Children {
    known: BTreeMap<i32, Child>,
}

/// One child of the agent.
pub(super) struct Child {
    /// The request that started it.
    pub(super) serial: u64,
    pub(super) kind: Kind,
}

pub(super) enum Kind {
    Container { id: String, start: Start, user_namespace: bool, group: Option<Group> },
    Exec { start: Start },
    Tool { tool: Tool, output: File },
}

/// How far a program has come.
pub(super) enum Start {
    /// Its stage prepares; the socket ends when it has become the program.
    Pending {
        socket: OwnedFd,
        inbox: Inbox,
        terminal: Option<OwnedFd>,
    },
    Running,
    /// The caller was told why not, and needs no word about its end.
    Failed,
}

/// A reply that is due: the request, what came of it, and the files that go along.
pub(super) type Due = (u64, Result<Answer, Failure>, Vec<OwnedFd>);

impl Children {
    pub(super) fn add(&mut self, pid: i32, child: Child) {
        self.known.insert(pid, child);
    }

    pub(super) fn remove(&mut self, pid: i32) -> Option<Child> {
        self.known.remove(&pid)
    }

    /// The number of a process that the caller may send signals to.
    pub(super) fn pid(&self, process: &Named) -> Option<i32> {
        let found = self.known.iter().find(|(_, child)| match (&child.kind, process) {
            (Kind::Container { id, .. }, Named::Container(wanted)) => id == wanted,
            (Kind::Container { .. } | Kind::Exec { .. }, Named::Serial(serial)) => child.serial == *serial,
            _ => false,
        });
        found.map(|(pid, _)| *pid)
    }

    /// A container that runs, whether it has a user namespace of its own, and its group.
    pub(super) fn running(&self, wanted: &str) -> Option<(i32, bool, Option<&Group>)> {
        self.known.iter().find_map(|(pid, child)| match &child.kind {
            Kind::Container { id, start: Start::Running, user_namespace, group } if id == wanted => {
                Some((*pid, *user_namespace, group.as_ref()))
            }
            _ => None,
        })
    }

    /// Whether a container of this name runs or is about to.
    pub(super) fn has(&self, wanted: &str) -> bool {
        self.known.values().any(|child| match &child.kind {
            Kind::Container { id, start, .. } => id == wanted && !matches!(start, Start::Failed),
            _ => false,
        })
    }

    /// The sockets of those who are not born yet.
    pub(super) fn births(&self) -> impl Iterator<Item = (u64, &OwnedFd)> {
        self.known.values().filter_map(|child| match child.start() {
            Some(Start::Pending { socket, .. }) => Some((child.serial, socket)),
            _ => None,
        })
    }

    /// Reads what a stage says; a reply is due when it has become the program or has failed.
    pub(super) fn birth(&mut self, serial: u64) -> io::Result<Option<Due>> {
        let found = self.known.iter_mut().find(|(_, child)| child.serial == serial);
        found.map_or(Ok(None), |(pid, child)| child.hear(*pid))
    }

    /// The same for a child that has ended: reads to the end of what it said.
    pub(super) fn birth_of(&mut self, pid: i32) -> io::Result<Option<Due>> {
        let Some(child) = self.known.get_mut(&pid) else { return Ok(None) };
        while let Some(Start::Pending { .. }) = child.start() {
            if let Some(due) = child.hear(pid)? {
                return Ok(Some(due));
            }
        }
        Ok(None)
    }
}

impl Child {
    fn start(&self) -> Option<&Start> {
        match &self.kind {
            Kind::Container { start, .. } | Kind::Exec { start } => Some(start),
            Kind::Tool { .. } => None,
        }
    }

    fn hear(&mut self, pid: i32) -> io::Result<Option<Due>> {
        let (Kind::Container { start, .. } | Kind::Exec { start }) = &mut self.kind else { return Ok(None) };
        let Start::Pending { socket, inbox, terminal } = start else { return Ok(None) };
        let read = inbox.receive(&*socket)?;
        while let Some((birth, fds)) = inbox.next::<Birth>()? {
            match birth {
                Birth::Terminal => *terminal = fds.into_iter().next(),
                Birth::Failed(failure) => {
                    *start = Start::Failed;
                    return Ok(Some((self.serial, Err(failure), Vec::new())));
                }
            }
        }
        if read != Some(0) {
            return Ok(None);
        }
        let fds = terminal.take().into_iter().collect();
        *start = Start::Running;
        Ok(Some((self.serial, Ok(Answer::Started { pid }), fds)))
    }

    /// What the caller is told about its end, unless it never began. Its group is taken away.
    pub(super) fn end(self, code: i32, signal: Option<i32>) -> Option<Exit> {
        let (start, group) = match self.kind {
            Kind::Container { start, group, .. } => (start, group),
            Kind::Exec { start } => (start, None),
            Kind::Tool { .. } => return None,
        };
        let oom = group.as_ref().is_some_and(Group::oom);
        if let Some(group) = group {
            group.remove();
        }
        (!matches!(start, Start::Failed)).then_some(Exit { code, signal, oom })
    }
}
