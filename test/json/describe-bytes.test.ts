import { expect, it } from 'vitest';
import { describeBytes } from '../../src/json/describe-bytes.js';

const MIB = 1024 ** 2;

it.each([
  [0, '0 B'],
  [1023, '1023 B'],
  [1024, '1 KiB'],
  [512 * MIB, '512 MiB'],
  [1024 * MIB, '1 GiB'],
  [1229 * MIB, '1.3 GiB'],
  [3000 * 1024 ** 4, '3000 TiB'],
])('%d bytes read as %s', (bytes, text) => {
  expect(describeBytes(bytes)).toBe(text);
});

it('one byte more than a limit reads as more', () => {
  expect(describeBytes(1024 * MIB + 1)).toBe('1.1 GiB');
});
