//! What the engine counts, as the document says it: a struct of the document for each of the engine's.

use packtrain_proto::stats;

use super::build::exact_seconds;
use super::{
    DataUnits, Flows, Hold, HoldBucket, Queue, Reassembly, Replay, Resequencer, TooBig, Traffic,
    TrainCounts,
};

impl From<&stats::HoldSnapshot> for Hold {
    fn from(hold: &stats::HoldSnapshot) -> Hold {
        let buckets = hold.buckets.iter().map(|bucket| HoldBucket {
            below_s: exact_seconds(bucket.below),
            trains: bucket.trains,
        });
        Hold {
            trains: hold.trains,
            held_trains: hold.held_trains,
            p50_s: exact_seconds(hold.p50),
            p99_s: exact_seconds(hold.p99),
            p999_s: exact_seconds(hold.p999),
            max_s: exact_seconds(hold.max),
            buckets: buckets.collect(),
        }
    }
}

impl From<stats::Traffic> for Traffic {
    fn from(t: stats::Traffic) -> Traffic {
        Traffic {
            frames: t.frames,
            bytes: t.bytes,
        }
    }
}

impl From<stats::Trains> for TrainCounts {
    fn from(t: stats::Trains) -> TrainCounts {
        let stats::Trains {
            trains,
            frames,
            pieces,
            markers,
            marked,
            plain,
            aggregates,
            aggregated,
        } = t;
        TrainCounts {
            trains,
            frames,
            pieces,
            markers,
            marked,
            plain,
            aggregates,
            aggregated,
        }
    }
}

impl From<stats::DataUnits> for DataUnits {
    fn from(units: stats::DataUnits) -> DataUnits {
        let stats::DataUnits {
            given,
            on_wire,
            packets_of_1500,
        } = units;
        DataUnits {
            given,
            on_wire,
            packets_of_1500,
            ratio: (packets_of_1500 > 0).then(|| given as f64 / packets_of_1500 as f64),
        }
    }
}

impl From<stats::QueueSnapshot> for Queue {
    fn from(q: stats::QueueSnapshot) -> Queue {
        let stats::QueueSnapshot {
            frames,
            bytes,
            flows,
            frames_max_seen,
            bytes_max_seen,
            marked,
        } = q;
        Queue {
            frames,
            bytes,
            flows,
            frames_max_seen,
            bytes_max_seen,
            marked,
        }
    }
}

impl From<stats::ElephantsSnapshot> for Flows {
    fn from(e: stats::ElephantsSnapshot) -> Flows {
        let stats::ElephantsSnapshot {
            bytes_max,
            elephants,
            mice,
            of_elephants,
            of_mice,
            evicted,
        } = e;
        Flows {
            elephant_bytes: bytes_max,
            elephants,
            mice,
            of_elephants: of_elephants.into(),
            of_mice: of_mice.into(),
            evicted,
        }
    }
}

impl From<stats::ResequencerSnapshot> for Resequencer {
    fn from(r: stats::ResequencerSnapshot) -> Resequencer {
        let stats::ResequencerSnapshot {
            held_trains,
            held_bytes,
            held_bytes_max_seen,
            gaps,
            reordered,
        } = r;
        Resequencer {
            held_trains,
            held_bytes,
            held_bytes_max_seen,
            gaps,
            reordered,
        }
    }
}

impl From<stats::ReplaySnapshot> for Replay {
    fn from(r: stats::ReplaySnapshot) -> Replay {
        let stats::ReplaySnapshot {
            kept_trains,
            kept_bytes,
            kept_bytes_max_seen,
            waiting_trains,
            replayed,
            repaired,
            not_repaired,
            duplicated,
            not_duplicated,
            not_kept,
        } = r;
        Replay {
            kept_trains,
            kept_bytes,
            kept_bytes_max_seen,
            waiting_trains,
            replayed,
            repaired,
            not_repaired,
            duplicated,
            not_duplicated,
            not_kept,
        }
    }
}

impl From<stats::ReassemblySnapshot> for Reassembly {
    fn from(r: stats::ReassemblySnapshot) -> Reassembly {
        let stats::ReassemblySnapshot {
            frames,
            bytes,
            bytes_max_seen,
            completed,
            partial,
        } = r;
        Reassembly {
            frames,
            bytes,
            bytes_max_seen,
            completed,
            partial,
        }
    }
}

impl From<stats::TooBigSnapshot> for TooBig {
    fn from(of: stats::TooBigSnapshot) -> TooBig {
        let stats::TooBigSnapshot {
            told,
            withheld,
            untold,
        } = of;
        TooBig {
            told,
            withheld,
            untold,
        }
    }
}
