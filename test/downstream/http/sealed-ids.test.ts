import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseEventId, SealedIds } from '../../../src/downstream/http/sealed-ids.js';
import { idsOf } from './serving.js';

/** The params of `initialize` of real clients. */
const CLIENTS: Readonly<Record<string, object>> = JSON.parse(
  readFileSync(join(import.meta.dirname, '..', '..', 'fixtures', 'initialize-params.json'), 'utf8'),
);
const OWNER = { principal: 'somebody', endpoint: undefined };
const PARAMS = Buffer.from('{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x"}}');
const CHARACTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/ ';
const DAY_MS = 86_400_000;

describe('the id of a session', () => {
  it('F310: has what the client sent, for every process with the key', () => {
    const id = idsOf('aaaaaaaaaa').sealSession(PARAMS, OWNER);
    expect(id).toMatch(/^t1\.aaaaaaaaaa\.[A-Za-z0-9_-]+$/);
    const opened = idsOf('bbbbbbbbbb').openSession(id, OWNER);
    expect(Buffer.from(opened?.initialize ?? '').toString()).toBe(PARAMS.toString());
  });

  it('has its age', () => {
    let now = 1_700_000_000_000;
    const ids = idsOf('aaaaaaaaaa', { now: () => now });
    const id = ids.sealSession(PARAMS, OWNER);
    now += DAY_MS;
    expect(ids.openSession(id, OWNER)?.age).toBe(DAY_MS);
  });

  it('differs each time, because it is a secret', () => {
    const ids = idsOf('aaaaaaaaaa');
    expect(ids.sealSession(PARAMS, OWNER)).not.toBe(ids.sealSession(PARAMS, OWNER));
  });

  it.each([
    ['another principal', { principal: 'nobody', endpoint: undefined }],
    ['another endpoint', { principal: 'somebody', endpoint: 'files' }],
    ['an endpoint without a name', { principal: 'somebody', endpoint: '' }],
  ])('is no id for %s', (_who, other) => {
    const ids = idsOf('aaaaaaaaaa');
    expect(ids.openSession(ids.sealSession(PARAMS, OWNER), other)).toBeUndefined();
    expect(ids.openSession(ids.sealSession(PARAMS, other), OWNER)).toBeUndefined();
  });

  it('F311: is no id any more when any character is another one, also if it means the same bytes', () => {
    const ids = idsOf('aaaaaaaaaa');
    const id = ids.sealSession(PARAMS, OWNER);
    let accepted = 0;
    let tried = 0;
    for (let at = 0; at < id.length; at += 1) {
      for (const character of CHARACTERS) {
        const mutation = id.slice(0, at) + character + id.slice(at + 1);
        if (mutation === id) continue;
        tried += 1;
        if (ids.openSession(mutation, OWNER) !== undefined) accepted += 1;
      }
    }
    expect(tried).toBeGreaterThan(10_000);
    expect(accepted).toBe(0);
  });

  it('F311: is no id any more when characters are missing, added or in another order', () => {
    const ids = idsOf('aaaaaaaaaa');
    const id = ids.sealSession(PARAMS, OWNER);
    const text = fc.string({ unit: fc.constantFrom(...CHARACTERS), maxLength: 4 });
    fc.assert(
      fc.property(fc.nat(id.length), fc.nat(8), text, (at, length, put) => {
        const mutation = id.slice(0, at) + put + id.slice(at + length);
        fc.pre(mutation !== id);
        expect(ids.openSession(mutation, OWNER)).toBeUndefined();
      }),
      { numRuns: 2_000 },
    );
    for (const other of ['', 't1', 't1.aaaaaaaaaa.', `${id}=`, `${id}\n`, id.replace('t1.', 't2.')])
      expect(ids.openSession(other, OWNER)).toBeUndefined();
  });

  it('F315: is opened by a process with a later key for as long as that process has the earlier one, too', () => {
    const [older, newer] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
    const withKeys = (...keys: [Buffer, ...Buffer[]]) =>
      new SealedIds({ sessionKeys: keys, eventKeys: keys, instance: 'aaaaaaaaaa' });
    const id = withKeys(older).sealSession(PARAMS, OWNER);
    const rotated = withKeys(newer, older);
    expect(rotated.openSession(id, OWNER)).toBeDefined();
    expect(withKeys(older, newer).openSession(rotated.sealSession(PARAMS, OWNER), OWNER)).toBeDefined();
    expect(withKeys(newer).openSession(id, OWNER)).toBeUndefined();
  });

  it.each(Object.entries(CLIENTS))('is short for %s, as recorded', (_client, params) => {
    const id = idsOf('aaaaaaaaaa').sealSession(Buffer.from(JSON.stringify(params)), OWNER);
    expect(id.length).toBeLessThan(600);
  });

  it('is random for a client that says a lot about itself, because proxies refuse long headers', () => {
    const ids = idsOf('aaaaaaaaaa');
    const id = ids.sealSession(Buffer.alloc(3_100, 'x'), OWNER);
    expect(id).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(ids.openSession(id, OWNER)).toBeUndefined();
    expect(ids.sealSession(Buffer.alloc(3_000, 'x'), OWNER).length).toBeLessThanOrEqual(4_096);
  });
});

describe('the id of an event', () => {
  const CALL = [{ id: '"x"', method: 'tools/call' }];
  const idOf = (end: string, stream = 3) => `${stream}.14.${end}`;

  it('names its process, its stream and its place', () => {
    expect(parseEventId(idOf(idsOf('aaaaaaaaaa').sealStream('s', 3, CALL)))).toEqual({
      ...{ instance: 'aaaaaaaaaa', stream: 3, seq: 14 },
    });
    expect(parseEventId('3.14.aaaaaaaaaa')).toEqual({ instance: 'aaaaaaaaaa', stream: 3, seq: 14 });
  });

  it('F312: tells every process with the key which request its stream answers', () => {
    const end = idsOf('aaaaaaaaaa').sealStream('s', 3, CALL);
    expect(idsOf('bbbbbbbbbb').openStream('s', idOf(end))).toEqual(CALL);
    expect(idsOf('bbbbbbbbbb', { key: 2 }).openStream('s', idOf(end))).toBeUndefined();
  });

  it('is valid for its session and its stream only, and unchanged', () => {
    const ids = idsOf('aaaaaaaaaa');
    const end = ids.sealStream('s', 3, CALL);
    expect(ids.openStream('other', idOf(end))).toBeUndefined();
    expect(ids.openStream('s', idOf(end, 4))).toBeUndefined();
    for (let at = 0; at < end.length; at += 1) {
      const mutation = `${end.slice(0, at)}${end[at] === 'b' ? 'c' : 'b'}${end.slice(at + 1)}`;
      expect(ids.openStream('s', idOf(mutation))).toBeUndefined();
    }
  });

  it('names no request if the id of the request is very long', () => {
    const end = idsOf('aaaaaaaaaa').sealStream('s', 3, [{ id: `"${'x'.repeat(1_000)}"`, method: 'tools/call' }]);
    expect(end).toBe('aaaaaaaaaa');
  });
});
