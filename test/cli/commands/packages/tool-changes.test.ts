import { describe, expect, it } from 'vitest';
import { compareTools, type ToolDefinitions } from '../../../../src/cli/commands/packages/update.js';

function tools(...definitions: readonly Record<string, unknown>[]): ToolDefinitions {
  return new Map(definitions.map((definition) => [String(definition.name), definition]));
}

const NONE = { added: [], removed: [], changed: [] };

describe('the changes of tools', () => {
  it('are new tools, removed tools, and the differing members of the others', () => {
    const before = tools(
      { name: 'a', description: 'A' },
      { name: 'b' },
      { name: 'c', inputSchema: { type: 'object' } },
    );
    const after = tools({ name: 'd' }, { name: 'c', inputSchema: { type: 'object', required: [] } }, { name: 'a' });
    expect(compareTools(before, after)).toEqual({
      added: ['d'],
      removed: ['b'],
      changed: [
        { name: 'c', members: ['inputSchema'] },
        { name: 'a', members: ['description'] },
      ],
    });
  });

  it('do not include another order of tools and members', () => {
    const one = { name: 'a', inputSchema: { type: 'object', properties: { x: { a: 1, b: [1, null] }, y: {} } } };
    const other = { inputSchema: { properties: { y: {}, x: { b: [1, null], a: 1 } }, type: 'object' }, name: 'a' };
    expect(compareTools(tools(one, { name: 'b' }), tools({ name: 'b' }, other))).toEqual(NONE);
  });

  it('include another order of a list', () => {
    const { changed } = compareTools(tools({ name: 'a', enum: [1, 2] }), tools({ name: 'a', enum: [2, 1] }));
    expect(changed).toEqual([{ name: 'a', members: ['enum'] }]);
  });

  it('mind names that every object has', () => {
    const odd = tools({ name: 'constructor' }, { name: '__proto__' });
    expect(compareTools(odd, odd)).toEqual(NONE);
    expect(compareTools(tools(), odd).added).toEqual(['constructor', '__proto__']);
  });
});
