import { describe, expect, it } from 'vitest';
import { remoteUrl } from '../../../src/config/resolve/resolve-config.js';
import { loopbackOf } from '../../../src/config/schema/settings.js';
import { checkBind } from '../../../src/downstream/http/bind.js';
import { isLoopback } from '../../../src/host/http/addresses.js';
import { createFetch } from '../../../src/host/http/fetch.js';
import { systemClock } from '../../../src/host/observe/system-clock.js';
import { findRegistrations } from '../../../src/setup/doctor/registrations.js';
import { load } from '../../config/loading.js';

/** Hosts as in a URL, and whether they mean this machine. */
const HOSTS: readonly (readonly [host: string, isThisMachine: boolean])[] = [
  ['localhost', true],
  ['LOCALHOST', true],
  ['localhost.', true],
  ['127.0.0.1', true],
  ['127.0.0.2', true],
  ['127.255.255.254', true],
  ['[::1]', true],
  ['[0:0:0:0:0:0:0:1]', true],
  ['[::ffff:127.0.0.1]', true],
  ['[::ffff:7f00:2]', true],
  // Decided by a resolver, which may ask a DNS server.
  ['app.localhost', false],
  ['localhost.example.com', false],
  ['127.0.0.1.example.com', false],
  ['localhost..', false],
  ['128.0.0.1', false],
  ['0.0.0.0', false],
  ['10.0.0.1', false],
  ['[::]', false],
  ['[::2]', false],
  ['[::ffff:10.0.0.1]', false],
  ['[64:ff9b::7f00:1]', false],
];

const accepts = (work: () => unknown) => {
  try {
    return work() !== undefined;
  } catch {
    return false;
  }
};
const NONE = { tokens: [], allowedHosts: [], allowedOrigins: [] };
const FOUND = { place: {}, name: 'trunkline', isDisabled: false };

/** Each place that asks. Resolves with whether it takes the host for this machine. */
const PLACES: Readonly<Record<string, (host: string) => boolean | Promise<boolean>>> = {
  'the definition': isLoopback,
  'the URL of a server, which may be plain': (host) => accepts(() => remoteUrl(`http://${host}:1/mcp`)),
  'the URLs of users and issuers, which may be plain': (host) => {
    const http = { publicUrl: `http://${host}:1` };
    return accepts(() => load(JSON.stringify({ servers: { a: { command: 'x' } }, gateway: { http } })));
  },
  'the address of the metrics': (host) => loopbackOf(`${host}:9464`) !== undefined,
  'the address of HTTP without a token': (host) =>
    checkBind({ host: host.replace(/[[\]]/g, ''), port: 1, noAuth: true, ...NONE }) === undefined,
  'the entry of a client that is this gateway': (host) =>
    findRegistrations([{ ...FOUND, run: { kind: 'remote', url: `http://${host}:1/mcp` } } as never], {} as never)
      .length > 0,
  'a document for a server on another machine': async (host) => {
    const fetch = createFetch({ clock: systemClock, server: new URL('https://203.0.113.7/mcp') });
    // One on another machine is refused, too, because the URL is plain.
    const { message } = await fetch(`http://${host}:1/`).catch((error) => error);
    return message.includes('it is this machine');
  },
};

describe('whether a host is this machine', () => {
  it.each(Object.entries(PLACES))('is answered alike by %s', async (_, asks) => {
    const answers: (readonly [string, boolean])[] = [];
    for (const [host] of HOSTS) answers.push([host, await asks(host)]);
    expect(answers).toEqual(HOSTS);
  });
});
