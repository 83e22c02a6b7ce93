import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { exposeList } from '../../../src/gateway/catalog/exposed-list.js';
import { LISTS, type ListKind } from '../../../src/wire/mcp/methods.js';
import { asLegacyTool, hasOtherOutput } from '../../../src/wire/mcp/older-revisions.js';
import { almost, COMPLETE, type OfficialClient, officialClients } from '../../support/official-clients.js';
import { repetitions } from '../../support/repetitions.js';
import { sha256 } from '../../support/sha256.js';
import { bytesOf, type Message } from '../../support/wire.js';

let clients: readonly OfficialClient[] = [];

const ASK: Readonly<Record<ListKind, (client: OfficialClient['client']) => Promise<unknown>>> = {
  tools: (client) => client.listTools(),
  prompts: (client) => client.listPrompts(),
  resources: (client) => client.listResources(),
  templates: (client) => client.listResourceTemplates(),
};

/** Whether every client accepts the entry as it gets it from a server of this era. */
async function isAccepted(kind: ListKind, text: string, isModern: boolean): Promise<boolean> {
  const isOther = kind === 'tools' && isModern && hasOtherOutput(JSON.parse(text));
  const bytes = bytesOf(text);
  const wrapped = isOther ? Buffer.from(asLegacyTool(bytes, { start: 0, end: bytes.length })).toString() : text;
  for (const client of clients) {
    const entry = JSON.parse(isOther && client.hasHandshake ? wrapped : text);
    const list = { ...(client.hasHandshake ? {} : COMPLETE), [LISTS[kind].member]: [entry] };
    if (!(await client.accepts(list, ASK[kind]))) return false;
  }
  return true;
}

/** The only entry of a list, as clients get it. */
function shown(kind: ListKind, text: string, isModern: boolean) {
  const list = { entries: [{ bytes: bytesOf(text) }], truncated: undefined, isModern };
  const rules = { key: 'k', prefix: undefined, policy: () => true, sha256 };
  const { entries, withheld, repaired } = exposeList(kind, list, rules);
  const entry = entries[0]?.entry;
  return {
    text: entry && Buffer.from(entry).toString(),
    reasons: [...withheld, ...repaired].map(({ reason }) => reason),
  };
}

const ICON = { src: 'x:', mimeType: 'image/png', sizes: ['48x48', 'any'], theme: 'dark' };
const COMMON = {
  title: 't',
  description: 'd',
  icons: [ICON, { src: 'y:' }],
  _meta: { a: { b: [1] } },
  'x-vendor': null,
};
const SCHEMA = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  type: 'object',
  properties: {
    a: { type: 'string', enum: ['x', 'y'], description: 'a' },
    b: { type: 'object', properties: { c: { type: 'integer', minimum: 1 } }, required: ['c'] },
    d: {
      type: ['array', 'null'],
      items: { anyOf: [{ type: 'string' }, { $ref: '#/$defs/f%20g' }] },
      uniqueItems: true,
    },
    h: {
      oneOf: [{ pattern: '^a+$', format: 'date', formatMinimum: '2020-01-01' }, { enum: [1] }],
      nullable: true,
      type: 'string',
    },
    i: {
      if: { const: 1 },
      ...JSON.parse('{"then":{"not":{"maximum":1}}}'),
      patternProperties: { '^x': { minItems: 1 } },
      allOf: [{ items: [{}] }],
    },
    constructor: {},
    e: [],
  },
  required: ['a', 'b'],
  additionalProperties: false,
  $defs: {
    'f g': { $anchor: 'j', contains: { type: 'number' } },
    k: { $ref: '#j', dependencies: { a: ['b'], c: { minimum: 1 } } },
  },
  definitions: { l: { minimum: 'x' } },
};
const ABOUT_RESOURCE = {
  ...COMMON,
  name: 'n',
  mimeType: 'text/plain',
  annotations: {
    audience: ['user', 'assistant'],
    priority: 0.5,
    lastModified: '2024-02-29T23:59:59.5+14:00',
    'x-y': 1,
  },
};
const SOUND: Readonly<Record<ListKind, Message>> = {
  tools: {
    ...COMMON,
    name: 'n',
    inputSchema: SCHEMA,
    outputSchema: SCHEMA,
    annotations: { title: 't', readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    execution: { taskSupport: 'optional' },
  },
  prompts: {
    ...COMMON,
    name: 'n',
    arguments: [{ name: 'a', title: 't', description: 'd', required: true }, { name: 'b' }],
  },
  resources: { ...ABOUT_RESOURCE, uri: 'x:a', size: 7 },
  templates: { ...ABOUT_RESOURCE, uriTemplate: 'x:{a}' },
};

/** Values that stand where others should; the last ones are sound at some places. */
const JUNK: readonly unknown[] = [
  ...[
    null,
    true,
    false,
    0,
    1.5,
    -1,
    Number.POSITIVE_INFINITY,
    '',
    'x',
    'object',
    [],
    {},
    [null],
    ['x'],
    [1],
    [{}],
    { a: null },
  ],
  ...[{ type: 'object' }, { type: 'array' }, { type: ['object', 'null'] }, { type: null }, { properties: { a: true } }],
  ...[
    'user',
    'light',
    'required',
    '2023-02-29T00:00:00Z',
    '2024-06-30T24:00:00Z',
    '2024-06-30',
    '2024-06-30T10:00:00Z',
  ],
  ...[{ deep: [{ n: Number.NEGATIVE_INFINITY }] }, { $schema: 7, type: 'object', properties: [], required: ['a', 2] }],
  ...[
    '[',
    '#',
    '#/$defs/k',
    '#/$defs/none',
    '#none',
    '#/definitions/l',
    'other',
    'null',
    { $ref: '#/definitions/l' },
    { anyOf: [{}, { minimum: 'x' }] },
  ],
  ...[{ src: 7 }, { name: 'a', required: 'yes' }, { audience: ['user', 'system'] }, { taskSupport: 'never' }],
];

const IDENTITY = { tools: 'name', prompts: 'name', resources: 'uri', templates: 'uriTemplate' } as const;

beforeAll(async () => {
  clients = await officialClients();
});

describe.each(['tools', 'prompts', 'resources', 'templates'] as const)('an entry of %s', (kind) => {
  it.each([false, true])(
    'reaches clients unchanged if the official SDKs accept it, and in a form that they accept otherwise (modern server: %s)',
    async (isModern) => {
      await fc.assert(
        fc.asyncProperty(almost(SOUND[kind], JUNK, IDENTITY[kind]), async (text) => {
          const { text: entry, reasons } = shown(kind, text, isModern);
          // Clients accept such a schema, but a validation by it never ends.
          if (reasons.some((reason) => reason.endsWith('refers to itself without end'))) return;
          if (await isAccepted(kind, text, isModern)) expect(entry).toBe(text);
          else if (entry !== undefined) expect([entry, await isAccepted(kind, entry, isModern)]).toEqual([entry, true]);
          else expect(reasons).toHaveLength(1);
        }),
        { numRuns: repetitions({ short: 60, full: 5_000 }) },
      );
    },
    600_000,
  );
});
