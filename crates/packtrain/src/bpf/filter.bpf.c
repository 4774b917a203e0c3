// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The receive filter: what this host cannot want goes no further than the driver.
 *
 * filter_xdp   in the driver, or before the stack where the driver cannot.
 * filter_tc    at tc ingress, where XDP cannot be had.
 * filter_look  on no frame: tells which state of the routes the kernel is in, and what the interface does itself.
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
#include "filter_hook.bpf.h"
#include "filter_wants.bpf.h"
#include "filter_arp.bpf.h"
#include "filter_ports.bpf.h"
#include "filter_rules.bpf.h"
#include "filter_sample.bpf.h"

#define BROADCAST		0xffffffffffffULL
/* 01:80:c2:00:00:00 to 2f: what bridges say to each other and to stations (IEEE 802.1D, 802.1Q). */
#define LINK_CONTROL		0x0180c2000000ULL
#define LINK_CONTROL_LEN	0x30
/* PTP, IEEE 1588: 01:1b:19:00:00:00; its other group is one of link control. */
#define TIME_PROTOCOL		0x011b19000000ULL
/* Groups that IPv6 asks for addresses in: 33:33:ff and the end of the address. */
#define SOLICITED_GROUP		0x3333ffULL

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
__noinline int is_wanted_address(filter_context *ctx, __u32 is_group)
{
	const struct ethernet_header *header = data_of(ctx);
	struct two_words address;
	struct where where;
	int found;

	if ((void *)(header + 1) > data_end_of(ctx))
		return UNSEEN;
	find_where(&where, ctx);
	address.first = *(const be32_alias *)header->destination;
	address.last = *(const be32_alias *)&header->destination[1];
	found = is_group ? list_has_address(&where.dev->mc, &address) : has_unicast(where.dev, &address);
	if (found != NO || !where.line)
		return found;
	return is_group ? list_has_address(&where.line->mc, &address) : has_unicast(where.line, &address);
}

static __always_inline int is_link_control(__u64 destination)
{
	return destination - LINK_CONTROL < LINK_CONTROL_LEN || destination == TIME_PROTOCOL;
}

static __always_inline int judge_group(filter_context *ctx, const struct frame *frame)
{
	int found;

	if (frame->ether_type == bpf_htons(ETHERTYPE_PACKTRAIN))
		return FILTER_TRAIN;
	if (settings.policy == FILTER_POLICY_HOST && is_link_control(frame->destination))
		return FILTER_LINK_CONTROL;
	found = is_wanted_address(ctx, 1);
	if (found != NO)
		return found == YES ? FILTER_GROUP : FILTER_UNSEEN;
	if (frame->destination >> 24 == SOLICITED_GROUP)
		return FILTER_FOREIGN_SOLICITATION;
	return FILTER_FOREIGN_GROUP;
}

/* By the addresses alone, and what ARP asks for. */
static __always_inline int judge_addresses(filter_context *ctx, const struct frame *frame)
{
	int found;

	if (frame->destination == BROADCAST) {
		if (frame->ether_type != bpf_htons(ETHERTYPE_ARP))
			return FILTER_BROADCAST;
		return judge_arp(ctx, frame->network);
	}
	if (frame->destination >> 40 & 1)
		return judge_group(ctx, frame);
	found = is_wanted_address(ctx, 0);
	if (found == NO)
		return FILTER_FOREIGN_UNICAST;
	if (found == UNSEEN)
		return FILTER_UNSEEN;
	if (settings.ports && !frame->tags) {
		found = judge_port(ctx, frame->ether_type);
		if (found != OPEN)
			return found;
	}
	return FILTER_OURS;
}

/* The clock that the lease is of goes on with the ticks: of each one it is asked once, which costs more than a tick's number. So the lease may end a tick later. */
static __always_inline int is_watched(void)
{
	__u64 until_ns = settings.lease_until_ns, tick;

	if (!until_ns)
		return 1;
	tick = bpf_jiffies64();
	if (remembered.watched_tick == tick && remembered.watched_until_ns == until_ns)
		return 1;
	if (bpf_ktime_get_coarse_ns() > until_ns)
		return 0;
	remembered.watched_until_ns = until_ns;
	remembered.watched_tick = tick;
	return 1;
}

/* What rules do not decide. */
static __always_inline int judge(filter_context *ctx, int is_refreshed)
{
	struct frame whole, *frame = &whole;
	int reason, wanted;

	if (!is_refreshed)
		return FILTER_UNREFRESHED;
	read_of(frame, ctx);
	if (!frame->is_whole)
		return FILTER_SHORT;
	if (settings.policy == FILTER_POLICY_NONE)
		return FILTER_NO_POLICY;
	reason = judge_addresses(ctx, frame);
	if (reason < FILTER_FOREIGN_UNICAST || settings.policy != FILTER_POLICY_HOST)
		return reason;
	wanted = who_wants(ctx, frame->destination >> 40 & 1, frame->tags, frame->ether_type);
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

/* A program by itself to the verifier, as those that judge are. */
__noinline int rules_of(filter_context *ctx, __u32 image)
{
	struct rule_scratch *scratch = rules_scratch();
	struct frame frame;

	if (!scratch)
		return NOBODY;
	read_of(&frame, ctx);
	frame.len = len_of(ctx);
	facts_read(&frame, &scratch->facts);
	scratch->facts.packets = packets_of(ctx);
	scratch->facts.len = frame.len;
	return judge_rules(image);
}

static __always_inline int filter(filter_context *ctx)
{
	int reason = NOBODY, is_refreshed;

	/* What is to an address of the interface came in, however it begins. */
	if (is_looped(ctx) && (BEHIND_TAPS || is_wanted_address(ctx, 0) == NO)) {
		count(FILTER_LOOPED, len_of(ctx));
		return PASS;
	}
	have_headers(ctx);
	is_refreshed = is_watched();
	if (settings.has_rules && (is_refreshed || settings.stay == FILTER_STAYS))
		reason = rules_of(ctx, settings.rules_image);
	if (reason < 0)
		reason = judge(ctx, is_refreshed);
	count(reason, len_of(ctx));
	if (reason < FILTER_FOREIGN_UNICAST)
		return PASS;
	if (sampling.until_ns)
		take_sample(ctx, reason);
	return settings.dry_run ? PASS : DROP;
}

#ifdef FILTER_AT_TC

SEC("tc")
int filter_tc(struct __sk_buff *ctx)
{
	return filter(ctx);
}

#else

SEC("xdp.frags")
int filter_xdp(struct xdp_md *ctx)
{
	return filter(ctx);
}

SEC("xdp")
int filter_look(struct xdp_md *ctx)
{
	struct xdp_buff *buffer = bpf_cast_to_kern_ctx(ctx);
	struct net *net = buffer->rxq->dev->nd_net.net;

	struct net_device *dev = device_beside(buffer->rxq->dev, looked.ifindex);

	looked.has_fib_seq = bpf_core_field_exists(net->ipv4.fib_seq);
	if (looked.has_fib_seq)
		looked.fib_seq = net->ipv4.fib_seq;
	looked.has_interface = dev && bpf_core_enum_value_exists(enum netdev_priv_flags, IFF_UNICAST_FLT);
	if (looked.has_interface)
		looked.filters_unicast = BPF_CORE_READ_BITFIELD(dev, priv_flags) &
					 bpf_core_enum_value(enum netdev_priv_flags, IFF_UNICAST_FLT);
	return XDP_PASS;
}

#endif

char _license[] SEC("license") = "Dual MIT/GPL";
