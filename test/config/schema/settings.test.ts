import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { NOTATIONS } from '../../../src/config/schema/settings.js';

const { parse: parseDuration } = NOTATIONS.duration;
const { parse: parseBytes } = NOTATIONS.bytes;

describe('parseDuration', () => {
  test.each([
    ['500ms', 500],
    ['60s', 60_000],
    ['2m', 120_000],
    ['1h', 3_600_000],
    ['1.5s', 1500],
    ['0s', 0],
  ])('reads %s as %d milliseconds', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  test.each(['60', '', 's', '-1s', '1d', '1 s', '1S', '.5s', '1e3s', '1m30s'])('refuses "%s"', (text) => {
    expect(() => parseDuration(text)).toThrow(RangeError);
  });

  test('a thousand milliseconds are a second, for any number', () => {
    fc.assert(fc.property(fc.nat(), (n) => parseDuration(`${n}s`) === parseDuration(`${n * 1000}ms`)));
  });
});

describe('parseBytes', () => {
  test.each([
    ['64MiB', 67_108_864],
    ['4MB', 4_000_000],
    ['512KiB', 524_288],
    ['8kB', 8000],
    ['8KB', 8000],
    ['1GiB', 1_073_741_824],
    ['1GB', 1_000_000_000],
    ['1B', 1],
    ['0.5KiB', 512],
  ])('reads %s as %d bytes', (text, bytes) => {
    expect(parseBytes(text)).toBe(bytes);
  });

  test.each(['64', '64M', '64mib', '-1B', '1 MiB'])('refuses "%s"', (text) => {
    expect(() => parseBytes(text)).toThrow(RangeError);
  });
});
