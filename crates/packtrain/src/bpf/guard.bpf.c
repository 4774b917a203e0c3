// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Keeps apart what the link's own stack sees and what packtrain sees on a member link.
 *
 * guard_ingress   tc ingress of the link: withholds our frames from the link's stack, and gives direct ones,
 *                 which no socket of ours takes, to pt0 (the sending end is direct.bpf.c).
 * guard_socket    filter of our packet socket that stands before tc: lets through only what may be
 *                 ours, so that the link's own traffic never wakes the daemon.
 * guard_given     filter of our packet socket that stands behind tc.
 * guard_handled   on no frame: asks the kernel whether it can stand there.
 *
 * A socket for all types stands before tc, and is shown each frame of the link, direct ones too, which costs these
 * one part in twenty-five. A socket for one type stands behind tc, where direct frames never come. What is ours has
 * any type, and goes there wrapped in two tags: the inner one makes the frame one of type 802.1ad, which nobody else
 * asks for behind tc, since the kernel takes tags off before; the outer one, of a VLAN that no interface may have, is
 * what it takes off here. Trains too, though they have a type of their own: marked frames have no sequence, and
 * their order among trains is that of one socket.
 *
 * Which of both it is, `given` and `tap` of the settings say (linux/guard/reception.rs); while it changes it is both.
 *
 * A frame with a VLAN tag belongs to an interface on top of the link: it is ours only by its
 * addresses, never by its type; but those in the VLAN that the line names for its own. The kernel has
 * taken the tag out of the bytes before either program runs, and says so in the context.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#include "guard.h"
#include "ethernet.h"
#include "unmarked.bpf.h"
#include "link.bpf.h"

#define HELLO_GROUP		0x037074000001ULL
#define MAC_GROUP_BIT		(1ULL << 40)
#define MAC_LOCAL_BIT		(2ULL << 40)
#define MAC_MASK		((1ULL << 48) - 1)

#define ARP_REQUEST		1

#define VLAN_OF_NOBODY		0x0fff	/* reserved: no interface may have it */

#define SOCKET_ACCEPT		-1	/* as many bytes as there are */
#define SOCKET_IGNORE		0

struct arp_ethernet_ipv4 {
	__be16 hardware_type;
	__be16 protocol_type;
	__u8 hardware_len;
	__u8 protocol_len;
	__be16 operation;
	__u8 sender_mac[6];
	__u8 sender_address[4];
	__u8 target_mac[6];
	__u8 target_address[4];
};

struct frame {
	__u64 destination;
	__u64 source;
	__u16 ether_type;
	__u16 vlan;	/* 0: no tag, or one of a priority alone: the frame is the link's as without */
};

/* A map of one entry, of this name. */
struct guard_settings settings SEC(".data.settings");

/* Both sets have room for the old and the new keys at once, so that a change leaves no gap. */

/* Marks and direct marks of our peers. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2 * 2 * 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, struct guard_source);
} sources SEC(".maps");

/*
 * The source that was found last, for most frames are followed by more from there. Both programs look at each
 * direct frame, one after the other on one processor.
 */
struct guard_last {
	__u64 key;	/* its address, and above it how often the sources have changed; 0: none yet */
	struct guard_source source;
};

#define GUARD_LAST_KNOWN	(1ULL << 63)

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct guard_last);
} last_source SEC(".maps");

/* Links of peers whose direct frames have no mark: where marks do not pass, and nothing else uses this link. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2 * GUARD_UNMARKED);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, struct guard_source);
} unmarked SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct guard_traffic);
} direct_traffic SEC(".maps");

/* IPv4 addresses of the link itself, as they stand in ARP. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2 * 1024);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, __u8);
} link_addresses SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, GUARD_VERDICTS);
	__type(key, __u32);
	__type(value, __u64);
} ingress_counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, GUARD_VERDICTS);
	__type(key, __u32);
	__type(value, __u64);
} socket_counters SEC(".maps");

/*
 * Whether the socket before tc took the frame that this processor has in hand. The settings may change between
 * the two programs, and then it would come to us twice, or not at all.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} tapped SEC(".maps");

static __always_inline __u32 was_tapped(void)
{
	__u32 zero = 0, was, *taken = bpf_map_lookup_elem(&tapped, &zero);

	if (!taken)
		return 0;
	was = *taken;
	*taken = 0;
	return was;
}

static __always_inline void count(void *counters, __u32 verdict)
{
	__u64 *counter = bpf_map_lookup_elem(counters, &verdict);

	if (counter)
		*counter += 1;
}

static __always_inline struct frame frame_of(const struct ethernet_header *header,
					     const struct __sk_buff *skb)
{
	struct frame frame = {
		.destination = destination_of(header),
		.source = source_of(header),
		.ether_type = bpf_ntohs(header->ether_type),
		.vlan = skb->vlan_present ? skb->vlan_tci & VLAN_ID_MASK : 0,
	};

	return frame;
}

/* From a peer's link to ours, and nothing that the links' own hosts would say to each other. */
static __always_inline int is_unmarked_direct(struct __sk_buff *skb, const struct frame *frame,
					      const struct guard_settings *set,
					      struct guard_source **from)
{
	struct guard_source *source;

	/* In the VLAN there is nothing but ours. */
	if (!set->takes_unmarked || frame->destination != set->link_address ||
	    (frame->vlan && frame->vlan != set->direct_vlan))
		return 0;
	source = bpf_map_lookup_elem(&unmarked, &frame->source);
	if (!source)
		return 0;
	if (frame->vlan ? !(source->pt0 & GUARD_SOURCE_TAGGED) :
			  !(source->pt0 & GUARD_SOURCE_UNMARKED) ||
				  !may_be_unmarked(skb, frame->ether_type))
		return 0;
	*from = source;
	return 1;
}

static __always_inline struct guard_source *find_source(__u64 address,
							const struct guard_settings *set)
{
	__u64 key = address | (__u64)(set->sources_change & 0x7fff) << 48 | GUARD_LAST_KNOWN;
	struct guard_source *source;
	struct guard_last *last;
	__u32 zero = 0;

	last = bpf_map_lookup_elem(&last_source, &zero);
	if (last && last->key == key)
		return &last->source;
	source = bpf_map_lookup_elem(&sources, &address);
	if (source && last && !set->interrupted) {
		last->source = *source;
		last->key = key;
	}
	return source;
}

/* What both programs take for packtrain's. `from`: whose mark a frame has. */
static __always_inline __u32 classify(struct __sk_buff *skb, const struct frame *frame,
				      const struct guard_settings *set,
				      struct guard_source **from)
{
	struct guard_source *source = 0;

	if (frame->ether_type == ETHERTYPE_PACKTRAIN &&
	    (!frame->vlan || frame->vlan == set->direct_vlan))
		return GUARD_TRAIN;
	if (frame->destination == set->host_address && set->host_address)
		return GUARD_HOST;
	/* Marks are locally administered: the traffic of most hosts needs no look-up. */
	if (frame->source & MAC_LOCAL_BIT)
		source = find_source(frame->source, set);
	if (!source)
		return is_unmarked_direct(skb, frame, set, from) ? GUARD_DIRECT : GUARD_OTHER;
	*from = source;
	if (!source->pt0)
		return GUARD_MARKED;
	return frame->destination == set->link_address ? GUARD_DIRECT : GUARD_OTHER;
}

static __always_inline int lose(const struct guard_settings *set)
{
	count(&ingress_counters, GUARD_LOST);
	return (int)set->withheld_action;
}

/* What has gone past the peer's engine goes past ours: into pt0, as it left the peer's. */
static __always_inline int deliver(struct __sk_buff *skb, const struct guard_settings *set,
				   struct guard_source *from, __u16 vlan)
{
	struct addresses addresses = addresses_of(set->host_address, from->pt0 & MAC_MASK);
	struct guard_traffic *traffic;
	__u32 zero = 0;

	/* Under a mark the tag is of pt0's own frame. */
	if (vlan && from->pt0 & GUARD_SOURCE_TAGGED && bpf_skb_vlan_pop(skb))
		return lose(set);
	/*
	 * Not in place: for a program that does so the kernel first copies what others hold too. That is each
	 * train, where our socket has it by now.
	 */
	if (bpf_skb_store_bytes(skb, 0, &addresses, sizeof(addresses), 0))
		return lose(set);
	/* Counted where it has come to: between here and there it waits for its turn. */
	skb->tc_index = ARRIVING | (set->link & ~CARRIED_MASK);
	traffic = bpf_map_lookup_elem(&direct_traffic, &zero);
	if (traffic) {
		traffic->frames += 1;
		traffic->bytes += skb->len;
	}
	return bpf_redirect(set->host_ifindex, BPF_F_INGRESS);
}

static __always_inline __u32 word(const __u8 *bytes)
{
	__u32 value;

	__builtin_memcpy(&value, bytes, sizeof(value));
	return value;
}

/*
 * Linux answers ARP on any interface for every address of the host: the link would give its own
 * MAC for pt0's address. Gratuitous ARP goes through: nobody answers it, and the link's neighbour
 * table lives on it. So do replies, which are for who asked.
 */
static __always_inline int is_foreign_arp(struct __sk_buff *skb)
{
	struct arp_ethernet_ipv4 arp;
	__u32 sender, target;

	/* Copies, because the body may stand outside the linear part. Truncated: the stack drops it. */
	if (bpf_skb_load_bytes(skb, sizeof(struct ethernet_header), &arp, sizeof(arp)))
		return 0;
	if (arp.protocol_type != bpf_htons(ETHERTYPE_IPV4) ||
	    arp.operation != bpf_htons(ARP_REQUEST))
		return 0;
	sender = word(arp.sender_address);
	target = word(arp.target_address);
	return sender != target && !bpf_map_lookup_elem(&link_addresses, &target);
}

/*
 * To our socket behind tc. The kernel writes the class into tc_index, where guard_given looks for it. No other
 * program of this link sees the frame, as none sees what is withheld.
 */
static __always_inline int give(struct __sk_buff *skb)
{
	skb->tc_classid = GIVEN;
	return TC_ACT_OK;
}

static __always_inline int give_wrapped(struct __sk_buff *skb, const struct guard_settings *set)
{
	if (bpf_skb_vlan_push(skb, bpf_htons(ETHERTYPE_QINQ), set->given) ||
	    bpf_skb_vlan_push(skb, bpf_htons(ETHERTYPE_VLAN), VLAN_OF_NOBODY))
		return lose(set);
	return give(skb);
}

/*
 * The link's stack wants the frame as well. So a wrapped copy comes in by the link once more, past everybody who
 * asks for certain types; the frame itself is what it was.
 */
static __always_inline void give_copy(struct __sk_buff *skb, const struct guard_settings *set)
{
	__u16 carried = skb->tc_index;
	int lost = 1;

	if (!link_has_receive_handler(skb) &&
	    !bpf_skb_vlan_push(skb, bpf_htons(ETHERTYPE_QINQ), set->given)) {
		if (!bpf_skb_vlan_push(skb, bpf_htons(ETHERTYPE_VLAN), VLAN_OF_NOBODY)) {
			skb->tc_index = GIVEN;
			lost = bpf_clone_redirect(skb, skb->ifindex, BPF_F_INGRESS) != 0;
			skb->tc_index = carried;
			bpf_skb_vlan_pop(skb);
		}
		bpf_skb_vlan_pop(skb);
	}
	if (lost)
		count(&ingress_counters, GUARD_LOST);
	else
		count(&socket_counters, GUARD_GROUP);
}

/* What is ours alone. */
static __always_inline int take(struct __sk_buff *skb, const struct guard_settings *set, __u32 verdict,
				int is_group)
{
	/* That it is no answer of the link's own is all we want of a request to one host. */
	if (was_tapped() || !set->given || (verdict == GUARD_FOREIGN_ARP && !is_group))
		return (int)set->withheld_action;
	/* A bridge would take it instead of our socket, until the daemon has heard of it. */
	if (link_has_receive_handler(skb))
		return lose(set);
	count(&socket_counters, verdict == GUARD_TRAIN || !is_group ? verdict : GUARD_GROUP);
	return give_wrapped(skb, set);
}

SEC("tc")
int guard_ingress(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data;
	void *data_end = (void *)(long)skb->data_end;
	struct ethernet_header *header = data;
	const struct guard_settings *set = &settings;
	struct frame frame;
	__u32 verdict;
	struct guard_source *from = 0;

	/* The kernel has read the header already, so it is linear; the verifier wants it said. */
	if ((void *)(header + 1) > data_end)
		return TC_ACT_UNSPEC;

	frame = frame_of(header, skb);
	verdict = classify(skb, &frame, set, &from);
	/* The owner is told of a new address as well, but the first frame to it may be faster. */
	if (verdict == GUARD_DIRECT && from && from->pt0 & GUARD_SOURCE_UNMARKED && !frame.vlan &&
	    link_has_address(skb))
		verdict = GUARD_OTHER;
	if (verdict == GUARD_OTHER) {
		if (frame.destination == HELLO_GROUP)
			verdict = GUARD_HELLO_GROUP;
		else if (frame.ether_type == ETHERTYPE_ARP && !frame.vlan && is_foreign_arp(skb))
			verdict = GUARD_FOREIGN_ARP;
	}
	/* Counted by its own counter, frames and bytes at once. */
	if (verdict == GUARD_DIRECT && from)
		return deliver(skb, set, from, frame.vlan);
	/* A copy that we made. */
	if (frame.vlan == VLAN_OF_NOBODY && skb->tc_index == GIVEN)
		return give(skb);
	count(&ingress_counters, verdict);
	if (verdict == GUARD_OTHER) {
		if (frame.destination & MAC_GROUP_BIT && !was_tapped() && set->given)
			give_copy(skb, set);
		return TC_ACT_UNSPEC;
	}
	return take(skb, set, verdict, !!(frame.destination & MAC_GROUP_BIT));
}

SEC("socket")
int guard_socket(struct __sk_buff *skb)
{
	struct ethernet_header header __attribute__((aligned(8)));
	const struct guard_settings *set = &settings;
	struct frame frame;
	__u32 verdict, zero = 0, *taken;
	struct guard_source *from = 0;

	/* Those behind tc have taken over, or not yet let go. */
	if (!set->tap ||
	    bpf_skb_load_bytes_relative(skb, 0, &header, sizeof(header), BPF_HDR_START_MAC))
		return SOCKET_IGNORE;

	frame = frame_of(&header, skb);
	verdict = classify(skb, &frame, set, &from);
	/* Counted at the link's ingress, in a moment. */
	if (verdict == GUARD_DIRECT)
		return SOCKET_IGNORE;
	if (verdict == GUARD_OTHER) {
		/* A copy that another guard made, which is behind ours: of a line that has been started anew. */
		if (frame.destination & MAC_GROUP_BIT)
			verdict = skb->tc_index == GIVEN ? GUARD_OTHER : GUARD_GROUP;
		else if (set->promiscuous)
			verdict = GUARD_PROMISCUOUS;
	}
	count(&socket_counters, verdict);
	if (verdict == GUARD_OTHER)
		return SOCKET_IGNORE;
	taken = bpf_map_lookup_elem(&tapped, &zero);
	/* What we only listen to, nobody gives us. */
	if (taken && verdict != GUARD_PROMISCUOUS)
		*taken = 1;
	return SOCKET_ACCEPT;
}

/* Wrapped frames of each guard have a number of their own: that of a line that has been started anew is still there. */
SEC("socket")
int guard_given(struct __sk_buff *skb)
{
	struct vlan_tag tag;

	if (skb->tc_index != GIVEN ||
	    bpf_skb_load_bytes_relative(skb, sizeof(struct addresses), &tag, sizeof(tag),
					BPF_HDR_START_MAC))
		return SOCKET_IGNORE;
	return tag.control == bpf_htons(settings.given) ? SOCKET_ACCEPT : SOCKET_IGNORE;
}

/* Run by the daemon for the link, with a frame of nobody's. */
SEC("tc")
int guard_handled(struct __sk_buff *skb)
{
	return link_has_receive_handler(skb) || link_has_ingress_hooks(skb);
}

char _license[] SEC("license") = "Dual MIT/GPL";
