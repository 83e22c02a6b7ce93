import { describe, expect, it } from 'vitest';
import { splice } from '../../../src/wire/json/splice.js';
import {
  asLegacyResult,
  asLegacyTool,
  asOlderContent,
  asOlderInput,
  hasOtherOutput,
  withoutEraMembers,
  withoutResultMembers,
} from '../../../src/wire/mcp/older-revisions.js';
import { EnvelopeRequest } from '../../../src/wire/mcp/relayed-request.js';
import { bytesOf, requestOf, responseOf } from '../../support/wire.js';

const key = (name: string) => `"io.modelcontextprotocol/${name}"`;
const VERSION = `${key('protocolVersion')}:"2026-07-28"`;
const CLIENT = `${key('clientInfo')}:{"name":"a","version":"1"}`;
const CAPABILITIES = `${key('clientCapabilities')}:{"roots":{}}`;
const SERVER = `${key('serverInfo')}:{"name":"s","version":"1"}`;
const LEVEL = `${key('logLevel')}:"info"`;

describe('the `_meta` of a modern client, for a legacy server,', () => {
  it.each([
    ['nothing of the client', `{${VERSION},${CLIENT},${CAPABILITIES},${LEVEL}}`, '{}'],
    ['its token behind', `{${VERSION},${CLIENT},${CAPABILITIES},"progressToken":1}`, '{"progressToken":1}'],
    ['its token before', `{"progressToken":1,${VERSION},${CAPABILITIES}}`, '{"progressToken":1}'],
    ['its token in between', `{${VERSION},"progressToken":1,${LEVEL}}`, '{"progressToken":1}'],
    ['the same in another order', `{"a":1,${CAPABILITIES},${VERSION},"b":2}`, '{"a":1,"b":2}'],
    ['the same with white space', `{ "a" : 1 , ${VERSION} , "b":2 }`, '{ "a" : 1 , "b":2 }'],
    ['the same with escapes', `{"a":1,${VERSION.replace('io.', '\\u0069o.')}}`, '{"a":1}'],
  ])('is %s', (_, meta, expected) => {
    const text = (of: string) => `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":${of}}}`;
    const request = requestOf(text(meta));
    const { bytes, span } = request;
    const edits = withoutEraMembers(new EnvelopeRequest(request));
    expect(Buffer.from(splice({ bytes, span, edits })).toString()).toBe(text(expected));
  });
});

describe('the result of a modern server, for a legacy client,', () => {
  it.each([
    ['{"content":[],"resultType":"complete"}', '{"content":[]}'],
    ['{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[]}', '{"tools":[]}'],
    ['{"tools":[],"ttlMs":0,"x":1,"cacheScope":"private"}', '{"tools":[],"x":1}'],
    ['{"cacheScope":"private", "content":[], "resultType": "complete"}', '{"content":[]}'],
    [`{"content":[],"_meta":{${SERVER}}}`, '{"content":[]}'],
    [`{"_meta":{${SERVER}},"content":[]}`, '{"content":[]}'],
    [`{"resultType":"complete","_meta":{${SERVER}},"content":[]}`, '{"content":[]}'],
    [`{"_meta":{"a":1,${SERVER}},"content":[],"resultType":"complete"}`, '{"_meta":{"a":1},"content":[]}'],
    [`{"content":[],"_meta":{${SERVER},"b":{"c":2}},"ttlMs":1}`, '{"content":[],"_meta":{"b":{"c":2}}}'],
    ['{"_meta":{"a":1},"content":[]}', '{"_meta":{"a":1},"content":[]}'],
    ['{"_meta":{},"content":[]}', '{"_meta":{},"content":[]}'],
  ])('is %s without what it does not know', (result, expected) => {
    const text = (of: string) => `{"jsonrpc":"2.0","id":1,"result":${of}}`;
    const response = responseOf(text(result));
    const { bytes, span } = response;
    expect(Buffer.from(splice({ bytes, span, edits: withoutResultMembers(response) })).toString()).toBe(text(expected));
  });
});

function edited(result: string, revision: string, kind: 'tool' | 'prompt' = 'tool'): string {
  const response = responseOf(`{"jsonrpc":"2.0","id":1,"result":${result}}`);
  const { bytes, span } = response;
  const text = Buffer.from(splice({ bytes, span, edits: asOlderContent(response, kind, revision) })).toString();
  return text.slice('{"jsonrpc":"2.0","id":1,"result":'.length, -1);
}

const AUDIO = '{"type":"audio","data":"AA\\u003d\\u003d","mimeType":"audio/wav","annotations":{"priority":1.0}}';
const LINK = '{"name":"n","uri":"x://1","type":"resource_link","size":5,"_meta":{"a":1}}';

describe('content that an older client does not know', () => {
  it.each([
    [
      'audio',
      '2024-11-05',
      AUDIO,
      '{"type":"resource","resource":{"uri":"urn:trunkline:audio:1","mimeType":"audio/wav","blob":"AA\\u003d\\u003d"},"annotations":{"priority":1.0}}',
    ],
    ['audio', '2025-03-26', AUDIO, AUDIO],
    ['a link', '2024-11-05', LINK, '{"type":"text","text":"n: x://1","_meta":{"a":1}}'],
    [
      'a link with more about it',
      '2025-03-26',
      '{"type":"resource_link","name":"n","title":"T","description":"About","uri":"x://1"}',
      '{"type":"text","text":"T: x://1\\nAbout"}',
    ],
    [
      'anything else',
      '2025-03-26',
      '{"type":"hologram","n":1.0}',
      '{"type":"text","text":"{\\"type\\":\\"hologram\\",\\"n\\":1.0}"}',
    ],
    ['audio without data', '2024-11-05', '{"type":"audio"}', '{"type":"text","text":"{\\"type\\":\\"audio\\"}"}'],
    ['text', '2024-11-05', '{ "type":"text","text":"x","n":1.0 }', '{ "type":"text","text":"x","n":1.0 }'],
    ['no block', '2024-11-05', '5', '5'],
  ])('of the kind of %s, for %s: %s', (_, revision, block, expected) => {
    expect(edited(`{ "content": [${block} ],"n":1.0}`, revision)).toBe(`{ "content": [${expected} ],"n":1.0}`);
    const prompt = (content: string) => `{"messages":[{"role":"user","content":${content}},{},1]}`;
    expect(edited(prompt(block), revision, 'prompt')).toBe(prompt(expected));
  });

  it('stays where it is no content', () => {
    expect(edited(`{"messages":[{"content":${LINK}}]}`, '2024-11-05')).toContain(LINK);
    expect(edited(`{"content":${LINK}}`, '2024-11-05')).toContain(LINK);
  });
});

describe('the choices of an elicitation', () => {
  const asking = (properties: string, revision: string | undefined, method = 'elicitation/create') => {
    const envelope = requestOf(
      `{"jsonrpc":"2.0","id":1,"method":"${method}","params":{"requestedSchema":{"properties":${properties}}}}`,
    );
    const edits = asOlderInput(new EnvelopeRequest(envelope), revision);
    const { bytes, span } = envelope;
    return JSON.stringify(
      JSON.parse(Buffer.from(splice({ bytes, span, edits })).toString()).params.requestedSchema.properties,
    );
  };
  const titled =
    '{"a":{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"}],"default":"r"}}';

  it('become two lists for clients before 2025-11-25', () => {
    const lists = '{"a":{"type":"string","enum":["r","g"],"enumNames":["Red","Green"],"default":"r"}}';
    expect(asking(titled, '2025-06-18')).toBe(lists);
    expect(asking(titled, '2025-11-25')).toBe(titled);
    expect(asking(titled, undefined)).toBe(titled);
  });

  it.each(['{"a":{"oneOf":[{"const":1,"title":"One"}]}}', '{"a":{"oneOf":5}}', '{"a":1}', '5'])(
    'stay as they are where they are none: %s',
    (properties) => {
      expect(asking(properties, '2025-06-18')).toBe(properties);
    },
  );

  it('stay in other requests', () => {
    expect(asking(titled, '2025-06-18', 'sampling/createMessage')).toBe(titled);
  });
});

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
