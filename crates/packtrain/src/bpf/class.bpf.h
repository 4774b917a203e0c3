/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Which way the class of a frame takes. What a frame is, is read as packtrain-proto does
 * (wire/packet.rs, class/facts.rs), to the byte: the engine and this program must not disagree.
 *
 * Needs Linux 5.17 (bpf_loop).
 */
#ifndef PACKTRAIN_CLASS_BPF_H
#define PACKTRAIN_CLASS_BPF_H

#include "class.h"

#define CLASS_ABSENT		(~0ULL)
#define CLASS_TAGS_MAX		2
#define CLASS_EXTENSIONS_MAX	8
#define CLASS_VLAN_ID		0x0fff
#define CLASS_FRAGMENT		0x3fff	/* more fragments, and the offset */

struct class_facts {
	__u64 numbers[CLASS_NUMBERS];
	__u64 source[2];
	__u64 destination[2];
	__u32 mark;
	__u8 version;		/* 4, 6, or 0 of what is not IP, or not whole */
};

struct class_walk {
	struct class_facts facts;
	__u32 first;
	__u8 met;		/* an alternative of this condition */
	__u8 failed;		/* a condition of this class */
	__u8 path;
	__u8 urgent;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2 * CLASS_COMPARISONS);
	__type(key, __u32);
	__type(value, struct class_comparison);
} comparisons SEC(".maps");

/* The ports, and whether it is TCP without payload. -1: the transport header is not whole. */
static __always_inline int class_read_transport(struct __sk_buff *skb, struct class_facts *facts,
						__u8 protocol, __u32 start, __u32 end_claimed)
{
	struct tcphdr tcp;
	__be16 ports[4];
	__u32 len;

	if (protocol == IPPROTO_UDP) {
		/* All of its header, of which only the ports are looked at. */
		if (bpf_skb_load_bytes(skb, start, ports, sizeof(ports)))
			return -1;
		facts->numbers[CLASS_SOURCE_PORT] = bpf_ntohs(ports[0]);
		facts->numbers[CLASS_DESTINATION_PORT] = bpf_ntohs(ports[1]);
	} else if (protocol == IPPROTO_TCP) {
		if (bpf_skb_load_bytes(skb, start, &tcp, sizeof(tcp)))
			return -1;
		len = tcp.doff * 4;
		if (len < sizeof(tcp) || start + len > skb->len)
			return -1;
		facts->numbers[CLASS_SOURCE_PORT] = bpf_ntohs(tcp.source);
		facts->numbers[CLASS_DESTINATION_PORT] = bpf_ntohs(tcp.dest);
		facts->numbers[CLASS_EMPTY_TCP] = start + len == end_claimed;
	}
	return 0;
}

static __always_inline void class_read_ipv4(struct __sk_buff *skb, struct class_facts *facts,
					    __u32 start)
{
	struct iphdr ip;
	__u32 len;

	if (bpf_skb_load_bytes(skb, start, &ip, sizeof(ip)) || ip.version != 4)
		return;
	len = ip.ihl * 4;
	if (len < sizeof(ip) || start + len > skb->len)
		return;
	if (!(bpf_ntohs(ip.frag_off) & CLASS_FRAGMENT) &&
	    class_read_transport(skb, facts, ip.protocol, start + len,
				 start + bpf_ntohs(ip.tot_len)))
		return;
	facts->version = 4;
	facts->source[0] = bpf_ntohl(ip.saddr);
	facts->destination[0] = bpf_ntohl(ip.daddr);
	facts->numbers[CLASS_PROTOCOL] = ip.protocol;
	facts->numbers[CLASS_DSCP] = ip.tos >> 2;
}

static __always_inline void class_read_ipv6(struct __sk_buff *skb, struct class_facts *facts,
					    __u32 start)
{
	struct ipv6hdr ip;
	__u8 extension[8], protocol;
	__u32 at = start + sizeof(ip);
	int is_fragment = 0;

	if (bpf_skb_load_bytes(skb, start, &ip, sizeof(ip)) || ip.version != 6)
		return;
	protocol = ip.nexthdr;
	for (int i = 0; i < CLASS_EXTENSIONS_MAX && !is_fragment; i++) {
		if (protocol != IPPROTO_HOPOPTS && protocol != IPPROTO_ROUTING &&
		    protocol != IPPROTO_DSTOPTS && protocol != IPPROTO_FRAGMENT)
			break;
		if (bpf_skb_load_bytes(skb, at, extension, sizeof(extension)))
			return;
		is_fragment = protocol == IPPROTO_FRAGMENT;
		at += is_fragment ? 8 : (extension[1] + 1) * 8;
		protocol = extension[0];
		if (at > skb->len)
			return;
	}
	if (!is_fragment &&
	    class_read_transport(skb, facts, protocol, at,
				 start + sizeof(ip) + bpf_ntohs(ip.payload_len)))
		return;
	facts->version = 6;
	facts->source[1] = (__u64)bpf_ntohl(ip.saddr.in6_u.u6_addr32[0]) << 32 |
			   bpf_ntohl(ip.saddr.in6_u.u6_addr32[1]);
	facts->source[0] = (__u64)bpf_ntohl(ip.saddr.in6_u.u6_addr32[2]) << 32 |
			   bpf_ntohl(ip.saddr.in6_u.u6_addr32[3]);
	facts->destination[1] = (__u64)bpf_ntohl(ip.daddr.in6_u.u6_addr32[0]) << 32 |
				bpf_ntohl(ip.daddr.in6_u.u6_addr32[1]);
	facts->destination[0] = (__u64)bpf_ntohl(ip.daddr.in6_u.u6_addr32[2]) << 32 |
				bpf_ntohl(ip.daddr.in6_u.u6_addr32[3]);
	facts->numbers[CLASS_PROTOCOL] = protocol;
	/* The traffic class lies across the first two bytes. */
	facts->numbers[CLASS_DSCP] = ip.priority << 2 | ip.flow_lbl[0] >> 6;
}

/*
 * What most frames are: TCP or UDP in IPv4 without options, tags and fragments, its headers in one piece of memory. Those are
 * read where they stand; the same is read of them below, a copy at a time, which costs three times as much. 0: it is another one.
 */
static __always_inline int class_read_most(struct __sk_buff *skb, struct class_facts *facts)
{
	void *data = (void *)(long)skb->data;
	void *data_end = (void *)(long)skb->data_end;
	struct ethernet_header *header = data;
	struct iphdr *ip = (void *)(header + 1);
	struct udphdr *udp = (void *)(ip + 1);
	struct tcphdr *tcp = (void *)(ip + 1);
	__u32 start = sizeof(*header) + sizeof(*ip), len;

	if (skb->vlan_present || (void *)(udp + 1) > data_end ||
	    header->ether_type != bpf_htons(ETHERTYPE_IPV4) || ip->version != 4 || ip->ihl != 5 ||
	    ip->frag_off & bpf_htons(CLASS_FRAGMENT))
		return 0;
	facts->numbers[CLASS_EMPTY_TCP] = 0;
	if (ip->protocol == IPPROTO_TCP) {
		if ((void *)(tcp + 1) > data_end)
			return 0;
		len = tcp->doff * 4;
		if (len < sizeof(*tcp) || start + len > skb->len)
			return 0;
		facts->numbers[CLASS_EMPTY_TCP] =
			sizeof(*ip) + len == bpf_ntohs(ip->tot_len);
	} else if (ip->protocol != IPPROTO_UDP) {
		return 0;
	}
	facts->version = 4;
	facts->source[0] = bpf_ntohl(ip->saddr);
	facts->destination[0] = bpf_ntohl(ip->daddr);
	facts->numbers[CLASS_ETHER_TYPE] = ETHERTYPE_IPV4;
	facts->numbers[CLASS_VLAN] = CLASS_ABSENT;
	facts->numbers[CLASS_PROTOCOL] = ip->protocol;
	facts->numbers[CLASS_DSCP] = ip->tos >> 2;
	/* TCP's ports stand where UDP's do. */
	facts->numbers[CLASS_SOURCE_PORT] = bpf_ntohs(udp->source);
	facts->numbers[CLASS_DESTINATION_PORT] = bpf_ntohs(udp->dest);
	facts->numbers[CLASS_SIZE] = skb->len;
	return 1;
}

/* Not static: the verifier looks at it once, and what comes after it once, and not with each kind of frame anew. */
__noinline int class_read(struct __sk_buff *skb, struct class_facts *facts)
{
	__be16 ether_type, tag[2];
	__u32 start = sizeof(struct ethernet_header), tags = 0;

	if (!facts)
		return 0;
	facts->mark = skb->mark;
	if (class_read_most(skb, facts))
		return 0;
	for (int i = 0; i < CLASS_NUMBERS; i++)
		facts->numbers[i] = CLASS_ABSENT;
	facts->numbers[CLASS_ETHER_TYPE] = 0;
	facts->numbers[CLASS_EMPTY_TCP] = 0;
	facts->numbers[CLASS_SIZE] = skb->len;
	/* A device may put the outermost tag in itself; then it is not among the bytes yet. */
	if (skb->vlan_present) {
		facts->numbers[CLASS_VLAN] = skb->vlan_tci & CLASS_VLAN_ID;
		facts->numbers[CLASS_SIZE] += sizeof(tag);
		tags = 1;
	}
	if (bpf_skb_load_bytes(skb, start - sizeof(ether_type), &ether_type, sizeof(ether_type)))
		return 0;
	for (int i = 0; i < CLASS_TAGS_MAX; i++) {
		if (tags + i >= CLASS_TAGS_MAX || (ether_type != bpf_htons(ETHERTYPE_VLAN) &&
						   ether_type != bpf_htons(ETHERTYPE_QINQ)))
			break;
		if (bpf_skb_load_bytes(skb, start, tag, sizeof(tag))) {
			/* Not whole: then nothing is said of its tags and its type. */
			facts->numbers[CLASS_VLAN] = CLASS_ABSENT;
			facts->numbers[CLASS_ETHER_TYPE] = 0;
			return 0;
		}
		if (facts->numbers[CLASS_VLAN] == CLASS_ABSENT)
			facts->numbers[CLASS_VLAN] = bpf_ntohs(tag[0]) & CLASS_VLAN_ID;
		ether_type = tag[1];
		start += sizeof(tag);
	}
	facts->numbers[CLASS_ETHER_TYPE] = bpf_ntohs(ether_type);
	if (ether_type == bpf_htons(ETHERTYPE_IPV4))
		class_read_ipv4(skb, facts, start);
	else if (ether_type == bpf_htons(ETHERTYPE_IPV6))
		class_read_ipv6(skb, facts, start);
	if (!facts->version) {
		/* What was read before it turned out not to be whole. */
		facts->numbers[CLASS_SOURCE_PORT] = CLASS_ABSENT;
		facts->numbers[CLASS_DESTINATION_PORT] = CLASS_ABSENT;
		facts->numbers[CLASS_EMPTY_TCP] = 0;
	}
	return 0;
}

static __always_inline int class_is_inside(const __u64 *address,
					   const struct class_comparison *comparison)
{
	return (address[0] & comparison->high[0]) == comparison->low[0] &&
	       (address[1] & comparison->high[1]) == comparison->low[1];
}

static __always_inline int class_holds(const struct class_facts *facts,
				       const struct class_comparison *comparison)
{
	__u64 number;

	switch (comparison->fact) {
	case CLASS_MARK:
		return (facts->mark & comparison->high[0]) == comparison->low[0];
	case CLASS_SOURCE4:
		return facts->version == 4 && class_is_inside(facts->source, comparison);
	case CLASS_DESTINATION4:
		return facts->version == 4 && class_is_inside(facts->destination, comparison);
	case CLASS_SOURCE6:
		return facts->version == 6 && class_is_inside(facts->source, comparison);
	case CLASS_DESTINATION6:
		return facts->version == 6 && class_is_inside(facts->destination, comparison);
	default:
		number = facts->numbers[comparison->fact % CLASS_NUMBERS];
		return comparison->low[0] <= number && number <= comparison->high[0];
	}
}

/* One comparison; 1 when the class is known. */
static long class_step(__u32 index, void *context)
{
	struct class_walk *walk = context;
	__u32 place = walk->first + index;
	struct class_comparison *comparison = bpf_map_lookup_elem(&comparisons, &place);

	if (!comparison)
		return 1;
	if (!walk->failed && !walk->met)
		walk->met = class_holds(&walk->facts, comparison);
	if (comparison->ends & CLASS_ENDS_CONDITION) {
		if (walk->met == comparison->negated)
			walk->failed = 1;
		walk->met = 0;
	}
	if (comparison->ends & CLASS_ENDS_CLASS) {
		if (!walk->failed) {
			walk->path = comparison->path;
			walk->urgent = comparison->urgent;
			return 1;
		}
		walk->failed = 0;
	}
	return 0;
}

/* Beside the path of a class. */
#define CLASS_URGENT		0x100

/*
 * What the frame's class says: its path, and whether it is urgent; `first` and `count` say which comparisons are in use.
 * Not static, as `class_read` is not.
 */
__noinline int class_find(struct __sk_buff *skb, __u32 first, __u32 count)
{
	struct class_walk walk = { .first = first, .path = CLASS_PATH_AUTO };

	class_read(skb, &walk.facts);
	bpf_loop(count, class_step, &walk, 0);
	return walk.urgent ? walk.path | CLASS_URGENT : walk.path;
}

#endif
