import { describe, expect, it } from 'vitest';
import { sharingOf } from '../../../src/config/resolve/sharing.js';
import type { ServerSpec } from '../../../src/spec/server-spec.js';
import { loadServer } from '../loading.js';

const MEMORY = '@modelcontextprotocol/server-memory';
const BROWSER = '@playwright/mcp';

function decided(entry: Record<string, unknown>, servesHttp = false) {
  return sharingOf(loadServer(JSON.stringify({ servers: { own: entry } })), servesHttp);
}

describe('the sharing of a server', () => {
  it.each([
    ['in `package`', { package: MEMORY }],
    ['in `package`, with a version', { package: `${MEMORY}@2026.8.31` }],
    ['run by npx', { command: 'npx', args: ['-y', `${MEMORY}@latest`, 'x'] }],
    ['run by npm exec', { command: 'npm', args: ['exec', '--', MEMORY] }],
    ['run by bun', { command: '/opt/bun', args: ['x', MEMORY] }],
    ['run by Node from where it is installed', { command: 'node', args: [`/x/node_modules/${MEMORY}/dist/index.js`] }],
    ['run from where it is installed', { command: `/x/node_modules/y/node_modules/${MEMORY}/bin` }],
  ])('is the one in the table for a known package %s', (_, entry) => {
    expect(decided(entry)).toMatchObject({ sharing: 'all', rule: 'known', because: expect.stringContaining(MEMORY) });
  });

  it('comes with one call at a time for a package in which two calls harm each other, and not otherwise', () => {
    expect(decided({ package: MEMORY }).isSerial).toBe(true);
    expect(decided({ package: MEMORY, sharing: 'all' }).isSerial).toBeUndefined();
    expect(decided({ package: '@dangahagan/weather-mcp' })).toMatchObject({ sharing: 'all' });
  });

  it('is decided by the revision for a known package that keeps state, over HTTP as well', () => {
    for (const servesHttp of [false, true])
      expect(decided({ package: BROWSER }, servesHttp)).toMatchObject({ sharing: 'auto', rule: 'known' });
  });

  it.each([
    ['a command', { command: 'node', args: ['server.js', `/x/node_modules/${MEMORY}/index.js`] }],
    ['another package', { command: 'npx', args: ['-y', 'another', MEMORY] }],
    ['npm without a package', { command: 'npm', args: ['start'] }],
  ])('is decided by the revision for %s, and by profile over HTTP', (_, entry) => {
    expect(decided(entry)).toMatchObject({ sharing: 'auto', rule: 'unknown' });
    expect(decided(entry, true)).toMatchObject({ sharing: 'profile', rule: 'unknown' });
  });

  it('is decided by the revision for a server behind a URL, and by profile over HTTP', () => {
    const remote = { sharing: 'auto', spec: { kind: 'remote' } as ServerSpec } as const;
    expect([sharingOf(remote, false).sharing, sharingOf(remote, true).sharing]).toEqual(['auto', 'profile']);
  });

  it('is with all clients for a server that runs on one gateway only, with one call at a time where that is needed', () => {
    const rule = { sharing: 'all', rule: 'configured', because: expect.stringContaining('`placement: one`') };
    expect(decided({ package: MEMORY, placement: 'one' }, true)).toEqual({ ...rule, isSerial: true });
    expect(decided({ command: 'x', placement: 'one' }, true)).toEqual({ ...rule, isSerial: false });
  });

  it('is the one of the configuration if that has one', () => {
    expect(decided({ package: MEMORY, sharing: 'isolated' })).toMatchObject({
      sharing: 'isolated',
      rule: 'configured',
    });
  });
});
