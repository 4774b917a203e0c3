/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Who on this host may want a frame that is not for it. Asked of such frames alone, so that what passes anyway does
 * not wait for it.
 */
#ifndef PACKTRAIN_FILTER_WANTS_BPF_H
#define PACKTRAIN_FILTER_WANTS_BPF_H

#include "filter.h"
#include "filter_frame.bpf.h"
#include "filter_hook.bpf.h"
#include "filter_kernel.bpf.h"

#define IFF_PROMISC	0x100
#define IFF_ALLMULTI	0x200

/* NETIF_F_HW_VLAN_CTAG_RX: tags are taken out of frames before a program in the driver sees them. */
#define TAGS_TAKEN_OUT	(1ULL << 8)

#define NOBODY	(-1)

/* The interface that a frame came in by, and the line above it. */
struct where {
	struct net_device *dev;
	struct net_device *line;	/* pt0, or NULL */
};

static __always_inline void find_where(struct where *where, filter_context *ctx)
{
	where->dev = device_of(ctx);
	where->line = settings.line_ifindex ? device_beside(where->dev, settings.line_ifindex) : NULL;
}

/* Programs and filters at tc ingress, other than this one and a line's guard. */
static __always_inline int has_ingress_programs(const struct where *where)
{
	struct bpf_mprog_entry *entry;
	struct tcx_entry *holder;
	struct mini_Qdisc *filters;
	const void *prog;

	if (!bpf_core_field_exists(struct net_device, tcx_ingress))
		return UNSEEN;
	entry = where->dev->tcx_ingress;
	if (!entry)
		return NO;
	/* One for the filter, one for the guard: a third is somebody else's. */
	for (int i = 0; i < 3; i++) {
		prog = as(struct bpf_mprog_fp, (void *)entry + i * bpf_core_type_size(struct bpf_mprog_fp))->prog;
		if (!prog)
			break;
		if (i == 2 || (!(BEHIND_TAPS && is_this_filter(as(struct bpf_prog, prog))) &&
			       !(where->line && is_lines_guard(as(struct bpf_prog, prog)))))
			return YES;
	}
	/* Of both entries of a bundle the filters of a clsact stand before the first. */
	holder = as(struct tcx_entry, (void *)entry->parent - bpf_core_field_offset(struct tcx_entry, bundle));
	filters = holder->miniq;
	return filters && filters->filter_list ? YES : NO;
}

static __always_inline int has_listener(const struct where *where, __be16 type)
{
	const void *own = (const void *)where->dev +
			  (type ? bpf_core_field_offset(struct net_device, ptype_specific) :
				  bpf_core_field_offset(struct net_device, ptype_all));
	struct net *net = where->dev->nd_net.net;
	int found = list_has_listener(own, type, where->line != NULL);

	if (found != NO)
		return found;
	if (bpf_core_field_exists(struct net, ptype_all))
		return list_has_listener((const void *)net +
						 (type ? bpf_core_field_offset(struct net, ptype_specific) :
							 bpf_core_field_offset(struct net, ptype_all)),
					 type, where->line != NULL);
	if (!&ptype_all || !&ptype_base)
		return UNSEEN;
	return list_has_listener(type ? &ptype_base + (bpf_ntohs(type) & 15) *
							      bpf_core_type_size(struct list_head) :
					&ptype_all,
				 type, where->line != NULL);
}

/* Of a frame that has a length where others have a type: ETH_P_802_3 and ETH_P_802_2. */
#define TYPE_MIN		0x0600
#define TYPE_RAW_802_3		0x0001
#define TYPE_802_2		0x0004

/* Whether a packet socket takes this type, as the kernel comes to it: it takes tags out one after the other, and looks each time. */
static __always_inline int takes_type(const struct where *where, __u32 has_tags, __u32 ether_type)
{
	__be16 types[4] = { ether_type };
	int found;

	if (is_tag(ether_type))
		return UNSEEN;
	if (!has_tags && bpf_ntohs(ether_type) >= TYPE_MIN)
		return has_listener(where, ether_type);
	if (bpf_ntohs(ether_type) < TYPE_MIN) {
		types[0] = bpf_htons(TYPE_802_2);
		types[1] = bpf_htons(TYPE_RAW_802_3);
	}
	if (has_tags) {
		types[2] = bpf_htons(ETHERTYPE_VLAN);
		types[3] = bpf_htons(ETHERTYPE_QINQ);
	}
	for (int i = 0; i < 4; i++) {
		found = types[i] ? has_listener(where, types[i]) : NO;
		if (found != NO)
			return found;
	}
	return NO;
}

/* What an interface above or below takes whatever its address. */
static __always_inline int takes_all(struct net_device *dev, int is_group)
{
	__u32 flags = dev->flags;

	if (flags & IFF_PROMISC || (is_group && flags & IFF_ALLMULTI))
		return FILTER_PROMISCUOUS;
	if (dev->rx_handler)
		return FILTER_HANDLER;
	/* The way to a switch's ports, whose frames have an address of anybody's behind a tag of the switch's. */
	if (bpf_core_field_exists(struct net_device, dsa_ptr) && dev->dsa_ptr)
		return FILTER_HANDLER;
	return NOBODY;
}

/* The reason for which a frame passes though it is not for this host, or NOBODY. Every drop pays for it, and would for a call. */
static __always_inline int who_wants(filter_context *ctx, __u32 is_group, __u32 has_tags, __u32 ether_type)
{
	struct where where;
	int found;

	find_where(&where, ctx);
	found = takes_all(where.dev, is_group);
	if (found == NOBODY && where.line)
		found = takes_all(where.line, is_group);
	if (found != NOBODY)
		return found;
	if (bpf_core_field_exists(struct net_device, vlan_info) && where.dev->vlan_info &&
	    (has_tags || (!BEHIND_TAPS && where.dev->features & TAGS_TAKEN_OUT)))
		return FILTER_VLAN;
	if (!BEHIND_TAPS) {
		found = has_listener(&where, 0);
		if (found != NO)
			return found == YES ? FILTER_CAPTURE : FILTER_UNSEEN;
	}
	found = takes_type(&where, has_tags, ether_type);
	if (found != NO)
		return found == YES ? FILTER_LISTENER : FILTER_UNSEEN;
	found = has_ingress_programs(&where);
	if (found != NO)
		return found == YES ? FILTER_INGRESS : FILTER_UNSEEN;
	if (bpf_core_field_exists(struct net_device, nf_hooks_ingress) && where.dev->nf_hooks_ingress)
		return FILTER_INGRESS;
	return NOBODY;
}

#endif
