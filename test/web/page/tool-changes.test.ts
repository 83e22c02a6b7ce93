import { describe, expect, it } from 'vitest';
import { changesFor, switchOf } from '../../../src/web/page/tool-changes.js';
import type { ToolRow } from '../../../src/web/server/contract.js';

function tool(server: string, original: string, state: ToolRow['state'] = 'shown'): ToolRow {
  const about = { title: '', sentence: '', descriptionBytes: 0, tokens: 0, changes: [], because: '' };
  return { server, original, name: `${server}__${original}`, state, ...about };
}

const LISTS = [
  { server: 'files', deny: ['write_*', 'move'], allow: [] },
  { server: 'memory', deny: [], allow: ['read'] },
];

describe('several tools', () => {
  it('of several servers are hidden by one change, which keeps what was hidden before', () => {
    const tools = [tool('files', 'read'), tool('web', 'fetch'), tool('files', 'list'), tool('trunkline', 'status')];
    expect(changesFor('hide', tools, LISTS)).toEqual([
      { server: 'files', deny: ['write_*', 'move', 'read', 'list'] },
      { server: 'web', deny: ['fetch'] },
    ]);
  });

  it('are shown again by one change, in the list that hides them', () => {
    const tools = [
      tool('files', 'move', 'denied'),
      tool('memory', 'write', 'denied'),
      tool('memory', 'drop', 'denied'),
    ];
    expect(changesFor('show', tools, LISTS)).toEqual([
      { server: 'files', deny: ['write_*'] },
      { server: 'memory', allow: ['read', 'write', 'drop'] },
    ]);
  });

  it('are changed only where the change does what it says', () => {
    const tools = [tool('files', 'write_file', 'denied'), tool('files', 'new', 'unapproved'), tool('files', 'read')];
    expect(tools.map((each) => switchOf(each, LISTS))).toEqual([null, null, 'hide']);
    expect(changesFor('show', tools, LISTS)).toEqual([]);
  });
});
