import { describe, expect, it } from 'vitest';
import { idKey } from '../../src/jsonrpc/id-key.js';

function keyOf(token: string): string | number {
  return idKey(Buffer.from(`{"id":${token}}`), { start: 6, end: 6 + Buffer.byteLength(token) });
}

describe('the key of an id', () => {
  it.each([0, 7, 10, 4_711, 999_999_999])('is the number %d itself', (id) => {
    expect(keyOf(String(id))).toBe(id);
  });

  it.each(['"7"', '7.0', '-7', '7e0', '1000000000', '00', '""', '"é"'])(
    'is the text of %s as it is written',
    (token) => {
      expect(keyOf(token)).toBe(token);
    },
  );
});
