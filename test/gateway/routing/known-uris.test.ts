import { describe, expect, it } from 'vitest';
import { KnownUris } from '../../../src/gateway/routing/resource-owner.js';
import { responseOf } from '../../support/wire.js';

describe('a URI that a server has mentioned', () => {
  it('is forgotten when 512 others came later', () => {
    const known = new KnownUris();
    for (let n = 0; n <= 512; n += 1) known.note(`x://${n}`, 'a');
    expect([known.owner('x://0'), known.owner('x://1')]).toEqual([undefined, 'a']);
  });

  it('F219: is not remembered if it is long, as one that has the data of a picture', () => {
    const known = new KnownUris();
    const [short, long] = [8 * 1024, 8 * 1024 + 1].map((length) => 'data:image/png;base64,'.padEnd(length, 'A'));
    const content = [short, long].map((uri) => ({ type: 'resource', resource: { uri } }));
    known.learn(responseOf(JSON.stringify({ jsonrpc: '2.0', id: 1, result: { content } })), 'a');
    expect([short, long].map((uri = '') => known.owner(uri))).toEqual(['a', undefined]);
  });

  it('is learned from no more entries of a list than are remembered, because all clients wait meanwhile', () => {
    const known = new KnownUris();
    const content = Array.from({ length: 600 }, (_, n) => ({ type: 'resource_link', uri: `x://${n}` }));
    const messages = [{ content: { type: 'resource', resource: { uri: 'y://0' } } }];
    known.learn(responseOf(JSON.stringify({ jsonrpc: '2.0', id: 1, result: { content, messages } })), 'a');
    const uris = ['x://0', 'x://1', 'x://511', 'x://512', 'y://0'];
    expect(uris.map((uri) => known.owner(uri))).toEqual([undefined, 'a', 'a', undefined, 'a']);
  });
});
