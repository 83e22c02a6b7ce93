import { describe, expect, test } from 'vitest';
import { compareConfigs } from '../../../src/config/resolve/config.js';
import { errorOf, load, problemsOf } from '../loading.js';

const TEXT = `
servers: { a: { command: x }, b: { command: x, disabled: true } }
views:
  work: { servers: [a, b], tools: { allow: ["a__*"] } }
  all: {}
clients: { "cursor*": work, claude-ai: all }
`;

describe('the views of a configuration', () => {
  test('are in the order of the file, with the clients that get them', () => {
    const { views, clientViews } = load(TEXT).gateway;
    expect(views).toEqual([{ name: 'work', servers: ['a', 'b'], tools: { allow: ['a__*'] } }, { name: 'all' }]);
    expect(clientViews).toEqual([
      { client: 'cursor*', view: 'work' },
      { client: 'claude-ai', view: 'all' },
    ]);
  });

  test('can name only servers and views that there are', () => {
    const text =
      'servers: { files: { command: x } }\nviews:\n  work: { servers: [filez, other] }\nclients:\n  c: wrk\n';
    expect(problemsOf(text)).toEqual([
      '3:21 views.work.servers[0]: there is no server `filez`',
      '3:28 views.work.servers[1]: there is no server `other`',
      '5:6 clients.c: there is no view `wrk`',
    ]);
    expect(errorOf(text).problems.map(({ hint }) => hint)).toEqual([
      'did you mean `files`?',
      'use one of: files',
      'did you mean `work`?',
    ]);
  });

  test('have names that fit into a URL', () => {
    const [problem] = problemsOf('servers: { a: { command: x } }\nviews:\n  "a/b": {}\n');
    expect(problem).toContain('this is not a valid name of a view');
  });

  test('are settings of the gateway, so that a change of them is one', () => {
    expect(compareConfigs(load(TEXT), load(TEXT.replace('a__*', 'b__*'))).gateway).toEqual(['views']);
    expect(compareConfigs(load(TEXT), load(TEXT.replace(': all', ': work'))).gateway).toEqual(['clientViews']);
  });
});
