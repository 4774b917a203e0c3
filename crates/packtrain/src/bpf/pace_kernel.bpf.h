/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The kernel's sockets, as far as a congestion control looks at them, and what it calls of the kernel's own. */
#ifndef PACKTRAIN_PACE_KERNEL_BPF_H
#define PACKTRAIN_PACE_KERNEL_BPF_H

#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>

#define AF_INET		2
#define AF_INET6	10
#define SOL_TCP		6
#define TCP_CONGESTION	13
#define TCP_CA_NAME_MAX	16

struct kernfs_node {
	__u64 id;
} __attribute__((preserve_access_index));

struct cgroup {
	struct kernfs_node *kn;
	int level;
	struct cgroup *ancestors[];	/* Linux 6.1 */
} __attribute__((preserve_access_index));

struct sock_cgroup_data {
	struct cgroup *cgroup;
} __attribute__((preserve_access_index));

struct tcp_congestion_ops;

struct netns_ipv4 {
	__u8 sysctl_tcp_min_tso_segs;
	const struct tcp_congestion_ops *tcp_congestion_control;
} __attribute__((preserve_access_index));

struct net {
	__u64 net_cookie;
	struct netns_ipv4 ipv4;
} __attribute__((preserve_access_index));

typedef struct {
	struct net *net;
} __attribute__((preserve_access_index)) possible_net_t;

struct in6_addr {
	union {
		__be32 u6_addr32[4];
	} in6_u;
} __attribute__((preserve_access_index));

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
} __attribute__((preserve_access_index));

enum sk_pacing {
	SK_PACING_NONE = 0,
	SK_PACING_NEEDED = 1,
	SK_PACING_FQ = 2,
};

struct sock {
	struct sock_common __sk_common;
	__u32 sk_pacing_status;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	struct sock_cgroup_data sk_cgrp_data;
} __attribute__((preserve_access_index));

struct inet_sock {
	struct sock sk;
} __attribute__((preserve_access_index));

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	const struct tcp_congestion_ops *icsk_ca_ops;
	__u8 icsk_ca_setsockopt:1;
	__u8 icsk_ca_state:5;
	__u64 icsk_ca_priv[13];
} __attribute__((preserve_access_index));

struct minmax_sample {
	__u32 t;
	__u32 v;
} __attribute__((preserve_access_index));

struct minmax {
	struct minmax_sample s[3];
} __attribute__((preserve_access_index));

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u16 tcp_header_len;
	__u32 mss_cache;
	__u32 snd_cwnd;
	__u32 snd_cwnd_stamp;
	__u32 snd_ssthresh;
	__u32 data_segs_out;
	__u32 snd_una;
	__u32 snd_nxt;
	__u32 snd_wnd;
	__u32 write_seq;
	__u32 srtt_us;
	__u32 packets_out;
	__u32 delivered;
	__u32 lost;
	__u32 rate_delivered;
	__u32 rate_interval_us;
	__u32 total_retrans;
	__u32 sacked_out;
	__u32 lost_out;
	__u32 retrans_out;
	__u64 bytes_acked;
	__u64 bytes_retrans;
	struct minmax rtt_min;
} __attribute__((preserve_access_index));

enum tcp_ca_event {
	CA_EVENT_TX_START = 0,
	CA_EVENT_CWND_RESTART = 1,
	CA_EVENT_COMPLETE_CWR = 2,
	CA_EVENT_LOSS = 3,
};

#define TCP_CA_RECOVERY	3
#define TCP_CA_LOSS	4

struct ack_sample {
	__u32 pkts_acked;
	__s32 rtt_us;
	__u32 in_flight;
} __attribute__((preserve_access_index));

/* Of a program that is run for each socket (BPF_TRACE_ITER). */
struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} __attribute__((preserve_access_index));

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
} __attribute__((preserve_access_index));

struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*set_state)(struct sock *sk, __u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	__u32 (*min_tso_segs)(struct sock *sk);
	__u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	char name[TCP_CA_NAME_MAX];
	__u32 flags;
} __attribute__((preserve_access_index));

/* The kernel's CUBIC, which goes on where spacing ends (Linux 6.0). */
extern void cubictcp_init(struct sock *sk) __ksym;
extern __u32 cubictcp_recalc_ssthresh(struct sock *sk) __ksym;
extern void cubictcp_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern void cubictcp_state(struct sock *sk, __u8 new_state) __ksym;
extern void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

/* CUBIC's own state, of which is written what it cannot know: that slow start is ended by others, and at which window. */
struct bictcp {
	__u32 last_max_cwnd;
	__u8 found;
} __attribute__((preserve_access_index));

static __always_inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline bool is_in_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

/* Sequence numbers wrap. */
static __always_inline bool is_at_or_after(__u32 sequence, __u32 other)
{
	return (__s32)(sequence - other) >= 0;
}

#endif
