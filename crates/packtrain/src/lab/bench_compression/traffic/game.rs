//! A game over UDP: what a server says to its players, and they to it, thirty to sixty times a second. Each says again
//! where some of the things in its world are, which move slowly if they move.

use super::draws::Draws;

const TICKS_PER_SECOND: f64 = 30.0;
/// How often a player and the server speak to each other, a second.
const RATES: [u32; 3] = [30, 40, 60];
/// Things that move, in the world of a server.
const THINGS: usize = 32;
/// That a server has.
const PLAYERS: usize = 16;
const MAGIC: u32 = 0x4d41_5445;
const WIDTH: f64 = 512.0;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Server,
    Player,
}

#[derive(Clone, Copy, Debug)]
struct Thing {
    at: [f32; 3],
    moves: [f32; 2],
    yaw: f32,
    health: u8,
}

/// Where all was, tick by tick.
type History = Vec<Vec<Thing>>;

/// How often the server and this player speak to each other, a second.
pub fn rate_of(player: usize) -> u32 {
    RATES[player % RATES.len()]
}

/// What one side of a player's connection says.
pub fn packets(side: Side, player: usize, seed: u64, seconds: f64) -> Vec<Vec<u8>> {
    let world = player / PLAYERS;
    let ticks = (seconds * TICKS_PER_SECOND) as usize + 2;
    let history = history(Draws::new(seed << 16 | world as u64), ticks);
    let first_tick = 90_000 * (world as u32 + 1);
    let mut draws = Draws::new(seed << 16 | 1 << 15 | (player as u64) << 1 | side as u64);
    let rate = rate_of(player);
    let (first, mut next_thing) = (draws.word() as u16, draws.index(THINGS));
    let mut looks = draws.unit() * 360.0;
    let packet = |number: usize| {
        let tick = (number as f64 / f64::from(rate) * TICKS_PER_SECOND) as usize;
        let sequence = first.wrapping_add(number as u16);
        let mut packet = head(sequence, first_tick + tick as u32, &mut draws);
        let things = &history[tick];
        match side {
            Side::Server => {
                let count = if draws.is(0.8) { 3 } else { 2 };
                for _ in 0..count {
                    next_thing = (next_thing + 1) % THINGS;
                    put_thing(&mut packet, next_thing, &things[next_thing]);
                }
            }
            Side::Player => {
                looks += if draws.is(0.5) {
                    draws.normal() * 2.0
                } else {
                    0.0
                };
                put_commands(&mut packet, looks, &things[player % PLAYERS], &mut draws);
            }
        }
        packet
    };
    let count = (seconds * f64::from(rate)) as usize;
    (0..count).map(packet).collect()
}

/// Number, what has come of the other side's, and the time.
fn head(sequence: u16, tick: u32, draws: &mut Draws) -> Vec<u8> {
    let mut packet = MAGIC.to_le_bytes().to_vec();
    packet.extend_from_slice(&sequence.to_le_bytes());
    let acknowledged = sequence.wrapping_sub(2 + draws.below(2) as u16);
    packet.extend_from_slice(&acknowledged.to_le_bytes());
    let missing = if draws.is(0.03) {
        1 << draws.below(8)
    } else {
        0
    };
    packet.extend_from_slice(&(!0_u32 ^ missing).to_le_bytes());
    packet.extend_from_slice(&tick.to_le_bytes());
    packet
}

/// As its sender numbers them.
pub fn number(packet: &[u8]) -> Option<u16> {
    let bytes = packet.get(4..6)?;
    Some(u16::from_le_bytes([bytes[0], bytes[1]]))
}

/// 18 bytes.
fn put_thing(packet: &mut Vec<u8>, number: usize, thing: &Thing) {
    packet.extend_from_slice(&(number as u16).to_le_bytes());
    for coordinate in thing.at {
        packet.extend_from_slice(&coordinate.to_le_bytes());
    }
    packet.extend_from_slice(&((thing.yaw * 1000.0) as i16).to_le_bytes());
    packet.extend_from_slice(&[thing.health, u8::from(thing.moves != [0.0; 2])]);
}

/// Where the player is, and what he has done last; the two commands before once more, should they be lost: 36 bytes.
fn put_commands(packet: &mut Vec<u8>, looks: f64, own: &Thing, draws: &mut Draws) {
    for coordinate in own.at {
        packet.extend_from_slice(&coordinate.to_le_bytes());
    }
    let buttons: u16 = if draws.is(0.1) {
        1 << draws.below(4)
    } else {
        0
    };
    let forward: i8 = if own.moves == [0.0; 2] { 0 } else { 127 };
    for back in 0..3 {
        let yaw = (looks - f64::from(back)) as i16;
        packet.extend_from_slice(&buttons.to_le_bytes());
        packet.extend_from_slice(&yaw.to_le_bytes());
        packet.extend_from_slice(&[0, 0, forward as u8, 3]);
    }
}

fn history(mut draws: Draws, ticks: usize) -> History {
    let mut things: Vec<Thing> = (0..THINGS)
        .map(|_| Thing {
            at: [WIDTH, WIDTH, 30.0].map(|most| (draws.unit() * most) as f32),
            moves: [0.0; 2],
            yaw: (draws.unit() * std::f64::consts::TAU) as f32,
            health: 100,
        })
        .collect();
    let tick = |_| {
        for thing in &mut things {
            thing.tick(&mut draws);
        }
        things.clone()
    };
    (0..ticks).map(tick).collect()
}

impl Thing {
    fn tick(&mut self, draws: &mut Draws) {
        if draws.is(0.1) {
            self.moves = match draws.is(0.4) {
                true => [0.0; 2],
                false => [0, 1].map(|_| (draws.normal() * 0.1) as f32),
            };
        }
        if self.moves != [0.0; 2] {
            self.at[0] += self.moves[0];
            self.at[1] += self.moves[1];
            self.yaw += (draws.normal() * 0.05) as f32;
        }
        if draws.is(0.01) {
            self.health = draws.below(101) as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::bench_compression::coded::interleaved_share_saved;

    #[test]
    fn packets_are_as_long_and_as_many_as_games_send_them() {
        for side in [Side::Server, Side::Player] {
            for player in 0..20 {
                let packets = packets(side, player, 1, 2.0);
                assert_eq!(packets.len(), 2 * rate_of(player) as usize);
                assert!((30..=60).contains(&rate_of(player)));
                assert!(packets.iter().all(|p| (40..=80).contains(&p.len())));
                let [one, two] = [0, 1].map(|at| number(&packets[at]).unwrap());
                assert_eq!(two, one.wrapping_add(1));
            }
        }
    }

    #[test]
    fn a_seed_gives_the_same_again_and_players_of_a_server_see_the_same_world() {
        let of = |player, seed| packets(Side::Server, player, seed, 1.0);
        assert_eq!(of(3, 1), of(3, 1));
        assert_ne!(of(3, 1), of(3, 2));
        // The same tick; another server has another one.
        assert_eq!(of(3, 1)[0][12..16], of(4, 1)[0][12..16]);
        assert_ne!(of(3, 1)[0][12..16], of(19, 1)[0][12..16]);
    }

    #[test]
    fn compressing_saves_some_of_it_and_not_most() {
        for (side, bounds) in [(Side::Server, 0.15..0.65), (Side::Player, 0.15..0.65)] {
            let of: Vec<_> = (0..48)
                .map(|player| packets(side, player, 1, 2.0))
                .collect();
            let saved = interleaved_share_saved(&of);
            assert!(bounds.contains(&saved), "{side:?}: {saved}");
        }
    }
}
