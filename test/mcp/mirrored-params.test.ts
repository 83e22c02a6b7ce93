import { describe, expect, it } from 'vitest';
import { mirroredParams } from '../../src/mcp/mirrored-params.js';
import { toolOf } from '../support/scripted-gateway.js';
import { bytesOf, type Message } from '../support/wire.js';

function mirrored(properties: Message, more: Message = {}) {
  return mirroredParams(bytesOf(toolOf('sql', { inputSchema: { type: 'object', properties, ...more } })));
}

const REGION = { type: 'string', 'x-mcp-header': 'Region' };

describe('the parameters of a tool that clients repeat in headers', () => {
  it('are those with an annotation, at any depth of nested properties', () => {
    const limits = { type: 'object', properties: { rows: { type: 'integer', 'x-mcp-header': 'Rows' } } };
    expect(mirrored({ region: REGION, query: { type: 'string' }, limits })).toEqual([
      { header: 'Region', path: ['region'] },
      { header: 'Rows', path: ['limits', 'rows'] },
    ]);
  });

  it('are none without annotations, and none where a description only speaks of them', () => {
    expect(mirrored({ query: { type: 'string' } })).toEqual([]);
    expect(mirrored({ query: { type: 'string', description: 'has no x-mcp-header' } })).toEqual([]);
    expect(mirroredParams(bytesOf('{"name":"sql"}'))).toEqual([]);
  });

  it.each([
    ['below items', { list: { type: 'array', items: REGION } }],
    ['of a type that is no header', { region: { ...REGION, type: 'number' } }],
    ['with a name that is no header', { region: { ...REGION, 'x-mcp-header': 'a b' } }],
    ['without a name', { region: { ...REGION, 'x-mcp-header': '' } }],
    ['with the same name twice', { a: REGION, b: { ...REGION, 'x-mcp-header': 'region' } }],
  ])('are none if an annotation breaks its rules: %s', (_, properties) => {
    expect(mirrored(properties)).toEqual([]);
  });
});
