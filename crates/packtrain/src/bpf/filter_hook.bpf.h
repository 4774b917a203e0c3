/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Where the filter stands: in the driver (or before the stack, where the driver cannot), or at tc ingress. The object is
 * compiled for each, and only one of them is loaded.
 */
#ifndef PACKTRAIN_FILTER_HOOK_BPF_H
#define PACKTRAIN_FILTER_HOOK_BPF_H

#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include "filter.h"
#include "filter_frame.bpf.h"
#include "filter_kernel.bpf.h"

/* A map of one entry, of this name. */
struct filter_settings settings SEC(".data.settings");

/* What the program knows from one frame to the next. */
struct {
	__u64 watched_tick;		/* somebody had refreshed it at this one */
	__u64 watched_until_ns;		/* by this lease */
	__u64 devices[2];		/* the interface and the line above it, as numbers; 0: not read yet */
	__u64 neighbours;		/* IPv4's, the table of all interfaces */
} remembered SEC(".data.remembered");

#ifdef FILTER_AT_TC

typedef struct __sk_buff filter_context;

#define PASS		TC_ACT_UNSPEC
#define DROP		TC_ACT_SHOT
/* Who takes every type has had the frame. */
#define BEHIND_TAPS	1
/* Of <linux/if_packet.h>. */
#define PACKET_LOOPBACK	5

/* As much of a frame as is looked at: IPv6 with forty bytes of options and all of TCP's, behind two tags, and more. */
#define HEADERS_MAX	192

static __always_inline struct net_device *device_of(filter_context *ctx)
{
	struct sk_buff *skb = bpf_cast_to_kern_ctx(ctx);

	return skb->dev;
}

static __always_inline void have_headers(filter_context *ctx)
{
	if (ctx->data_end - ctx->data < HEADERS_MAX)
		bpf_skb_pull_data(ctx, ctx->len < HEADERS_MAX ? ctx->len : HEADERS_MAX);
}

static __always_inline __u32 len_of(filter_context *ctx)
{
	return ctx->len;
}

/* What GRO has put together by then, or its sender has not cut yet. */
static __always_inline __u32 packets_of(filter_context *ctx)
{
	if (ctx->gso_segs > 1)
		return ctx->gso_segs;
	return ctx->gso_size ? (ctx->len + ctx->gso_size - 1) / ctx->gso_size : 1;
}

static __always_inline int taken_out_of(filter_context *ctx)
{
	return ctx->vlan_present ? ctx->vlan_tci & VLAN_ID_MASK : NO_TAG;
}

/*
 * Whether this host has sent it itself, to all or to a group: the kernel hands that to its own sockets by the way in, without an
 * Ethernet header.
 */
static __always_inline int is_looped(filter_context *ctx)
{
	return ctx->pkt_type == PACKET_LOOPBACK;
}

static __always_inline long load_bytes(filter_context *ctx, void *to, __u32 len)
{
	return bpf_skb_load_bytes(ctx, 0, to, len);
}

#else

typedef struct xdp_md filter_context;

#define PASS		XDP_PASS
#define DROP		XDP_DROP
#define BEHIND_TAPS	0

static __always_inline struct net_device *device_of(filter_context *ctx)
{
	struct xdp_buff *buffer = bpf_cast_to_kern_ctx(ctx);

	return buffer->rxq->dev;
}

static __always_inline void have_headers(filter_context *ctx) {}

static __always_inline __u32 len_of(filter_context *ctx)
{
	struct xdp_buff *buffer = bpf_cast_to_kern_ctx(ctx);

	/* XDP_FLAGS_HAS_FRAGS: that there is more of it behind `data_end`. */
	if (buffer->flags & 1)
		return bpf_xdp_get_buff_len(ctx);
	return ctx->data_end - ctx->data;
}

static __always_inline __u32 packets_of(filter_context *ctx)
{
	return 1;
}

static __always_inline int taken_out_of(filter_context *ctx)
{
	return NO_TAG;
}

/*
 * As at tc, but nobody tells: it is what begins as an IP packet of just this length. A frame for others whose header is all that passes,
 * too. A driver never has any.
 */
static __always_inline int is_looped(filter_context *ctx)
{
	void *data = (void *)(long)ctx->data, *data_end = (void *)(long)ctx->data_end;
	struct iphdr *ip = data;
	struct ipv6hdr *ipv6 = data;

	if (!settings.generic || (void *)(ip + 1) > data_end)
		return 0;
	if (ip->version == 4)
		return ip->ihl >= 5 && bpf_ntohs(ip->tot_len) == len_of(ctx);
	if (ip->version != 6 || (void *)(ipv6 + 1) > data_end)
		return 0;
	return ipv6->daddr.in6_u.u6_addr8[0] == 0xff &&
	       sizeof(*ipv6) + bpf_ntohs(ipv6->payload_len) == len_of(ctx);
}

static __always_inline long load_bytes(filter_context *ctx, void *to, __u32 len)
{
	return bpf_xdp_load_bytes(ctx, 0, to, len);
}

#endif

static __always_inline void *data_of(filter_context *ctx)
{
	return (void *)(long)ctx->data;
}

static __always_inline void *data_end_of(filter_context *ctx)
{
	return (void *)(long)ctx->data_end;
}

static __always_inline void read_of(struct frame *frame, filter_context *ctx)
{
	read_frame(frame, data_of(ctx), data_end_of(ctx), taken_out_of(ctx));
}

#endif
