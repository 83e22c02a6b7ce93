import { describe, expect, it } from 'vitest';
import { compareTools, type Tools } from '../../../../src/cli/commands/packages/update.js';

function tools(...definitions: readonly Record<string, unknown>[]): Tools {
  return new Map(definitions.map((definition) => [String(definition.name), definition]));
}

const NONE = { added: [], removed: [], changed: [] };

describe('what is different about the tools', () => {
  it('is which are new, which are gone, and which members of the others differ', () => {
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

  it('is nothing when only an order is another one', () => {
    const one = { name: 'a', inputSchema: { type: 'object', properties: { x: { a: 1, b: [1, null] }, y: {} } } };
    const other = { inputSchema: { properties: { y: {}, x: { b: [1, null], a: 1 } }, type: 'object' }, name: 'a' };
    expect(compareTools(tools(one, { name: 'b' }), tools({ name: 'b' }, other))).toEqual(NONE);
  });

  it('is something when the order of a list is another one', () => {
    const { changed } = compareTools(tools({ name: 'a', enum: [1, 2] }), tools({ name: 'a', enum: [2, 1] }));
    expect(changed).toEqual([{ name: 'a', members: ['enum'] }]);
  });

  it('minds names that every object has', () => {
    const odd = tools({ name: 'constructor' }, { name: '__proto__' });
    expect(compareTools(odd, odd)).toEqual(NONE);
    expect(compareTools(tools(), odd).added).toEqual(['constructor', '__proto__']);
  });
});
