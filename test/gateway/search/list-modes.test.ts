import { describe, expect, it } from 'vitest';
import type { DownstreamClient } from '../../../src/downstream/port.js';
import { Catalog } from '../../../src/gateway/catalog/catalog.js';
import { EMPTY_LIST } from '../../../src/gateway/catalog/exposed-list.js';
import { ListModes } from '../../../src/gateway/search/search-mode.js';
import type { ListMode } from '../../../src/spec/list-modes.js';
import { hmac } from '../../support/hmac.js';
import { bytesOf } from '../../support/wire.js';

function listOf(count: number, bytes = 100): Catalog {
  const entries = Array.from({ length: count }, (_, at) => {
    return { exposed: `a__${at}`, original: `${at}`, entry: bytesOf(' '.repeat(bytes)) };
  });
  return new Catalog('tools', [{ key: 'a', prefix: 'a', list: { ...EMPTY_LIST, entries } }], [], { hmac });
}

function opened(mode: ListMode, name: unknown) {
  const modes = new ListModes();
  const client = {} as DownstreamClient;
  modes.open(client, mode, name);
  return { modes, client, decide: (tools: Catalog) => modes.of(client, () => tools) };
}

describe('a client', () => {
  it.each([
    ['direct', 'cursor-vscode', 500, 'direct'],
    ['search', 'claude-code', 1, 'search'],
    ['auto', 'cursor-vscode', 41, 'search'],
    ['auto', 'cursor-vscode', 40, 'direct'],
    ['auto', 'windsurf-client', 101, 'search'],
    ['auto', 'JetBrains-IU-copilot-intellij', 129, 'search'],
    ['auto', 'claude-code', 500, 'direct'],
    ['auto', 'claude-ai', 500, 'direct'],
    ['auto', 'codex-mcp-client', 500, 'direct'],
    ['auto', 'Visual Studio Code', 500, 'direct'],
    ['auto', 'unheard of', 500, 'direct'],
    ['auto', { toString: 1 }, 500, 'direct'],
  ] as const)('in mode %s, called %s, with %i tools, is in %s mode', (mode, name, count, expected) => {
    expect(opened(mode, name).decide(listOf(count)).mode).toBe(expected);
  });

  it('that cannot search is in search mode if the list takes more than a tenth of a usual context', () => {
    expect(opened('auto', 'cursor-vscode').decide(listOf(20, 3_990)).mode).toBe('direct');
    expect(opened('auto', 'cursor-vscode').decide(listOf(21, 3_990))).toEqual({
      mode: 'search',
      because: 'the list of all tools has about 20953 tokens',
    });
  });

  it('keeps its mode, whatever the list becomes', () => {
    const { modes, client, decide } = opened('auto', 'cursor-vscode');
    expect(modes.isSearching(client)).toBe(false);
    expect(decide(listOf(41))).toEqual({ mode: 'search', because: 'Cursor shows 40 tools, and there are 41' });
    expect(modes.isSearching(client)).toBe(true);
    expect(decide(listOf(1)).mode).toBe('search');
  });

  it('may use the search also before its mode is decided, unless it is in direct mode', () => {
    for (const [mode, name, may] of [
      ['auto', 'cursor-vscode', true],
      ['auto', 'claude-code', false],
      ['search', 'claude-code', true],
      ['direct', 'cursor-vscode', false],
    ] as const) {
      const { modes, client } = opened(mode, name);
      expect(modes.maySearch(client)).toBe(may);
    }
  });
});
