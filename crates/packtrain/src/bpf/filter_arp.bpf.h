/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* ARP to everybody: whether it concerns this host. */
#ifndef PACKTRAIN_FILTER_ARP_BPF_H
#define PACKTRAIN_FILTER_ARP_BPF_H

#include "filter_wants.bpf.h"

/* In `data` of struct ipv4_devconf, as IPV4_DEVCONF_… of <linux/ip.h> less one. */
#define SETTING_FORWARDING	0
#define SETTING_PROXY_ARP	2
#define SETTING_ARP_ACCEPT	20
#define SETTING_PROXY_ARP_PVLAN	24

#define ARP_ETHERNET		1
#define ARP_LENGTHS		0x0604
#define ARP_REQUEST		1
#define BUCKETS_SHIFT_MAX	20
#define NEIGHBOURS_SEARCHED	32
#define PROXIED_LISTS		16

struct arp_message {
	__be16 types[2];	/* of the hardware and of the protocol */
	__be16 lengths;		/* of their addresses */
	__be16 operation;
	__u8 sender_mac[6];
	__u8 sender[4];
	__u8 target_mac[6];
	__u8 target[4];
};

/* Local IPv4 addresses and prefixes of this host, by its routes. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __be32);
	__type(value, __u8);
} local_addresses SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct filter_prefix);
	__type(value, __u8);
} local_prefixes SEC(".maps");

static __always_inline int is_local(__be32 address)
{
	struct filter_prefix prefix = { .length = 32, .address = address };
	__u32 bit = (address * FILTER_LOCAL_FACTOR) >> FILTER_LOCAL_SHIFT;

	if (settings.local_bits[bit / 64] >> (bit % 64) & 1 && bpf_map_lookup_elem(&local_addresses, &address))
		return 1;
	return settings.local_prefixes >> (bpf_ntohl(address) >> FILTER_PREFIX_SHIFT) & 1 &&
	       bpf_map_lookup_elem(&local_prefixes, &prefix);
}

/*
 * A pointer as a number, which the verifier lets nobody make of one: but the kernel has it in its memory. What was read
 * is remembered, for a filter has one interface, with a line above it or not. So is the table of IPv4's neighbours, the kernel's only one. 0: it cannot
 * be read.
 */
static __always_inline __u64 number_of(struct net_device *dev, int place)
{
	__u64 number = *(volatile __u64 *)&remembered.devices[place], table;
	struct in_device *in;

	if ((void *)number == dev)
		return number;
	in = dev->ip_ptr;
	if (bpf_probe_read_kernel(&table, sizeof(table),
				  (void *)in->arp_parms + bpf_core_field_offset(struct neigh_parms, tbl)) ||
	    bpf_probe_read_kernel(&number, sizeof(number), (void *)in + bpf_core_field_offset(struct in_device, dev)))
		return 0;
	*(volatile __u64 *)&remembered.neighbours = table;
	*(volatile __u64 *)&remembered.devices[place] = number;
	return number;
}

/* The places of what is remembered. */
#define OF_INTERFACE	0
#define OF_LINE		1

/* Whether the kernel knows the Ethernet address of an IPv4 address there: arp_hashfn() of its net/arp.h. */
static __always_inline int is_neighbour(struct net_device *dev, int place, __be32 address)
{
	struct neigh_hash_table *table;
	struct neigh_table *tables;
	struct hlist_node *at;
	__u64 pointer, bucket;
	__u32 hash;

	if (!bpf_core_field_exists(struct neigh_hash_table, hash_heads))
		return UNSEEN;
	if (!dev->ip_ptr)
		return NO;
	pointer = number_of(dev, place);
	tables = as(struct neigh_table, *(volatile __u64 *)&remembered.neighbours);
	table = tables->nht;
	/* Who has another processor tell him of the one may not see the other yet. */
	if (!pointer || !table)
		return UNSEEN;
	hash = (address ^ (__u32)(pointer ^ pointer >> 32)) * table->hash_rnd[0];
	if (table->hash_shift > BUCKETS_SHIFT_MAX)
		return UNSEEN;
	/* Of one bucket alone all bits are shifted out. The mask is for the verifier. */
	bucket = (__u64)hash >> (32 - table->hash_shift) & ((1 << BUCKETS_SHIFT_MAX) - 1);
	at = as(struct hlist_head,
		(void *)table->hash_heads + bucket * bpf_core_type_size(struct hlist_head))->first;
	for (int i = 0; i < NEIGHBOURS_SEARCHED; i++) {
		struct neighbour *neighbour;

		if (!at)
			/* While the table grows, its entries go to another one, one by one. */
			return tables->entries.counter > 1 << table->hash_shift ? UNSEEN : NO;
		neighbour = as(struct neighbour, (void *)at - bpf_core_field_offset(struct neighbour, hash));
		if (neighbour->dev == dev &&
		    word_at((void *)neighbour + bpf_core_field_offset(struct neighbour, primary_key)) == address)
			return YES;
		at = at->next;
	}
	return UNSEEN;
}

/* Whether the host answers in others' place, or learns from whoever announces itself. */
static __always_inline int arp_is_for_others_too(struct net_device *dev, int is_announcement)
{
	struct in_device *in = dev->ip_ptr;
	struct ipv4_devconf *all, *own;
	void *lists;

	if (!in)
		return 0;
	own = &in->cnf;
	if (!is_announcement && !own->data[SETTING_FORWARDING])
		return 0;
	all = dev->nd_net.net->ipv4.devconf_all;
	if (is_announcement && (own->data[SETTING_ARP_ACCEPT] || all->data[SETTING_ARP_ACCEPT]))
		return 1;
	if (!own->data[SETTING_FORWARDING])
		return 0;
	if (own->data[SETTING_PROXY_ARP] || all->data[SETTING_PROXY_ARP] ||
	    own->data[SETTING_PROXY_ARP_PVLAN])
		return 1;
	lists = in->arp_parms->tbl->phash_buckets;
	for (int i = 0; i < PROXIED_LISTS; i++)
		if (as(struct list_head, lists + i * sizeof(void *))->next)
			return 1;
	return 0;
}

/* `network`: where its message begins. */
__noinline int judge_arp(filter_context *ctx, __u32 network)
{
	struct arp_message *arp = data_of(ctx) + (network & NETWORK_MASK);
	struct where where;
	__be32 sender, target;
	/* Before anything is looked up: what is looked up is of this state, or of a later one. */
	__u32 told_of = *(volatile const __u32 *)&settings.fib_seq;
	int is_announcement, found;

	if ((void *)(arp + 1) > data_end_of(ctx))
		return FILTER_SHORT;
	/* What it is about cannot be told. */
	if (*(const be32_alias *)arp->types != bpf_htonl(ARP_ETHERNET << 16 | ETHERTYPE_IPV4) ||
	    arp->lengths != bpf_htons(ARP_LENGTHS))
		return FILTER_SHORT;
	sender = *(const be32_alias *)arp->sender;
	target = *(const be32_alias *)arp->target;
	is_announcement = sender == target || arp->operation != bpf_htons(ARP_REQUEST);
	if (is_local(target))
		return FILTER_ARP_OURS;
	find_where(&where, ctx);
	if (settings.policy == FILTER_POLICY_HOST) {
		if (is_local(sender))
			return FILTER_ARP_OURS;
		found = is_neighbour(where.dev, OF_INTERFACE, sender);
		if (found == NO && where.line)
			found = is_neighbour(where.line, OF_LINE, sender);
		if (found != NO)
			return found == YES ? FILTER_ARP_NEIGHBOUR : FILTER_UNSEEN;
		if (arp_is_for_others_too(where.dev, is_announcement) ||
		    (where.line && arp_is_for_others_too(where.line, is_announcement)))
			return FILTER_ARP_SETTING;
	}
	/* Of a state of the routes that nobody has told us of yet. */
	if (!bpf_core_field_exists(where.dev->nd_net.net->ipv4.fib_seq) ||
	    where.dev->nd_net.net->ipv4.fib_seq != told_of)
		return FILTER_CHANGING;
	return FILTER_FOREIGN_ARP;
}

#endif
