/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A frame's header, and addresses as numbers: first byte in bits 47..40, as the maps have them. */
#ifndef PACKTRAIN_ETHERNET_H
#define PACKTRAIN_ETHERNET_H

/*
 * What a direct frame carries from pt0 to the link, and at the other end from the link to pt0, in the place where
 * filters once kept their verdict (skb->tc_index): in the low byte the number of the link.
 */
#define ARRIVING		0x7000
#define LEAVING			0x7100
#define CARRIED_MASK		0xff00
/* And what the guard gives to our sockets behind it. */
#define GIVEN			0x7200

#define ETHERTYPE_IPV4		0x0800
#define ETHERTYPE_ARP		0x0806
#define ETHERTYPE_VLAN		0x8100
#define ETHERTYPE_QINQ		0x88a8
#define ETHERTYPE_IPV6		0x86dd
#define ETHERTYPE_PACKTRAIN	0x88b5

#define VLAN_ID_MASK		0x0fff

struct ethernet_header {
	__be16 destination[3];
	__be16 source[3];
	__be16 ether_type;
};

struct vlan_tag {
	__be16 protocol;
	__be16 control;
};

/*
 * Addresses are read and written in the words of a header that begins at one. In a packet it does not, which every
 * processor that packtrain is built for allows.
 */
typedef __be32 __attribute__((may_alias)) be32_alias;

static __always_inline __u64 destination_of(const struct ethernet_header *header)
{
	const be32_alias *high = (const void *)header->destination;

	return (__u64)bpf_ntohl(*high) << 16 | bpf_ntohs(header->destination[2]);
}

static __always_inline __u64 source_of(const struct ethernet_header *header)
{
	const be32_alias *low = (const void *)&header->source[1];

	return (__u64)bpf_ntohs(header->source[0]) << 32 | bpf_ntohl(*low);
}

/* Both addresses, which stand one after the other. */
struct addresses {
	__be32 words[3];
};

static __always_inline struct addresses addresses_of(__u64 destination, __u64 source)
{
	struct addresses addresses = { {
		bpf_htonl(destination >> 16),
		bpf_htonl(destination << 16 | source >> 32),
		bpf_htonl(source),
	} };

	return addresses;
}

static __always_inline void put_addresses(struct ethernet_header *header,
					  const struct addresses *addresses)
{
	be32_alias *words = (void *)header;

	words[0] = addresses->words[0];
	words[1] = addresses->words[1];
	words[2] = addresses->words[2];
}

/* What a frame becomes on the wire, where GRO puts it together again as it likes. */
static __always_inline __u32 segments_of(const struct __sk_buff *skb)
{
	return skb->gso_segs ? skb->gso_segs : 1;
}

#endif
