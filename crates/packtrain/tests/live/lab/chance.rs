//! What is left to chance is left to the seed.

use std::collections::BTreeSet;

use super::world::World;

/// Which of so many pings are not answered over a wire that loses a tenth each way. A frame of somebody
/// else between two of them would take the fate of the second: so addresses are not asked for, there is no
/// IPv6, which speaks by itself, and loss is set when everything is quiet, from where on frames count.
/// An emulator that is away for so long that frames of two directions come in another order disturbs
/// nothing, because each direction has a fate of its own; only frames that find no room in front of it
/// would, and those are counted.
fn lost(world: &World, seed: u32, pings: u32) -> BTreeSet<u32> {
    world.done(&format!(
        "up --lab chance --links 1 --rate none --no-packtrain --seed {seed}"
    ));
    let document = world.document("chance");
    let address = |host: usize| {
        document["hosts"][host]["address"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    for (host, other) in [("a", 1), ("b", 0)] {
        let their_mac = world.on(
            "chance",
            ["a", "b"][other],
            "cat /sys/class/net/eth0/address",
        );
        world.on(
            "chance",
            host,
            &format!(
                "echo 1 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6; \
                 ip neigh replace {} dev eth0 nud permanent lladdr {}",
                address(other),
                their_mac.trim()
            ),
        );
    }
    world.done("set a-b.0 --loss 10%");
    let ping = format!("ping -n -i0.002 -c{pings} -W1 {}", address(1));
    let said = world.on("chance", "a", &ping);
    let there = world.direction("chance", "a-b.0", "a");
    assert_eq!(there["dropped"]["emulator_late"], 0, "{there}");
    world.done("down");
    let answered: BTreeSet<u32> = said
        .lines()
        .filter_map(|line| {
            let (_, rest) = line.split_once("icmp_seq=")?;
            rest.split(' ').next()?.parse().ok()
        })
        .collect();
    (1..=pings).filter(|n| !answered.contains(n)).collect()
}

#[test]
fn the_same_frames_meet_the_same_fate_under_the_same_seed_and_another_under_another() {
    live!();
    let world = World::new();
    let first = lost(&world, 42, 500);
    // 19 % of 500 are 95; five standard deviations are 44.
    assert!(
        (50..140).contains(&first.len()),
        "{}: {first:?}",
        first.len()
    );
    assert_eq!(lost(&world, 42, 500), first);
    let of_100: BTreeSet<u32> = first.into_iter().filter(|&n| n <= 100).collect();
    assert_ne!(lost(&world, 43, 100), of_100);
}
