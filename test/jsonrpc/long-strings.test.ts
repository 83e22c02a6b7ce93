import { describe, expect, it } from 'vitest';
import { NOT_JSON, skipString } from '../../src/jsonrpc/json-text.js';

describe('a string literal that is long enough to be checked in strides', () => {
  const insertions = ['"', '\\', '\\n', '\\u00e9', '\\u00g9', '\n', '\u001f', '\u0000', 'é', '😀', '\u007f', '!'];

  it.each(insertions)('with %j anywhere is read as JSON.parse reads it, at every alignment', (insertion) => {
    for (let alignment = 0; alignment < 4; alignment += 1) {
      for (let position = 56; position < 150; position += 1) {
        const text = `"${'a'.repeat(position)}${insertion}${'b'.repeat((position * 7) % 80)}"`;
        const bytes = Buffer.from(`${' '.repeat(alignment)}${text}`).subarray(alignment);
        const end = skipString(bytes, 0);
        expect(end === bytes.length, `${insertion} at ${position}`).toBe(isJson(text));
        if (end !== bytes.length && insertion !== '"') expect(end).toBe(NOT_JSON);
        if (insertion === '"') expect(end).toBe(position + 2);
      }
    }
  });

  it('that never ends is refused in a time that grows with its length only', () => {
    const bytes = Buffer.from(`"${'a'.repeat(8 * 1024 * 1024)}`);
    const startedAt = performance.now();
    expect(skipString(bytes, 0)).toBe(NOT_JSON);
    expect(performance.now() - startedAt).toBeLessThan(1_000);
  });
});

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    // What JSON.parse throws on is no JSON; that is the question here.
    return false;
  }
}
