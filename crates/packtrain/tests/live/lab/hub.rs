//! Hosts at a hub share its medium.

use std::process::Stdio;

use super::world::{Outcome, World};

#[test]
fn hosts_that_send_at_once_collide_and_both_get_through() {
    live!();
    let world = World::new();
    world.write(
        "/run/hub.toml",
        "[[host]]\nname = 'x'\ncount = 3\npacktrain = false\n\
         [[hub]]\nname = 'h'\nrate = '10mbit'\n\
         [[wire]]\nends = ['x', 'h']\n",
    );
    world.done("up --lab shared /run/hub.toml");
    let floods = ["x1", "x2"].map(|host| {
        let mut flood = world.on_command("shared", host, "ping -f -c300 -s1000 -q x3");
        flood.stdout(Stdio::piped()).spawn().unwrap()
    });
    for flood in floods {
        let ping: Outcome = flood.wait_with_output().unwrap().into();
        assert_eq!(ping.code, 0, "{ping:?}");
        assert!(ping.out.contains(" 0% packet loss"), "{}", ping.out);
    }
    let mut collisions = 0;
    for host in ["x1", "x2", "x3"] {
        let direction = world.direction("shared", &format!("{host}-h.0"), host);
        let hub = &direction["hub"];
        // Everything that came to the station was sent, or given up and counted among what was dropped.
        let (sent, given_up) = (&hub["sent_frames"], &hub["given_up_frames"]);
        let gone = sent.as_u64().unwrap() + given_up.as_u64().unwrap();
        assert_eq!(
            direction["arrived_frames"].as_u64().unwrap(),
            gone,
            "{direction}"
        );
        assert_eq!(direction["dropped"]["collisions"], *given_up, "{direction}");
        assert!(sent.as_u64().unwrap() >= 300, "{direction}");
        assert!(hub["deferred_frames"].as_u64().unwrap() > 0, "{direction}");
        // 1200 frames of 1042 bytes, with what the wire adds, and nobody sends beside another for long.
        let busy_s = direction["busy_s"].as_f64().unwrap();
        assert!((1.0..4.0).contains(&busy_s), "{direction}");
        collisions += hub["collisions"].as_u64().unwrap();
        let back = world.direction("shared", &format!("{host}-h.0"), "h");
        assert!(back.get("hub").is_none(), "{back}");
        assert_eq!(back["busy_s"], 0.0, "{back}");
    }
    assert!(collisions > 0, "{}", world.done("list"));
    super::standing::assert_as_the_schema_says(&world);
}

#[test]
fn a_wire_at_a_hub_has_no_rate_of_its_own_and_its_other_settings_are_its_own() {
    live!();
    let world = World::new();
    world.done("up hub --lab hub");
    let error = "error: a-h.0 ends at a hub, which has one rate for all\n";
    for line in [
        "set a-h.0 --rate 1mbit",
        "set a-h.0 --from a --rate none",
        "set a-h.0 --port-rate 1mbit",
    ] {
        world.fails(line, 2, error);
    }
    world.fails(
        "set a-h.0 --from h --port-queue 5",
        2,
        "error: h is no host, so it has no port of its own: set the wire's rate and queue\n",
    );
    world.done("set a-h.0 --port-queue 40");
    let qdiscs = world.on("hub", "a", "tc qdisc show dev eth0");
    assert!(qdiscs.contains("limit 40p"), "{qdiscs}");
    world.done("cut a-h.0");
    assert!(world.pings("hub", "b", "c.eth0"));
    assert!(!world.pings("hub", "b", "a.eth0"));
}
