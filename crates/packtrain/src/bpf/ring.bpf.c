// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Small frames past the TAP: copied into a ring that the daemon reads in its own memory, without a call a frame.
 *
 * It stands in the place of intake_classify, in the queue before pt0, and so under the lock of HTB's root: frames come
 * here one after the other, in the order in which that queue gives them to the TAP.
 *
 * Order: a frame in the ring must not overtake those of its flow that stand in HTB or in the TAP. Each that goes on to
 * there is counted, and its flow's slot has the count; the daemon says up to which it has read. A flow goes by the ring
 * when its last one is among those; or when all that are still under way come in the order of their counts, which is so
 * as long as none stands in a leaf, and few: then the record says which one is to be read before it. The other way the
 * daemon sees to: what was in the ring when it reads a frame from the TAP comes before that.
 *
 * Who sleeps is woken by a frame that goes by the TAP, as it would without a ring: to wake somebody from here takes an
 * interrupt of its own, almost 2 us.
 *
 * A socket is not charged for a frame in the ring. So the daemon closes the ring while the line is slower than its host,
 * and the leaves of HTB hold the senders back.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "ring.h"

struct list_head {
	struct list_head *next;
} __attribute__((preserve_access_index));

struct net {
	struct list_head ptype_all;
} __attribute__((preserve_access_index));

typedef struct {
	struct net *net;
} __attribute__((preserve_access_index)) possible_net_t;

struct Qdisc;

struct net_device {
	struct Qdisc *qdisc;
	struct list_head ptype_all;
	possible_net_t nd_net;
	__u64 features;
} __attribute__((preserve_access_index));

struct skb_shared_info {
	__u8 tx_flags;
	unsigned int gso_type;
} __attribute__((preserve_access_index));

struct sk_buff {
	struct net_device *dev;
	__u8 ip_summed : 2;
	__u16 csum_start;
	__u16 csum_offset;
	unsigned int end;
	unsigned char *head;
	unsigned char *data;
} __attribute__((preserve_access_index));

#include "intake.bpf.h"

extern void *bpf_rdonly_cast(const void *object, __u32 type) __ksym;

#define CHECKSUM_PARTIAL	3
#define NETIF_F_GSO_SHIFT	16
#define ETHERNET_HEADER_LEN	14

struct ring_orders orders SEC(".data.orders");
struct ring_counts counts SEC(".data.counts");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING_BYTES);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RING_SLOTS);
	__type(key, __u32);
	__type(value, __u64);	/* the count at the last frame of the flow that went on to the TAP */
} slots SEC(".maps");

/* Of all packet sockets for every type and every interface, before they were in `struct net` (Linux 6.16). */
extern const void ptype_all __ksym __weak;

/*
 * Packet sockets see what leaves pt0 behind its queue: who watches it is to see all of it, in its order. What cannot be
 * known is taken for watched.
 */
static __always_inline int is_watched(struct net_device *dev)
{
	void *head = (void *)dev + bpf_core_field_offset(struct net_device, ptype_all), *first;
	struct net *net;

	if (dev->ptype_all.next != head)
		return 1;
	if (bpf_core_field_exists(struct net, ptype_all)) {
		net = dev->nd_net.net;
		head = (void *)net + bpf_core_field_offset(struct net, ptype_all);
		return (void *)net->ptype_all.next != head;
	}
	return !&ptype_all || bpf_probe_read_kernel(&first, sizeof(first), &ptype_all) ||
	       first != &ptype_all;
}

/*
 * What the daemon would not know of from the ring: segments to be cut, a tag beside the frame, and a sender who wants to
 * be told when the frame has left (`tx_flags`).
 */
static __always_inline int fits(struct __sk_buff *skb, struct sk_buff *kernel_skb,
				struct skb_shared_info *shared)
{
	return skb->len >= ETHERNET_HEADER_LEN && skb->len <= RING_FRAME_MAX && !skb->gso_size &&
	       !skb->vlan_present && !shared->tx_flags && !is_watched(kernel_skb->dev);
}

static __always_inline int put_into(struct ring_record *record, __u32 room, struct __sk_buff *skb,
				    struct sk_buff *kernel_skb, __u32 after)
{
	__u32 len = skb->len;

	if (!record) {
		counts.full += 1;
		return 0;
	}
	/*
	 * A barrier: who goes to sleep says so and looks at the ring's end then, which has moved here. So it sees this
	 * record and does not sleep, or is seen to.
	 */
	__sync_fetch_and_add(&counts.by_ring, 1);
	if (orders.asleep || !len || len > room || bpf_skb_load_bytes(skb, 0, record + 1, len)) {
		counts.by_ring -= 1;
		bpf_ringbuf_discard(record, BPF_RB_NO_WAKEUP);
		return 0;
	}
	record->len = len;
	record->checksum_start = 0;
	if (BPF_CORE_READ_BITFIELD(kernel_skb, ip_summed) == CHECKSUM_PARTIAL) {
		record->checksum_start = kernel_skb->csum_start - (kernel_skb->data - kernel_skb->head);
		record->checksum_offset = kernel_skb->csum_offset;
	}
	record->after = after;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	return 1;
}

#define RESERVE(room)	bpf_ringbuf_reserve(&ring, sizeof(struct ring_record) + (room), 0)

static __always_inline int put(struct __sk_buff *skb, struct sk_buff *kernel_skb, __u32 after)
{
	if (skb->len <= RING_ROOM_SMALL)
		return put_into(RESERVE(RING_ROOM_SMALL), RING_ROOM_SMALL, skb, kernel_skb, after);
	if (skb->len <= RING_ROOM_MIDDLE)
		return put_into(RESERVE(RING_ROOM_MIDDLE), RING_ROOM_MIDDLE, skb, kernel_skb, after);
	return put_into(RESERVE(RING_FRAME_MAX), RING_FRAME_MAX, skb, kernel_skb, after);
}

/* How many frames the daemon will read: what the device does not take as one the kernel cuts behind this queue. */
static __always_inline __u32 frames_of(struct __sk_buff *skb, struct sk_buff *kernel_skb,
				       struct skb_shared_info *shared)
{
	__u64 wants = (__u64)shared->gso_type << NETIF_F_GSO_SHIFT;

	if (!skb->gso_size || !(wants & ~kernel_skb->dev->features))
		return 1;
	return skb->gso_segs ? skb->gso_segs : 1;
}

static __always_inline int come_in_order(__u64 read)
{
	return counts.in_leaf <= read && counts.to_tap - read <= RING_TAP_FRAMES_MAX;
}

SEC("tc")
int ring_take(struct __sk_buff *skb)
{
	struct sk_buff *kernel_skb = bpf_cast_to_kern_ctx(skb);
	__u32 number = bpf_get_hash_recalc(skb) % RING_SLOTS;
	__u64 *slot = bpf_map_lookup_elem(&slots, &number);
	struct skb_shared_info *shared;
	__u64 read = orders.read;
	__u32 after;
	int verdict;

	if (!slot)
		return intake_sort(skb);
	shared = bpf_rdonly_cast(kernel_skb->head + kernel_skb->end,
				 bpf_core_type_id_kernel(struct skb_shared_info));
	after = *slot > read ? *slot : 0;
	if (orders.open && !orders.asleep && (!after || come_in_order(read)) &&
	    fits(skb, kernel_skb, shared) && put(skb, kernel_skb, after))
		return TC_ACT_STOLEN;
	verdict = intake_sort(skb);
	counts.to_tap += frames_of(skb, kernel_skb, shared);
	*slot = counts.to_tap;
	if (verdict == TC_ACT_OK)
		counts.in_leaf = counts.to_tap;
	if (orders.asleep)
		orders.asleep = 0;
	return verdict;
}

char _license[] SEC("license") = "Dual MIT/GPL";
