// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Which class of an interface's HTB a frame waits in: that of the first rule that matches it. Rules are about UDP: what is not
 * UDP is not compared with any. What a frame is, is read as everywhere else (class.bpf.h): behind up to two VLAN tags and IPv6's
 * extension headers; of a fragment without ports, be it the first or a later one; and of a GSO frame once for all its segments.
 */
#include <linux/bpf.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#include "pace_class.h"
#define CLASS_COMPARISONS	PACE_CLASS_VALUES
#include "ethernet.h"
#include "class.bpf.h"

#define NO_RULE			0xff

struct pace_class_orders orders SEC(".data.orders");

/* Most that is none shows it at once, and need not be read. */
static __always_inline int may_be_udp(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data;
	void *data_end = (void *)(long)skb->data_end;
	struct ethernet_header *header = data;
	struct iphdr *ipv4 = (void *)(header + 1);
	struct ipv6hdr *ipv6 = (void *)(header + 1);

	if ((void *)(ipv4 + 1) > data_end)
		return 1;
	if (header->ether_type == bpf_htons(ETHERTYPE_IPV4))
		return ipv4->protocol == IPPROTO_UDP;
	return header->ether_type != bpf_htons(ETHERTYPE_IPV6) || ipv6->nexthdr != IPPROTO_TCP;
}

static __always_inline __u32 class_of(struct __sk_buff *skb)
{
	/* Both of it at once: it changes while frames go on. */
	__u64 comparisons = *(const volatile __u64 *)&orders.comparisons;
	struct class_walk walk = { .first = comparisons >> 32, .path = NO_RULE };

	if (!may_be_udp(skb))
		return orders.otherwise;
	class_read(skb, &walk.facts);
	if (walk.facts.version && walk.facts.numbers[CLASS_PROTOCOL] == IPPROTO_UDP)
		bpf_loop((__u32)comparisons, class_step, &walk, 0);
	return walk.path == NO_RULE ? orders.otherwise : PACE_CLASS_FIRST + walk.path;
}

SEC("tc")
int pace_classify(struct __sk_buff *skb)
{
	skb->tc_classid = PACE_CLASS_QDISC | class_of(skb);
	return TC_ACT_OK;
}

/* A test run does not tell the class. */
SEC("?tc")
int pace_class_try(struct __sk_buff *skb)
{
	return class_of(skb);
}

char _license[] SEC("license") = "Dual MIT/GPL";
