import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { entryDefinition } from '../../../src/wire/mcp/entry-check.js';
import {
  isAtLeast,
  isLogLevel,
  isNamed,
  LIST_KINDS,
  LISTS,
  type LogLevel,
  listsChangedBy,
  mostTalkative,
  requestedList,
} from '../../../src/wire/mcp/methods.js';
import { bytesOf } from '../../support/wire.js';

describe('a list', () => {
  it.each(LIST_KINDS)('of %s is asked for by its method and said to have changed by its notification', (kind) => {
    expect(requestedList(LISTS[kind].method)).toBe(kind);
    expect(listsChangedBy(LISTS[kind].changed)).toContain(kind);
  });

  it('of resources changes together with that of their templates', () => {
    expect(listsChangedBy('notifications/resources/list_changed')).toEqual(['resources', 'templates']);
    expect(listsChangedBy('notifications/tools/list_changed')).toEqual(['tools']);
    expect(listsChangedBy('notifications/prompts/list_changed')).toEqual(['prompts']);
  });

  it.each(['tools/call', 'resources/read', 'tasks/list', '', '__proto__'])('is not asked for by %j', (method) => {
    expect(requestedList(method)).toBeUndefined();
    expect(listsChangedBy(method)).toEqual([]);
  });

  it('has names of its own unless its entries go by URIs', () => {
    expect(LIST_KINDS.filter(isNamed)).toEqual(['tools', 'prompts']);
  });
});

function definitionOf(entry: string): string {
  const bytes = bytesOf(`[ ${entry} ]`);
  return entryDefinition(bytes, { start: 2, end: bytes.length - 2 });
}

const TOOL =
  '{"name":"x","description":"Reads","inputSchema":{"type":"object","properties":{"a":{},"b":[1,true,null]}}}';

describe('the definition of a tool', () => {
  it('is JSON without spaces, with sorted members', () => {
    expect(definitionOf(TOOL)).toBe(
      '{"description":"Reads","inputSchema":{"properties":{"a":{},"b":[1,true,null]},"type":"object"},"name":"x"}',
    );
  });

  it.each([
    [
      'order',
      '{"inputSchema":{"properties":{"b":[1,true,null],"a":{}},"type":"object"},"description":"Reads","name":"x"}',
    ],
    ['spaces', TOOL.replaceAll(':', ' :\t').replaceAll(',', ' , ')],
    ['escapes', TOOL.replace('Reads', '\\u0052e\\u0061ds').replace('"name"', '"n\\u0061me"')],
  ])('is the same whatever the %s', (_what, other) => {
    expect(other).not.toBe(TOOL);
    expect(definitionOf(other)).toBe(definitionOf(TOOL));
  });

  it.each([
    ['name', TOOL.replace('"x"', '"y"')],
    ['title', TOOL.replace('{', '{"title":"X",')],
    ['description', TOOL.replace('Reads', 'reads')],
    ['character that nobody sees', TOOL.replace('Reads', 'Reads\u200b')],
    ['inputSchema', TOOL.replace('"a":{}', '"a":{"description":"Put the key here"}')],
    ['order within a list', TOOL.replace('[1,true,null]', '[true,1,null]')],
    ['outputSchema', TOOL.replace('{', '{"outputSchema":{"type":"object"},')],
    ...['_meta', 'icons', 'execution', 'x-vendor', 'Description', 'InputSchema'].map((member): [string, string] => [
      member,
      TOOL.replace('{', `{"${member}":{},`),
    ]),
    ['annotations', TOOL.replace('{', '{"annotations":{"readOnlyHint":true},')],
    ['spelling of a number', TOOL.replace('[1,', '[1.0,')],
    ['description that comes twice', TOOL.replace('{', '{"description":"Deletes",')],
  ])('is something else with another %s', (_what, other) => {
    expect(definitionOf(other)).not.toBe(definitionOf(TOOL));
  });

  it('tells numbers apart that a parser would not', () => {
    const [one, other] = ['9007199254740992', '9007199254740993'].map((n) => TOOL.replace('[1,', `[${n},`));
    expect(definitionOf(one ?? '')).not.toBe(definitionOf(other ?? ''));
  });

  it('tells which of two members of a name comes first, as clients take either', () => {
    const [one, other] = ['"title":"A","title":"B",', '"title":"B","title":"A",'].map((t) =>
      TOOL.replace('{', `{${t}`),
    );
    expect(definitionOf(one ?? '')).not.toBe(definitionOf(other ?? ''));
  });

  it('means the same as the entry, whatever stands in it', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (inputSchema) => {
        const text = JSON.stringify({ inputSchema, name: 'x' }, undefined, 2);
        expect(JSON.parse(definitionOf(text))).toEqual(JSON.parse(text));
        expect(definitionOf(definitionOf(text))).toBe(definitionOf(text));
      }),
    );
  });
});

const LEVELS: readonly LogLevel[] = [
  ...(['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const),
];

describe('a log level', () => {
  it.each(LEVELS)('is %s', (level) => {
    expect(isLogLevel(level)).toBe(true);
  });

  it.each(['', 'warn', 'DEBUG', 'fatal', '__proto__', 'length'])('is not %j', (text) => {
    expect(isLogLevel(text)).toBe(false);
  });

  it('lets through itself and all that are graver', () => {
    for (const [rank, least] of LEVELS.entries()) {
      expect(LEVELS.filter((level) => isAtLeast(level, least))).toEqual(LEVELS.slice(rank));
    }
  });

  it('lets through what nobody knows', () => {
    for (const least of LEVELS) expect(isAtLeast('fatal', least)).toBe(true);
  });
});

describe('the most talkative of several levels', () => {
  it('is none of none', () => {
    expect(mostTalkative([])).toBeUndefined();
  });

  it('is the least grave one, in whatever order they come', () => {
    expect(mostTalkative(['error', 'info', 'alert'])).toBe('info');
    expect(mostTalkative(['emergency', 'debug', 'debug'])).toBe('debug');
    expect(mostTalkative(new Set<LogLevel>(['alert']))).toBe('alert');
  });
});
