import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ToolShaping } from '../../../src/gateway/catalog/tool-shaping.js';
import type { ParamShapes, ToolShapes } from '../../../src/spec/server-rules.js';
import { splice } from '../../../src/wire/json/splice.js';
import { RpcError } from '../../../src/wire/jsonrpc/message.js';
import { EnvelopeRequest } from '../../../src/wire/mcp/relayed-request.js';
import { exposing } from '../../support/exposing.js';
import { bytesOf, type Message, scan } from '../../support/wire.js';

/** The list of a server `k` as clients see it. */
function shaped(tools: readonly string[], shapes: ToolShapes, deny: readonly string[] = []) {
  const logged: string[] = [];
  const shaping = new ToolShaping(shapes, (warnings) => logged.push(...warnings));
  const list = exposing(tools, { deny, shaping });
  const texts = list.entries.map(({ entry }) => Buffer.from(entry ?? []).toString());
  return {
    texts,
    names: list.entries.map(({ exposed, original }) => [exposed, original]),
    warnings: list.unshaped,
    logged,
  };
}

const SEARCH = `{"name": "search","inputSchema":{"type":"object","properties":{"q":{"type":"string"}, "owner" :{"type":"string","description":"who"},"n":{"maximum":9007199254740993}},"required":["q","owner"]},"description":"Finds\\u0020it."}`;

describe('a tool that the configuration shapes', () => {
  it('is listed under its new name and described in other words, and stays the same otherwise', () => {
    const { texts, names, warnings } = shaped([SEARCH], {
      rename: { search: 'search_docs' },
      describe: { search: { append: 'Not for code.' } },
    });
    expect(names).toEqual([['k__search_docs', 'search']]);
    expect(texts).toEqual([
      SEARCH.replace('"search"', '"k__search_docs"').replace('"Finds\\u0020it."', '"Finds it.\\n\\nNot for code."'),
    ]);
    expect(warnings).toEqual([]);
  });

  it('loses hidden parameters, and requires none that has a value', () => {
    const { texts } = shaped([SEARCH], { params: { search: { hide: ['owner'], default: { q: 'x' } } } });
    expect(texts[0]).toContain(
      '"inputSchema":{"type":"object","properties":{"q":{"type":"string"}, "n":{"maximum":9007199254740993}}}',
    );
  });

  it('has its parameters described in other words', () => {
    const { texts } = shaped([SEARCH], { params: { search: { describe: { owner: 'me', q: 'words' } } } });
    expect(texts[0]).toContain(
      '"q":{"description":"words","type":"string"}, "owner" :{"type":"string","description":"me"}',
    );
  });

  it('does not change the tools beside it, not by one byte', () => {
    const other = '{ "name":"other" ,"description":"\\u0041", "inputSchema":{"type":"object","x":1.0} }';
    expect(shaped([other, SEARCH], { describe: { search: 'x' } }).texts[0]).toBe(
      other.replace('"other"', '"k__other"'),
    );
  });
});

describe('a tool whose annotations the configuration sets', () => {
  const tool = (members: string) => `{"name":"search",${members}"inputSchema":{"type":"object"}}`;
  const annotated = (members: string, annotate: ToolShapes['annotate'] & object) =>
    shaped([tool(members)], { annotate }).texts[0]?.replace('k__search', 'search');

  it('has them in place of those of its server, and keeps all others byte for byte', () => {
    const before = '"annotations":{ "readOnlyHint":true,"x-own" : 1.0, "destructiveHint": false },';
    const annotate = { search: { readOnlyHint: false, idempotentHint: true } };
    expect(annotated(before, annotate)).toBe(
      tool('"annotations":{"idempotentHint":true, "readOnlyHint":false,"x-own" : 1.0, "destructiveHint": false },'),
    );
  });

  it.each([
    ['no annotations', ''],
    ['null for them', '"annotations":null,'],
  ])('gets them if it has %s', (_, members) => {
    const entry = JSON.parse(annotated(members, { search: { openWorldHint: false } }) ?? '');
    expect(entry).toEqual({ name: 'search', inputSchema: { type: 'object' }, annotations: { openWorldHint: false } });
  });

  it.each(['', '"title":"Old",', '"annotations":{"title":"Old","readOnlyHint":true},'])(
    'has a new title in both places in which clients look, after %j',
    (members) => {
      const { title, annotations } = JSON.parse(annotated(members, { search: { title: 'Find' } }) ?? '');
      expect([title, annotations.title, annotations.readOnlyHint]).toEqual([
        'Find',
        'Find',
        members.includes('readOnly') ? true : undefined,
      ]);
    },
  );

  it('takes each from its own name, or else from the last glob that has it', () => {
    const hints = new ToolShaping({
      annotate: {
        search: { readOnlyHint: true },
        '*': { readOnlyHint: false, destructiveHint: false, title: 'All' },
        's*': { destructiveHint: true },
        'x*': { title: 'Other' },
      },
    });
    expect(hints.hintsOf('search')).toEqual({ readOnlyHint: true, destructiveHint: true, title: 'All' });
    expect(hints.hintsOf('find')).toEqual({ readOnlyHint: false, destructiveHint: false, title: 'All' });
    expect(new ToolShaping({ annotate: { 'x*': { title: 'Other' } } }).hintsOf('find')).toBeUndefined();
  });
});

describe('a shape that fits nothing', () => {
  const tool = (name: string) => `{"name":"${name}","inputSchema":{"type":"object"}}`;

  it('is told with the tool or parameter that was likely meant', () => {
    const { warnings, logged } = shaped([SEARCH], {
      rename: { search: 'find' },
      describe: { serch: 'x', find: 'y', other: 'z' },
      params: { search: { hide: ['ownr', 'zzzzzz'] } },
      annotate: { serach: { title: 'x' }, 's*': { title: 'x' }, 'del_*': { title: 'x' } },
    });
    expect(warnings).toEqual([
      'there is no tool "serch"; did you mean `search`?',
      'there is no tool "find"; it is the new name of "search": use the original name',
      'there is no tool "other"',
      'there is no tool "serach"; did you mean `search`?',
      'there is no tool "del_*"',
      'the tool "search" has no parameter "ownr"; did you mean `owner`?',
      'the tool "search" has no parameter "zzzzzz"',
    ]);
    expect(logged).toEqual(warnings);
  });

  it('leaves a tool its name if another tool has the new one', () => {
    const { names, warnings } = shaped([tool('a'), tool('b')], { rename: { a: 'b' } });
    expect(names).toEqual([
      ['k__a', 'a'],
      ['k__b', 'b'],
    ]);
    expect(warnings).toEqual(['the tool "a" keeps its name, because the tool "b" has the name "b"']);
  });

  it('may take the name of a denied tool, and two tools may swap their names', () => {
    expect(shaped([tool('a'), tool('b')], { rename: { a: 'b' } }, ['b']).names).toEqual([['k__b', 'a']]);
    expect(shaped([tool('a'), tool('b')], { rename: { a: 'b', b: 'a' } })).toMatchObject({
      names: [
        ['k__b', 'a'],
        ['k__a', 'b'],
      ],
      warnings: [],
    });
  });

  it('never gives one name to two tools', () => {
    const letter = fc.constantFrom('a', 'b', 'c', 'd');
    fc.assert(
      fc.property(fc.uniqueArray(letter), fc.dictionary(letter, letter), (listed, rename) => {
        const exposed = shaped(listed.map(tool), { rename }).names.map(([name]) => name);
        expect(new Set(exposed).size).toBe(listed.length);
      }),
    );
  });
});

/** The params of a call as the server gets them. */
function called(params: string, shapes: ParamShapes): string | RpcError {
  const line = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":${params}}`;
  const envelope = scan(bytesOf(line));
  if (envelope.kind !== 'request') throw new Error('no request');
  const request = new EnvelopeRequest(envelope);
  const edits = new ToolShaping({ params: { t: shapes } }).editsOf('t', request);
  if (edits instanceof RpcError) return edits;
  const id = { text: bytesOf('7'), part: { start: 0, end: 1 } };
  const sent = Buffer.from(splice(request.message(id, edits))).toString();
  return sent.slice('{"jsonrpc":"2.0","id":7,"method":"tools/call","params":'.length, -1);
}

describe('a call of a tool whose parameters have values', () => {
  it('has the set values in place of those of the client, and defaults for what is missing', () => {
    const shapes = { set: { owner: 'me' }, default: { n: 5, q: 'x' } };
    expect(called('{ "name":"t", "arguments" : { "own\\u0065r":"you" , "q":"\\u0041" } , "_meta":{} }', shapes)).toBe(
      '{ "name":"t", "arguments" : {"owner":"me","n":5, "q":"\\u0041" } , "_meta":{} }',
    );
  });

  it.each(['{"name":"t"}', '{"name":"t","arguments":null}', '{"arguments":{},"name":"t"}'])(
    'has them although the client sends no arguments: %s',
    (params) => {
      expect(JSON.parse(String(called(params, { set: { a: [1, { b: null }] } })))).toEqual({
        name: 't',
        arguments: { a: [1, { b: null }] },
      });
    },
  );

  it.each([
    [{ set: { owner: 'me' } }, '{"Owner":"you"}', '"Owner"'],
    [{ set: { owner: 'me' } }, '{"owner":"you","OWNER":"you"}', '"OWNER"'],
    [{ set: { owner: 'me' } }, '{"\\u004fwner":"you"}', '"Owner"'],
    [{ set: { task: 1 } }, '{"taſk":2}', '"taſk"'],
    [{ set: { task: 1 } }, '{"tas\\u212a":2}', '"tas\u212a"'],
    [{ hide: ['owner'] }, '{"Owner":"you"}', '"Owner"'],
  ])(
    'F131: fails with %j if the client sends %s, because servers that ignore case may take the last one',
    (shapes, args, key) => {
      const refused = called(`{"name":"t","arguments":${args}}`, shapes);
      expect(refused).toMatchObject({ code: -32602, message: expect.stringContaining(key) });
    },
  );

  it('may have other keys that differ in case only', () => {
    const params = '{"name":"t","arguments":{"Q":1,"q":2,"owners":3}}';
    expect(called(params, { hide: ['owner'], default: { q: 1 } })).toBe(params);
  });

  it.each(['[]', '"x"', '7', 'true'])('F131: fails if the arguments are %s', (args) => {
    expect(called(`{"name":"t","arguments":${args}}`, { set: { a: 1 } })).toMatchObject({ code: -32602 });
  });

  it('is sent byte for byte without such values', () => {
    const params = '{ "name":"t","arguments":{ "a":1.0 ,"a":2}}';
    expect(called(params, { hide: ['a'], describe: { a: 'x' } })).toBe(params);
    expect(called(params, { default: { a: 1 } })).toBe(params);
  });

  it('means what the configuration says, and is the same outside of the arguments, whatever the client wrote', () => {
    const space = fc.constantFrom('', '', ' ', '\t', '\r');
    const key = fc.constantFrom('"a"', '"\\u0061"', '"b"', '"\\u0062"', '"c"', '"d\\""', '"__proto__"');
    const value = fc.oneof(fc.json(), fc.constantFrom('9007199254740993', '1.0', '{"a":1,"a":2}'));
    const object = fc
      .array(fc.tuple(space, key, space, space, value, space), { maxLength: 5 })
      .map((members) => `{${members.map(([a, k, b, c, v, d]) => `${a}${k}${b}:${c}${v}${d}`).join(',')}}`);
    const others = fc.array(fc.tuple(space, fc.constantFrom('"x"', '"\\u0078"'), value, space), { maxLength: 2 });
    const written = fc.tuple(space, others, space, object, space, others).map(([a, before, b, args, c, after]) => {
      const text = (members: [string, string, string, string][]) =>
        members.map(([d, k, v, e]) => `,${d}${k}:${v}${e}`).join('');
      const head = `{${a}"name":"t"${text(before)},${b}"arguments":`;
      return { head, args, tail: `${c}${text(after)}}` };
    });
    const shapes = fc.record({
      set: fc.dictionary(fc.constantFrom('a', 'b', 'd"'), fc.jsonValue()),
      default: fc.dictionary(fc.constantFrom('b', 'c', 'e'), fc.jsonValue()),
    });
    fc.assert(
      fc.property(written, shapes, ({ head, args, tail }, values) => {
        const sent = String(called(`${head}${args}${tail}`, values));
        expect(sent.startsWith(head)).toBe(true);
        expect(sent.endsWith(tail)).toBe(true);
        const clean = (json: unknown): Message => JSON.parse(JSON.stringify(json));
        const expected = { ...clean(values.default), ...JSON.parse(args), ...clean(values.set) };
        expect(JSON.parse(sent.slice(head.length, sent.length - tail.length))).toEqual(expected);
      }),
      { numRuns: 200 },
    );
  });
});
