//! The command line: its names are fixed, examples and scripts rely on them.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Parser, Subcommand};

use net::rtp::{MediaAddresses, PortRange};
use net::sip::ListenSpec;

use crate::config::Config;

/// A SIP B2BUA media server: calls answered, bridged, converted and recorded.
#[derive(Debug, Parser)]
#[command(name = "tandem", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the server
    Serve(Settings),
    /// Say what would be in force, or what is wrong, and stop
    Check(Settings),
    /// Say what the dialplan decides for a call, and by which rule
    Route(Route),
    /// List the codecs built in, what they can be told, and what each costs on this machine
    Codecs,
    /// Show the main job end to end: a server, a callee, a caller, calls, and the table
    Demo(Demo),
}

/// Where settings come from: a file, and flags that override its keys.
#[derive(Debug, Default, Args)]
pub(crate) struct Settings {
    /// Configuration file (TOML)
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Listen here for SIP; may be repeated
    #[arg(long, value_name = "udp:ADDRESS:PORT")]
    pub(crate) sip: Vec<ListenSpec>,
    /// Receive media on this address, list of addresses, or IPv4 network
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) media_address: Option<MediaAddresses>,
    /// Ports for RTP and RTCP
    #[arg(long, value_name = "FIRST-LAST")]
    pub(crate) rtp_ports: Option<PortRange>,
    /// Dialplan: default, lab, or a file
    #[arg(long, value_name = "FILE")]
    pub(crate) dialplan: Option<String>,
    /// Override a variable of the dialplan; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub(crate) set: Vec<(String, String)>,
    /// Record into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) recordings: Option<String>,
    /// Append a line of JSON for each call that is over to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) cdr: Option<PathBuf>,
    /// What to log, as in info or info,b2bua=debug
    #[arg(long, value_name = "FILTER")]
    pub(crate) log: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Route {
    /// Configuration file (TOML)
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Dialplan: default, lab, or a file
    #[arg(long, value_name = "FILE")]
    pub(crate) dialplan: Option<String>,
    /// Override a variable of the dialplan; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub(crate) set: Vec<(String, String)>,
    /// Address that the call comes from
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) source: IpAddr,
    /// Method of the request
    #[arg(long, value_name = "NAME", default_value = "INVITE")]
    pub(crate) method: String,
    /// A header of the request; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub(crate) header: Vec<(String, String)>,
    /// Who calls: a user, or a SIP URI
    pub(crate) from: String,
    /// Who is called: a user, or a SIP URI
    pub(crate) to: String,
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Fewer calls, held for less time
    #[arg(long)]
    pub(crate) quick: bool,
    /// Put recordings and logs into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Seed of the signals that calls send
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
}

impl Settings {
    /// The file's settings with the flags over them.
    pub(crate) fn load(self) -> anyhow::Result<Config> {
        let mut config = load_file(self.config.as_deref())?;
        if !self.sip.is_empty() {
            config.sip.listen = self.sip;
        }
        replace(&mut config.media.address, self.media_address);
        replace(&mut config.media.rtp_ports, self.rtp_ports);
        replace(&mut config.dialplan.file, self.dialplan);
        config.dialplan.set.extend(self.set);
        replace(&mut config.recordings.directory, self.recordings);
        replace(&mut config.cdr.file, self.cdr);
        replace(&mut config.log.filter, self.log);
        Ok(config)
    }
}

/// The settings of a file, or the defaults where there is none.
pub(crate) fn load_file(file: Option<&Path>) -> anyhow::Result<Config> {
    let Some(file) = file else {
        return Ok(Config::default());
    };
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read the configuration {}", file.display()))?;
    Ok(Config::parse(file, &text)?)
}

fn replace<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

fn assignment(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE"),
    }
}

/// A clap error as one line: what is wrong, and the tip where there is one.
pub(crate) fn one_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let until_usage = text.split("\nUsage:").next().unwrap_or(&text);
    let parts = until_usage
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty());
    let joined = parts.collect::<Vec<_>>().join("; ");
    let plain = joined.strip_prefix("error: ").unwrap_or(&joined);
    plain
        .replace("; For more information, try '--help'.", "")
        .replace(":;", ":")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &str) -> Result<Cli, String> {
        Cli::try_parse_from(args.split_whitespace()).map_err(|error| one_line(&error))
    }

    #[test]
    fn the_definition_is_sound() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn flags_override_keys() {
        let args = "tandem serve --sip udp:127.0.0.1:0 --sip tcp:[::1]:5070 --media-address 127.0.1.0/27 \
                    --rtp-ports 20000-20999 --dialplan lab --recordings /r --set callee=sip:a@b=c --cdr x --log debug";
        let Ok(Cli {
            command: Command::Serve(settings),
        }) = parse(args)
        else {
            panic!("not served")
        };
        let config = settings.load().expect("no file to fail");
        let listen: Vec<_> = config.sip.listen.iter().map(ToString::to_string).collect();
        assert_eq!(listen, ["udp:127.0.0.1:0", "tcp:[::1]:5070"]);
        assert_eq!(config.media.address.as_slice().len(), 30);
        assert_eq!(config.media.rtp_ports.to_string(), "20000-20999");
        assert_eq!(
            (
                config.dialplan.file.as_str(),
                config.recordings.directory.as_str()
            ),
            ("lab", "/r")
        );
        assert_eq!(config.dialplan.set["callee"], "sip:a@b=c");
        assert_eq!(
            (config.cdr.file, config.log.filter),
            (PathBuf::from("x"), "debug".to_owned())
        );
    }

    #[test]
    fn errors_are_one_line() {
        for (args, parts) in [
            (
                "tandem serve --sipp udp:127.0.0.1:0",
                &["unexpected argument '--sipp'", "'--sip'"][..],
            ),
            (
                "tandem serve --sip sctp:1.2.3.4:5",
                &["'sctp:1.2.3.4:5'", "--sip"],
            ),
            ("tandem serve --rtp-ports 7", &["`7` is not a port range"]),
            ("tandem serve --set callee", &["expected NAME=VALUE"]),
            (
                "tandem serv",
                &["unrecognized subcommand 'serv'", "'serve'"],
            ),
            ("tandem route 1000", &["not provided", "<TO>"]),
        ] {
            let error = parse(args).expect_err(args);
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
            assert!(!error.contains('\n') && !error.contains("Usage"), "{error}");
        }
    }
}
