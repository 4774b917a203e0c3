//! The options of `packtrain whatif`.

use std::path::PathBuf;

use clap::{Args, ValueHint, value_parser};
use packtrain_proto::wire::ethernet::MacAddr;

use super::class_option::ClassOption;
use crate::settings::LINKS_MAX;
use crate::settings::compress::CompressPolicy;
use crate::settings::packing::PackPolicy;
use crate::settings::values::{PathPolicy, parse_mac};
use crate::units::{BitRate, Bytes, Time};

/// Say what a line would bring for the traffic of a capture.
///
/// Its frames are sent again, in virtual time, through the engine that a line runs and over a wire as described here,
/// and over the same wire without packtrain. Nothing is sent, no rights are needed. Hosts send when they did in the
/// capture, whatever becomes of it: a TCP that would have gone faster does not. docs/whatif.md says what is modelled.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  packtrain whatif capture.pcap --rate 1mbit
  packtrain whatif capture.pcapng.gz --rate 10mbit --packets-per-second 5000 --compare
  packtrain whatif capture.pcap --rate 1mbit --pack 2ms --compress headers
  packtrain whatif capture.pcap --class 'udp dport 5060; pack now' --report calls.html
  packtrain whatif capture.pcap --host 02:00:00:00:00:01 --json | jq .recommendation
  tcpdump -i eth1 -w - -c 10000 | packtrain whatif - --rate 10mbit")]
pub struct WhatifArguments {
    /// A capture, pcap or pcapng, also packed by gzip or zstd, of Ethernet or IP; - is standard input.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub capture: PathBuf,

    /// Bits a second of each host's cable, as in 1mbit [default: as fast as the interface of the capture, if it says so, or the
    /// least usual rate that its busiest tenth of a second fits into; of a pipe 1gbit; none with --packets-per-second].
    #[arg(long, value_name = "RATE")]
    pub rate: Option<BitRate>,

    /// Frames a second that each cable passes at most.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=100_000_000))]
    pub packets_per_second: Option<u64>,

    /// How long a frame is under way on a cable.
    #[arg(long, value_name = "TIME", default_value = "1ms")]
    pub delay: Time,

    /// What waits before a cable at most; frames that come then are dropped.
    #[arg(long, value_name = "SIZE", default_value = "256kb")]
    pub queue: Bytes,

    /// MTU of the cables.
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = value_parser!(u16).range(576..=9216))]
    pub mtu: u16,

    /// Cables that each host has, each as described here; without packtrain one of them is used [default: one, and with
    /// --compare two beside it].
    #[arg(long, value_name = "N", value_parser = value_parser!(u8).range(1..=LINKS_MAX as i64))]
    pub links: Option<u8>,

    /// When frames leave that no class matches, as `packtrain up --pack` has it.
    #[arg(long, value_name = "WHEN", default_value_t)]
    pub pack: PackPolicy,

    /// What is compressed at most; classes of a file may ask for less.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t)]
    pub compress: CompressPolicy,

    /// Which way frames take.
    #[arg(long, value_name = "POLICY", value_enum, default_value_t)]
    pub path: PathPolicy,

    /// With the classes of this configuration file [default: those that every line has at its start].
    #[arg(long, value_name = "FILE.toml", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,

    /// A class as `packtrain class add` has it, options without their dashes: 'udp dport 5060; pack now; name calls';
    /// may be given again. It stands behind those of the file, and before the defaults.
    #[arg(long = "class", value_name = "CLASS")]
    pub classes: Vec<ClassOption>,

    /// Ways to pack and to compress side by side, and two cables beside one.
    #[arg(long)]
    pub compare: bool,

    /// Only what this host sends; and what a receive filter would keep from it.
    #[arg(long, value_name = "MAC", value_parser = parse_mac)]
    pub host: Option<MacAddr>,

    /// Hosts that run packtrain, those with the most frames first.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = value_parser!(u16).range(1..=256))]
    pub hosts: u16,

    /// Conversations that are told one by one.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = value_parser!(u16).range(0..=1000))]
    pub top: u16,

    /// Print the document for programs; docs/whatif.schema.json describes it.
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,

    /// Print a table for programs: a row a policy, class and conversation.
    #[arg(long)]
    pub csv: bool,

    /// Write a page for a browser, too; it needs no other file.
    #[arg(long, value_name = "FILE.html", value_hint = ValueHint::FilePath)]
    pub report: Option<PathBuf>,
}
