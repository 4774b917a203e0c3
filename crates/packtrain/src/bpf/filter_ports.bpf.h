/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Whether a socket has the port that a frame is for: asked of the kernel's own tables. */
#ifndef PACKTRAIN_FILTER_PORTS_BPF_H
#define PACKTRAIN_FILTER_PORTS_BPF_H

#include "filter_wants.bpf.h"

#define ADDRESSES_SEARCHED	16
#define HOOKS_SEARCHED		8

/* Of <linux/netfilter.h> and <linux/netfilter_ipv4.h>. */
#define HOOK_PRE_ROUTING	0
#define HOOK_LOCAL_IN		1
#define PRIORITY_DEFRAG		(-400)
#define PRIORITY_TRACKING	(-200)
#define PRIORITY_IPVS		98
#define PRIORITY_IPVS_REPLY	99

/* What of a port's closing is decided, or NOBODY for a frame that it is not asked of. */
#define OPEN	NOBODY

/* An address of the interface itself: what is for others of this host is left to the stack. */
static __always_inline int has_ipv4_address(struct net_device *dev, __be32 address)
{
	struct in_ifaddr *at = dev->ip_ptr ? dev->ip_ptr->ifa_list : NULL;

	for (int i = 0; i < ADDRESSES_SEARCHED && at; i++) {
		if (at->ifa_local == address)
			return 1;
		at = at->ifa_next;
	}
	return 0;
}

static __always_inline int has_ipv6_address(struct net_device *dev, const struct in6_addr *address)
{
	const void *head, *at;

	if (!dev->ip6_ptr)
		return 0;
	head = (const void *)dev->ip6_ptr + bpf_core_field_offset(struct inet6_dev, addr_list);
	at = as(struct list_head, head)->next;
	for (int i = 0; i < ADDRESSES_SEARCHED && at && at != head; i++) {
		const void *own = at - bpf_core_field_offset(struct inet6_ifaddr, if_list) +
				  bpf_core_field_offset(struct inet6_ifaddr, addr);

		if (word_at(own) == address->in6_u.u6_addr32[0] &&
		    word_at(own + 4) == address->in6_u.u6_addr32[1] &&
		    word_at(own + 8) == address->in6_u.u6_addr32[2] &&
		    word_at(own + 12) == address->in6_u.u6_addr32[3])
			return 1;
		at = as(struct list_head, at)->next;
	}
	return 0;
}

/*
 * Whether something may send a frame to another port or socket than it names: a chain before routing can do so at
 * any moment, by a rule that nothing tells of. The kernel's own that track connections do not.
 */
static __always_inline int may_redirect(struct nf_hook_entries *hooks, int is_local_in)
{
	const void *trailer;
	__u32 count;

	if (!hooks)
		return 0;
	count = hooks->num_hook_entries;
	trailer = (const void *)hooks + bpf_core_type_size(struct nf_hook_entries) +
		  count * bpf_core_type_size(struct nf_hook_entry);
	for (__u32 i = 0; i < HOOKS_SEARCHED; i++) {
		struct nf_hook_ops *hook;
		int priority, is_kernels;

		if (i >= count)
			return 0;
		hook = as(struct nf_hook_ops, as(struct list_head, trailer + i * sizeof(void *))->next);
		priority = hook->priority;
		is_kernels = BPF_CORE_READ_BITFIELD_PROBED(hook, hook_ops_type) == NF_HOOK_OP_UNDEFINED;
		if (is_local_in) {
			if (is_kernels && (priority == PRIORITY_IPVS || priority == PRIORITY_IPVS_REPLY))
				return 1;
		} else if (!is_kernels ||
			   (priority != PRIORITY_DEFRAG && priority != PRIORITY_TRACKING)) {
			return 1;
		}
	}
	return 1;
}

static __always_inline struct nf_hook_entries *hooks_at(struct net *net, int is_ipv6, int hook)
{
	const void *lists = (const void *)net +
			    (is_ipv6 ? bpf_core_field_offset(struct net, nf.hooks_ipv6) :
				       bpf_core_field_offset(struct net, nf.hooks_ipv4));
	const void *at = as(struct list_head, lists + hook * sizeof(void *))->next;

	return at ? as(struct nf_hook_entries, at) : NULL;
}

static __always_inline int port_is_redirected(struct net_device *dev, int is_ipv6)
{
	struct net *net = dev->nd_net.net;

	return may_redirect(hooks_at(net, is_ipv6, HOOK_PRE_ROUTING), 0) ||
	       may_redirect(hooks_at(net, is_ipv6, HOOK_LOCAL_IN), 1);
}

/*
 * Whether no socket of the host has this port or one that falls into the same list: then there is nothing to look for. All that have a port
 * stand in these lists, those that are connected and those that close too, from before they can be found, and leave them only when they close. What has
 * no port of its own are the requests of TCP's that wait for the third packet: they are their listener's, which may have had another port.
 */
static __always_inline int is_nobodys(struct net *net, __u32 port, __u8 protocol)
{
	struct inet_hashinfo *hashes;
	struct udp_table *table;
	__u64 at = port + net->hash_mix;
	void *lists;

	if (protocol == IPPROTO_TCP) {
		hashes = net->ipv4.tcp_death_row.hashinfo;
		lists = hashes->bhash;
		at &= hashes->bhash_size - 1;
		return lists && !as(struct inet_bind_hashbucket,
				    lists + at * bpf_core_type_size(struct inet_bind_hashbucket))->chain.first;
	}
	table = net->ipv4.udp_table;
	lists = table->hash;
	at &= table->mask;
	return lists && !as(struct udp_hslot, lists + at * bpf_core_type_size(struct udp_hslot))->head.first;
}

/* Programs may give any frame to any socket: the second is BPF_SK_LOOKUP. */
static __always_inline int lists_tell(struct net *net)
{
	return bpf_core_field_exists(net->hash_mix) && bpf_core_field_exists(net->ipv4.udp_table) &&
	       bpf_core_field_exists(net->ipv4.tcp_death_row.hashinfo) && bpf_core_field_exists(net->bpf.run_array) &&
	       !net->bpf.run_array[1];
}

/* `begins`: it is of no connection that there is, and of no request for one. */
static __always_inline int is_closed(filter_context *ctx, struct bpf_sock_tuple *tuple, __u32 size, __be16 port,
				     __u8 protocol, int begins)
{
	struct net *net = device_of(ctx)->nd_net.net;
	struct bpf_sock *socket;

	if (begins && lists_tell(net) && is_nobodys(net, bpf_ntohs(port), protocol))
		return 1;
	if (protocol == IPPROTO_TCP)
		socket = bpf_skc_lookup_tcp(ctx, tuple, size, BPF_F_CURRENT_NETNS, 0);
	else
		socket = bpf_sk_lookup_udp(ctx, tuple, size, BPF_F_CURRENT_NETNS, 0);
	if (!socket)
		return 1;
	bpf_sk_release(socket);
	return 0;
}

/* Of a frame without tags: the reason, or OPEN; also of what is no TCP or UDP, a fragment, or too short to tell. */
__noinline int judge_port(filter_context *ctx, __u32 ether_type)
{
	void *network = data_of(ctx) + sizeof(struct ethernet_header), *data_end = data_end_of(ctx);
	struct net_device *dev = device_of(ctx);
	struct bpf_sock_tuple tuple = {};
	struct udphdr *ports;
	struct tcphdr *tcp;
	__u32 size;
	__u8 protocol;
	int is_ipv6, begins;

	if (ether_type == bpf_htons(ETHERTYPE_IPV4)) {
		struct iphdr *ip = network;

		/* Options are rare, and may lead elsewhere. */
		if ((void *)(ip + 1) > data_end || ip->version != 4 || ip->ihl != 5 ||
		    ip->frag_off & bpf_htons(FILTER_FRAGMENT))
			return OPEN;
		protocol = ip->protocol;
		ports = (void *)(ip + 1);
		tuple.ipv4.saddr = ip->saddr;
		tuple.ipv4.daddr = ip->daddr;
		is_ipv6 = 0;
		size = sizeof(tuple.ipv4);
	} else if (ether_type == bpf_htons(ETHERTYPE_IPV6)) {
		struct ipv6hdr *ip = network;

		if ((void *)(ip + 1) > data_end || ip->version != 6)
			return OPEN;
		protocol = ip->nexthdr;
		ports = (void *)(ip + 1);
		__builtin_memcpy(tuple.ipv6.saddr, &ip->saddr, sizeof(tuple.ipv6.saddr));
		__builtin_memcpy(tuple.ipv6.daddr, &ip->daddr, sizeof(tuple.ipv6.daddr));
		is_ipv6 = 1;
		size = sizeof(tuple.ipv6);
	} else {
		return OPEN;
	}
	if ((protocol != IPPROTO_TCP && protocol != IPPROTO_UDP) || (void *)(ports + 1) > data_end)
		return OPEN;
	tcp = (void *)ports;
	begins = protocol == IPPROTO_UDP || ((void *)(tcp + 1) <= data_end && tcp->syn && !tcp->ack);
	if (is_ipv6) {
		tuple.ipv6.sport = ports->source;
		tuple.ipv6.dport = ports->dest;
		if (!has_ipv6_address(dev, (struct in6_addr *)tuple.ipv6.daddr))
			return OPEN;
	} else {
		tuple.ipv4.sport = ports->source;
		tuple.ipv4.dport = ports->dest;
		if (!has_ipv4_address(dev, tuple.ipv4.daddr))
			return OPEN;
	}
	if (!is_closed(ctx, &tuple, size, ports->dest, protocol, begins))
		return OPEN;
	if (port_is_redirected(dev, is_ipv6))
		return FILTER_REDIRECTED;
	return protocol == IPPROTO_TCP ? FILTER_CLOSED_TCP : FILTER_CLOSED_UDP;
}

#endif
