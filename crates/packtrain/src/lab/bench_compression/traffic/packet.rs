//! Packets as a host would send them, for what is coded without being sent.

use packtrain_proto::wire::checksum;

/// IPv4 and UDP, checksums included: the `number`th of a flow.
pub fn udp(flow: u16, number: u16, payload: &[u8]) -> Vec<u8> {
    const UDP: u8 = 17;
    let len = 8 + payload.len() as u16;
    let mut packet = vec![0x45, 0];
    packet.extend_from_slice(&(20 + len).to_be_bytes());
    packet.extend_from_slice(&number.to_be_bytes());
    // Do not fragment; 64 hops; the two hosts.
    packet.extend_from_slice(&[0x40, 0, 64, UDP, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2]);
    let sum = checksum::checksum(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend_from_slice(&(40_000 + flow).to_be_bytes());
    packet.extend_from_slice(&7777_u16.to_be_bytes());
    packet.extend_from_slice(&len.to_be_bytes());
    packet.extend_from_slice(&[0, 0]);
    packet.extend_from_slice(payload);
    let parts = [
        checksum::sum(&packet[12..20]),
        u16::from(UDP),
        len,
        checksum::sum(&packet[20..]),
    ];
    let sum = !parts.into_iter().fold(0, checksum::add);
    packet[26..28].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// One datagram of each of these senders after the other, while all have some.
pub fn in_turns<'a>(payloads: &[&'a [Vec<u8>]]) -> Vec<Vec<u8>> {
    let len = payloads.iter().map(|of| of.len()).min().unwrap_or(0);
    let of_turn = |at: usize| {
        let of = move |(flow, of): (usize, &&'a [Vec<u8>])| udp(flow as u16, at as u16, &of[at]);
        payloads.iter().enumerate().map(of)
    };
    (0..len).flat_map(of_turn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_checksums_are_right() {
        let packet = udp(3, 9, b"payload");
        assert_eq!(packet.len(), 20 + 8 + 7);
        assert_eq!(checksum::checksum(&packet[..20]), 0);
        let parts = [
            checksum::sum(&packet[12..20]),
            17,
            15,
            checksum::sum(&packet[20..]),
        ];
        assert_eq!(!parts.into_iter().fold(0, checksum::add), 0);
    }

    #[test]
    fn senders_take_turns() {
        let of = |bytes: [u8; 3]| bytes.map(|byte| vec![byte]);
        let packets = in_turns(&[&of([1, 2, 3])[..], &of([4, 5, 6])[..2]]);
        let said: Vec<u8> = packets.iter().map(|packet| packet[28]).collect();
        assert_eq!(said, [1, 4, 2, 5]);
    }
}
