import { describe, expect, it } from 'vitest';
import { IssuerDocument, readMetadata } from '../../../src/downstream/users/issuer-document.js';
import { IssuerKeys, KeysMissing } from '../../../src/downstream/users/issuer-keys.js';
import { FakeClock } from '../../support/fake-clock.js';
import { flush } from '../../support/wire.js';
import { MemoryIssuer } from './memory-issuer.js';

const ISSUER = 'https://idp.example.com';
const MINUTE_MS = 60_000;
/** The first place where its metadata may be. */
const METADATA = `${ISSUER}/.well-known/oauth-authorization-server`;

async function keysOf(issuer: MemoryIssuer, jwksUri?: string) {
  const clock = new FakeClock();
  const faults: (string | undefined)[] = [];
  const read = () => readMetadata(issuer.issuer, issuer.fetch);
  const keys = new IssuerKeys({
    ...{ jwksUri, metadata: new IssuerDocument({ clock, read, onFault: () => {} }), clock, fetch: issuer.fetch },
    onFault: (fault) => faults.push(fault),
  });
  const has = async (kid: string) => {
    const found = Promise.resolve(keys.find({ alg: 'ES256', kid }, { payload: '', signature: '' }));
    return await found.then(
      () => true,
      (error: unknown) => (error instanceof KeysMissing ? 'missing' : false),
    );
  };
  /** Requests for the document with the keys. */
  const readings = () => issuer.asked.filter((url) => url === issuer.jwksUri).length;
  return { clock, keys, faults, has, readings };
}

describe('the keys of an issuer', () => {
  it.each([
    [ISSUER, [`${ISSUER}/.well-known/oauth-authorization-server`, `${ISSUER}/.well-known/openid-configuration`]],
    [
      `${ISSUER}/tenant`,
      [
        `${ISSUER}/.well-known/oauth-authorization-server/tenant`,
        `${ISSUER}/.well-known/openid-configuration/tenant`,
        `${ISSUER}/tenant/.well-known/openid-configuration`,
      ],
    ],
  ])('are found through the metadata of %s', async (name, urls) => {
    const issuer = await MemoryIssuer.open(name);
    const { has } = await keysOf(issuer);
    expect(await has('one')).toBe(true);
    expect(issuer.asked).toEqual([...urls, `${name}/keys`]);
  });

  it('are read at `jwksUri` without the metadata', async () => {
    const issuer = await MemoryIssuer.open();
    const { has } = await keysOf(issuer, issuer.jwksUri);
    expect(await has('one')).toBe(true);
    expect(issuer.asked).toEqual([issuer.jwksUri]);
  });

  it('are not taken from the metadata of another issuer', async () => {
    const issuer = await MemoryIssuer.open();
    const url = `${ISSUER}/.well-known/openid-configuration`;
    issuer.documents.set(url, { issuer: 'https://evil.example', jwks_uri: issuer.jwksUri });
    const { has, faults, readings } = await keysOf(issuer);
    expect(await has('one')).toBe('missing');
    expect(readings()).toBe(0);
    expect(faults).toHaveLength(1);
  });

  it('are read once for many tokens', async () => {
    const { has, readings } = await keysOf(await MemoryIssuer.open());
    expect(await Promise.all([has('one'), has('one'), has('one')])).toEqual([true, true, true]);
    expect(await has('one')).toBe(true);
    expect(readings()).toBe(1);
  });

  it('are read again for a new key, at most every 30 s', async () => {
    const issuer = await MemoryIssuer.open();
    const { clock, has, readings } = await keysOf(issuer);
    await has('one');
    await issuer.addKey('two');
    expect(await has('two')).toBe(false);
    clock.advance(30_000);
    expect(await has('two')).toBe(true);
    for (const kid of ['a', 'b', 'c']) expect(await has(kid)).toBe(false);
    expect(readings()).toBe(2);
  });

  it('lose a withdrawn key within ten minutes', async () => {
    const issuer = await MemoryIssuer.open();
    await issuer.addKey('two');
    const { clock, has } = await keysOf(issuer);
    expect(await has('two')).toBe(true);
    issuer.withdraw('two');
    clock.advance(10 * MINUTE_MS - 1);
    expect(await has('two')).toBe(true);
    clock.advance(1);
    expect([await has('two'), await has('one')]).toEqual([false, true]);
  });

  it('stay through an outage of the issuer, which is reported once', async () => {
    const issuer = await MemoryIssuer.open();
    const { clock, has, faults } = await keysOf(issuer);
    expect(await has('one')).toBe(true);
    issuer.isDown = true;
    for (let day = 0; day < 3; day += 1) {
      clock.advance(24 * 60 * MINUTE_MS);
      expect(await has('one')).toBe(true);
    }
    expect(faults).toEqual([`${METADATA}: the connection is refused`]);
    issuer.isDown = false;
    await issuer.addKey('two');
    clock.advance(MINUTE_MS);
    expect(await has('two')).toBe(true);
    expect(faults).toEqual([`${METADATA}: the connection is refused`, undefined]);
  });

  it('are awaited for 5 s at most if there are older ones', async () => {
    const issuer = await MemoryIssuer.open();
    const { clock, keys, has } = await keysOf(issuer);
    await has('one');
    let answer = () => {};
    issuer.hold = new Promise<void>((resolve) => {
      answer = resolve;
    });
    clock.advance(10 * MINUTE_MS);
    const found = has('one');
    await flush();
    clock.advance(5_000);
    expect(await found).toBe(true);
    answer();
    await keys.refresh();
    expect(clock.pending).toBe(0);
  });

  it('are missing until the issuer was reachable once, and found soon after', async () => {
    const issuer = await MemoryIssuer.open();
    issuer.isDown = true;
    const { clock, has } = await keysOf(issuer);
    expect(await has('one')).toBe('missing');
    issuer.isDown = false;
    expect(await has('one')).toBe('missing');
    clock.advance(2_000);
    expect(await has('one')).toBe(true);
  });

  it.each([
    ['no JSON', 'hello'],
    ['no object', []],
    ['no keys', { keys: 'none' }],
  ])('are not replaced by a document with %s', async (_, document) => {
    const issuer = await MemoryIssuer.open();
    const { clock, has, faults } = await keysOf(issuer, `${ISSUER}/other`);
    issuer.documents.set(`${ISSUER}/other`, document);
    expect(await has('one')).toBe('missing');
    expect(faults).toHaveLength(1);
    expect(clock.pending).toBe(0);
  });
});
