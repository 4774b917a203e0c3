// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * TCP that is kind to intermediate routers: a congestion control that spaces what slow start sends, and what gives it to
 * connections.
 *
 * The window is the kernel's CUBIC's. What is added: in slow start segments leave RTT / cwnd apart (pace_spacing.bpf.h), by the
 * kernel's own pacing; slow start ends at what is remembered of the path (pace_path.bpf.h), of which it takes half at once
 * (pace_jump.bpf.h), or when the round trip grows (pace_hystart.bpf.h). After that the socket is as unpaced as any, unless the path was
 * remembered, until the first loss, or a rule says at which rate it leaves (pace_rules.bpf.h).
 *
 * The kernel works out a pacing rate of its own at each acknowledgement. The one that counts is written where it asks how
 * large segments may be, which is each time before it sends.
 */
#include "pace.h"
#include "pace_kernel.bpf.h"
#include "pace_spacing.bpf.h"
#include "pace_hystart.bpf.h"
#include "pace_path.bpf.h"
#include "pace_jump.bpf.h"
#include "pace_rules.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

const volatile struct pace_settings settings SEC(".data.settings");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PACE_COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct pace_stream);
} streams SEC(".maps");

static __always_inline void count(__u32 counter, __u64 amount)
{
	__u64 *value = bpf_map_lookup_elem(&counters, &counter);

	if (value)
		*value += amount;
}

#include "pace_take.bpf.h"

static __always_inline struct pace_stream *stream_of(struct sock *sk)
{
	return bpf_sk_storage_get(&streams, sk, 0, 0);
}

/* The least one so far. */
static __always_inline __u32 rtt_us_of(const struct tcp_sock *tp)
{
	__u32 least = tp->rtt_min.s[0].v;

	return least == ~0U ? 0 : least;
}

static __always_inline void see(const struct tcp_sock *tp, struct pace_seen *seen)
{
	seen->una = tp->snd_una;
	seen->nxt = tp->snd_nxt;
	seen->rtt_us = rtt_us_of(tp);
	seen->cwnd = tp->snd_cwnd;
	seen->ssthresh = tp->snd_ssthresh;
	seen->mss = tp->mss_cache;
}

/* Linux' own HyStart takes the trains that spacing makes for a full path. */
static __always_inline void no_hystart_of_its_own(struct sock *sk)
{
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;
	__u8 *found = (__u8 *)icsk->icsk_ca_priv + bpf_core_field_offset(struct bictcp, found);

	*found = 1;
}

/* The window at which the path is full. CUBIC, which has seen no loss yet, would look for it by a twentieth more each round trip. */
static __always_inline void tell_window_max(struct sock *sk, __u32 window)
{
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;
	__u32 *max = (void *)icsk->icsk_ca_priv + bpf_core_field_offset(struct bictcp, last_max_cwnd);

	if (!*max)
		*max = window;
}

static __always_inline void pace_as_decided(struct sock *sk, const struct pace_stream *stream)
{
	if (stream->was_paced)
		return;
	if (stream->phase == PACE_SPACING || stream->fill == PACE_EVEN || stream->rule) {
		if (sk->sk_pacing_status == SK_PACING_NONE)
			sk->sk_pacing_status = SK_PACING_NEEDED;
	} else if (sk->sk_pacing_status == SK_PACING_NEEDED) {
		sk->sk_pacing_status = SK_PACING_NONE;
	}
}

/* Of a path that is known: the interval of this one of the streams that share it. */
static __always_inline __u64 known_interval_ns(struct tcp_sock *tp, const struct pace_stream *stream,
					       const struct pace_path *path, __u64 now)
{
	__s32 streams;
	__u64 rate;

	if (!path || !settings.remembers)
		return 0;
	rate = path_rate(path, rtt_us_of(tp), settings.age_max_ns, now);
	streams = path->sending + !stream->is_sending;
	if (streams > 1)
		rate /= (__u32)streams;
	return rate ? (__u64)tp->mss_cache * SECOND_NS / rate : 0;
}

static __always_inline __u64 ruled_rate_of(struct sock *sk, const struct pace_stream *stream)
{
	return ruled_rate(sk, stream, rtt_us_of(tcp_sk(sk)), settings.age_max_ns);
}

/* Segments are no closer together than this: of a known path `interval_ns`, or as its rule has it. */
static __always_inline __u64 interval_min_ns(struct sock *sk, const struct pace_stream *stream, __u64 interval_ns)
{
	__u64 rate = ruled_rate_of(sk, stream);
	__u64 ruled_ns = rate ? (__u64)tcp_sk(sk)->mss_cache * SECOND_NS / rate : 0;

	return ruled_ns > interval_ns ? ruled_ns : interval_ns;
}

enum begins {
	BEGINS_NEW,			/* what the kernel remembers of the destination itself does not count */
	BEGINS_AFTER_PAUSE,		/* a window that was cut is not raised above that */
	BEGINS_AFTER_LOSS,		/* nor is more taken at once; nor by one that was there before us */
};

static __always_inline void begin(struct sock *sk, struct pace_stream *stream, enum begins why)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct pace_path *path = path_of_new(sk);
	__u64 interval_ns = known_interval_ns(tp, stream, path, bpf_ktime_get_ns());
	struct pace_seen seen;

	stream->knows_path = interval_ns > 0;
	if (interval_ns && path) {
		__u32 window = path_window((__u64)tp->mss_cache * SECOND_NS / interval_ns, path->rtt_min_us,
					   tp->mss_cache);

		if (tp->snd_cwnd < window && (why == BEGINS_NEW || window < tp->snd_ssthresh))
			tp->snd_ssthresh = window;
	}
	see(tp, &seen);
	pace_begin(stream, &seen, settings.precision_ns, interval_min_ns(sk, stream, interval_ns),
		   stream->knows_path && why != BEGINS_AFTER_LOSS);
	stream->jump.state = PACE_JUMP_NONE;
	hystart_begin(&stream->hystart, seen.nxt);
	stream->css_credit = 0;
	no_hystart_of_its_own(sk);
	if (stream->phase == PACE_SPACING) {
		count(PACE_BEGUN, 1);
		if (interval_ns)
			count(PACE_BEGUN_KNOWN, 1);
	}
	pace_as_decided(sk, stream);
}

/* A pacer that has ended without a word has left its connections paced. */
static __always_inline bool is_paced_by_others(const struct sock *sk, const struct pace_stream *stream)
{
	if (sk->sk_pacing_status != SK_PACING_NEEDED)
		return sk->sk_pacing_status == SK_PACING_FQ;
	return !stream->was_ours || sk->sk_max_pacing_rate != ~0UL;
}

SEC("struct_ops")
void BPF_PROG(pace_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct pace_stream *stream;
	struct pace_path *path;

	cubictcp_init(sk);
	stream = bpf_sk_storage_get(&streams, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!stream) {
		count(PACE_REFUSED, 1);
		return;
	}
	stream->was_paced = is_paced_by_others(sk, stream);
	stream->delivered = tp->delivered;
	stream->lost = tp->lost;
	path = path_of_new(sk);
	if (path)
		__sync_fetch_and_add(&path->connections, 1);
	/* Of one that is taken later something may be under way. */
	if (tp->packets_out)
		stream_sends(sk, stream);
	begin(sk, stream, tp->data_segs_out ? BEGINS_AFTER_LOSS : BEGINS_NEW);
}

SEC("struct_ops")
void BPF_PROG(pace_release, struct sock *sk)
{
	struct pace_stream *stream = stream_of(sk);

	if (!stream)
		return;
	if (is_connected(&sk->__sk_common))
		count(PACE_LEFT, 1);
	stream_rests(sk, stream);
	set_rule(sk, stream, 0);
	pace_end(stream);
	pace_as_decided(sk, stream);
}

static __always_inline void note_lost(struct tcp_sock *tp, struct pace_stream *stream)
{
	__u32 lost = tp->lost - stream->lost;
	__u32 phase = stream->phase;

	if (!lost || phase >= PACE_PHASES)
		return;
	stream->lost = tp->lost;
	stream->lost_in[phase] += lost;
	count(PACE_LOST_FREE + phase, lost);
}

/* While a loss of the jump is repaired, what arrives tells how large the window is. The kernel reads that each time. */
static __always_inline void retreat(struct sock *sk, struct pace_stream *stream)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u8 state = ((struct inet_connection_sock *)sk)->icsk_ca_state;
	__u32 window;

	if (stream->jump.state == PACE_JUMP_NONE)
		return;
	window = jump_acknowledged(&stream->jump, tp->snd_una, tp->delivered, state >= TCP_CA_RECOVERY);
	if (window > tp->snd_ssthresh)
		tp->snd_ssthresh = window;
}

/* Over a path whose round trip is shorter than its interval a stream has nothing under way most of the time, and has its part all the
 * same. What its peer has no room for waits for that, and leaves the others its part. */
static __always_inline bool waits_for_its_time(const struct tcp_sock *tp)
{
	__u32 unsent = tp->write_seq - tp->snd_nxt, room = tp->snd_una + tp->snd_wnd - tp->snd_nxt;
	__u32 next = unsent < tp->mss_cache ? unsent : tp->mss_cache;

	return next && room <= 0x7fffffff && room >= next;
}

SEC("struct_ops")
void BPF_PROG(pace_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct pace_stream *stream = stream_of(sk);
	struct pace_path *path;
	__u32 delivered;

	cubictcp_acked(sk, sample);
	if (!stream)
		return;
	note_lost(tp, stream);
	retreat(sk, stream);
	delivered = tp->delivered - stream->delivered;
	stream->delivered = tp->delivered;
	path = path_of(sk);
	if (!path)
		return;
	path_delivered(path, (__u64)delivered * tp->mss_cache, rtt_us_of(tp), is_automatic(stream->rule),
		       bpf_ktime_get_ns());
	if (!tp->packets_out && !waits_for_its_time(tp))
		stream_rests(sk, stream);
	/* Its rule may have come or gone. */
	if (stream->phase == PACE_FREE)
		pace_as_decided(sk, stream);
	if (stream->phase != PACE_FREE && is_in_slow_start(tp) && settings.hystart) {
		__u32 rtt_us = sample->rtt_us > 0 ? sample->rtt_us : 0;
		enum pace_verdict verdict = hystart_acknowledged(&stream->hystart, tp->snd_una, tp->snd_nxt, rtt_us,
								 settings.hystart_min_us, settings.hystart_max_us);

		if (verdict == PACE_FULL || verdict == PACE_OVER)
			path_full(path, false, bpf_ktime_get_ns());
		if (verdict == PACE_OVER) {
			tp->snd_ssthresh = tp->snd_cwnd;
			count(PACE_ENDED_BY_DELAY, 1);
		}
	}
}

/* A congestion control's window grows by what was acknowledged, in conservative slow start by a part of it. */
static __always_inline __u32 grows_by(const struct tcp_sock *tp, struct pace_stream *stream, __u32 acked)
{
	__u32 credit;

	if (!stream->hystart.css_baseline_min_us || !is_in_slow_start(tp))
		return acked;
	credit = stream->css_credit + acked;
	stream->css_credit = credit % PACE_CSS_GROWTH_DIVISOR;
	return credit / PACE_CSS_GROWTH_DIVISOR;
}

/* The first answers have come: half of what is free of the path is sent over the next round trip, if that is more. */
static __always_inline bool jump(struct sock *sk, struct pace_stream *stream, const struct pace_seen *seen)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct pace_path *path = path_of(sk);
	__u64 now = bpf_ktime_get_ns();
	__u64 interval_ns = known_interval_ns(tp, stream, path, now);
	__u32 window;

	if (!path || !interval_ns)
		return false;
	window = jump_window(path_rate(path, seen->rtt_us, settings.age_max_ns, now), path_taken(path, now),
			     path->sending + !stream->is_sending, path->rtt_min_us, seen->mss);
	if (window > seen->ssthresh)
		window = seen->ssthresh;
	if (window <= seen->cwnd)
		return false;
	path_jumped(path, (__u64)window * seen->mss * 1000000 / (path->rtt_min_us ? path->rtt_min_us : 1), now);
	jump_made(&stream->jump, seen->una, window, seen->mss, tp->delivered);
	pace_jumps_to(stream, seen, window, settings.precision_ns, interval_min_ns(sk, stream, interval_ns));
	pace_as_decided(sk, stream);
	count(PACE_JUMPED, 1);
	return true;
}

SEC("struct_ops")
void BPF_PROG(pace_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct pace_stream *stream = stream_of(sk);
	struct pace_seen seen;
	__u64 interval_ns = 0;

	if (!stream) {
		cubictcp_cong_avoid(sk, ack, acked);
		return;
	}
	acked = grows_by(tp, stream, acked);
	if (acked)
		cubictcp_cong_avoid(sk, ack, acked);
	if (stream->phase == PACE_FREE) {
		/* A window that was cut below its threshold by a timeout: slow start goes on from there. */
		if (is_in_slow_start(tp)) {
			begin(sk, stream, BEGINS_AFTER_LOSS);
		} else if (stream->fill == PACE_EVEN) {
			see(tp, &seen);
			pace_make_even(stream, &seen);
		}
		return;
	}
	see(tp, &seen);
	if (pace_may_jump(stream, &seen) && jump(sk, stream, &seen))
		return;
	if ((stream->knows_path || stream->rule) && pace_decides(stream, &seen)) {
		if (stream->knows_path) {
			if (seen.cwnd >= seen.ssthresh && stream->fill == PACE_NOT_FILLED) {
				count(PACE_ENDED_AT_PATH, 1);
				tell_window_max(sk, seen.cwnd);
			}
			interval_ns = known_interval_ns(tp, stream, path_of(sk), bpf_ktime_get_ns());
		}
		interval_ns = interval_min_ns(sk, stream, interval_ns);
	}
	pace_acknowledged(stream, &seen, settings.precision_ns, interval_ns);
	pace_as_decided(sk, stream);
}

/*
 * Whether what is remembered of the path was too much for a stream that has lost. With a rule that gives it the path's rate it is, out of slow
 * start and where slow start has come up to that rate; below that it is what else goes there, or chance, or a first flight
 * that leaves in a burst. And what all streams carry is less for that time: they leave it its part already.
 */
static __always_inline bool was_too_much(struct sock *sk, const struct pace_stream *stream,
					 const struct pace_path *path)
{
	if (!is_automatic(stream->rule) || stream->jump.state == PACE_JUMP_UNPROVEN)
		return stream->phase != PACE_FREE;
	if (stream->phase != PACE_SPACING)
		return true;
	return stream->interval_ns <= known_interval_ns(tcp_sk(sk), stream, path, bpf_ktime_get_ns());
}

SEC("struct_ops")
__u32 BPF_PROG(pace_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct pace_stream *stream = stream_of(sk);
	struct pace_path *path = path_of(sk);
	__u32 window = 0, cubic;

	if (stream) {
		note_lost(tp, stream);
		count(PACE_CUT_FREE + (stream->phase < PACE_PHASES ? stream->phase : 0), 1);
		if (path) {
			path_full(path, was_too_much(sk, stream, path), bpf_ktime_get_ns());
			if (stream->phase != PACE_FREE)
				__sync_fetch_and_add(&path->losses, 1);
		}
		pace_end(stream);
		pace_as_decided(sk, stream);
		if (stream->jump.state == PACE_JUMP_UNPROVEN)
			count(PACE_RETREATED, 1);
		window = jump_lost(&stream->jump, tp->delivered);
	}
	cubic = cubictcp_recalc_ssthresh(sk);
	return window && window < cubic ? window : cubic;
}

SEC("struct_ops")
void BPF_PROG(pace_set_state, struct sock *sk, __u8 new_state)
{
	cubictcp_state(sk, new_state);
	/* It has forgotten what it knew when it comes here after a timeout. */
	if (new_state == TCP_CA_LOSS)
		no_hystart_of_its_own(sk);
}

SEC("struct_ops")
void BPF_PROG(pace_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct pace_stream *stream;

	cubictcp_cwnd_event(sk, event);
	if (event != CA_EVENT_TX_START && event != CA_EVENT_CWND_RESTART)
		return;
	stream = stream_of(sk);
	if (!stream)
		return;
	/* The kernel tells of it before it makes the window small. */
	if (event == CA_EVENT_CWND_RESTART)
		stream->restarts = 1;
	else
		stream_sends(sk, stream);
}

/* As a jump lets it, before the kernel looks whether there is room for a segment. */
static __always_inline void open_window(struct tcp_sock *tp, const struct pace_stream *stream)
{
	__u32 in_flight = tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
	__u32 window = pace_opens(stream, in_flight, tp->snd_cwnd);

	if (!window)
		return;
	tp->snd_cwnd = window;
	/* It is used, or the kernel would take it back for not being so. */
	tp->snd_cwnd_stamp = bpf_jiffies64();
}

SEC("struct_ops")
__u32 BPF_PROG(pace_min_tso_segs, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct pace_stream *stream = stream_of(sk);
	__u64 rate = 0, ruled;

	if (!stream)
		return sk->__sk_common.skc_net.net->ipv4.sysctl_tcp_min_tso_segs;
	if (stream->restarts) {
		stream->restarts = 0;
		begin(sk, stream, BEGINS_AFTER_PAUSE);
	}
	if (stream->opens_to)
		open_window(tp, stream);
	if ((stream->phase == PACE_SPACING || stream->fill == PACE_EVEN) && stream->interval_ns)
		rate = (__u64)tp->mss_cache * SECOND_NS / stream->interval_ns;
	ruled = ruled_rate_of(sk, stream);
	if (ruled && (!rate || ruled < rate))
		rate = ruled;
	if (!rate)
		return sk->__sk_common.skc_net.net->ipv4.sysctl_tcp_min_tso_segs;
	/* Whoever has set a lower one means it. */
	if (rate > sk->sk_max_pacing_rate)
		rate = sk->sk_max_pacing_rate;
	sk->sk_pacing_rate = rate;
	return 1;
}

SEC("struct_ops")
__u32 BPF_PROG(pace_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops pace_cps = {
	.init = (void *)pace_init,
	.release = (void *)pace_release,
	.ssthresh = (void *)pace_ssthresh,
	.cong_avoid = (void *)pace_cong_avoid,
	.pkts_acked = (void *)pace_acked,
	.set_state = (void *)pace_set_state,
	.cwnd_event = (void *)pace_cwnd_event,
	.min_tso_segs = (void *)pace_min_tso_segs,
	.undo_cwnd = (void *)pace_undo_cwnd,
	.name = "packtrain_cps",
};

/* As linux/pace.rs and its parts read and write them. */
_Static_assert(sizeof(struct pace_settings) == 736, "settings");
_Static_assert(sizeof(struct pace_rule) == 1288, "rule");
_Static_assert(sizeof(struct pace_rate) == 16, "what a rule gives");
_Static_assert(sizeof(struct pace_rules) == 16, "where the rules are");
_Static_assert(sizeof(struct pace_path_key) == 24, "key of a path");
_Static_assert(sizeof(struct pace_path) == 152, "path");
_Static_assert(sizeof(struct pace_shown) == 136, "what is told of a connection");
