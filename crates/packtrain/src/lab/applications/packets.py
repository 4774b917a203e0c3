"""Takes frames of one EtherType from an interface, or every frame, and says what came.

    packets.py take INTERFACE ETHERTYPE DESTINATION COUNT
    packets.py extend ADDRESS PORT COUNT

`take` ends when it has the frames numbered 0 to COUNT-1 to this destination, or after 3 seconds. `extend` sends
datagrams behind extension headers of each kind.
"""

import json
import socket
import sys
import time

WAIT_S = 3
NUMBER_AT = 14


def take(interface, ether_type, destination, count):
    destination = bytes.fromhex(destination)
    listener = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ether_type))
    listener.bind((interface, ether_type))
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    numbers, begun = set(), time.monotonic()
    while len(numbers) < count and time.monotonic() - begun < WAIT_S:
        listener.settimeout(WAIT_S)
        try:
            frame, (_, kind, *_) = listener.recvfrom(2048)
        except TimeoutError:
            break
        if frame[:6] != destination or kind != ether_type:
            continue
        # Who sends goes on from 0 again.
        numbers.add(int.from_bytes(frame[NUMBER_AT : NUMBER_AT + 4], "big"))
    return {"frames": len(numbers)}


def extend(address, port, count):
    options = bytes([0, 0, 1, 4, 0, 0, 0, 0])
    hop_by_hop, destination = socket.IPV6_HOPOPTS, socket.IPV6_DSTOPTS
    kinds = [[hop_by_hop], [destination], [hop_by_hop, destination]]
    for number, kind in enumerate(kinds):
        sender = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        for option in kind:
            sender.setsockopt(socket.IPPROTO_IPV6, option, options)
        for _ in range(count):
            # The second in fragments: a fragment header behind the others.
            sender.sendto(bytes([number]) * 100, (address, port))
            sender.sendto(bytes([number]) * 4000, (address, port))
    return {"kinds": len(kinds)}


def main(words):
    match words:
        case ["take", interface, ether_type, destination, count]:
            said = take(interface, int(ether_type, 16), destination, int(count))
        case ["extend", address, port, count]:
            said = extend(address, int(port), int(count))
        case _:
            sys.exit(__doc__)
    print(json.dumps(said))


if __name__ == "__main__":
    main(sys.argv[1:])
