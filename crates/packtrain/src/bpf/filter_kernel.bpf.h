/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The kernel's own tables, read where they stand: whatever a host has just joined, opened or attached is seen by the
 * next frame, and there is no copy that could be late.
 *
 * Lists are walked under RCU, which all programs of frames run under. All loads are checked by the kernel: what is
 * gone meanwhile reads as zero. Needs Linux 6.2 (bpf_rdonly_cast).
 */
#ifndef PACKTRAIN_FILTER_KERNEL_BPF_H
#define PACKTRAIN_FILTER_KERNEL_BPF_H

#include <linux/in.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

struct list_head {
	struct list_head *next;
} __attribute__((preserve_access_index));

struct hlist_node {
	struct hlist_node *next;
} __attribute__((preserve_access_index));

struct hlist_head {
	struct hlist_node *first;
} __attribute__((preserve_access_index));

struct net_device;

struct netdev_hw_addr {
	struct list_head list;
	unsigned char addr[32];
} __attribute__((preserve_access_index));

struct netdev_hw_addr_list {
	struct list_head list;
} __attribute__((preserve_access_index));

struct in_ifaddr {
	struct in_ifaddr *ifa_next;
	__be32 ifa_local;
} __attribute__((preserve_access_index));

struct neigh_hash_table {
	struct hlist_head *hash_heads;	/* Linux 6.13 */
	unsigned int hash_shift;
	__u32 hash_rnd[4];
} __attribute__((preserve_access_index));

typedef struct {
	int counter;
} __attribute__((preserve_access_index)) atomic_t;

struct neigh_table {
	atomic_t entries;
	struct neigh_hash_table *nht;
	void **phash_buckets;
} __attribute__((preserve_access_index));

struct neigh_parms {
	struct neigh_table *tbl;
} __attribute__((preserve_access_index));

struct neighbour {
	struct hlist_node hash;
	struct net_device *dev;
	__u8 primary_key[0];
} __attribute__((preserve_access_index));

struct ipv4_devconf {
	int data[33];
} __attribute__((preserve_access_index));

struct in_device {
	struct net_device *dev;
	struct in_ifaddr *ifa_list;
	struct neigh_parms *arp_parms;
	struct ipv4_devconf cnf;
} __attribute__((preserve_access_index));

struct inet6_dev {
	struct list_head addr_list;
} __attribute__((preserve_access_index));

struct inet6_ifaddr {
	struct in6_addr addr;
	struct list_head if_list;
} __attribute__((preserve_access_index));

struct udp_hslot {
	struct hlist_head head;
} __attribute__((preserve_access_index));

struct udp_table {
	struct udp_hslot *hash;
	unsigned int mask;
} __attribute__((preserve_access_index));

struct inet_bind_hashbucket {
	struct hlist_head chain;
} __attribute__((preserve_access_index));

struct inet_hashinfo {
	struct inet_bind_hashbucket *bhash;
	unsigned int bhash_size;
} __attribute__((preserve_access_index));

struct inet_timewait_death_row {
	struct inet_hashinfo *hashinfo;
} __attribute__((preserve_access_index));

struct bpf_prog_array;

struct netns_bpf {
	struct bpf_prog_array *run_array[2];
} __attribute__((preserve_access_index));

struct netns_ipv4 {
	struct inet_timewait_death_row tcp_death_row;
	struct udp_table *udp_table;	/* Linux 6.2 */
	struct ipv4_devconf *devconf_all;
	unsigned int fib_seq;
} __attribute__((preserve_access_index));

struct nf_hook_entries {
	__u16 num_hook_entries;
} __attribute__((preserve_access_index));

struct nf_hook_entry {
	void *hook;
} __attribute__((preserve_access_index));

enum nf_hook_ops_type {
	NF_HOOK_OP_UNDEFINED,
};

struct nf_hook_ops {
	enum nf_hook_ops_type hook_ops_type: 8;
	int priority;
} __attribute__((preserve_access_index));

struct netns_nf {
	struct nf_hook_entries *hooks_ipv4[5];
	struct nf_hook_entries *hooks_ipv6[5];
} __attribute__((preserve_access_index));

struct net {
	__u32 hash_mix;
	struct hlist_head *dev_index_head;
	struct list_head ptype_all;	/* Linux 6.16 */
	struct list_head ptype_specific;
	struct netns_ipv4 ipv4;
	struct netns_nf nf;
	struct netns_bpf bpf;
} __attribute__((preserve_access_index));

typedef struct {
	struct net *net;
} __attribute__((preserve_access_index)) possible_net_t;

struct bpf_prog_aux {
	char name[16];
} __attribute__((preserve_access_index));

struct bpf_prog {
	struct bpf_prog_aux *aux;
} __attribute__((preserve_access_index));

struct bpf_mprog_fp {
	struct bpf_prog *prog;
} __attribute__((preserve_access_index));

struct bpf_mprog_bundle;

struct bpf_mprog_entry {
	struct bpf_mprog_fp fp_items[64];
	struct bpf_mprog_bundle *parent;
} __attribute__((preserve_access_index));

struct mini_Qdisc {
	void *filter_list;
} __attribute__((preserve_access_index));

struct bpf_mprog_bundle {
	struct bpf_mprog_entry a;
} __attribute__((preserve_access_index));

struct tcx_entry {
	struct mini_Qdisc *miniq;
	struct bpf_mprog_bundle bundle;
} __attribute__((preserve_access_index));

enum netdev_priv_flags {
	IFF_UNICAST_FLT = 1 << 12,
};

struct net_device {
	unsigned long priv_flags:32;
	unsigned int flags;
	int ifindex;
	const unsigned char *dev_addr;
	struct netdev_hw_addr_list uc;
	struct netdev_hw_addr_list mc;
	struct in_device *ip_ptr;
	struct inet6_dev *ip6_ptr;
	struct list_head ptype_all;
	struct list_head ptype_specific;
	void *rx_handler;
	void *vlan_info;
	void *dsa_ptr;
	__u64 features;
	struct bpf_mprog_entry *tcx_ingress;	/* Linux 6.6 */
	void *nf_hooks_ingress;
	possible_net_t nd_net;
	struct hlist_node index_hlist;
} __attribute__((preserve_access_index));

struct sk_filter {
	struct bpf_prog *prog;
} __attribute__((preserve_access_index));

struct sock {
	struct sk_filter *sk_filter;
} __attribute__((preserve_access_index));

struct packet_type {
	__be16 type;
	void *af_packet_priv;
	struct list_head list;
} __attribute__((preserve_access_index));

struct xdp_rxq_info {
	struct net_device *dev;
} __attribute__((preserve_access_index));

struct xdp_buff {
	struct xdp_rxq_info *rxq;
	__u32 flags;
} __attribute__((preserve_access_index));

struct sk_buff {
	struct net_device *dev;
} __attribute__((preserve_access_index));

/* Before Linux 6.16 the listeners at no interface in particular were not a namespace's. */
extern const void ptype_all __ksym __weak;
extern const void ptype_base __ksym __weak;

extern void *bpf_cast_to_kern_ctx(void *context) __ksym;
extern void *bpf_rdonly_cast(const void *object, __u32 type) __ksym;

#define as(type, at)	((type *)bpf_rdonly_cast((void *)(at), bpf_core_type_id_kernel(type)))

/* A word at any address: of a type that the kernel has, and that is one. */
static __always_inline __u32 word_at(const void *at)
{
	return as(struct in_addr, at)->s_addr;
}

/* An Ethernet address as two words, of which the second begins two bytes behind the first. */
struct two_words {
	__u32 first;
	__u32 last;
};

static __always_inline int has_address_at(const void *at, const struct two_words *address)
{
	return word_at(at) == address->first && word_at(at + 2) == address->last;
}

/* Answers to whether something is in a table. */
#define YES	1
#define NO	0
#define UNSEEN	(-1)	/* there is more of it than is looked through */

#define HARDWARE_ADDRESSES_MAX	64

/* The list and not the tree beside it, which may be turned while it is walked. */
static __always_inline int list_has_address(const struct netdev_hw_addr_list *addresses,
					    const struct two_words *address)
{
	const void *head = (const void *)addresses + bpf_core_field_offset(struct netdev_hw_addr_list, list);
	const void *at = as(struct list_head, head)->next;

	for (int i = 0; i < HARDWARE_ADDRESSES_MAX; i++) {
		const void *entry = at - bpf_core_field_offset(struct netdev_hw_addr, list);

		if (at == head)
			return NO;
		if (!at)
			return UNSEEN;
		if (has_address_at(entry + bpf_core_field_offset(struct netdev_hw_addr, addr), address))
			return YES;
		at = as(struct list_head, at)->next;
	}
	return UNSEEN;
}

/* The kernel keeps devices in so many lists, by their numbers. */
#define DEVICE_LISTS		256
#define DEVICES_SEARCHED	8

/* Another one of the same namespace. */
static __always_inline struct net_device *device_beside(struct net_device *dev, __u32 ifindex)
{
	__u64 at = (__u64)(ifindex & (DEVICE_LISTS - 1)) * bpf_core_type_size(struct hlist_head);
	struct hlist_node *node;
	struct net_device *other;

	node = as(struct hlist_head, (void *)dev->nd_net.net->dev_index_head + at)->first;
	for (int i = 0; i < DEVICES_SEARCHED && node; i++) {
		other = as(struct net_device,
			   (void *)node - bpf_core_field_offset(struct net_device, index_hlist));
		if (other->ifindex == (int)ifindex)
			return other;
		node = other->index_hlist.next;
	}
	return NULL;
}

/* Beginnings of the names of our own programs. */
#define NAME_WORD(a, b, c, d)	bpf_htonl((__u32)(a) << 24 | (b) << 16 | (c) << 8 | (d))

static __always_inline int is_named(struct bpf_prog *prog, __u32 first, __u32 second)
{
	const void *name = (const void *)prog->aux + bpf_core_field_offset(struct bpf_prog_aux, name);

	return word_at(name) == first && word_at(name + 4) == second;
}

/* guard_socket and guard_given, the filters of a line's sockets. */
static __always_inline int is_lines_filter(struct bpf_prog *prog)
{
	return is_named(prog, NAME_WORD('g', 'u', 'a', 'r'), NAME_WORD('d', '_', 's', 'o')) ||
	       is_named(prog, NAME_WORD('g', 'u', 'a', 'r'), NAME_WORD('d', '_', 'g', 'i'));
}

static __always_inline int is_lines_guard(struct bpf_prog *prog)
{
	return is_named(prog, NAME_WORD('g', 'u', 'a', 'r'), NAME_WORD('d', '_', 'i', 'n'));
}

/* This filter where it stands at tc ingress. */
static __always_inline int is_this_filter(struct bpf_prog *prog)
{
	return is_named(prog, NAME_WORD('f', 'i', 'l', 't'), NAME_WORD('e', 'r', '_', 't'));
}

/* The socket of a line on its own member link takes no more than the line is known to want. */
static __always_inline int is_lines_socket(const struct packet_type *listener)
{
	struct sk_filter *filter = as(struct sock, listener->af_packet_priv)->sk_filter;

	return filter && is_lines_filter(filter->prog);
}

#define LISTENERS_MAX	16

/* Whether a packet socket listens there for a type, or for all of them. */
static __always_inline int list_has_listener(const void *head, __be16 type, int has_line)
{
	const void *at = as(struct list_head, head)->next;

	for (int i = 0; i < LISTENERS_MAX; i++) {
		struct packet_type *listener;

		if (at == head)
			return NO;
		if (!at)
			return UNSEEN;
		listener = as(struct packet_type, at - bpf_core_field_offset(struct packet_type, list));
		/* Not the kernel's own protocols, which take what is for this host. */
		if (listener->af_packet_priv && (!type || listener->type == type) &&
		    !(has_line && is_lines_socket(listener)))
			return YES;
		at = as(struct list_head, at)->next;
	}
	return UNSEEN;
}

#endif
