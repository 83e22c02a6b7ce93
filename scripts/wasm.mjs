// Assembles src/wire/json/simd-search.wat to the bytes in src/wire/json/simd-search.ts: `npm run generate`.
import { readFileSync, writeFileSync } from 'node:fs';
import loadWabt from 'wabt';

const source = new URL('../src/wire/json/simd-search.wat', import.meta.url);
const target = new URL('../src/wire/json/simd-search.ts', import.meta.url);

const { parseWat } = await loadWabt();
const module = parseWat('simd-search.wat', readFileSync(source, 'utf8'), { simd: true });
module.validate();
const base64 = Buffer.from(module.toBinary({}).buffer).toString('base64');
const lines = base64.match(/.{1,116}/g).map((line) => `  '${line}'`);

writeFileSync(
  target,
  `// Assembled from simd-search.wat by \`npm run generate\`. Change that file, not this one.

/** The bytes of the WebAssembly module that \`simd-search.wat\` describes, as Base64. */
export const SEARCH_MODULE =
${lines.join(' +\n')};
`,
);
