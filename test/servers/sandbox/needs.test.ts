import { describe, expect, it } from 'vitest';
import { suggestedEntry } from '../../../src/servers/sandbox/needs.js';
import { toEntry } from '../../../src/setup/clients/import/to-entry.js';

const NOTHING = { put: (name: string) => name, envFile: undefined, values: {} };

describe('the entry that is suggested for a package', () => {
  it('has the known names and sockets, and is `true` for a package of which nothing is known', () => {
    expect(suggestedEntry('@modelcontextprotocol/server-github', [])).toEqual({ network: ['api.github.com'] });
    expect(suggestedEntry('@playwright/mcp', [])).toEqual({ network: ['*'], unixSockets: true });
    expect(suggestedEntry('some-package', ['/data'])).toBe(true);
  });

  it('has the paths of the arguments if the package works on them, without those with variables', () => {
    const args = ['/data', '~/notes', '--flag', `$\{HOME}/x`];
    expect(suggestedEntry('@modelcontextprotocol/server-filesystem', args)).toEqual({ write: ['/data', '~/notes'] });
  });

  it('is written for a program, and not for a server behind a URL', () => {
    const settings = { secrets: NOTHING, env: {}, isConfined: true };
    const github = { program: { package: '@modelcontextprotocol/server-github' }, args: [], env: {} };
    expect(toEntry(github, 'github', settings).entry.sandbox).toEqual({ network: ['api.github.com'] });
    expect(toEntry({ program: { command: './mine' }, args: [], env: {} }, 'own', settings).entry.sandbox).toBe(true);
    const remote = { program: { url: 'https://a.example/mcp', headers: {} }, args: [], env: {} };
    expect(toEntry(remote as never, 'remote', settings).entry).not.toHaveProperty('sandbox');
    expect(toEntry(github, 'github', { secrets: NOTHING, env: {} }).entry).not.toHaveProperty('sandbox');
  });
});
