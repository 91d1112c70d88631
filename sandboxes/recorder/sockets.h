// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
/* The parts that describe sockets: the kernel's addresses, and those given in calls. */
#ifndef SOCKETS_H
#define SOCKETS_H

#include "write.h"

static __always_inline void put_unix(struct scratch *s, u8 tag, struct sock *sock)
{
    if (!bpf_core_type_exists(struct unix_sock) || !sock)
        return;
    struct unix_sock *end = (struct unix_sock *)sock;
    struct unix_address *address = READ(end, addr);
    if (!address)
        return;
    u32 length = READ(address, len);
    void *name = (void *)address + __builtin_preserve_field_info(((struct unix_address *)0)->name, 0);
    if (length > ADDRESS_MAX - 1)
        length = ADDRESS_MAX - 1;
    asm volatile("%0 &= 127" : "+r"(length));
    if (length > 0 && !bpf_probe_read_kernel(room(s), length, name))
        put(s, tag, 0, length);
}

static __always_inline void put_inet(struct scratch *s, u8 tag, struct sock *sock, u16 family, u16 port, int remote)
{
    u8 *out = room(s);

    *(u16 *)out = family;
    *(u16 *)(out + 2) = port;
    if (family == AF_INET) {
        *(u32 *)(out + 4) = remote ? READ(sock, __sk_common.skc_daddr) : READ(sock, __sk_common.skc_rcv_saddr);
        put(s, tag, 0, 8);
        return;
    }
    *(u32 *)(out + 4) = 0;
    if (bpf_core_field_exists(sock->__sk_common.skc_v6_daddr)) {
        struct in6_addr found = remote ? READ(sock, __sk_common.skc_v6_daddr) : READ(sock, __sk_common.skc_v6_rcv_saddr);
        __builtin_memcpy(out + 8, &found, sizeof found);
        put(s, tag, 0, 24);
    }
}

/* The socket behind one of the current task's descriptors, and its inode; none where it is something else. */
static __always_inline struct sock *sock_of(u64 number, struct inode **inode)
{
    struct file *file = file_of(bpf_get_current_task_btf(), number);

    if (!file)
        return 0;
    *inode = READ(file, f_inode);
    if ((READ(*inode, i_mode) & S_IFMT) != S_IFSOCK)
        return 0;
    struct socket *socket = READ(file, private_data);
    return READ(socket, sk);
}

__noinline int put_socket(u32 which, u64 number)
{
    struct scratch *s = scratch_of(which);
    struct inode *inode = 0;
    if (!s)
        return 0;
    struct sock *sock = sock_of(number, &inode);
    if (!sock)
        return 0;
    u16 family = READ(sock, __sk_common.skc_family);
    struct socket_facts *facts = room(s);
    facts->family = family;
    facts->type = READ(sock, sk_type);
    facts->protocol = READ(sock, sk_protocol);
    facts->state = READ(sock, __sk_common.skc_state);
    put(s, PART_SOCKET, 0, sizeof *facts);
    put_identity(s, inode);
    if (family == AF_INET || family == AF_INET6) {
        put_inet(s, PART_LOCAL, sock, family, bpf_htons(READ(sock, __sk_common.skc_num)), 0);
        u16 port = READ(sock, __sk_common.skc_dport);
        if (port)
            put_inet(s, PART_REMOTE, sock, family, port, 1);
    } else if (family == AF_UNIX) {
        put_unix(s, PART_LOCAL, sock);
        if (bpf_core_type_exists(struct unix_sock))
            put_unix(s, PART_REMOTE, READ((struct unix_sock *)sock, peer));
    }
    return 0;
}

/* Is this one end of a pair of sockets that have no name? Nobody can have come to it from outside. */
__noinline int is_nameless_pair(u64 number)
{
    struct inode *inode = 0;

    if (!bpf_core_type_exists(struct unix_sock))
        return 0;
    struct sock *sock = sock_of(number, &inode);
    if (!sock || READ(sock, __sk_common.skc_family) != AF_UNIX || READ((struct unix_sock *)sock, addr))
        return 0;
    struct unix_sock *peer = (struct unix_sock *)READ((struct unix_sock *)sock, peer);
    return peer && !READ(peer, addr);
}

__noinline int put_address(u32 which, u64 address, u64 size)
{
    struct scratch *s = scratch_of(which);
    if (!s)
        return 0;
    u32 length = size > ADDRESS_MAX - 1 ? ADDRESS_MAX - 1 : size;

    if (!address || !length)
        return 0;
    asm volatile("%0 &= 127" : "+r"(length));
    if (bpf_probe_read_user(room(s), length, (void *)address))
        ((struct record *)s->data)->flags |= FLAG_UNREADABLE;
    else
        put(s, PART_ADDRESS, PART_CLAIM, length);
    return 0;
}

/* struct msghdr begins with the address and its length, on both architectures: <linux/socket.h>. */
static __always_inline void put_message(struct scratch *s, u64 message)
{
    struct {
        u64 name;
        u32 length;
        u32 spare;
    } head = {};

    if (!bpf_probe_read_user(&head, sizeof head, (void *)message))
        put_address(s->which, head.name, head.length);
}

#endif
