import { describe, expect, it } from 'vitest';
import { splice } from '../../src/json/splice.js';
import { asLegacyResult, asLegacyTool, hasOtherOutput } from '../../src/mcp/legacy-output.js';
import { bytesOf, responseOf } from '../support/wire.js';

function toolWith(outputSchema: string): string {
  return `{ "name":"t", "outputSchema" : ${outputSchema}, "big":1.0 }`;
}

function wrapped(outputSchema: string): string {
  const bytes = bytesOf(toolWith(outputSchema));
  return Buffer.from(asLegacyTool(bytes, { start: 0, end: bytes.length })).toString();
}

function wrapping(schema: string, dialect = ''): string {
  return toolWith(`{${dialect}"type":"object","properties":{"result":${schema}},"required":["result"]}`);
}

describe('a tool whose output need not be an object', () => {
  it.each([
    ['{"type":"array"}', true],
    ['{"type":["object","null"]}', true],
    ['{"anyOf":[{"type":"object"}]}', true],
    ['{}', true],
    ['{"type":"object"}', false],
    ['null', false],
    ['[]', false],
  ])('with the schema %s: %s', (schema, isOther) => {
    expect(hasOtherOutput(JSON.parse(toolWith(schema)))).toBe(isOther);
  });

  it('keeps every byte but those around the schema', () => {
    const schema = '{ "type" : "array","maxItems":1.0,"items":{"$ref":"https://a.test/b#/c"} }';
    expect(wrapped(schema)).toBe(wrapping(schema));
  });

  it('names its dialect at the new root as well', () => {
    const schema = '{"$schema":"http://json-schema.org/draft-07/schema#","type":"string"}';
    expect(wrapped(schema)).toBe(wrapping(schema, '"$schema":"http://json-schema.org/draft-07/schema#",'));
  });

  it.each([
    ['the root', '{"items":{"$ref":"#"}}', '{"items":{"$ref":"#/properties/result"}}'],
    [
      'a definition',
      '{"$ref" : "#\\/$defs/a b","$defs":{"a b":{}}}',
      '{"$ref" : "#/properties/result/$defs/a b","$defs":{"a b":{}}}',
    ],
    ['the dynamic root', '{"items":{"$dynamicRef":"#"}}', '{"items":{"$dynamicRef":"#/properties/result"}}'],
    [
      'a list of schemas',
      '{"anyOf":[{"$ref":"#/$defs/a"},true]}',
      '{"anyOf":[{"$ref":"#/properties/result/$defs/a"},true]}',
    ],
    [
      'below a property that is named like a keyword',
      '{"properties":{"const":{"$ref":"#"},"$ref":{"$ref":"#"},"$id":{"$ref":"#"}}}',
      '{"properties":{"const":{"$ref":"#/properties/result"},"$ref":{"$ref":"#/properties/result"},"$id":{"$ref":"#/properties/result"}}}',
    ],
    ['below an anchor', '{"items":{"$id":"#a","$ref":"#"}}', '{"items":{"$id":"#a","$ref":"#/properties/result"}}'],
    [
      'the recursive root of 2019-09',
      '{"$schema":"https://json-schema.org/draft/2019-09/schema","items":{"$recursiveRef":"#"}}',
      '{"$schema":"https://json-schema.org/draft/2019-09/schema","items":{"$ref":"#/properties/result"}}',
    ],
  ])('keeps its reference to %s', (_, schema, rebased) => {
    const dialect = /"\$schema":"[^"]*",/.exec(schema)?.[0];
    expect(wrapped(schema)).toBe(wrapping(rebased, dialect));
    expect(JSON.parse(wrapped(schema)).outputSchema.required).toEqual(['result']);
  });

  it.each([
    ['to an anchor', '{"items":{"$ref":"#a"}}'],
    ['to another document', '{"items":{"$ref":"other.json#/a"}}'],
    ['that is data', '{"const":{"$ref":"#"},"enum":[{"$ref":"#"}],"default":{"$ref":"#"},"examples":[{"$ref":"#"}]}'],
    ['below an id of its own', '{"items":{"$id":"https://a.test/x","$ref":"#"}}'],
    ['below an id at the root', '{"$id":"https://a.test/x","$ref":"#"}'],
    ['that is no text', '{"items":{"$ref":5}}'],
    ['that another dialect does not know', '{"items":{"$recursiveRef":"#"}}'],
  ])('keeps a reference %s as it is', (_, schema) => {
    expect(wrapped(schema)).toBe(wrapping(schema));
  });
});

describe('the result of such a tool', () => {
  const edited = (result: string, isOther: boolean) => {
    const response = responseOf(`{"jsonrpc":"2.0","id":1,"result":${result}}`);
    const { bytes, span } = response;
    const text = Buffer.from(splice({ bytes, span, edits: asLegacyResult(response, isOther) })).toString();
    return text.slice('{"jsonrpc":"2.0","id":1,"result":'.length, -1);
  };

  it.each([
    ['{"structuredContent": [1.0, 2 ] ,"content":[]}', '{"structuredContent": {"result":[1.0, 2 ]} ,"content":[]}'],
    ['{"content":[],"structuredContent":null}', '{"content":[],"structuredContent":{"result":null}}'],
    ['{"structuredContent":"x"}', '{"structuredContent":{"result":"x"}}'],
    ['{"structuredContent":{"a":1}}', '{"structuredContent":{"result":{"a":1}}}'],
    ['{"content":[{"structuredContent":1}]}', '{"content":[{"structuredContent":1}]}'],
  ])('%s becomes %s', (result, expected) => {
    expect(edited(result, true)).toBe(expected);
  });

  it('is wrapped for any tool if it is no object, and else only for tools with such a schema', () => {
    expect(edited('{"structuredContent":[]}', false)).toBe('{"structuredContent":{"result":[]}}');
    expect(edited('{"structuredContent":{"a":1}}', false)).toBe('{"structuredContent":{"a":1}}');
  });
});
