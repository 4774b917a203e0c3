/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What rules look at in a frame. Reads as packtrain-proto does (wire/packet.rs, filter/rules/facts.rs), to the byte. */
#ifndef PACKTRAIN_FILTER_FACTS_BPF_H
#define PACKTRAIN_FILTER_FACTS_BPF_H

#include "filter_frame.bpf.h"
#include "filter_rules.h"

#define FACTS_ABSENT		(~0U)
#define FACTS_EXTENSIONS_MAX	8
#define FACTS_SIZE_MAX		65535
/* Further than any header is looked for. */
#define FACTS_OFFSET_MAX	0x7fff

/* Of an address, the first one first; IPv4's stands in the last 32 bits. */
struct halves {
	__u64 of[2];
};

struct rule_facts {
	__u32 numbers[RULES_DIMENSIONS];	/* of those that are tables */
	__u32 version;				/* 4, 6, or 0 of what is not IP, or not whole */
	__u32 len;				/* of the frame, also where that is more than the number of its size */
	__u32 packets;				/* that it was put together from, where that is told; at least 1 */
	struct halves source;
	struct halves destination;
	__u64 source_mac;
	__u64 destination_mac;
};

/* NULL: the frame ends before. */
static __always_inline const void *facts_at(const struct frame *frame, __u32 offset, __u32 size)
{
	const void *at;

	if (offset > FACTS_OFFSET_MAX)
		return NULL;
	at = frame->data + offset;
	return at + size > frame->data_end ? NULL : at;
}

/* The ports, and what flags and length say of TCP. -1: the transport header is not whole. */
static __always_inline int facts_read_transport(const struct frame *frame, struct rule_facts *facts,
						__u8 protocol, __u32 start, __u32 end_claimed)
{
	const struct udphdr *udp;
	const struct tcphdr *tcp;
	__u32 len;

	if (protocol == IPPROTO_UDP) {
		udp = facts_at(frame, start, sizeof(*udp));
		if (!udp)
			return -1;
		facts->numbers[RULES_SOURCE_PORT] = bpf_ntohs(udp->source);
		facts->numbers[RULES_DESTINATION_PORT] = bpf_ntohs(udp->dest);
	} else if (protocol == IPPROTO_TCP) {
		tcp = facts_at(frame, start, sizeof(*tcp));
		if (!tcp)
			return -1;
		len = tcp->doff * 4;
		if (len < sizeof(*tcp) || start + len > frame->len)
			return -1;
		facts->numbers[RULES_SOURCE_PORT] = bpf_ntohs(tcp->source);
		facts->numbers[RULES_DESTINATION_PORT] = bpf_ntohs(tcp->dest);
		if (start + len == end_claimed)
			facts->numbers[RULES_KINDS] |= RULES_KIND_EMPTY;
		if (tcp->syn && !tcp->ack)
			facts->numbers[RULES_KINDS] |= RULES_KIND_SYN;
	}
	return 0;
}

static __always_inline void facts_read_ipv4(const struct frame *frame, struct rule_facts *facts)
{
	const struct iphdr *ip = facts_at(frame, frame->network, sizeof(*ip));
	__u32 len;

	if (!ip || ip->version != 4)
		return;
	len = ip->ihl * 4;
	if (len < sizeof(*ip) || frame->network + len > frame->len)
		return;
	if (bpf_ntohs(ip->frag_off) & FILTER_FRAGMENT)
		facts->numbers[RULES_KINDS] |= RULES_KIND_FRAGMENT;
	else if (facts_read_transport(frame, facts, ip->protocol, frame->network + len,
				      frame->network + bpf_ntohs(ip->tot_len)))
		return;
	facts->version = 4;
	facts->source.of[1] = bpf_ntohl(ip->saddr);
	facts->destination.of[1] = bpf_ntohl(ip->daddr);
	facts->numbers[RULES_PROTOCOL] = ip->protocol;
	facts->numbers[RULES_DSCP] = ip->tos >> 2;
}

static __always_inline void facts_read_halves(struct halves *halves, const struct in6_addr *address)
{
	halves->of[0] = (__u64)bpf_ntohl(address->in6_u.u6_addr32[0]) << 32 |
		    bpf_ntohl(address->in6_u.u6_addr32[1]);
	halves->of[1] = (__u64)bpf_ntohl(address->in6_u.u6_addr32[2]) << 32 |
		    bpf_ntohl(address->in6_u.u6_addr32[3]);
}

static __always_inline void facts_read_ipv6(const struct frame *frame, struct rule_facts *facts)
{
	const struct ipv6hdr *ip = facts_at(frame, frame->network, sizeof(*ip));
	const __u8 *extension;
	__u32 at = frame->network + sizeof(*ip);
	int is_fragment = 0;
	__u8 protocol;

	if (!ip || ip->version != 6)
		return;
	protocol = ip->nexthdr;
	for (int i = 0; i < FACTS_EXTENSIONS_MAX && !is_fragment; i++) {
		if (protocol != IPPROTO_HOPOPTS && protocol != IPPROTO_ROUTING &&
		    protocol != IPPROTO_DSTOPTS && protocol != IPPROTO_FRAGMENT)
			break;
		extension = facts_at(frame, at, 8);
		if (!extension)
			return;
		is_fragment = protocol == IPPROTO_FRAGMENT;
		at += is_fragment ? 8 : (extension[1] + 1) * 8;
		protocol = extension[0];
		if (at > frame->len)
			return;
	}
	if (is_fragment)
		facts->numbers[RULES_KINDS] |= RULES_KIND_FRAGMENT;
	else if (facts_read_transport(frame, facts, protocol, at,
				      frame->network + sizeof(*ip) + bpf_ntohs(ip->payload_len)))
		return;
	facts->version = 6;
	facts_read_halves(&facts->source, &ip->saddr);
	facts_read_halves(&facts->destination, &ip->daddr);
	facts->numbers[RULES_PROTOCOL] = protocol;
	/* The traffic class lies across the first two bytes. */
	facts->numbers[RULES_DSCP] = ip->priority << 2 | ip->flow_lbl[0] >> 6;
}

static __always_inline void facts_read(const struct frame *frame, struct rule_facts *facts)
{
	const struct ethernet_header *header = facts_at(frame, 0, sizeof(*header));
	__u32 cast;

	for (int i = 0; i < RULES_DIMENSIONS; i++)
		facts->numbers[i] = FACTS_ABSENT;
	facts->version = 0;
	facts->source.of[0] = facts->destination.of[0] = 0;
	facts->source.of[1] = facts->destination.of[1] = 0;
	facts->numbers[RULES_SIZE] = frame->len > FACTS_SIZE_MAX ? FACTS_SIZE_MAX : frame->len;
	facts->numbers[RULES_ETHER_TYPE] = 0;
	facts->numbers[RULES_KINDS] = RULES_KIND_CAST_UNKNOWN;
	facts->source_mac = facts->destination_mac = ~0ULL;
	if (!header)
		return;
	facts->destination_mac = destination_of(header);
	facts->source_mac = source_of(header);
	cast = facts->destination_mac >> 40 & 1 ? RULES_KIND_MULTICAST : RULES_KIND_UNICAST;
	facts->numbers[RULES_KINDS] = facts->destination_mac == (1ULL << 48) - 1 ? RULES_KIND_BROADCAST : cast;
	/* A tag that is cut off: nothing is said of tags and type. */
	if (!frame->is_whole)
		return;
	facts->numbers[RULES_ETHER_TYPE] = bpf_ntohs(frame->ether_type);
	if (frame->tags > 0)
		facts->numbers[RULES_VLAN] = frame->ids[0];
	if (frame->tags > 1)
		facts->numbers[RULES_INNER_VLAN] = frame->ids[1];
	if (frame->ether_type == bpf_htons(ETHERTYPE_IPV4))
		facts_read_ipv4(frame, facts);
	else if (frame->ether_type == bpf_htons(ETHERTYPE_IPV6))
		facts_read_ipv6(frame, facts);
	if (facts->version)
		return;
	facts->source.of[0] = facts->source.of[1] = 0;
	/* What was read before it turned out not to be whole. */
	facts->numbers[RULES_SOURCE_PORT] = FACTS_ABSENT;
	facts->numbers[RULES_DESTINATION_PORT] = FACTS_ABSENT;
	facts->numbers[RULES_KINDS] &= RULES_KIND_CAST;
}

#endif
