/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Direct frames without a mark, between two links that their hosts do not use themselves: both ends say here
 * which frames may be such.
 *
 * A link without any address but link-local ones still hears ARP, neighbour discovery, LLDP and its like, the
 * answers of DHCP, and whatever link-local addresses say to each other. None of that is ever one of pt0's without
 * a mark: what looks like it goes by the engine.
 */
#ifndef PACKTRAIN_UNMARKED_BPF_H
#define PACKTRAIN_UNMARKED_BPF_H

#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

#include "ethernet.h"

#define IPV4_FRAGMENT_OFFSET	0x1fff
#define DHCP_CLIENT_PORT	68

/* fe80::/10 */
#define LINK_LOCAL_MASK		0xffc0
#define LINK_LOCAL		0xfe80

static __always_inline int may_be_unmarked_ipv4(struct __sk_buff *skb)
{
	__u32 at = sizeof(struct ethernet_header);
	__be16 ports[2];
	struct iphdr ip;

	if (bpf_skb_load_bytes_relative(skb, at, &ip, sizeof(ip), BPF_HDR_START_MAC))
		return 0;
	if (ip.protocol != IPPROTO_UDP || (ip.frag_off & bpf_htons(IPV4_FRAGMENT_OFFSET)))
		return 1;
	at += ip.ihl * 4;
	if (bpf_skb_load_bytes_relative(skb, at, ports, sizeof(ports), BPF_HDR_START_MAC))
		return 0;
	return ports[1] != bpf_htons(DHCP_CLIENT_PORT);
}

static __always_inline int may_be_unmarked_ipv6(struct __sk_buff *skb)
{
	__u32 at = sizeof(struct ethernet_header) + 24;
	__be16 destination;

	if (bpf_skb_load_bytes_relative(skb, at, &destination, sizeof(destination),
					BPF_HDR_START_MAC))
		return 0;
	return (bpf_ntohs(destination) & LINK_LOCAL_MASK) != LINK_LOCAL;
}

static __always_inline int may_be_unmarked(struct __sk_buff *skb, __u16 ether_type)
{
	if (ether_type == ETHERTYPE_IPV4)
		return may_be_unmarked_ipv4(skb);
	if (ether_type == ETHERTYPE_IPV6)
		return may_be_unmarked_ipv6(skb);
	return 0;
}

#endif
