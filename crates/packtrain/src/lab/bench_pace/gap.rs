//! The CPS paper's Fig. 3 again: throughput against the gap that the interface leaves between frames (`packtrain pace link`), from
//! 8 to 1023 in the paper's register, which are 4 bytes more on the wire.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use super::Bench;
use super::plot::{self, Point};
use super::stage::{Carried, GBE_25000, Setting, Stage};
use super::way::{Connection, Pace, Way};
use crate::lab::Result;
use crate::lab::sample::Sample;
use crate::lab::stream::Amount;
use crate::lab::table::{Table, grouped, time};

const LASTS: Duration = Duration::from_secs(15);
const LASTS_IN_SHORT: Duration = Duration::from_secs(5);
const REGISTERS: [u16; 9] = [8, 64, 128, 256, 384, 512, 640, 768, 1023];
const REGISTERS_IN_SHORT: [u16; 3] = [8, 512, 1023];
/// Of a full frame: what the paper's formula calls MTU.
const MTU: f64 = 1500.0;

#[derive(Clone, Debug, Serialize)]
pub struct GapRow {
    register: u16,
    offload: bool,
    goodput_mbps: Sample,
    mean_mbps: f64,
    carried: Vec<Carried>,
}

fn way(register: u16) -> Way {
    Way {
        name: "cubic",
        congestion: Some("cubic"),
        pace: Pace::Gap(register),
        connection: Connection::First,
    }
}

pub fn measure(bench: &mut Bench<'_>) -> Result<()> {
    if bench.has_no_link_pacer {
        return Ok(());
    }
    let registers: &[u16] = match bench.is_short {
        true => &REGISTERS_IN_SHORT,
        false => &REGISTERS,
    };
    let lasts = if bench.is_short {
        LASTS_IN_SHORT
    } else {
        LASTS
    };
    let mut rows: Vec<GapRow> = Vec::new();
    for round in 0..bench.rounds {
        for offload in bench.offloads.clone() {
            let setting = Setting {
                card: GBE_25000,
                offload,
                // Its rate is the pacer's to keep.
                free_port: true,
                ..Setting::PAPER
            };
            for &register in registers {
                bench.tell("gap", round, &setting, &register.to_string());
                let stage = Stage::set(bench.packtrain, setting)?;
                let way = way(register);
                stage.prepare(&way)?;
                let (flow, carried) = stage.counted(|| stage.carry(&way, Amount::Time(lasts)))?;
                stage.end(&way)?;
                let mbps = flow.goodput_bps() / 1e6;
                let same = |row: &&mut GapRow| (row.register, row.offload) == (register, offload);
                match rows.iter_mut().find(same) {
                    Some(row) => row.add(mbps, carried),
                    None => rows.push(GapRow::new(register, offload, mbps, carried)),
                }
            }
        }
    }
    if let Some(directory) = bench.plots {
        plot::write(directory, "gap.csv", &csv(&rows))?;
        for &offload in &bench.offloads {
            let points: Vec<Point> = rows
                .iter()
                .filter(|row| row.offload == offload)
                .map(GapRow::point)
                .collect();
            let tso = if offload { "tso" } else { "no-tso" };
            let title = "Mbit/s against the gap's register: least, mean, most";
            let drawn = plot::ranges(title, &points, "register (bytes, 4 less than on the wire)");
            plot::write(directory, &format!("gap-{tso}.svg"), &drawn)?;
        }
    }
    bench.gaps.extend(rows);
    Ok(())
}

impl GapRow {
    fn new(register: u16, offload: bool, mbps: f64, carried: Carried) -> GapRow {
        GapRow {
            register,
            offload,
            goodput_mbps: [mbps].into_iter().collect(),
            mean_mbps: mbps,
            carried: vec![carried],
        }
    }

    fn add(&mut self, mbps: f64, carried: Carried) {
        let rounds = self.carried.len() as f64;
        self.mean_mbps = (self.mean_mbps * rounds + mbps) / (rounds + 1.0);
        self.goodput_mbps.push(mbps);
        self.carried.push(carried);
    }

    /// As the paper's figure has it.
    fn point(&self) -> Point {
        Point {
            x: self.register.into(),
            least: self.goodput_mbps.min(),
            middle: self.mean_mbps,
            most: self.goodput_mbps.max(),
        }
    }
}

fn csv(rows: &[GapRow]) -> String {
    let mut out = String::from("register,tso,min_mbps,mean_mbps,max_mbps\n");
    for row in rows {
        let Point {
            least,
            middle,
            most,
            ..
        } = row.point();
        let _ = writeln!(
            out,
            "{},{},{least:.2},{middle:.2},{most:.2}",
            row.register, row.offload
        );
    }
    out
}

pub fn gaps_table(rows: &[GapRow]) -> Table {
    let mut table = Table::new(&[
        "register",
        "TSO",
        "min",
        "mean",
        "max",
        "Mbit/s, busy × by the formula",
        "bytes a frame",
        "late (99 %)",
    ]);
    for row in rows {
        let frames: Sample = row.carried.iter().map(Carried::frame_bytes).collect();
        let late: Sample = row.carried.iter().map(|of| of.lateness.p99_us).collect();
        let point = row.point();
        table.row([
            row.register.to_string(),
            if row.offload { "on" } else { "off" }.to_owned(),
            format!("{:.1}", point.least),
            format!("{:.1}", point.middle),
            format!("{:.1}", point.most),
            format!("{:.2}", (f64::from(row.register) + MTU) / MTU),
            grouped(frames.median()),
            time(late.max()),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_has_the_least_the_mean_and_the_most_of_its_rounds() {
        let mut row = GapRow::new(512, false, 100.0, Carried::default());
        row.add(400.0, Carried::default());
        row.add(70.0, Carried::default());
        let Point {
            least,
            middle,
            most,
            ..
        } = row.point();
        assert_eq!((least, middle, most), (70.0, 190.0, 400.0));
        assert!(csv(&[row]).ends_with("512,false,70.00,190.00,400.00\n"));
    }
}
