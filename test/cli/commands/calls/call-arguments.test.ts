import { describe, expect, it } from 'vitest';
import { objectOf, readArguments } from '../../../../src/cli/commands/calls/call-arguments.js';
import { UsageError } from '../../../../src/host/errors/usage-error.js';

const SCHEMA = {
  type: 'object',
  properties: {
    path: { type: 'string' },
    head: { type: 'number' },
    count: { type: 'integer' },
    deep: { type: 'boolean' },
    paths: { type: 'array', items: { type: 'string' } },
    sizes: { type: 'array', items: { type: 'integer' } },
    filter: { type: 'object' },
    limit: { anyOf: [{ type: 'integer' }, { type: 'null' }] },
    id: { type: ['string', 'integer'] },
  },
};

/** The object that these words make for a tool with this schema. */
function made(words: readonly string[], schema: unknown = SCHEMA): string {
  const args = readArguments(words);
  if (args.kind !== 'pairs') throw new Error(`no pairs but ${args.kind}`);
  return objectOf(args.pairs, schema);
}

function mistake(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof UsageError) return `${error.message}; ${error.hint}`;
  }
  return 'none';
}

describe('the arguments of a call', () => {
  it('are one JSON object, stdin, or pairs', () => {
    expect(readArguments([])).toEqual({ kind: 'object', text: '{}' });
    expect(readArguments(['{"a":"b=c",\n"n":1.0}'])).toEqual({ kind: 'object', text: '{"a":"b=c", "n":1.0}' });
    expect(readArguments(['a=b=c', 'n:=5'])).toEqual({
      kind: 'pairs',
      pairs: [
        { key: 'a', value: 'b=c', isJson: false },
        { key: 'n', value: '5', isJson: true },
      ],
    });
  });

  it.each([
    [['path=5'], '{"path":"5"}'],
    [['head=5.50'], '{"head":5.50}'],
    [['count=12345678901234567890'], '{"count":12345678901234567890}'],
    [['deep=true', 'path='], '{"deep":true,"path":""}'],
    [['paths=a'], '{"paths":["a"]}'],
    [['paths=a', 'deep=false', 'paths=b'], '{"paths":["a","b"],"deep":false}'],
    [['sizes=1', 'sizes=2'], '{"sizes":[1,2]}'],
    [['sizes=[1,2]'], '{"sizes":[1,2]}'],
    [['filter={"a":1}'], '{"filter":{"a":1}}'],
    [['limit=null'], '{"limit":null}'],
    [['limit=3'], '{"limit":3}'],
    [['id=7'], '{"id":"7"}'],
    [['id:=7'], '{"id":7}'],
    [['other=1', 'more:=[1]'], '{"other":"1","more":[1]}'],
  ])('%j have the types of the schema', (words, object) => {
    expect(made(words)).toBe(object);
  });

  it('are text without a schema, and several of one key an array', () => {
    expect(made(['n=5', 'a=x', 'a=y'], undefined)).toBe('{"n":"5","a":["x","y"]}');
  });

  it.each([
    [['head=five'], 'the argument `head` must be a number; found `five`'],
    [['count=1.5'], 'the argument `count` must be a whole number; found `1.5`'],
    [['deep=yes'], 'the argument `deep` must be true or false; found `yes`'],
    [['limit=x'], 'the argument `limit` must be a whole number or null; found `x`'],
    [['path=a', 'path=b'], 'the argument `path` is given 2 times; the tool takes one value for it'],
    [['x:=yes'], 'the value of `x:=` is not JSON: `yes`; for text write `x=yes`'],
  ])('%j are refused', (words, message) => {
    expect(mistake(() => made(words))).toBe(message);
  });

  it('without a value, or split by the shell, are refused with an example', () => {
    expect(mistake(() => readArguments(['path=a', 'b']))).toContain('the argument `b` has no value; for example');
    expect(mistake(() => readArguments(['{a:', '1}']))).toContain('put quotes around the JSON');
    expect(mistake(() => readArguments(['notes']))).toContain('must be a JSON object');
  });
});
