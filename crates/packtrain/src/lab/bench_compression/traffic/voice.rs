//! Telephone calls as one end sends them: RTP (RFC 3550) with G.711 µ-law, 20 ms a packet, of somebody who talks and
//! pauses as in ITU-T P.59, with what is heard behind.

use super::draws::Draws;
use super::mu_law;
use super::speech::{SAMPLES_PER_SECOND, Speech};

pub const PACKETS_PER_SECOND: u32 = 50;
pub const HEADER_BYTES: usize = 12;
const VOICE_BYTES: usize = (SAMPLES_PER_SECOND / PACKETS_PER_SECOND) as usize;
/// Version 2; payload type 0, µ-law; the marker with the first of a talkspurt (RFC 3551, 4.1).
const VERSION: u8 = 2 << 6;
const PCMU: u8 = 0;
const MARKER: u8 = 0x80;

/// Means, seconds (P.59, table 1).
const TALKSPURT_S: f64 = 1.004;
const PAUSE_S: f64 = 1.587;
/// How loud speech is, while somebody speaks: from person to person by so much.
const SPEECH_DBM0: f64 = -20.0;
const SPEECH_DEVIATION_DB: f64 = 3.0;

/// What is heard besides speech.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Background {
    /// Nothing in pauses: a telephone that mutes. While somebody talks, a quiet room.
    Muted,
    /// Noise of this level, always.
    Dbm0(f64),
}

/// Behind speech of one who is muted otherwise.
const QUIET_DBM0: f64 = -68.0;

#[derive(Debug)]
struct Talker<'a> {
    draws: Draws,
    speech: &'a Speech,
    said: usize,
    at: usize,
    gain: f64,
    background: Background,
    is_talking: bool,
    /// Samples until that changes.
    left: u64,
    noise: f64,
}

impl<'a> Talker<'a> {
    fn new(speech: &'a Speech, background: Background, mut draws: Draws) -> Talker<'a> {
        let said = draws.index(speech.said.len());
        let level_dbm0 = SPEECH_DBM0 + SPEECH_DEVIATION_DB * draws.normal();
        let mut talker = Talker {
            said,
            at: draws.index(speech.said[said].len()),
            gain: mu_law::amplitude(level_dbm0),
            is_talking: draws.is(TALKSPURT_S / (TALKSPURT_S + PAUSE_S)),
            left: 0,
            noise: 0.0,
            draws,
            speech,
            background,
        };
        // How long one goes on that was met at any time is distributed as a whole one is.
        talker.left = talker.length();
        talker
    }

    /// Of what begins now, samples.
    fn length(&mut self) -> u64 {
        let mean_s = match self.is_talking {
            true => TALKSPURT_S,
            false => PAUSE_S,
        };
        (self.draws.exponential(mean_s) * f64::from(SAMPLES_PER_SECOND)) as u64
    }

    fn sample(&mut self) -> f64 {
        if self.left == 0 {
            self.is_talking = !self.is_talking;
            self.left = self.length().max(1);
        }
        self.left -= 1;
        let speech = match self.is_talking {
            true => self.speech_sample(),
            false => 0.0,
        };
        let noise_dbm0 = match self.background {
            Background::Muted if !self.is_talking => return 0.0,
            Background::Muted => QUIET_DBM0,
            Background::Dbm0(level) => level,
        };
        // Rooms hum more than they hiss: 0.6² + 0.8² is 1.
        self.noise = 0.6 * self.noise + 0.8 * self.draws.normal();
        speech + mu_law::amplitude(noise_dbm0) * self.noise
    }

    /// Goes on where it was before the pause, and says something else when all is said.
    fn speech_sample(&mut self) -> f64 {
        if self.at == self.speech.said[self.said].len() {
            self.said = self.draws.index(self.speech.said.len());
            self.at = 0;
        }
        self.at += 1;
        f64::from(self.speech.said[self.said][self.at - 1]) * self.gain
    }
}

/// The packets of one end of a call.
pub fn call(speech: &Speech, background: Background, seed: u64, packets: usize) -> Vec<Vec<u8>> {
    let mut draws = Draws::new(seed);
    let (source, first, start) = (
        draws.word() as u32,
        draws.word() as u16,
        draws.word() as u32,
    );
    let mut talker = Talker::new(speech, background, draws);
    let mut talked = false;
    let packet = |number: usize| {
        let voice: [u8; VOICE_BYTES] = std::array::from_fn(|_| mu_law::encode(talker.sample()));
        let begins = talker.is_talking && !talked && background == Background::Muted;
        talked = talker.is_talking;
        let mut packet = Vec::with_capacity(HEADER_BYTES + VOICE_BYTES);
        packet.extend_from_slice(&[VERSION, PCMU | if begins { MARKER } else { 0 }]);
        packet.extend_from_slice(&first.wrapping_add(number as u16).to_be_bytes());
        let time = start.wrapping_add((number * VOICE_BYTES) as u32);
        packet.extend_from_slice(&time.to_be_bytes());
        packet.extend_from_slice(&source.to_be_bytes());
        packet.extend_from_slice(&voice);
        packet
    };
    (0..packets).map(packet).collect()
}

/// As RTP numbers them.
pub fn number(packet: &[u8]) -> Option<u16> {
    let bytes = packet.get(2..4)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::bench_compression::coded::interleaved_share_saved;

    /// Where no program speaks: tones of a voice, with all that compressing goes by, which is how loud they are.
    fn hummed() -> Speech {
        let sample = |at: usize| {
            let turns = at as f32 / SAMPLES_PER_SECOND as f32 * std::f32::consts::TAU;
            let syllable = (turns * 2.1).sin().max(0.0);
            syllable
                * ((turns * 121.0).sin()
                    + 0.7 * (turns * 707.3).sin()
                    + 0.4 * (turns * 2411.0).sin())
        };
        Speech {
            said: vec![(0..80_000).map(sample).collect()],
        }
    }

    #[test]
    fn people_talk_and_pause_as_long_as_the_recommendation_has_it() {
        let speech = hummed();
        let (mut talked, mut spurts) = (0.0, 0.0);
        const CALLS: u64 = 200;
        const SECONDS: usize = 30;
        for seed in 0..CALLS {
            let mut talker = Talker::new(&speech, Background::Muted, Draws::new(seed));
            for _ in 0..SECONDS * SAMPLES_PER_SECOND as usize {
                let before = talker.is_talking;
                talker.sample();
                talked += f64::from(talker.is_talking);
                spurts += f64::from(talker.is_talking && !before);
            }
        }
        let talked_s = talked / f64::from(SAMPLES_PER_SECOND);
        let share = talked_s / (CALLS as usize * SECONDS) as f64;
        assert!((share - 0.3875).abs() < 0.015, "{share}");
        assert!((talked_s / spurts - TALKSPURT_S).abs() < 0.06);
    }

    #[test]
    fn a_packet_is_rtp_with_20_ms_of_mu_law_and_is_the_same_again_of_its_seed() {
        let speech = hummed();
        let packets = call(&speech, Background::Muted, 5, 1000);
        assert!(packets.iter().all(|packet| packet.len() == 172));
        assert_eq!(packets, call(&speech, Background::Muted, 5, 1000));
        assert_ne!(packets, call(&speech, Background::Muted, 6, 1000));
        for two in packets.windows(2) {
            let [before, after] = [0, 1].map(|at| number(&two[at]).unwrap());
            assert_eq!(after, before.wrapping_add(1));
            assert_eq!(two[0][8..12], two[1][8..12]);
        }
        let silent = |packet: &&Vec<u8>| packet[12..].iter().all(|&code| code == mu_law::SILENCE);
        let share = packets.iter().filter(silent).count();
        assert!((300..800).contains(&share), "{share} of 1000 are silent");
        let noisy = call(&speech, Background::Dbm0(-65.0), 5, 1000);
        assert_eq!(noisy.iter().filter(silent).count(), 0);
    }

    /// Of what a train holds of several calls.
    fn share_saved(speech: &Speech, background: Background) -> f64 {
        let of: Vec<_> = (0..20)
            .map(|seed| call(speech, background, seed, 100))
            .collect();
        interleaved_share_saved(&of)
    }

    #[test]
    fn silence_shrinks_quiet_noise_some_and_an_office_hardly() {
        let speech = Speech::of_programs().ok().flatten().unwrap_or_else(hummed);
        let saved = |background| share_saved(&speech, background);
        let (muted, quiet, office) = (
            saved(Background::Muted),
            saved(Background::Dbm0(-65.0)),
            saved(Background::Dbm0(-50.0)),
        );
        eprintln!("saved: {muted:.3} {quiet:.3} {office:.3}");
        assert!((0.45..0.75).contains(&muted), "{muted}");
        assert!((0.0..0.45).contains(&quiet), "{quiet}");
        assert!((0.0..0.1).contains(&office), "{office}");
    }
}
