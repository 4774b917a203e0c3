//! What is written is what is read, and what cannot be read is named.

use proptest::prelude::*;

use super::*;
use crate::filter::rules::generate;

fn parse(text: &str) -> RuleMatch {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn what_is_written_comes_back_in_one_form() {
    for (text, canonical) in [
        ("any", "any"),
        ("tcp and ! dport 22,80-", "tcp not dport 22,80-"),
        ("src @blocklist && dst @x", "src @blocklist dst @x"),
        ("not host @x syn", "not host @x syn"),
        ("host 10.0.0.0/8,fd00::/8", "host 10.0.0.0/8,fd00::/8"),
        (
            "src-mac 02:00:00:00:00:0A,02:00:00:00:00:01",
            "src-mac 02:00:00:00:00:0a,02:00:00:00:00:01",
        ),
        ("dst-mac ff:ff:ff:ff:ff:ff", "dst-mac ff:ff:ff:ff:ff:ff"),
        ("vlan any inner-vlan any", "vlan any inner-vlan any"),
        ("inner-vlan 5,100-4095", "inner-vlan 5,100-"),
        ("cast unicast", "cast unicast"),
        (
            "cast multicast and not fragment",
            "cast multicast not fragment",
        ),
        ("cast broadcast empty", "cast broadcast empty"),
    ] {
        assert_eq!(parse(text).to_string(), canonical);
        assert_eq!(parse(canonical), parse(text), "{text}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    let error = |text: &str| text.parse::<RuleMatch>().unwrap_err().to_string();
    assert_eq!(
        error(""),
        "a match says which frames: \"any\" for all of them"
    );
    assert_eq!(
        error("tpc"),
        "\"tpc\" begins no condition: arp, ip, ip6, tcp, udp, icmp, icmp6, ethertype, proto, dscp, port, \
         sport, dport, host, src, dst, size, vlan, inner-vlan, src-mac, dst-mac, cast, fragment, syn, empty, any"
    );
    assert_eq!(
        error("tcp or udp"),
        "there is no \"or\": write a rule for each, or several values with commas"
    );
    assert_eq!(
        error("mark 1"),
        "\"mark\": a frame has none when it arrives; leave it out"
    );
    let hint = "a MAC address has six pairs of hexadecimal digits, as in 02:00:00:00:00:01";
    assert_eq!(error("src-mac x"), format!("src-mac \"x\": {hint}"));
    assert_eq!(
        error("dst-mac 02:00:00:00:00:01,"),
        format!("dst-mac \"\": {hint}")
    );
    let many = vec!["02:00:00:00:00:01"; 17].join(",");
    assert_eq!(
        error(&format!("src-mac {many}")),
        "17 addresses of a condition, and at most 16 are possible"
    );
    assert_eq!(
        error("inner-vlan 4096"),
        "inner-vlan \"4096\": expected a number up to 4095"
    );
    assert_eq!(
        error("cast all"),
        "cast \"all\": expected unicast, multicast or broadcast"
    );
    let hint = "a set stands alone; put all into one set, or write a rule for each";
    assert_eq!(error("src @a,@b"), format!("src \"@a,@b\": {hint}"));
    assert_eq!(error("dst ::1,@b"), format!("dst \"::1,@b\": {hint}"));
    assert_eq!(
        error("host @"),
        "host @: a set's name has 1 to 31 characters, this one has 0"
    );
    assert_eq!(
        error("src 10.0.0.1/8"),
        "src: 10.0.0.1/8 has bits behind its prefix: write it as 10.0.0.0/8"
    );
    for word in ["cast", "src-mac", "inner-vlan", "src", "not", "dport"] {
        assert_eq!(error(word), format!("{word:?} is followed by nothing"));
    }
    assert_eq!(error("tcp and"), "\"and\" is followed by nothing");
    assert_eq!(error("tcp any"), "\"any\" stands alone");
    assert_eq!(
        error(&"syn ".repeat(9)),
        "9 conditions, and at most 8 are possible"
    );
}

proptest! {
    #[test]
    fn any_match_is_read_as_it_was_written(wanted in generate::any_match()) {
        prop_assert_eq!(parse(&wanted.to_string()), wanted);
    }

    #[test]
    fn no_text_makes_it_panic(text in "[a-z0-9 @,./:!-]{0,40}") {
        let _ = text.parse::<RuleMatch>();
    }
}
