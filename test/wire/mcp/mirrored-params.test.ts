import { describe, expect, it } from 'vitest';
import { readMirroredParams } from '../../../src/wire/mcp/mirrored-params.js';
import { toolOf } from '../../support/scripted-gateway.js';
import { bytesOf, type Message } from '../../support/wire.js';

function mirrored(properties: Message, more: Message = {}) {
  return readMirroredParams(bytesOf(toolOf('sql', { inputSchema: { type: 'object', properties, ...more } })));
}

const REGION = { type: 'string', 'x-mcp-header': 'Region' };

describe('the parameters of a tool that clients repeat in headers', () => {
  it('are those with an annotation, at any depth of nested properties', () => {
    const limits = { type: 'object', properties: { rows: { type: 'integer', 'x-mcp-header': 'Rows' } } };
    expect(mirrored({ region: REGION, query: { type: 'string' }, limits })).toEqual({
      params: [
        { header: 'Region', path: ['region'] },
        { header: 'Rows', path: ['limits', 'rows'] },
      ],
    });
  });

  it('are none without annotations, and none where a description only speaks of them', () => {
    expect(mirrored({ query: { type: 'string' } })).toEqual({ params: [] });
    expect(mirrored({ query: { type: 'string', description: 'has no x-mcp-header' } })).toEqual({ params: [] });
    expect(mirrored({ 'x-mcp-header': { type: 'string', default: 'x-mcp-header' } })).toEqual({ params: [] });
    expect(readMirroredParams(bytesOf('{"name":"sql"}'))).toEqual({ params: [] });
  });

  const NESTED = 'x-mcp-header stands on a value that is not reached by properties alone';
  const NO_NAME = 'x-mcp-header is no name of a header';

  it.each([
    ['below items', { list: { type: 'array', items: REGION } }, NESTED],
    ['below a choice', { region: { anyOf: [REGION, { type: 'null' }] } }, NESTED],
    ['beside a right one', { region: REGION, list: { not: REGION } }, NESTED],
    [
      'of a type that is no header',
      { region: { ...REGION, type: 'number' } },
      'x-mcp-header stands on a type other than string, integer and boolean',
    ],
    ['with a name that is no header', { region: { ...REGION, 'x-mcp-header': 'a b' } }, NO_NAME],
    ['without a name', { region: { ...REGION, 'x-mcp-header': '' } }, NO_NAME],
    ['with a number', { region: { ...REGION, 'x-mcp-header': 1 } }, NO_NAME],
    [
      'with the same name twice',
      { a: REGION, b: { ...REGION, 'x-mcp-header': 'region' } },
      'x-mcp-header has one name twice',
    ],
  ])('are none if an annotation breaks its rules: %s', (_, properties, fault) => {
    expect(mirrored(properties)).toEqual({ params: [], fault });
  });

  it.each([
    ['at the root', { 'x-mcp-header': 'Root' }],
    ['in a definition', { $defs: { region: REGION } }],
  ])('are none if an annotation stands %s', (_, more) => {
    expect(mirrored({}, more)).toEqual({ params: [], fault: NESTED });
  });
});
