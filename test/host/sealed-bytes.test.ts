import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { openBytes, sealBytes } from '../../src/host/sealed-bytes.js';
import { decrypt, encrypt } from '../../src/upstream/auth/vault.js';

const [KEY, OTHER] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
const TEXT = 'a text of some length';

/** Both forms in which texts are sealed: the bytes, and the file of a login, in which the tag comes first. */
const FORMS = {
  bytes: {
    seal: (key: Buffer, place: string) => sealBytes([key], Buffer.from(TEXT), Buffer.from(place)),
    open: (key: Buffer, place: string, sealed: Buffer) => openBytes([key], sealed, Buffer.from(place))?.toString(),
    start: 0,
  },
  login: {
    seal: (key: Buffer, place: string) => encrypt(key, place, TEXT),
    open: decrypt,
    start: 'trunkline login 1\n'.length,
  },
};

const flipped = (sealed: Buffer, at: number) => {
  const copy = Buffer.from(sealed);
  copy[at] = (copy[at] ?? 0) ^ 1;
  return copy;
};

describe.each(Object.entries(FORMS))('a sealed text as %s', (_, { seal, open, start }) => {
  const sealed = seal(KEY, 'here');

  it('is opened with its key in its place, and is another one each time', () => {
    expect(open(KEY, 'here', sealed)).toBe(TEXT);
    expect(seal(KEY, 'here').equals(sealed)).toBe(false);
    expect(sealed.includes('some length')).toBe(false);
  });

  it.each<[string, () => string | undefined]>([
    ['with another key', () => open(OTHER, 'here', sealed)],
    ['in another place', () => open(KEY, 'there', sealed)],
    ['with another nonce', () => open(KEY, 'here', flipped(sealed, start))],
    ['with another byte', () => open(KEY, 'here', flipped(sealed, start + 28))],
    ['with another end', () => open(KEY, 'here', flipped(sealed, sealed.length - 1))],
    ['with a byte less', () => open(KEY, 'here', sealed.subarray(0, -1))],
    ['with a byte more', () => open(KEY, 'here', Buffer.concat([sealed, Buffer.alloc(1)]))],
    ['with a shorter tag', () => open(KEY, 'here', sealed.subarray(0, start + 12 + 4))],
    ['with nothing but its head', () => open(KEY, 'here', sealed.subarray(0, start))],
    ['if it is anything else', () => open(KEY, 'here', randomBytes(64))],
  ])('is not opened %s', (_name, opened) => {
    expect(opened()).toBeUndefined();
  });
});

describe('keys', () => {
  it('all open, and the first one seals', () => {
    const nowhere = Buffer.alloc(0);
    const sealed = sealBytes([OTHER, KEY], Buffer.from(TEXT), nowhere);
    expect(openBytes([KEY], sealed, nowhere)).toBeUndefined();
    expect(openBytes([KEY, OTHER], sealed, nowhere)?.toString()).toBe(TEXT);
  });

  it('open a login that an earlier version has stored', () => {
    const stored = 'dHJ1bmtsaW5lIGxvZ2luIDEKYBGkU0wPBOkhlXKsbaypQYgVEBag9zq3+0o+b6X1C0SsEubAy6HBTsTQwitM67q19A==';
    expect(decrypt(KEY, 'here', Buffer.from(stored, 'base64'))).toBe(TEXT);
  });
});
