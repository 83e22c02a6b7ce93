import { describe, expect, it } from 'vitest';
import { type SearchedTool, ToolIndex } from '../../../src/gateway/search/tool-index.js';

function tool(name: string, description = '', more: Partial<SearchedTool> = {}): SearchedTool {
  return { name, server: 's', title: '', description, params: [], keywords: [], ...more };
}

const TOOLS = [
  tool('create_pull_request', 'Opens a pull request in a repository.'),
  tool('merge_pull_request', 'Merges a pull request.'),
  tool('create_issue', 'Creates an issue in a repository.'),
  tool('create_directory', 'Creates a new directory.', { params: [{ name: 'path', description: 'Where to put it' }] }),
  tool('read_text_file', 'Reads a file as text.'),
  tool('send_message', 'Posts a message to a channel.', { server: 'slack' }),
  tool('get_forecast', 'Returns the weather forecast for a place.'),
  tool('browser_take_screenshot', 'Takes a screenshot of the page.'),
  tool('kubectl_get', 'Gets resources of a cluster.', { keywords: ['rollout history'] }),
];

function found(request: string, limit = 3): (string | undefined)[] {
  return new ToolIndex(TOOLS).find(request, limit).map((at) => TOOLS[at]?.name);
}

describe('a request finds', () => {
  it.each([
    ['a tool by other forms of its words', 'creating issues', 'create_issue'],
    ['a tool by a synonym', 'remember to make a folder', 'create_directory'],
    ['a tool by a synonym of one word for a phrase', 'open a new PR', 'create_pull_request'],
    ['a tool by a command that people know', 'mkdir', 'create_directory'],
    ['a tool by the words of its server', 'slack message', 'send_message'],
    ['a tool by the name of a parameter', 'path', 'create_directory'],
    ['a tool by words of the configuration', 'rollout history', 'kubectl_get'],
    ['a tool in spite of a typing mistake', 'weather forcast', 'get_forecast'],
    ['a tool by words that are written together', 'screen shot', 'browser_take_screenshot'],
    ['a tool by words that are written apart', 'pullrequest merging', 'merge_pull_request'],
    ['a tool by the beginning of a word', 'screensh', 'browser_take_screenshot'],
  ])('%s', (_, request, name) => {
    expect(found(request, 1)).toEqual([name]);
  });

  it('the tool first that has more of its words', () => {
    expect(found('merge the pull request')[0]).toBe('merge_pull_request');
    expect(found('create a pull request')[0]).toBe('create_pull_request');
  });

  it('nothing if no tool has any of its words', () => {
    expect(found('qwxz')).toEqual([]);
    expect(found('please, could you')).toEqual([]);
    expect(found('')).toEqual([]);
  });

  it('only as many tools as wanted, and only those that are accepted', () => {
    expect(found('create', 2)).toHaveLength(2);
    const index = new ToolIndex(TOOLS);
    expect(index.find('create', 10, (at) => at === 2)).toEqual([2]);
  });
});

describe('an index', () => {
  it('of no tools finds nothing', () => {
    expect(new ToolIndex([]).find('anything', 5)).toEqual([]);
  });

  it('finds the same tools in the same order each time', () => {
    const index = new ToolIndex(TOOLS);
    expect(index.find('create a file', 5)).toEqual(index.find('create a file', 5));
    expect(new ToolIndex([...TOOLS]).find('create a file', 5)).toEqual(index.find('create a file', 5));
  });

  it('reads texts of any length and content', () => {
    const hostile = [
      tool('a'.repeat(10_000), '\u0000 '.repeat(10_000)),
      tool('ok', 'x '.repeat(100_000)),
      tool('', ''),
    ];
    expect(new ToolIndex(hostile).find(`ok ${'y '.repeat(10_000)}`, 5)).toEqual([1]);
  });
});
