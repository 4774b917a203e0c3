//! Speech: what Flite, or eSpeak NG, says in several voices, at 8 kHz.

use std::path::PathBuf;

use crate::lab::namespaces::{program_exists, run};
use crate::lab::{Error, Result};

pub const SAMPLES_PER_SECOND: u32 = 8000;

/// Said by each voice, as people do on the telephone.
const SAID: [&str; 6] = [
    "Hello, this is the office on the third floor. I am calling about the order that we sent you on Monday.",
    "Yes, I can hear you well. Could you wait for a moment, please? I have to look for the number.",
    "The train leaves at a quarter past seven, and we should be at the station a little earlier than that.",
    "No, that is not what I meant. We agreed to meet on Thursday, after lunch, in front of the library.",
    "I have read your letter twice, and I think that most of it is right, but the last page worries me.",
    "Thank you very much for your help. I will tell my colleagues, and call you back before the weekend.",
];

/// Things that were said, each as loud as any other: of an effective value of 1.
#[derive(Clone, Debug)]
pub struct Speech {
    pub said: Vec<Vec<f32>>,
}

/// A program that speaks.
struct Speaker {
    program: &'static str,
    voices: &'static [&'static str],
    /// Its words between a voice and a file, and behind the file.
    options: fn(&str, &str, &str) -> Vec<String>,
}

const SPEAKERS: [Speaker; 2] = [
    Speaker {
        program: "flite",
        voices: &["kal16", "awb", "rms", "slt"],
        options: |voice, file, text| words(&["-voice", voice, "-o", file, "-t", text]),
    },
    Speaker {
        program: "espeak-ng",
        voices: &["en+m1", "en+m3", "en+f2", "en+f4"],
        options: |voice, file, text| words(&["-v", voice, "-w", file, text]),
    },
];

fn words(of: &[&str]) -> Vec<String> {
    of.iter().map(|&word| word.to_owned()).collect()
}

impl Speech {
    /// `None` where no program speaks.
    pub fn of_programs() -> Result<Option<Speech>> {
        let mut speakers = SPEAKERS.iter();
        let Some(speaker) = speakers.find(|speaker| program_exists(speaker.program)) else {
            return Ok(None);
        };
        let path =
            std::env::temp_dir().join(format!("packtrain-speech-{}.wav", std::process::id()));
        let mut said = Vec::new();
        for voice in speaker.voices {
            for text in SAID {
                said.push(spoken(speaker, voice, text, &path)?);
            }
        }
        Ok(Some(Speech { said }))
    }
}

fn spoken(speaker: &Speaker, voice: &str, text: &str, path: &PathBuf) -> Result<Vec<f32>> {
    let file = path.display().to_string();
    run(speaker.program, (speaker.options)(voice, &file, text))?;
    let read = std::fs::read(path).map_err(|source| Error::File {
        path: file.clone(),
        source,
    })?;
    // Nothing else would ever use it.
    let _ = std::fs::remove_file(path);
    let sound = Sound::read(&read).ok_or_else(|| Error::Unexpected {
        program: speaker.program.to_owned(),
        text: "something that is no sound of sixteen bits".to_owned(),
    })?;
    Ok(as_loud(sound.at_8_khz()))
}

struct Sound {
    samples_per_second: u32,
    samples: Vec<f32>,
}

impl Sound {
    /// Of a RIFF WAVE file with one channel of sixteen bits. A program that writes as it speaks does not know how long
    /// its data will be: it ends where the file does.
    fn read(file: &[u8]) -> Option<Sound> {
        let mut chunks = file
            .strip_prefix(b"RIFF")?
            .get(4..)?
            .strip_prefix(b"WAVE")?;
        let mut samples_per_second = None;
        loop {
            let (name, rest) = chunks.split_first_chunk::<4>()?;
            let (len, rest) = rest.split_first_chunk::<4>()?;
            let len = u32::from_le_bytes(*len) as usize;
            match name {
                b"fmt " => {
                    let format = rest.get(..16)?;
                    if format[..4] != [1, 0, 1, 0] || format[14..16] != [16, 0] {
                        return None;
                    }
                    samples_per_second = Some(u32::from_le_bytes(format[4..8].try_into().ok()?));
                }
                b"data" => {
                    let data = &rest[..len.min(rest.len())];
                    let sample = |two: &[u8]| f32::from(i16::from_le_bytes([two[0], two[1]]));
                    return Some(Sound {
                        samples_per_second: samples_per_second?,
                        samples: data.chunks_exact(2).map(sample).collect(),
                    });
                }
                _ => {}
            }
            chunks = rest.get(len.next_multiple_of(2)..)?;
        }
    }

    /// Each sample the mean of those around it, so that what a telephone does not carry does not come back as something else.
    fn at_8_khz(&self) -> Vec<f32> {
        let step = f64::from(self.samples_per_second) / f64::from(SAMPLES_PER_SECOND);
        let count = (self.samples.len() as f64 / step) as usize;
        let around = |at: usize| {
            let from = (at as f64 * step) as usize;
            let to = ((at + 1) as f64 * step).ceil() as usize;
            let of = &self.samples[from..to.min(self.samples.len())];
            of.iter().sum::<f32>() / of.len() as f32
        };
        (0..count).map(around).collect()
    }
}

fn as_loud(mut samples: Vec<f32>) -> Vec<f32> {
    let power: f32 = samples.iter().map(|sample| sample * sample).sum();
    let effective = (power / samples.len().max(1) as f32).sqrt().max(1.0);
    for sample in &mut samples {
        *sample /= effective;
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(samples_per_second: u32, data_len: u32, samples: &[i16]) -> Vec<u8> {
        let mut file = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
        file.extend_from_slice(&samples_per_second.to_le_bytes());
        file.extend_from_slice(&[0, 0, 0, 0, 2, 0, 16, 0]);
        file.extend_from_slice(b"LIST\x03\0\0\0abc\0data");
        file.extend_from_slice(&data_len.to_le_bytes());
        file.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
        file
    }

    #[test]
    fn a_sound_is_read_and_brought_to_8_khz() {
        let sound = Sound::read(&file(16_000, u32::MAX, &[1, 3, 5, 7])).unwrap();
        assert_eq!(sound.at_8_khz(), [2.0, 6.0]);
        let sound = Sound::read(&file(8000, 6, &[1, -3, 5, 7])).unwrap();
        assert_eq!(sound.at_8_khz(), [1.0, -3.0, 5.0]);
        let whole = file(8000, 6, &[1, 2, 3]);
        for len in 0..whole.len() - 6 {
            assert!(Sound::read(&whole[..len]).is_none(), "{len}");
        }
    }

    #[test]
    fn everything_is_as_loud_as_everything_else() {
        let loud = as_loud(vec![300.0, -400.0]);
        let power: f32 = loud.iter().map(|sample| sample * sample).sum();
        assert!((power / 2.0 - 1.0).abs() < 1e-5);
        assert_eq!(as_loud(vec![0.0; 3]), [0.0; 3]);
    }
}
