/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* TCP flows by what is seen of them, and where in its flow a frame belongs. */
#ifndef PACKTRAIN_FLOW_BPF_H
#define PACKTRAIN_FLOW_BPF_H

#include "direct.h"

#define FLOW_FRAGMENT		0x3fff	/* more fragments, and the offset */

struct flow {
	__u32 bucket;		/* below DIRECT_FLOWS */
	__u32 check;		/* tells most of those apart that share it; never 0 */
	__u32 sequence;		/* of the first byte of payload */
	__u32 payload;		/* bytes */
};

/* Whether it is a TCP segment: tagged ones, and those behind IPv6 extension headers, are not looked for. */
static __always_inline int flow_read(struct __sk_buff *skb, struct flow *flow)
{
	void *data = (void *)(long)skb->data;
	void *data_end = (void *)(long)skb->data_end;
	struct ethernet_header *header = data;
	struct iphdr *ipv4 = (void *)(header + 1);
	struct ipv6hdr *ipv6 = (void *)(header + 1);
	struct tcphdr *tcp;
	int is_known;
	__u32 source, destination, around, hash, len;

	if ((void *)(ipv4 + 1) > data_end)
		return 0;
	if (header->ether_type == bpf_htons(ETHERTYPE_IPV4)) {
		if (ipv4->protocol != IPPROTO_TCP || ipv4->frag_off & bpf_htons(FLOW_FRAGMENT))
			return 0;
		source = bpf_ntohl(ipv4->saddr);
		destination = bpf_ntohl(ipv4->daddr);
		around = sizeof(*header) + ipv4->ihl * 4;
		len = bpf_ntohs(ipv4->tot_len) - ipv4->ihl * 4;
		is_known = ipv4->tot_len != 0;
	} else if (header->ether_type == bpf_htons(ETHERTYPE_IPV6)) {
		if ((void *)(ipv6 + 1) > data_end || ipv6->nexthdr != IPPROTO_TCP)
			return 0;
		source = bpf_ntohl(ipv6->saddr.in6_u.u6_addr32[0] ^
				   ipv6->saddr.in6_u.u6_addr32[1] ^
				   ipv6->saddr.in6_u.u6_addr32[2] ^
				   ipv6->saddr.in6_u.u6_addr32[3]);
		destination = bpf_ntohl(ipv6->daddr.in6_u.u6_addr32[0] ^
					ipv6->daddr.in6_u.u6_addr32[1] ^
					ipv6->daddr.in6_u.u6_addr32[2] ^
					ipv6->daddr.in6_u.u6_addr32[3]);
		around = sizeof(*header) + sizeof(*ipv6);
		len = bpf_ntohs(ipv6->payload_len);
		is_known = ipv6->payload_len != 0;
	} else {
		return 0;
	}
	tcp = data + around;
	if ((void *)(tcp + 1) > data_end)
		return 0;
	hash = source * 0x9e3779b1 ^ destination * 0x85ebca6b ^
	       ((__u32)bpf_ntohs(tcp->source) << 16 | bpf_ntohs(tcp->dest)) * 0xc2b2ae35;
	hash = (hash ^ hash >> 15) * 0x2c1b3c6d;
	hash ^= hash >> 13;
	flow->bucket = hash & (DIRECT_FLOWS - 1);
	flow->check = hash | DIRECT_FLOWS;
	flow->sequence = bpf_ntohl(tcp->seq);
	/* A short frame is padded on the wire; one of more than 64 KB does not say how long it is. */
	if (!is_known)
		len = skb->len - around;
	flow->payload = len > tcp->doff * 4 ? len - tcp->doff * 4 : 0;
	return 1;
}

#endif
