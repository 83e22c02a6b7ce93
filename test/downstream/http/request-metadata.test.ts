import type { IncomingHttpHeaders } from 'node:http';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { refuseMetadata, refuseParams } from '../../../src/downstream/http/request-metadata.js';
import type { MirroredParam } from '../../../src/wire/mcp/mirrored-params.js';
import { repetitions } from '../../support/repetitions.js';
import { bytesOf, type Message, scan } from '../../support/wire.js';

const VERSION = 'io.modelcontextprotocol/protocolVersion';
const PARAMS: readonly MirroredParam[] = [
  { header: 'Region', path: ['region'] },
  { header: 'Rows', path: ['limits', 'rows'] },
  { header: 'Dry', path: ['dry'] },
];

/** The refusal of the request; `undefined` if it is served. */
function refused(message: Message | string, headers: IncomingHttpHeaders, params = PARAMS) {
  const envelope = scan(bytesOf(typeof message === 'string' ? message : JSON.stringify(message)));
  const refusal = refuseMetadata(envelope, headers, () => undefined);
  if (refusal !== undefined || envelope.kind !== 'request') return refusal;
  return envelope.method === 'tools/call' ? refuseParams(envelope, headers, params) : undefined;
}

function requestFor(method: string, params: Message): Message {
  return { jsonrpc: '2.0', id: 'a', method, params: { ...params, _meta: { [VERSION]: '2026-07-28' } } };
}

/** Encodes a value as clients do if it is not plain. */
function encoded(value: string): string {
  const isPlain = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(value) && !/^=\?base64\?.*\?=$/.test(value);
  return isPlain ? value : `=?base64?${Buffer.from(value).toString('base64')}?=`;
}

interface ValidPost {
  readonly message: Message;
  readonly headers: Readonly<Record<string, string>>;
}

const text = fc.oneof(fc.string(), fc.string({ unit: 'grapheme' }), fc.constant('=?base64?literal?='));
const integer = fc.integer({ min: Number.MIN_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER });

const call: fc.Arbitrary<ValidPost> = fc
  .record({ name: text, region: text, rows: integer, dry: fc.boolean() })
  .map(({ name, region, rows, dry }) => ({
    message: requestFor('tools/call', { name, arguments: { region, limits: { rows }, dry } }),
    headers: {
      'mcp-name': encoded(name),
      'mcp-param-region': encoded(region),
      'mcp-param-rows': String(rows),
      'mcp-param-dry': String(dry),
    },
  }));
const named: fc.Arbitrary<ValidPost> = fc
  .tuple(
    fc.constantFrom(
      ['prompts/get', 'name'],
      ['resources/read', 'uri'],
      ['tasks/get', 'taskId'],
      ['tasks/cancel', 'taskId'],
    ),
    text,
  )
  .map(([[method = '', member = ''], value]) => ({
    message: requestFor(method, { [member]: value }),
    headers: { 'mcp-name': encoded(value) },
  }));
const unnamed: fc.Arbitrary<ValidPost> = fc
  .constantFrom('tools/list', 'server/discover', 'vendor/method')
  .map((method) => ({ message: requestFor(method, {}), headers: {} }));

const validPost = fc.oneof(call, named, unnamed).map(({ message, headers }) => ({
  message,
  headers: { 'mcp-protocol-version': '2026-07-28', 'mcp-method': message.method as string, ...headers },
}));

/** Changes the meaning of a header's value; `undefined` leaves the header out. */
const mutation: fc.Arbitrary<(value: string) => string | undefined> = fc.oneof(
  fc.constant(() => undefined),
  fc.constant((value: string) => `${value}x`),
  fc.constant((value: string) => `x${value}`),
  fc.constant((value: string) => `${value}\u00e9`),
  fc.constant((value: string) => encoded(`${value}\u00e9`)),
  fc.constant(() => '=?base64?SGVsbG8?='),
  fc.constant(() => '=?base64?SGVs!!!bG8=?='),
  fc.constant(() => '=?base64?/w==?='),
  fc.constant(() => '2025-11-25'),
);

describe('the headers of a request without a session', () => {
  it('invariant 28: agree with the body of every valid request, and no single one may be changed or left out', () => {
    fc.assert(
      fc.property(validPost, fc.nat(), mutation, ({ message, headers }, which, mutate) => {
        expect(refused(message, headers)).toBeUndefined();
        const names = Object.keys(headers);
        const name = names[which % names.length] ?? '';
        const value = mutate((headers as Record<string, string>)[name] ?? '');
        fc.pre(value !== (headers as Record<string, string>)[name]);
        const { [name]: _, ...others } = headers as Record<string, string>;
        const mutated = value === undefined ? others : { ...others, [name]: value };
        expect(refused(message, mutated)).toMatchObject({ status: 400, code: -32020, id: bytesOf('"a"') });
      }),
      { numRuns: repetitions({ full: 2_000, short: 300 }) },
    );
  });

  const headersOf = (message: Message, more: IncomingHttpHeaders = {}): IncomingHttpHeaders => {
    return {
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': message.method,
      'mcp-name': message.params.name,
      ...more,
    };
  };

  it('are compared letter by letter', () => {
    const list = requestFor('tools/list', {});
    expect(refused(list, headersOf(list, { 'mcp-method': 'TOOLS/LIST' }))?.code).toBe(-32020);
  });

  it('need not name what the body does not name, and must not', () => {
    const nameless = requestFor('tools/call', {});
    expect(refused(nameless, headersOf(nameless))).toBeUndefined();
    expect(refused(nameless, headersOf(nameless, { 'mcp-name': 'a' }))?.code).toBe(-32020);
  });

  it.each([
    ['42.0', 42, true],
    ['4.2e1', 42, true],
    ['42', 43, false],
    ['', 0, false],
    ['0x2a', 42, false],
    ['NaN', 42, false],
    ['true', true, true],
    ['True', true, false],
    ['null', null, false],
    ['[1]', [1], false],
  ])('repeat the parameter as %j for the value %j: %s', (header, rows, isServed) => {
    const message = requestFor('tools/call', { name: 'sql', arguments: { limits: { rows } } });
    const refusal = refused(message, headersOf(message, { 'mcp-param-rows': header }));
    expect(refusal?.code).toBe(isServed ? undefined : -32020);
  });

  it('repeat integers beyond the safe range digit by digit', () => {
    const body = JSON.stringify(requestFor('tools/call', { name: 'sql', arguments: { limits: { rows: 1 } } }));
    const message = body.replace('"rows":1', '"rows":9007199254740993');
    const headers = headersOf(requestFor('tools/call', { name: 'sql' }));
    expect(refused(message, { ...headers, 'mcp-param-rows': '9007199254740993' })).toBeUndefined();
    expect(refused(message, { ...headers, 'mcp-param-rows': '9007199254740992' })?.code).toBe(-32020);
  });

  it('repeat nothing for null, and nothing that the body says twice in different ways', () => {
    const nothing = requestFor('tools/call', { name: 'sql', arguments: { region: null } });
    expect(refused(nothing, headersOf(nothing))).toBeUndefined();
    const twice = JSON.stringify(nothing).replace('"region":null', '"region":"a","region":"b"');
    expect(refused(twice, headersOf(nothing, { 'mcp-param-region': 'b' }))?.code).toBe(-32020);
  });

  it('without a tool that asks for them say nothing', () => {
    const message = requestFor('tools/call', { name: 'sql', arguments: { region: 'a' } });
    expect(refused(message, headersOf(message, { 'mcp-param-zone': 'b' }), [])).toBeUndefined();
  });

  it('may be absent from a notification, but not say something else', () => {
    const message = { jsonrpc: '2.0', method: 'notifications/x', params: { _meta: { [VERSION]: '2026-07-28' } } };
    expect(refused(message, {})).toBeUndefined();
    expect(refused(message, { 'mcp-method': 'notifications/y' })?.code).toBe(-32020);
    expect(refused(message, { 'mcp-protocol-version': '2025-11-25' })?.code).toBe(-32020);
  });
});
