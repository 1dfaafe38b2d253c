//! Host names to addresses (A and AAAA by the system's resolver), bounded in time and in number.
//!
//! ```text
//! start(id, host, port) --permit--> a blocking thread: getaddrinfo --+--> next() -> (id, result)
//!        | too many waiting                                          |
//!        +--> Err(Overloaded)          time limit passed ------------+
//! ```
//!
//! A permit is kept until the system's call itself is over, time limit or not, so at most
//! `concurrency` threads ever hang in a dead name server. Addresses keep the system's order
//! (RFC 6724). Which transports and which SRV records to ask for (RFC 3263) is decided above.
//!
//! Driven by the driver on its tokio runtime.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// How much resolving may go on at once.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// An answer that takes longer is a failure. Default 5 s, what resolv.conf(5) gives one try.
    pub timeout: Duration,
    /// Questions asked at once, each on a thread of its own. Default 16.
    pub concurrency: usize,
    /// Questions asked or waiting; one more is refused. Default 1,024.
    pub pending: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(5),
            concurrency: 16,
            pending: 1024,
        }
    }
}

/// Why a name gave no address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// The system's resolver knows no address for it.
    #[error("no address for this name")]
    NotFound,
    /// No answer in time.
    #[error("no answer from the name server in time")]
    TimedOut,
    /// Too many questions are waiting.
    #[error("too many names are being resolved")]
    Overloaded,
}

/// An answer: who asked, and the addresses in order of preference (never empty).
pub type Resolved<Id> = (Id, Result<Vec<SocketAddr>, ResolveError>);

/// Resolves names; `Id` is whatever tells the caller which question was answered.
#[derive(Debug)]
pub struct Resolver<Id> {
    limits: Limits,
    permits: Arc<Semaphore>,
    asking: JoinSet<Resolved<Id>>,
    refused: Vec<Id>,
}

impl<Id: Send + 'static> Resolver<Id> {
    /// A resolver with nothing to do.
    pub fn new(limits: Limits) -> Self {
        let permits = Arc::new(Semaphore::new(limits.concurrency));
        Self {
            limits,
            permits,
            asking: JoinSet::new(),
            refused: Vec::new(),
        }
    }

    /// Asks for the addresses of `host`; the answer comes out of [`Self::next`].
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(&mut self, id: Id, host: String, port: u16) {
        if self.asking.len() >= self.limits.pending {
            self.refused.push(id);
            return;
        }
        let lookup = lookup(Arc::clone(&self.permits), host, port);
        let timeout = self.limits.timeout;
        self.asking.spawn(async move {
            let answer = tokio::time::timeout(timeout, lookup).await;
            (id, answer.unwrap_or(Err(ResolveError::TimedOut)))
        });
    }

    /// The next answer; waits for ever while nothing is asked. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Resolved<Id> {
        if let Some(id) = self.refused.pop() {
            return (id, Err(ResolveError::Overloaded));
        }
        loop {
            match self.asking.join_next().await {
                Some(Ok(answer)) => return answer,
                // A task ends early only with the runtime.
                Some(Err(_)) => {}
                None => std::future::pending().await,
            }
        }
    }

    /// Questions not answered yet.
    pub fn pending(&self) -> usize {
        self.asking.len() + self.refused.len()
    }
}

async fn lookup(
    permits: Arc<Semaphore>,
    host: String,
    port: u16,
) -> Result<Vec<SocketAddr>, ResolveError> {
    let permit = permits
        .acquire_owned()
        .await
        .map_err(|_| ResolveError::Overloaded)?;
    let asked = tokio::task::spawn_blocking(move || {
        let answer = (host.as_str(), port)
            .to_socket_addrs()
            .map(Iterator::collect::<Vec<_>>);
        drop(permit);
        answer
    });
    match asked.await {
        Ok(Ok(addresses)) if !addresses.is_empty() => Ok(addresses),
        _ => Err(ResolveError::NotFound),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn names_and_literals_resolve_and_unknown_names_do_not() {
        let mut resolver = Resolver::new(Limits::default());
        resolver.start(1, "localhost".into(), 5060);
        let (id, found) = resolver.next().await;
        assert_eq!(id, 1);
        assert!(
            found
                .expect("localhost is known")
                .iter()
                .all(|a| a.ip().is_loopback() && a.port() == 5060)
        );
        // RFC 6761 section 6.4: no name under .invalid exists.
        resolver.start(2, "nobody.invalid".into(), 5060);
        let (_, answer) = resolver.next().await;
        assert!(matches!(
            answer,
            Err(ResolveError::NotFound | ResolveError::TimedOut)
        ));
        assert_eq!(resolver.pending(), 0);
    }

    #[tokio::test]
    async fn a_question_too_many_is_refused_at_once() {
        let mut resolver = Resolver::new(Limits {
            pending: 1,
            ..Limits::default()
        });
        resolver.start('a', "127.0.0.1".into(), 1);
        resolver.start('b', "127.0.0.1".into(), 2);
        assert_eq!(resolver.next().await, ('b', Err(ResolveError::Overloaded)));
        assert_eq!(
            resolver.next().await,
            ('a', Ok(vec!["127.0.0.1:1".parse().expect("an address")]))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_does_not_come_in_time_is_a_failure() {
        // No permit, so the question never gets asked; the paused clock then runs ahead.
        let mut resolver = Resolver::new(Limits {
            concurrency: 0,
            ..Limits::default()
        });
        resolver.start((), "127.0.0.1".into(), 1);
        assert_eq!(resolver.next().await, ((), Err(ResolveError::TimedOut)));
    }
}
