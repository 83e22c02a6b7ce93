import { describe, expect, it } from 'vitest';
import {
  isLegacyRevision,
  LEGACY_REVISIONS,
  negotiateRevision,
  resourceNotFoundCode,
} from '../../../src/wire/mcp/revisions.js';

describe('the revision that a session speaks', () => {
  it.each([...LEGACY_REVISIONS])('is %s for a client that asks for it', (revision) => {
    expect(negotiateRevision(revision)).toBe(revision);
    expect(isLegacyRevision(revision)).toBe(true);
  });

  it.each([undefined, '', '2099-01-01', '2026-07-28', '1.0', '2025-11-25 '])('is our latest for %j', (asked) => {
    expect(negotiateRevision(asked)).toBe('2025-11-25');
    if (asked !== undefined) expect(isLegacyRevision(asked)).toBe(false);
  });
});

describe('the code of a resource that does not exist', () => {
  it.each([
    [undefined, -32002],
    ['2024-11-05', -32002],
    ['2025-11-25', -32002],
    ['2026-07-28', -32602],
  ])('is, for revision %s, %i', (revision, code) => {
    expect(resourceNotFoundCode(revision)).toBe(code);
  });
});
