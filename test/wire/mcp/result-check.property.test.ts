import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { ModernForm } from '../../../src/downstream/modern/modern-form.js';
import { splice } from '../../../src/wire/json/splice.js';
import { asLegacyResult, withoutResultMembers } from '../../../src/wire/mcp/older-revisions.js';
import { mendResult, type ResultKind } from '../../../src/wire/mcp/result-check.js';
import { almost, COMPLETE, type OfficialClient, officialClients } from '../../support/official-clients.js';
import { repetitions } from '../../support/repetitions.js';
import { bytesOf, type Message, scan } from '../../support/wire.js';

const META = { progressToken: 'p', 'io.modelcontextprotocol/related-task': { taskId: 't' }, a: { b: [1] } };
const SOME = { _meta: { a: { b: [1] } }, 'x-vendor': null };
const ABOUT = {
  ...SOME,
  annotations: { audience: ['user', 'assistant'], priority: 0.5, lastModified: '2024-02-29T23:59:59.5+14:00' },
};
const PNG = { data: 'iVBORw0KGgo=', mimeType: 'image/png' };
const TEXT = { uri: 'x:a', mimeType: 'text/plain', text: 't', ...SOME };
const BLOB = { uri: 'x:b', mimeType: 'image/png', blob: 'AAAA', ...SOME };
const BLOCKS = [
  { type: 'text', text: 't', ...ABOUT },
  { type: 'image', ...PNG, ...ABOUT },
  { type: 'audio', ...PNG, ...ABOUT },
  { type: 'resource', resource: TEXT, ...ABOUT },
  { type: 'resource', resource: BLOB },
  {
    type: 'resource_link',
    ...{ uri: 'x:c', name: 'n', title: 't', description: 'd', mimeType: 'text/plain', size: 7 },
    ...{ icons: [{ src: 'x:', mimeType: 'image/png', sizes: ['48x48'], theme: 'dark' }, { src: 'y:' }], ...ABOUT },
  },
];

const SOUND: Readonly<Record<ResultKind, Message>> = {
  tool: { content: BLOCKS, structuredContent: { a: { b: [1] } }, isError: false, _meta: META, 'x-vendor': null },
  prompt: { description: 'd', messages: BLOCKS.map((content) => ({ role: 'user', content })), _meta: META },
  resource: { contents: [TEXT, BLOB], _meta: META },
};

const ASK: Readonly<Record<ResultKind, (client: OfficialClient['client']) => Promise<unknown>>> = {
  tool: (client) => client.callTool({ name: 'n' }),
  prompt: (client) => client.getPrompt({ name: 'n' }),
  resource: (client) => client.readResource({ uri: 'x:a' }),
};
const METHOD = { tool: 'tools/call', prompt: 'prompts/get', resource: 'resources/read' } as const;

/** Values that stand where others should; the last ones are sound at some places. */
const JUNK: readonly unknown[] = [
  ...[null, true, 0, 1.5, -1, Number.POSITIVE_INFINITY, '', 'x', 'true', [], {}, [null], ['x'], [1], [{}], [[]]],
  ...[
    'user',
    'system',
    'text',
    'image',
    'resource',
    'resource_link',
    'light',
    '2023-02-29T00:00:00Z',
    'AA-_',
    'AAA',
    'A',
  ],
  ...['data:image/png;base64,AAAA', 'data:,AAAA', { deep: [{ n: Number.NEGATIVE_INFINITY }] }, { taskId: 7 }],
  ...[{ type: 'text', text: 'x' }, { type: 'text', text: { a: 1 } }, { type: 'error', text: 'x' }, { text: 'x' }],
  ...[
    [{ type: 'text', text: 'x' }, 'y'],
    { role: 'user', content: [{ type: 'image' }, 'x'] },
    { uri: 'x:a' },
    { src: 7 },
  ],
];

let clients: readonly OfficialClient[] = [];

beforeAll(async () => {
  clients = await officialClients();
});

/** The result as a client gets it, with the edits of the bridge between the eras. */
function reaching({ hasHandshake }: OfficialClient, kind: ResultKind, text: string, isModern: boolean): Message {
  const response = scan(bytesOf(`{"jsonrpc":"2.0","id":1,"result":${text}}`));
  if (response.kind !== 'response') throw new Error(`No response: ${text}`);
  const wrapped = kind === 'tool' ? asLegacyResult(response, false) : [];
  const toLegacy = isModern ? [...wrapped, ...withoutResultMembers(response)] : [];
  const form = new ModernForm({ serverInfo: { name: 'server', version: '1' } });
  const edits = hasHandshake ? toLegacy : form.edits(response, METHOD[kind]);
  return JSON.parse(Buffer.from(splice({ ...response, edits })).toString()).result;
}

function mended(kind: ResultKind, text: string, isModernServer: boolean, { hasHandshake }: OfficialClient) {
  const bytes = bytesOf(text);
  const context = { isModernServer, isModernClient: !hasHandshake, uri: 'x:a' };
  const result = mendResult(kind, bytes, { start: 0, end: bytes.length }, context);
  return result && { text: Buffer.from(result.bytes).toString(), repaired: result.repaired };
}

describe.each(['tool', 'prompt', 'resource'] as const)('a result of a %s', (kind) => {
  it.each([false, true])(
    'reaches clients unchanged if the official SDKs accept it, and mended otherwise (modern server: %s)',
    async (isModern) => {
      const results = almost({ ...SOUND[kind], ...(isModern ? COMPLETE : {}) }, JUNK);
      await fc.assert(
        fc.asyncProperty(results, async (text) => {
          const { resultType = 'complete' } = JSON.parse(text);
          for (const client of clients) {
            const before = await client.accepts(reaching(client, kind, text, isModern), ASK[kind]);
            const after = mended(kind, text, isModern, client);
            const note = [client.hasHandshake, text];
            if (before) expect([after?.text, ...note]).toEqual([undefined, ...note]);
            // A type of results that revision 2026-07-28 does not define.
            else if (typeof resultType === 'string' && resultType !== 'complete') expect(after).toBeUndefined();
            else {
              const isAccepted = await client.accepts(reaching(client, kind, after?.text ?? text, isModern), ASK[kind]);
              expect([isAccepted, after?.text, ...note]).toEqual([true, after?.text, ...note]);
            }
          }
        }),
        { numRuns: repetitions({ short: 80, full: 5_000 }) },
      );
    },
    600_000,
  );
});
