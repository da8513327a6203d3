//! What can go wrong, as values to match on.

use tonic::{Code, Status};

/// Why a call did not succeed.
///
/// etcd says what it refuses by a code and a sentence; the sentences that decide what is done next are variants here, the others
/// are [`Error::Other`]. Values are plain, so that a model of etcd can answer with them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address is none.
    #[error("{address:?} is no address of a member: it must be http://host:port or https://host:port")]
    Address {
        /// What was given.
        address: String,
    },
    /// No connection, or it broke.
    #[error("the member cannot be reached: {reason}")]
    Unreachable {
        /// What the transport says.
        reason: String,
    },
    /// No answer within the deadline, ours or etcd's own.
    #[error("no answer within the deadline")]
    Timeout,
    /// The member sees no leader.
    #[error("the member sees no leader: its cluster has no quorum, or elects")]
    NoLeader,
    /// Only the leader does this.
    #[error("the member is not the leader: ask the leader")]
    NotLeader,
    /// The leader changed while the call was under way.
    #[error("the leader changed while the call was under way")]
    LeaderChanged,
    /// The leader cannot go to that member.
    #[error("that member cannot be the leader: it is a learner, or not a member")]
    BadTransferee,
    /// The member is stopping.
    #[error("the member is stopping")]
    Stopped,
    /// Members are missing, or not connected for five seconds yet.
    #[error("etcd refuses to change an unhealthy cluster: wait until its members are connected")]
    UnhealthyCluster,
    /// The change would leave too few started members.
    #[error("the change would leave too few started members for a quorum")]
    NotEnoughStarted,
    /// The learner has not caught up.
    #[error("the learner is not in sync with the leader yet")]
    LearnerNotReady,
    /// The member votes already.
    #[error("the member is no learner: it votes already")]
    NotLearner,
    /// There is a learner already.
    #[error("the cluster has as many learners as it may: promote or remove one first")]
    TooManyLearners,
    /// No such member.
    #[error("the cluster has no such member")]
    MemberNotFound,
    /// A member with that id or one of these peer URLs is there already.
    #[error("the cluster has a member with this id or peer URL already")]
    MemberExists,
    /// The peer URLs are none.
    #[error("the peer URLs are not valid")]
    BadPeerUrls,
    /// A learner does not answer this.
    #[error("the member is a learner, which does not answer this")]
    NotForLearners,
    /// The database is as large as its quota: alarm NOSPACE.
    #[error("the database is as large as its quota: compact, defragment, then disarm NOSPACE")]
    NoSpace,
    /// The alarm CORRUPT is raised.
    #[error("the cluster has a corrupt member")]
    Corrupt,
    /// The revision is gone.
    #[error("the revision has been compacted")]
    Compacted,
    /// The revision is not there yet.
    #[error("the revision is in the future")]
    FutureRevision,
    /// etcd has too much to do.
    #[error("etcd has too many requests under way")]
    TooManyRequests,
    /// A login is needed, or has not the right.
    #[error("etcd wants a login that may do this: {message}")]
    Denied {
        /// What etcd says.
        message: String,
    },
    /// A downgrade to that version is not possible from here.
    #[error("etcd refuses the downgrade: {message}")]
    Downgrade {
        /// What etcd says.
        message: String,
    },
    /// This etcd does not know the call.
    #[error("this version of etcd does not know the call")]
    Unsupported,
    /// A snapshot ended early, or its bytes are not what etcd read from its disk.
    #[error("the snapshot is not whole: {reason}")]
    BadSnapshot {
        /// What is wrong with it.
        reason: String,
    },
    /// Anything else.
    #[error("etcd says {message:?} ({code})")]
    Other {
        /// The name of the gRPC code.
        code: String,
        /// What etcd says.
        message: String,
    },
}

/// The sentences of etcd, after `etcdserver: `. Some arrive with the code that their variable names in etcd's source, some as
/// `Unknown`, so the sentence alone decides.
const SENTENCES: &[(&str, Error)] = &[
    ("no leader", Error::NoLeader),
    ("not leader", Error::NotLeader),
    ("leader changed", Error::LeaderChanged),
    ("bad leader transferee", Error::BadTransferee),
    ("server stopped", Error::Stopped),
    ("request timed out", Error::Timeout),
    ("request timed out, possibly due to previous leader failure", Error::Timeout),
    ("request timed out, possibly due to connection lost", Error::Timeout),
    ("request timed out, waiting for the applied index took too long", Error::Timeout),
    ("context deadline exceeded", Error::Timeout),
    ("unhealthy cluster", Error::UnhealthyCluster),
    ("re-configuration failed due to not enough started members", Error::NotEnoughStarted),
    ("can only promote a learner member which is in sync with leader", Error::LearnerNotReady),
    ("can only promote a learner member", Error::NotLearner),
    ("too many learner members in cluster", Error::TooManyLearners),
    ("member not found", Error::MemberNotFound),
    ("member ID already exist", Error::MemberExists),
    ("Peer URLs already exists", Error::MemberExists),
    ("given member URLs are invalid", Error::BadPeerUrls),
    ("rpc not supported for learner", Error::NotForLearners),
    ("mvcc: database space exceeded", Error::NoSpace),
    ("corrupt cluster", Error::Corrupt),
    ("mvcc: required revision has been compacted", Error::Compacted),
    ("mvcc: required revision is a future revision", Error::FutureRevision),
    ("too many requests", Error::TooManyRequests),
];

/// The sentences about downgrades and logins, whose words matter to whoever reads them.
const DOWNGRADE: &[&str] = &[
    "wrong downgrade target version format",
    "invalid downgrade target version",
    "cluster version not found during downgrade",
    "cluster has a downgrade job in progress",
    "no inflight downgrade job",
];
const DENIED: &[&str] = &[
    "user name is empty",
    "permission denied",
    "invalid auth token",
    "authentication failed, invalid user ID or password",
    "revision of auth store is old",
];

impl Error {
    /// Whether the call certainly changed nothing. A write that ended otherwise may have happened, or may still happen.
    #[must_use]
    pub fn is_definite(&self) -> bool {
        !matches!(
            self,
            Self::Unreachable { .. }
                | Self::Timeout
                | Self::LeaderChanged
                | Self::Stopped
                | Self::Other { .. }
        )
    }

    pub(crate) fn from_status(status: &Status) -> Self {
        let message = status.message();
        let sentence = message.strip_prefix("etcdserver: ").unwrap_or(message);
        if let Some((_, error)) = SENTENCES.iter().find(|(known, _)| *known == sentence) {
            return error.clone();
        }
        if DOWNGRADE.contains(&sentence) {
            return Self::Downgrade { message: message.to_owned() };
        }
        if DENIED.contains(&sentence) {
            return Self::Denied { message: message.to_owned() };
        }
        match status.code() {
            Code::DeadlineExceeded => Self::Timeout,
            // tonic's own clock, which runs as long as ours.
            Code::Cancelled if sentence == "Timeout expired" => Self::Timeout,
            Code::Unimplemented => Self::Unsupported,
            Code::Unauthenticated | Code::PermissionDenied => Self::Denied { message: message.to_owned() },
            // What etcd says has no cause; what the transport says has one.
            _ if std::error::Error::source(status).is_some() => Self::unreachable(status),
            Code::Unavailable => Self::Unreachable { reason: message.to_owned() },
            code => Self::Other { code: format!("{code:?}"), message: message.to_owned() },
        }
    }

    pub(crate) fn unreachable(error: &dyn std::error::Error) -> Self {
        // The outermost says "transport error"; the reason is at the end of the chain.
        let mut last = error;
        while let Some(source) = last.source() {
            last = source;
        }
        Self::Unreachable { reason: last.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_decides_whatever_the_code_is() {
        for code in [Code::Unavailable, Code::FailedPrecondition, Code::Unknown] {
            let found = |message: &str| Error::from_status(&Status::new(code, message));
            for (sentence, error) in SENTENCES {
                assert_eq!(&found(&format!("etcdserver: {sentence}")), error);
            }
            assert!(matches!(found("etcdserver: no inflight downgrade job"), Error::Downgrade { .. }));
            assert!(matches!(found("etcdserver: user name is empty"), Error::Denied { .. }));
        }
    }

    #[test]
    fn the_code_decides_where_the_sentence_is_unknown() {
        let found = |code| Error::from_status(&Status::new(code, "other"));
        assert_eq!(found(Code::DeadlineExceeded), Error::Timeout);
        assert_eq!(found(Code::Unimplemented), Error::Unsupported);
        assert_eq!(found(Code::Unavailable), Error::Unreachable { reason: "other".to_owned() });
        assert_eq!(found(Code::PermissionDenied), Error::Denied { message: "other".to_owned() });
        assert_eq!(
            found(Code::Internal),
            Error::Other { code: "Internal".to_owned(), message: "other".to_owned() }
        );
    }

    #[test]
    fn a_write_without_a_definite_refusal_may_have_happened() {
        for maybe in [Error::Timeout, Error::LeaderChanged, Error::Stopped] {
            assert!(!maybe.is_definite(), "{maybe}");
        }
        for refused in [Error::NoLeader, Error::NoSpace, Error::MemberExists] {
            assert!(refused.is_definite(), "{refused}");
        }
    }
}
