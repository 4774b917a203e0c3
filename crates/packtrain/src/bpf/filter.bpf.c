// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The receive filter: what this host cannot want goes no further than the driver.
 *
 * filter_xdp   in the driver, or before the stack where the driver cannot.
 * filter_tc    at tc ingress, where XDP cannot be had.
 * filter_look  on no frame: tells which state of the routes the kernel is in.
 *
 * A frame is judged by its header first (the paper's section 4, or that with what a host wants besides); what would be
 * dropped is then asked of who else may want it. packtrain-proto's filter module is the same, said slowly.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#include "filter.h"
#include "filter_frame.bpf.h"
#include "filter_kernel.bpf.h"
#include "filter_wants.bpf.h"
#include "filter_arp.bpf.h"
#include "filter_ports.bpf.h"
#include "filter_rules.bpf.h"

#define BROADCAST		0xffffffffffffULL
/* 01:80:c2:00:00:00 to 2f: what bridges say to each other and to stations (IEEE 802.1D, 802.1Q). */
#define LINK_CONTROL		0x0180c2000000ULL
#define LINK_CONTROL_LEN	0x30
/* PTP, IEEE 1588: 01:1b:19:00:00:00; its other group is one of link control. */
#define TIME_PROTOCOL		0x011b19000000ULL
/* Groups that IPv6 asks for addresses in: 33:33:ff and the end of the address. */
#define SOLICITED_GROUP		0x3333ffULL

/* As much of a frame as is looked at. */
#define HEADERS_MAX		96

/* A map of one entry, of this name. */
struct filter_settings settings SEC(".data.settings");
struct filter_looked looked SEC(".data.looked");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, FILTER_REASONS);
	__type(key, __u32);
	__type(value, struct filter_count);
} counters SEC(".maps");

/* Whether an interface has a unicast address, its first or another one. */
static __always_inline int has_unicast(struct net_device *dev, const struct two_words *address)
{
	if (has_address_at(dev->dev_addr, address))
		return YES;
	return list_has_address(&dev->uc, address);
}

/* Of the interface, or of the line that it is a member of. */
static __always_inline int is_wanted_address(const struct where *where, const struct frame *frame,
					     int is_group)
{
	const struct ethernet_header *header = frame->data;
	struct two_words address;
	int found;

	if ((void *)(header + 1) > frame->data_end)
		return UNSEEN;
	address.first = *(const be32_alias *)header->destination;
	address.last = *(const be32_alias *)&header->destination[1];
	found = is_group ? list_has_address(&where->dev->mc, &address) : has_unicast(where->dev, &address);
	if (found != NO || !where->line)
		return found;
	return is_group ? list_has_address(&where->line->mc, &address) : has_unicast(where->line, &address);
}

static __always_inline int is_link_control(__u64 destination)
{
	return destination - LINK_CONTROL < LINK_CONTROL_LEN || destination == TIME_PROTOCOL;
}

static __always_inline int judge_group(const struct filter_settings *set, const struct where *where,
				       const struct frame *frame)
{
	int found;

	if (frame->ether_type == bpf_htons(ETHERTYPE_PACKTRAIN))
		return FILTER_TRAIN;
	if (set->policy == FILTER_POLICY_HOST && is_link_control(frame->destination))
		return FILTER_LINK_CONTROL;
	found = is_wanted_address(where, frame, 1);
	if (found != NO)
		return found == YES ? FILTER_GROUP : FILTER_UNSEEN;
	if (frame->destination >> 24 == SOLICITED_GROUP)
		return FILTER_FOREIGN_SOLICITATION;
	return FILTER_FOREIGN_GROUP;
}

/* By the addresses alone, and what ARP asks for. */
static __always_inline int judge_addresses(void *ctx, const struct filter_settings *set,
					   const struct where *where, const struct frame *frame)
{
	int found;

	if (frame->destination == BROADCAST) {
		if (frame->ether_type != bpf_htons(ETHERTYPE_ARP))
			return FILTER_BROADCAST;
		return judge_arp(set, where, frame);
	}
	if (frame->destination >> 40 & 1)
		return judge_group(set, where, frame);
	found = is_wanted_address(where, frame, 0);
	if (found == NO)
		return FILTER_FOREIGN_UNICAST;
	if (found == UNSEEN)
		return FILTER_UNSEEN;
	if (set->ports) {
		found = judge_port(ctx, where, frame);
		if (found != OPEN)
			return found;
	}
	return FILTER_OURS;
}

static __always_inline int is_watched(const struct filter_settings *set)
{
	return !set->lease_until_ns || bpf_ktime_get_coarse_ns() <= set->lease_until_ns;
}

/* `by_rules`: the reason that these have, or NOBODY. */
static __always_inline int judge(void *ctx, const struct filter_settings *set, struct net_device *dev,
				 const struct frame *frame, int behind_taps, int by_rules)
{
	struct where where = { .dev = dev, .behind_taps = behind_taps };
	int reason, wanted;

	if (!is_watched(set))
		return FILTER_UNREFRESHED;
	if (by_rules >= 0)
		return by_rules;
	if (!frame->is_whole)
		return FILTER_SHORT;
	if (set->policy == FILTER_POLICY_NONE)
		return FILTER_NO_POLICY;
	if (set->line_ifindex)
		where.line = device_beside(dev, set->line_ifindex);
	reason = judge_addresses(ctx, set, &where, frame);
	if (reason < FILTER_FOREIGN_UNICAST || set->policy != FILTER_POLICY_HOST)
		return reason;
	wanted = who_wants(&where, frame);
	return wanted == NOBODY ? reason : wanted;
}

static __always_inline void count(__u32 reason, __u64 bytes)
{
	struct filter_count *counter = bpf_map_lookup_elem(&counters, &reason);

	if (!counter)
		return;
	counter->frames++;
	counter->bytes += bytes;
}

static __always_inline void read_xdp(struct frame *frame, struct xdp_md *ctx)
{
	read_frame(frame, (void *)(long)ctx->data, (void *)(long)ctx->data_end, NO_TAG);
	frame->len = bpf_xdp_get_buff_len(ctx);
}

static __always_inline void read_skb(struct frame *frame, struct __sk_buff *skb)
{
	read_frame(frame, (void *)(long)skb->data, (void *)(long)skb->data_end,
		   skb->vlan_present ? skb->vlan_tci & VLAN_ID_MASK : NO_TAG);
	frame->len = skb->len;
}

/* Each a program by itself to the verifier, which would look at all that follows with each kind of frame otherwise. */
__noinline int rules_of_xdp(struct xdp_md *ctx, __u32 image)
{
	struct rule_scratch *scratch = rules_scratch();
	struct frame frame;

	if (!scratch)
		return NOBODY;
	read_xdp(&frame, ctx);
	facts_read(&frame, &scratch->facts);
	return judge_rules(image);
}

__noinline int rules_of_skb(struct __sk_buff *skb, __u32 image)
{
	struct rule_scratch *scratch = rules_scratch();
	struct frame frame;

	if (!scratch)
		return NOBODY;
	read_skb(&frame, skb);
	facts_read(&frame, &scratch->facts);
	return judge_rules(image);
}

SEC("xdp.frags")
int filter_xdp(struct xdp_md *ctx)
{
	struct xdp_buff *buffer = bpf_cast_to_kern_ctx(ctx);
	struct filter_settings *set = &settings;
	struct frame frame;
	int reason, by_rules = NOBODY;

	if (set->has_rules && is_watched(set))
		by_rules = rules_of_xdp(ctx, set->rules_image);
	read_xdp(&frame, ctx);
	reason = judge(ctx, set, buffer->rxq->dev, &frame, 0, by_rules);
	count(reason, frame.len);
	return reason < FILTER_FOREIGN_UNICAST || set->dry_run ? XDP_PASS : XDP_DROP;
}

SEC("tc")
int filter_tc(struct __sk_buff *skb)
{
	struct filter_settings *set = &settings;
	struct sk_buff *kernel_skb;
	struct frame frame;
	int reason, by_rules = NOBODY;

	if (skb->data_end - skb->data < HEADERS_MAX)
		bpf_skb_pull_data(skb, skb->len < HEADERS_MAX ? skb->len : HEADERS_MAX);
	if (set->has_rules && is_watched(set))
		by_rules = rules_of_skb(skb, set->rules_image);
	read_skb(&frame, skb);
	kernel_skb = bpf_cast_to_kern_ctx(skb);
	reason = judge(skb, set, kernel_skb->dev, &frame, 1, by_rules);
	count(reason, skb->len);
	return reason < FILTER_FOREIGN_UNICAST || set->dry_run ? TC_ACT_UNSPEC : TC_ACT_SHOT;
}

SEC("xdp")
int filter_look(struct xdp_md *ctx)
{
	struct xdp_buff *buffer = bpf_cast_to_kern_ctx(ctx);
	struct net *net = buffer->rxq->dev->nd_net.net;

	looked.has_fib_seq = bpf_core_field_exists(net->ipv4.fib_seq);
	if (looked.has_fib_seq)
		looked.fib_seq = net->ipv4.fib_seq;
	return XDP_PASS;
}

char _license[] SEC("license") = "Dual MIT/GPL";
