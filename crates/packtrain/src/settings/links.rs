//! A member link as a person wants it: which interface, and what it is used for.
//!
//! In a file these are keys of `[[link]]`, on the command line words behind the name: `eth2,tier=2,weight=3,rate=20mbit,lag`.

use std::fmt;
use std::str::FromStr;

use packtrain_proto::config::LinkSettings;

use super::values::{InterfaceName, InterfaceNameError};
use crate::units::{BitRate, ValueError};

pub const TIER_MIN: u8 = 1;
pub const TIER_MAX: u8 = 9;
pub const WEIGHT_MIN: u8 = 1;
pub const WEIGHT_MAX: u8 = 100;

const LAG: &str = "lag";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberLink {
    pub name: InterfaceName,
    pub used: LinkSettings,
}

impl From<InterfaceName> for MemberLink {
    /// With the defaults.
    fn from(name: InterfaceName) -> MemberLink {
        MemberLink {
            name,
            used: LinkSettings::default(),
        }
    }
}

/// Why a text is no link with what it is used for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    #[error(transparent)]
    Name(#[from] InterfaceNameError),
    #[error("{0:?} says nothing of a link: tier=N, weight=N, rate=RATE or lag behind its name")]
    Word(String),
    #[error("{0} is said twice")]
    Twice(&'static str),
    #[error("{0:?} is no tier: {TIER_MIN} to {TIER_MAX}, where 1 is used first")]
    Tier(String),
    #[error("{0:?} is no weight: {WEIGHT_MIN} to {WEIGHT_MAX}")]
    Weight(String),
    #[error(transparent)]
    Rate(#[from] ValueError),
}

pub fn check_tier(number: i64) -> Result<u8, LinkError> {
    let tier = u8::try_from(number).ok();
    let right = tier.filter(|tier| (TIER_MIN..=TIER_MAX).contains(tier));
    right.ok_or_else(|| LinkError::Tier(number.to_string()))
}

pub fn check_weight(number: i64) -> Result<u8, LinkError> {
    let weight = u8::try_from(number).ok();
    let right = weight.filter(|weight| (WEIGHT_MIN..=WEIGHT_MAX).contains(weight));
    right.ok_or_else(|| LinkError::Weight(number.to_string()))
}

pub fn parse_tier(text: &str) -> Result<u8, LinkError> {
    let number = text.parse().map_err(|_| LinkError::Tier(text.into()))?;
    check_tier(number)
}

pub fn parse_weight(text: &str) -> Result<u8, LinkError> {
    let number = text.parse().map_err(|_| LinkError::Weight(text.into()))?;
    check_weight(number)
}

/// Bit/s.
pub fn parse_rate(text: &str) -> Result<u64, LinkError> {
    let BitRate(bps) = text.parse()?;
    Ok(bps)
}

impl FromStr for MemberLink {
    type Err = LinkError;

    fn from_str(text: &str) -> Result<MemberLink, LinkError> {
        let mut words = text.split(',');
        let name: InterfaceName = words.next().unwrap_or_default().parse()?;
        let mut link = MemberLink::from(name);
        let (mut tier, mut weight) = (None, None);
        for word in words {
            if word == LAG {
                if std::mem::replace(&mut link.used.in_lag, true) {
                    return Err(LinkError::Twice(LAG));
                }
                continue;
            }
            let (key, value) = word
                .split_once('=')
                .ok_or_else(|| LinkError::Word(word.into()))?;
            match key {
                "tier" => once("tier", &mut tier, parse_tier(value)?)?,
                "weight" => once("weight", &mut weight, parse_weight(value)?)?,
                "rate" => once("rate", &mut link.used.rate_max_bps, parse_rate(value)?)?,
                _ => return Err(LinkError::Word(word.into())),
            }
        }
        link.used.tier = tier.unwrap_or(link.used.tier);
        link.used.weight = weight.unwrap_or(link.used.weight);
        Ok(link)
    }
}

fn once<T>(key: &'static str, to: &mut Option<T>, value: T) -> Result<(), LinkError> {
    match to.replace(value) {
        None => Ok(()),
        Some(_) => Err(LinkError::Twice(key)),
    }
}

impl fmt::Display for MemberLink {
    /// As it is read, without what it would be anyway.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (used, default) = (self.used, LinkSettings::default());
        write!(f, "{}", self.name)?;
        if used.tier != default.tier {
            write!(f, ",tier={}", used.tier)?;
        }
        if used.weight != default.weight {
            write!(f, ",weight={}", used.weight)?;
        }
        if let Some(bps) = used.rate_max_bps {
            write!(f, ",rate={}", BitRate(bps))?;
        }
        if used.in_lag {
            write!(f, ",{LAG}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> MemberLink {
        text.parse().unwrap()
    }

    #[test]
    fn what_a_link_is_used_for_stands_behind_its_name_in_any_order() {
        assert_eq!(
            read("eth2"),
            MemberLink::from("eth2".parse::<InterfaceName>().unwrap())
        );
        let link = read("eth2,rate=20mbit,tier=2,weight=3");
        assert_eq!(link, read("eth2,tier=2,weight=3,rate=20mbit"));
        assert_eq!(link.name.as_str(), "eth2");
        let used = LinkSettings {
            tier: 2,
            weight: 3,
            rate_max_bps: Some(20_000_000),
            in_lag: false,
        };
        assert_eq!(link.used, used);
        let all = "eth2,tier=2,weight=100,rate=1.5gbit,lag";
        for text in ["eth2", "eth2,tier=9", "eth2,lag", all] {
            assert_eq!(read(text).to_string(), text);
        }
        assert!(read(all).used.in_lag && read("eth2,lag,tier=2").used.in_lag);
    }

    #[test]
    fn what_says_nothing_of_a_link_is_named() {
        let wrong = |text: &str| text.parse::<MemberLink>().unwrap_err().to_string();
        let words = "tier=N, weight=N, rate=RATE or lag behind its name";
        assert_eq!(
            wrong("eth2,tier"),
            format!("\"tier\" says nothing of a link: {words}")
        );
        assert_eq!(
            wrong("eth2,"),
            format!("\"\" says nothing of a link: {words}")
        );
        assert_eq!(
            wrong("eth2,mtu=9"),
            format!("\"mtu=9\" says nothing of a link: {words}")
        );
        assert_eq!(wrong("eth2,tier=1,tier=2"), "tier is said twice");
        assert_eq!(wrong("eth2,rate=1mbit,rate=1mbit"), "rate is said twice");
        assert_eq!(wrong("eth2,lag,lag"), "lag is said twice");
        for tier in ["0", "10", "-1", "x", "300"] {
            let text = format!("{tier:?} is no tier: 1 to 9, where 1 is used first");
            assert_eq!(wrong(&format!("eth2,tier={tier}")), text);
        }
        for weight in ["0", "101", "1.5"] {
            let text = format!("{weight:?} is no weight: 1 to 100");
            assert_eq!(wrong(&format!("eth2,weight={weight}")), text);
        }
        assert_eq!(
            wrong("eth2,rate=fast"),
            "\"fast\" is no rate: write it as in 100mbit, 64kbit or 1.5gbit"
        );
        assert_eq!(wrong("a/b,tier=2"), "an interface name has no '/'");
    }
}
