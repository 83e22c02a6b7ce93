import { BlockList, isIP } from 'node:net';

/*
 * The kinds of addresses, for all rules that depend on them. Hosts are the host names of URLs, with or without the brackets of an
 * IPv6 address, or addresses. An IPv4 address that is written as an IPv6 address (::ffff:127.0.0.1) is of the same kind. So is an
 * address behind NAT64 (64:ff9b::10.0.0.1, RFC 6052), except that none of these is on this machine.
 */

const LOOPBACK = listOf(['127.0.0.0', 8], ['::1', 128]);
const PRIVATE = listOf(
  ...([
    ['0.0.0.0', 8],
    ['10.0.0.0', 8],
    ['100.64.0.0', 10],
    ['172.16.0.0', 12],
    ['192.0.0.0', 24],
    ['192.168.0.0', 16],
    ['198.18.0.0', 15],
    ['240.0.0.0', 4],
  ] as const),
  ...([
    // IPv4-compatible and 6to4 addresses, which a router may translate to the IPv4 address in them.
    ['::', 96],
    ['2002::', 16],
    ['fc00::', 7],
    ['fec0::', 10],
    // Addresses for translation within a network (RFC 8215).
    ['64:ff9b:1::', 48],
  ] as const),
);
const LINK_LOCAL = listOf(['169.254.0.0', 16], ['fe80::', 10], ['fd00:ec2::', 32]);

/** The names under which programs of this machine reach a server on loopback, as in `Host` before the port. */
export const LOOPBACK_NAMES: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];

/**
 * Whether a host means this machine. The only name that does is `localhost`, with or without the dot of the root, because a DNS
 * server may decide about others, such as `app.localhost`.
 */
export function isLoopback(host: string): boolean {
  return isLocalhost(host) || LOOPBACK.has(bare(host));
}

/** Whether the network can neither read nor change requests to a URL, because it is encrypted or leads to this machine. */
export function isProtected({ protocol, hostname }: URL): boolean {
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));
}

/** Whether a host is the name of both loopback addresses, of IPv4 and of IPv6. */
export function isLocalhost(host: string): boolean {
  return /^localhost\.?$/i.test(host);
}

/** Whether an address is on this machine, private or reserved, so that it means another machine elsewhere. */
export function isInside(address: string): boolean {
  return LOOPBACK.hasTranslated(address) || PRIVATE.hasTranslated(address);
}

/** Whether an address is link-local, or of the metadata service of a cloud. No authorization server has such an address. */
export function isLinkLocal(address: string): boolean {
  return LINK_LOCAL.hasTranslated(address);
}

/** Whether a host is a name that another network can resolve to the same server. Addresses are no names. */
export function isPublicName(host: string): boolean {
  const name = host.replace(/\.$/, '').toLowerCase();
  return isIP(bare(name)) === 0 && name.includes('.') && !/\.(?:internal|local|localhost|home\.arpa)$/.test(name);
}

/** The host of a URL without the brackets of an IPv6 address. */
export function bare(host: string): string {
  return host.replace(/^\[|\]$/g, '');
}

function listOf(...subnets: readonly (readonly [string, number])[]) {
  const list = new BlockList();
  const translated = new BlockList();
  for (const [net, bits] of subnets) {
    const isIpv6 = net.includes(':');
    list.addSubnet(net, bits, isIpv6 ? 'ipv6' : 'ipv4');
    if (!isIpv6) translated.addSubnet(`64:ff9b::${net}`, 96 + bits, 'ipv6');
  }
  const has = (address: string) => isIP(address) !== 0 && list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
  return {
    has,
    hasTranslated: (address: string) => has(address) || (isIP(address) === 6 && translated.check(address, 'ipv6')),
  };
}
