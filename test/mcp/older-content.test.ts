import { describe, expect, it } from 'vitest';
import { splice } from '../../src/json/splice.js';
import { asOlderContent, asOlderInput } from '../../src/mcp/older-content.js';
import { EnvelopeRequest } from '../../src/mcp/relayed-request.js';
import { requestOf, responseOf } from '../support/wire.js';

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
