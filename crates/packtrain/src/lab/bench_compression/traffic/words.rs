//! Words, as names in programs are made of.

use super::draws::Draws;

const WORDS: &str = "account action active address agent alert amount archive asset author backup balance batch billing \
    branch bucket budget cache campaign cart catalog category channel charge city client cluster code color column \
    comment company config contact content context control cost count country coupon created currency customer data \
    date deadline default delivery department deploy detail device digest discount document domain draft duration \
    editor email employee endpoint entry error event expiry export factor feature field filter folder format gateway \
    grade group handler hash health history host icon image import index input interval invoice issue item job journal \
    key label language latency layer lead level license limit link list locale location login lookup machine manager \
    margin market measure member message method metric mode model module monitor name network node note number object \
    offer office option order origin output owner package page parent partner path payment period permission phone \
    plan platform policy position price priority process product profile project queue quota rate reason record region \
    release report request reserve resource result retry revenue review role route rule sample schedule schema score \
    search section segment sensor service session setting shift signal site source stage state status step stock \
    storage store stream summary supplier support tag target task team template tenant term ticket timer title token \
    topic total trace track transfer trigger type unit update usage user value variant vendor version view volume \
    warehouse weight window worker workflow zone";

pub fn word(draws: &mut Draws) -> &'static str {
    let words: Vec<&str> = WORDS.split_whitespace().collect();
    words[draws.index(words.len())]
}

pub fn words(draws: &mut Draws, count: usize) -> Vec<&'static str> {
    (0..count).map(|_| word(draws)).collect()
}
