import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import loadWabt from 'wabt';
import { SEARCH_MODULE } from '../../../src/wire/json/simd-search.js';

const SOURCE = new URL('../../../src/wire/json/simd-search.wat', import.meta.url);

describe('the bytes of the WebAssembly module', () => {
  it('are what its source assembles to', async () => {
    const { parseWat } = await loadWabt();
    const module = parseWat('simd-search.wat', readFileSync(SOURCE, 'utf8'), { simd: true });
    const assembled = Buffer.from(module.toBinary({}).buffer).toString('base64');
    expect(SEARCH_MODULE, 'npm run generate assembles the source').toBe(assembled);
  });
});
