/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the kernel knows of the interface of a frame: its addresses, and who takes what comes in by it. */
#ifndef PACKTRAIN_LINK_BPF_H
#define PACKTRAIN_LINK_BPF_H

#include <bpf/bpf_core_read.h>

/* Of an interface that has more than these, some are not link-local. */
#define IPV6_ADDRESSES_MAX	4

struct in_ifaddr;

struct in_device {
	struct in_ifaddr *ifa_list;
} __attribute__((preserve_access_index));

struct list_head {
	struct list_head *next;
} __attribute__((preserve_access_index));

struct inet6_dev {
	struct list_head addr_list;
} __attribute__((preserve_access_index));

struct inet6_ifaddr {
	struct in6_addr addr;
	struct list_head if_list;
} __attribute__((preserve_access_index));

struct net_device {
	struct in_device *ip_ptr;
	struct inet6_dev *ip6_ptr;
	void *rx_handler;
	void *nf_hooks_ingress;
} __attribute__((preserve_access_index));

struct sk_buff {
	struct net_device *dev;
} __attribute__((preserve_access_index));

#ifdef WITHOUT_KERNEL_TYPES

/* There are no direct frames then, so none without a mark. */
static __always_inline int link_has_address(struct __sk_buff *skb)
{
	return 1;
}

static __always_inline int link_has_receive_handler(struct __sk_buff *skb)
{
	return 1;
}

static __always_inline int link_has_ingress_hooks(struct __sk_buff *skb)
{
	return 1;
}

#else

/* Linux 6.2: without it there are no direct frames, so none without a mark. */
extern void *bpf_cast_to_kern_ctx(void *context) __ksym __weak;

static __always_inline int read_pointer(void **value, const void *at)
{
	return bpf_probe_read_kernel(value, sizeof(*value), at);
}

static __always_inline int has_ipv6_address(void *device)
{
	void *head = device + bpf_core_field_offset(struct inet6_dev, addr_list);
	void *at;
	__be16 begin;

	if (read_pointer(&at, head))
		return 1;
	for (int i = 0; i < IPV6_ADDRESSES_MAX; i++) {
		if (at == head)
			return 0;
		at -= bpf_core_field_offset(struct inet6_ifaddr, if_list);
		if (bpf_probe_read_kernel(&begin, sizeof(begin),
					  at + bpf_core_field_offset(struct inet6_ifaddr, addr)))
			return 1;
		if ((bpf_ntohs(begin) & LINK_LOCAL_MASK) != LINK_LOCAL)
			return 1;
		at += bpf_core_field_offset(struct inet6_ifaddr, if_list);
		if (read_pointer(&at, at))
			return 1;
	}
	return at != head;
}

static __always_inline void *link_of(struct __sk_buff *skb)
{
	struct sk_buff *kernel_skb;

	if (!bpf_cast_to_kern_ctx)
		return 0;
	kernel_skb = bpf_cast_to_kern_ctx(skb);
	return kernel_skb->dev;
}

/* Other than link-local ones; or it cannot be told. */
static __always_inline int link_has_address(struct __sk_buff *skb)
{
	void *device = link_of(skb), *at;

	if (!device || read_pointer(&at, device + bpf_core_field_offset(struct net_device, ip_ptr)))
		return 1;
	/* Not even the loopback's is without it, unless its MTU is too small for IPv4. */
	if (at) {
		if (read_pointer(&at, at + bpf_core_field_offset(struct in_device, ifa_list)) || at)
			return 1;
	}
	if (read_pointer(&at, device + bpf_core_field_offset(struct net_device, ip6_ptr)))
		return 1;
	return at && has_ipv6_address(at);
}

/* Of a bridge, a macvlan or the like, which is asked behind tc and before sockets for one type; or it cannot be told. */
static __always_inline int link_has_receive_handler(struct __sk_buff *skb)
{
	void *device = link_of(skb), *at;

	return !device ||
	       read_pointer(&at, device + bpf_core_field_offset(struct net_device, rx_handler)) ||
	       at;
}

/* Of netfilter, which look at all that comes, behind tc; or it cannot be told. */
static __always_inline int link_has_ingress_hooks(struct __sk_buff *skb)
{
	void *device = link_of(skb), *at;

	if (!bpf_core_field_exists(struct net_device, nf_hooks_ingress))
		return 0;
	return !device ||
	       read_pointer(&at, device + bpf_core_field_offset(struct net_device, nf_hooks_ingress)) ||
	       at;
}

#endif

#endif
