/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Devices as the kernel has them, and what stands in their queues. Where there is no queue, or it cannot be seen,
 * nothing does.
 */
#ifndef PACKTRAIN_QUEUE_BPF_H
#define PACKTRAIN_QUEUE_BPF_H

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

/* A link has so many queues that are looked at. */
#define QUEUES_MAX		64

struct gnet_stats_queue {
	__u32 backlog;
} __attribute__((preserve_access_index));

struct gnet_stats_basic_sync {
	__u64 bytes;
} __attribute__((preserve_access_index));

struct Qdisc {
	unsigned int flags;
	__u32 handle;
	struct gnet_stats_basic_sync bstats;
	struct gnet_stats_queue qstats;
	long privdata[];
} __attribute__((preserve_access_index));

/* Of `flags`. Of those that queue frames only pfifo_fast has it, which counts its bytes of each processor apart. */
#define TCQ_F_NOLOCK		0x100
/* What is taken for what stands there: as much as one frame may be. */
#define PFIFO_FAST_BACKLOG	65536

struct ptr_ring {
	int consumer_head;
	void **queue;
} __attribute__((preserve_access_index));

struct skb_array {
	struct ptr_ring ring;
} __attribute__((preserve_access_index));

#define PFIFO_FAST_BANDS	3

struct pfifo_fast_priv {
	struct skb_array q[PFIFO_FAST_BANDS];
} __attribute__((preserve_access_index));

struct netdev_queue {
	struct Qdisc *qdisc;
} __attribute__((preserve_access_index));

struct hlist_node {
	struct hlist_node *next;
} __attribute__((preserve_access_index));

struct hlist_head {
	struct hlist_node *first;
} __attribute__((preserve_access_index));

struct net {
	struct hlist_head *dev_index_head;
} __attribute__((preserve_access_index));

typedef struct {
	struct net *net;
} __attribute__((preserve_access_index)) possible_net_t;

struct bpf_mprog_entry;

struct net_device {
	struct netdev_queue *_tx;
	unsigned int real_num_tx_queues;
	struct Qdisc *qdisc;
	struct bpf_mprog_entry *tcx_egress;
	possible_net_t nd_net;
	struct hlist_node index_hlist;
	int ifindex;
} __attribute__((preserve_access_index));

struct sk_buff {
	struct net_device *dev;
} __attribute__((preserve_access_index));

/* Linux 6.2; tcx, by which the programs are attached that ask for it, is of 6.6. */
extern void *bpf_cast_to_kern_ctx(void *context) __ksym;
extern void *bpf_rdonly_cast(const void *object, __u32 type) __ksym;

static __always_inline struct net_device *device_of(struct __sk_buff *skb)
{
	struct sk_buff *kernel_skb = bpf_cast_to_kern_ctx(skb);

	return kernel_skb->dev;
}

/* The kernel keeps devices in so many lists, by their numbers. Longer ones than this are not searched. */
#define DEVICE_LISTS		256
#define DEVICES_SEARCHED	8

/* Another one of the same namespace. */
static __always_inline struct net_device *device_beside(struct net_device *dev, __u32 ifindex)
{
	__u64 at = (__u64)(ifindex & (DEVICE_LISTS - 1)) * bpf_core_type_size(struct hlist_head);
	struct hlist_head *list;
	struct hlist_node *node;
	struct net_device *other;

	/* A kernel without namespaces. */
	if (!bpf_core_field_exists(dev->nd_net.net))
		return NULL;
	list = bpf_rdonly_cast((void *)dev->nd_net.net->dev_index_head + at,
			       bpf_core_type_id_kernel(struct hlist_head));
	node = list->first;
	for (int i = 0; i < DEVICES_SEARCHED && node; i++) {
		other = bpf_rdonly_cast((void *)node -
					bpf_core_field_offset(struct net_device, index_hlist),
					bpf_core_type_id_kernel(struct net_device));
		if (other->ifindex == (int)ifindex)
			return other;
		node = other->index_hlist.next;
	}
	return NULL;
}

/* pfifo_fast counts bytes for each processor, which no program can add up: but a band holds a frame. */
static __always_inline int pfifo_fast_stands(struct Qdisc *qdisc)
{
	void *bands = (void *)qdisc + bpf_core_field_offset(struct Qdisc, privdata) +
		      bpf_core_field_offset(struct pfifo_fast_priv, q);
	struct ptr_ring *ring;
	void *head;

	for (int i = 0; i < PFIFO_FAST_BANDS; i++) {
		ring = bpf_rdonly_cast(bands + bpf_core_field_offset(struct skb_array, ring),
				       bpf_core_type_id_kernel(struct ptr_ring));
		if (!bpf_probe_read_kernel(&head, sizeof(head), ring->queue + ring->consumer_head) &&
		    head)
			return 1;
		bands += bpf_core_type_size(struct skb_array);
	}
	return 0;
}

static __always_inline struct Qdisc *qdisc_of(struct net_device *dev, __u32 number)
{
	__u64 at = (__u64)number * bpf_core_type_size(struct netdev_queue);
	struct netdev_queue *queue;

	queue = bpf_rdonly_cast((void *)dev->_tx + at,
				bpf_core_type_id_kernel(struct netdev_queue));
	return queue->qdisc;
}

/* Bytes that one of a device's queues has given away ever; `otherwise` where it does not count them in one place. */
static __always_inline __u64 queue_drained(struct net_device *dev, __u32 number, __u64 otherwise)
{
	struct Qdisc *qdisc = qdisc_of(dev, number < dev->real_num_tx_queues ? number : 0);
	__u64 bytes;

	if (qdisc->flags & TCQ_F_NOLOCK ||
	    bpf_probe_read_kernel(&bytes, sizeof(bytes),
				  (void *)qdisc + bpf_core_field_offset(struct Qdisc, bstats)))
		return otherwise;
	return bytes;
}

/* Bytes that stand in one of a device's queues. */
static __always_inline __u32 queue_backlog(struct net_device *dev, __u32 number)
{
	struct Qdisc *qdisc = qdisc_of(dev, number);

	if (qdisc->flags & TCQ_F_NOLOCK)
		return pfifo_fast_stands(qdisc) ? PFIFO_FAST_BACKLOG : 0;
	return qdisc->qstats.backlog;
}

#endif
