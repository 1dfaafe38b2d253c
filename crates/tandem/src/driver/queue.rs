//! Media commands on their way to an engine whose own queue may be full.
//!
//! Commands keep their order. An update that still waits is replaced by a newer one of the same
//! session, so that what waits is bounded by the calls there are and not by their re-INVITEs.

use std::collections::VecDeque;

use engine::EngineCommand;

/// Commands that wait, oldest first.
#[derive(Debug, Default)]
pub(super) struct CommandQueue(VecDeque<EngineCommand>);

impl CommandQueue {
    /// Adds a command behind those that wait.
    pub(super) fn push(&mut self, command: EngineCommand) {
        if let EngineCommand::Update { session, .. } = &command {
            let last = self
                .0
                .iter()
                .rposition(|waiting| waiting.session() == *session);
            if let Some(last) = last
                && matches!(self.0[last], EngineCommand::Update { .. })
            {
                self.0[last] = command;
                return;
            }
        }
        self.0.push_back(command);
    }

    /// Hands commands over until `take` gives one back.
    pub(super) fn offer(&mut self, mut take: impl FnMut(EngineCommand) -> Option<EngineCommand>) {
        while let Some(command) = self.0.pop_front() {
            if let Some(command) = take(command) {
                self.0.push_front(command);
                return;
            }
        }
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use media::command::{Program, SessionId, SessionSpec};

    use super::*;

    fn update(session: u64, program: Program) -> EngineCommand {
        let spec = SessionSpec {
            legs: [None, None],
            program,
        };
        EngineCommand::Update {
            session: SessionId(session),
            spec,
            clip: None,
        }
    }

    fn stop(session: u64) -> EngineCommand {
        EngineCommand::Stop {
            session: SessionId(session),
        }
    }

    fn names(queue: &mut CommandQueue, room: usize) -> Vec<String> {
        let mut taken = Vec::new();
        queue.offer(|command| {
            if taken.len() == room {
                return Some(command);
            }
            taken.push(match &command {
                EngineCommand::Update { session, spec, .. } => {
                    format!("{} {:?}", session.0, spec.program)
                }
                EngineCommand::Stop { session } => format!("{} stop", session.0),
                other => panic!("{other:?}"),
            });
            None
        });
        taken
    }

    #[test]
    fn order_is_kept_when_the_engine_is_full() {
        let mut queue = CommandQueue::default();
        [1, 2, 3]
            .into_iter()
            .for_each(|session| queue.push(stop(session)));
        assert_eq!(names(&mut queue, 1), ["1 stop"]);
        assert_eq!(names(&mut queue, 0), [""; 0]);
        queue.push(stop(4));
        assert_eq!(names(&mut queue, 9), ["2 stop", "3 stop", "4 stop"]);
        assert!(queue.is_empty());
    }

    #[test]
    fn only_the_newest_of_several_updates_waits() {
        let mut queue = CommandQueue::default();
        queue.push(update(1, Program::Silence));
        queue.push(update(2, Program::Silence));
        queue.push(update(1, Program::Bridge));
        queue.push(stop(2));
        queue.push(update(2, Program::Bridge));
        assert_eq!(
            names(&mut queue, 9),
            ["1 Bridge", "2 Silence", "2 stop", "2 Bridge"]
        );
    }
}
