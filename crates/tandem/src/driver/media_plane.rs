//! The driver's half that faces the media plane: ports and clips for a call, commands to the
//! engine, taps to the recorder.

use std::time::{Instant, SystemTime};

use b2bua::{CallId, Prepare, PrepareError, Prepared};
use engine::EngineCommand;
use media::command::{
    ClipId, MediaCommand, PortId, Program, RecordingSpec, SessionId, SessionSpec,
};
use recorder::{RecorderEvent, RecordingRequest};

use super::Driver;
use crate::clips::Request;

/// Frames a tap holds: 2 s of both legs at 20 ms, what a recorder may be late.
const TAP_FRAMES: usize = 200;

impl Driver {
    /// Gives a call its ports and its clip, now or once the clip has been read.
    pub(super) fn prepare(&mut self, now: Instant, prepare: Prepare) {
        let call = prepare.call;
        let requested = match &prepare.clip {
            None => Some(Request::Ready),
            Some(dialplan::Clip::Music) => Some(self.clips.request_music(call)),
            Some(dialplan::Clip::File(path)) => Some(self.clips.request_file(call, path.as_ref())),
            Some(dialplan::Clip::LatestOfCaller) => self
                .recorder
                .latest(&prepare.caller_user)
                .map(|path| self.clips.request_file(call, &path)),
        };
        match requested {
            Some(Request::Ready) => self.prepared(now, &prepare),
            Some(Request::Loading) => {
                self.state.preparing.insert(call, prepare);
            }
            None => self
                .b2bua
                .handle_prepared(now, call, Err(PrepareError::NoClip)),
        }
    }

    /// A clip was read, or can't be.
    pub(super) fn on_clip(&mut self, now: Instant, call: CallId, readable: bool) {
        match self.state.preparing.remove(&call) {
            Some(prepare) if readable => self.prepared(now, &prepare),
            Some(_) => self
                .b2bua
                .handle_prepared(now, call, Err(PrepareError::NoClip)),
            None => self.clips.release(call),
        }
    }

    /// Takes the ports and answers.
    fn prepared(&mut self, now: Instant, prepare: &Prepare) {
        let call = prepare.call;
        let mut ports = Vec::with_capacity(prepare.ports);
        for _ in 0..prepare.ports {
            match self.ports.allocate() {
                Ok(lease) => ports.push((PortId(lease.port), lease.rtp)),
                Err(error) => {
                    tracing::error!(%call, %error, "no RTP port for a call");
                    ports
                        .iter()
                        .for_each(|(port, _)| self.ports.release(port.0));
                    self.clips.release(call);
                    self.b2bua
                        .handle_prepared(now, call, Err(PrepareError::NoPort));
                    return;
                }
            }
        }
        self.state
            .holders
            .extend(ports.iter().map(|(port, _)| (*port, call)));
        let clip = prepare.clip.is_some().then(|| ClipId(call.as_u64()));
        self.b2bua
            .handle_prepared(now, call, Ok(Prepared { ports, clip }));
    }

    /// Takes ports back, and with them the clip of the call that held them.
    pub(super) fn release(&mut self, ports: &[PortId]) {
        for port in ports {
            self.ports.release(port.0);
            if let Some(call) = self.state.holders.remove(port) {
                self.clips.release(call);
            }
        }
    }

    /// Passes a command on, behind those that wait already.
    pub(super) fn command(&mut self, command: MediaCommand) {
        if let Some(command) = self.translate(command) {
            self.state.waiting.push(command);
            self.retry_commands();
        }
    }

    /// Gives the engine what it has room for.
    pub(super) fn retry_commands(&mut self) {
        self.state
            .waiting
            .offer(|command| self.engine.try_command(command).err());
    }

    fn translate(&mut self, command: MediaCommand) -> Option<EngineCommand> {
        Some(match command {
            MediaCommand::Start { session, spec } => {
                let clip = self.clip(&spec);
                EngineCommand::Start {
                    session,
                    spec,
                    clip,
                    tap: None,
                }
            }
            MediaCommand::Update { session, spec } => {
                let clip = self.clip(&spec);
                EngineCommand::Update {
                    session,
                    spec,
                    clip,
                }
            }
            MediaCommand::Stop { session } => EngineCommand::Stop { session },
            MediaCommand::StartRecording { session, recording } => {
                let tap = self.open_recording(session, recording)?;
                EngineCommand::SetTap {
                    session,
                    tap: Some(tap),
                }
            }
            MediaCommand::StopRecording { session } => EngineCommand::SetTap { session, tap: None },
            _ => return None,
        })
    }

    fn clip(&self, spec: &SessionSpec) -> Option<audio::clip::Clip> {
        match spec.program {
            Program::Play {
                clip: ClipId(call), ..
            } => self.clips.held(CallId::from_u64(call)),
            _ => None,
        }
    }

    /// Opens the file and the tap into it. A call goes on without a recording that can't be made.
    fn open_recording(
        &mut self,
        session: SessionId,
        spec: RecordingSpec,
    ) -> Option<audio::tap::TapWriter> {
        let (writer, reader) = audio::tap::tap(TAP_FRAMES);
        let request = RecordingRequest {
            id: spec.id,
            reader,
            template: spec.template,
            fields: spec.fields,
            stereo: spec.stereo,
            sample_rate: 8000,
            started: SystemTime::now(),
        };
        let call = CallId::from_u64(session.0);
        match self.recorder.open(request) {
            Ok(path) => {
                self.b2bua
                    .handle_recording(call, path.display().to_string());
                Some(writer)
            }
            Err(error) => {
                tracing::error!(%call, %error, "the call goes on without a recording");
                None
            }
        }
    }

    pub(super) fn on_recorder(&self, event: RecorderEvent) {
        match event {
            RecorderEvent::Started { path, .. } => {
                tracing::info!(path = %path.display(), "recording");
            }
            RecorderEvent::Finished {
                path,
                duration,
                dropped,
                ..
            } => {
                tracing::debug!(path = %path.display(), ?duration, dropped, "recording finished");
            }
            RecorderEvent::Failed { path, reason, .. } => {
                tracing::error!(path = %path.display(), %reason, "a recording is cut short");
            }
            _ => {}
        }
    }
}
