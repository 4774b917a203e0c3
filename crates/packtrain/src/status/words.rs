//! The words that stand in the document for what the engine says.

use packtrain_proto::direct::OpenTo;
use packtrain_proto::direct::kinds::{DirectKind, KindRefused};
use packtrain_proto::stats::{DictionaryUnused, EngineBecause, PathState};
use packtrain_proto::unit_size::SizeBecause;
use packtrain_proto::wire::liveness::{Diagnostic, State};

/// Why frames go by the engine, in a word.
pub fn path_because(because: EngineBecause) -> &'static str {
    match because {
        EngineBecause::Settings => "settings",
        EngineBecause::NotUp => "not_up",
        EngineBecause::NotOffered => "not_offered",
        EngineBecause::SeveralLinks => "several_links",
        EngineBecause::NoMark => "no_mark",
        EngineBecause::Mtu => "mtu",
        EngineBecause::Unanswered => "unanswered",
        EngineBecause::Congestion => "congestion",
        EngineBecause::Loss => "loss",
        EngineBecause::Delay => "delay",
        EngineBecause::Disorder => "disorder",
        EngineBecause::Size => "size",
        EngineBecause::BitErrors => "bit_errors",
    }
}

pub(super) fn size_in_a_word(because: SizeBecause) -> &'static str {
    match because {
        SizeBecause::LinkMtu => "link_mtu",
        SizeBecause::PathMtu => "path_mtu",
        SizeBecause::BitErrors => "bit_errors",
        SizeBecause::LongLost => "long_lost",
        SizeBecause::Fixed => "fixed",
        SizeBecause::SandDelay => "sand_delay",
    }
}

pub(super) fn unused_in_a_word(because: DictionaryUnused) -> &'static str {
    match because {
        DictionaryUnused::NoneHere => "none_here",
        DictionaryUnused::NotUp => "not_up",
        DictionaryUnused::NotCoded => "not_coded",
        DictionaryUnused::NoneThere => "none_there",
        DictionaryUnused::AnotherThere => "another_there",
        DictionaryUnused::Classes => "classes",
        DictionaryUnused::RateUnknown => "rate_unknown",
        DictionaryUnused::FastLinks => "fast_links",
    }
}

/// As `packtrain dictionary train` writes it.
pub(super) fn dictionary_id(id: u32) -> String {
    format!("{id:08x}")
}

pub(super) fn kind_in_a_word(kind: DirectKind) -> &'static str {
    match kind {
        DirectKind::Source => "source",
        DirectKind::None => "none",
        DirectKind::Vlan => "vlan",
    }
}

pub(super) fn refused_in_a_word(because: KindRefused) -> &'static str {
    match because {
        KindRefused::OwnTraffic => "own_traffic",
        KindRefused::NotOffered => "not_offered",
        KindRefused::OtherLine => "other_line",
        KindRefused::Unanswered => "unanswered",
        KindRefused::NotTried => "not_tried",
    }
}

pub(super) fn open_to_in_a_word(open_to: OpenTo) -> &'static str {
    match open_to {
        OpenTo::Nobody => "nobody",
        OpenTo::Classes => "classes",
        OpenTo::LossOk => "loss_ok",
        OpenTo::All => "all",
    }
}

pub(super) fn session_in_a_word(state: State) -> &'static str {
    match state {
        State::Down => "down",
        State::Init => "init",
        State::Up => "up",
    }
}

pub(super) fn diagnostic_in_a_word(diagnostic: Diagnostic) -> &'static str {
    match diagnostic {
        Diagnostic::None => "none",
        Diagnostic::Expired => "expired",
        Diagnostic::NeighborDown => "neighbor_down",
    }
}

pub(super) fn use_of(state: PathState) -> &'static str {
    match state {
        PathState::Open => "open",
        PathState::Closed => "closed",
        PathState::Joining => "joining",
        PathState::Silent => "silent",
        PathState::Held => "held",
        PathState::Retiring => "retiring",
        PathState::Backup => "backup",
        PathState::TooSlow => "too_slow",
    }
}

/// The bits of the hello (docs/wire-format.md) by name; those of a newer peer by number.
pub(super) fn capabilities(bits: u32) -> Vec<String> {
    let name = |bit: u32| match bit {
        0 => "marked_frames".to_owned(),
        1 => "gso_in_trains".to_owned(),
        2 => "direct_frames".to_owned(),
        3 => "coded_trains".to_owned(),
        4 => "liveness".to_owned(),
        5 => "repair".to_owned(),
        6 => "polls".to_owned(),
        _ => format!("bit_{bit}"),
    };
    (0..32)
        .filter(|bit| bits & (1 << bit) != 0)
        .map(name)
        .collect()
}
