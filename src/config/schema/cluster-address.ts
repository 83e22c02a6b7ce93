/** An address of the network. An IPv6 address has no brackets. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

export interface StoreLocation {
  /** The address of the server; or those of the Sentinels, if `sentinelMaster` is set. */
  readonly addresses: readonly [Address, ...Address[]];
  /** The name by which the Sentinels know the server. */
  readonly sentinelMaster?: string;
  readonly isTls: boolean;
  readonly database: number;
}

/**
 * Thrown for a text that cannot be used as an address. The message says what was found and what to write instead, and quotes
 * nothing that may be secret.
 */
export class AddressFault extends Error {
  override readonly name = 'AddressFault';
}

const STORE_FORM =
  'expected a URL such as redis://HOST:6379, rediss://HOST:6379, valkey://HOST:6379 or redis-sentinel://HOST:26379,HOST:26379/NAME';

/** Parses the URL of a store. Throws an `AddressFault`. */
export function storeLocation(text: string): StoreLocation {
  const [, scheme = '', rest = ''] = /^([a-z-]+):\/\/(.*)$/i.exec(text) ?? [];
  const kind = SCHEMES.get(scheme.toLowerCase());
  if (kind === undefined) throw new AddressFault(`found a string that is no URL of a store; ${STORE_FORM}`);
  const at = rest.lastIndexOf('@');
  if (at >= 0) {
    throw new AddressFault(
      rest.slice(0, at).includes(':')
        ? 'found a URL with a password; write the password to a file, and set `storePasswordFile` to its path'
        : 'found a URL with a user; set `storeUser` to its name',
    );
  }
  const [, hosts = '', path = ''] = /^([^/?#]*)(?:\/([^/?#]*))?$/.exec(rest) ?? [];
  const [first, ...others] = hosts.split(',').map((host) => addressOf(host, kind.isSentinel ? 26_379 : 6_379));
  if (first === undefined || (others.length > 0 && !kind.isSentinel))
    throw new AddressFault(`found a URL of a store without a valid host, or with several; ${STORE_FORM}`);
  if (others.includes(undefined)) throw new AddressFault(`found a Sentinel without a valid host; ${STORE_FORM}`);
  const addresses = [first, ...others.flatMap((address) => address ?? [])] as const;
  if (kind.isSentinel && path === '')
    throw new AddressFault(
      'found Sentinels without the name of the server that they watch; append it, as in /mymaster',
    );
  if (!kind.isSentinel && !/^\d{0,4}$/.test(path))
    throw new AddressFault('found a URL of a store with a path that is not the number of a database, such as /0');
  const { isTls } = kind;
  return kind.isSentinel
    ? { addresses, isTls, database: 0, sentinelMaster: path }
    : { addresses, isTls, database: Number(path) };
}

const SCHEMES = new Map(
  ['redis', 'valkey'].flatMap((name) =>
    ['', 's'].flatMap((tls) =>
      ['', '-sentinel'].map((sentinel) => [
        `${name}${tls}${sentinel}`,
        { isTls: tls === 's', isSentinel: sentinel !== '' },
      ]),
    ),
  ),
);

/** Parses `HOST:PORT`. Throws an `AddressFault`. */
export function hostAndPort(text: string): Address {
  const address = addressOf(text);
  if (address === undefined)
    throw new AddressFault('found no address; expected HOST:PORT, such as 10.0.0.4:7412 or [fd00::4]:7412');
  return address;
}

/** Parses the address at which the other gateways of a cluster reach this one. Throws an `AddressFault`. */
export function reachableAddress(text: string): Address {
  const address = hostAndPort(text);
  if (!/^(?:0\.0\.0\.0|::|\*)$/.test(address.host)) return address;
  throw new AddressFault(
    'found an address that stands for all addresses of this machine; expected one that others can connect to',
  );
}

/** Writes an address as `HOST:PORT`, with brackets around an IPv6 address. */
export function addressText({ host, port }: Address): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

function addressOf(text: string, standard?: number): Address | undefined {
  const [, v6, name, digits] = /^(?:\[([0-9a-f:.]+)\]|([\w.-]+))(?::(\d{1,5}))?$/i.exec(text) ?? [];
  const host = v6 ?? name;
  const port = digits === undefined ? standard : Number(digits);
  if (host === undefined || port === undefined || port < 1 || port > 65_535) return undefined;
  return v6 === undefined || URL.canParse(`http://[${v6}]`) ? { host, port } : undefined;
}
