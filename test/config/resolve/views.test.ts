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

  test('limit results, as the servers and `defaults` do', () => {
    const config = load(`
defaults: { results: { max: 100kB, maxBinary: 1MB } }
servers: { a: { command: x }, b: { command: x, results: { max: 0B } } }
views: { small: { results: { max: 8KiB } }, same: { results: {} } }
`);
    expect(config.servers.map(({ results }) => results)).toEqual([
      { maxBytes: 100_000, maxBinaryBytes: 1_000_000 },
      { maxBytes: 0, maxBinaryBytes: 1_000_000 },
    ]);
    expect(config.gateway.views.map(({ results }) => results)).toEqual([{ maxBytes: 8_192 }, {}]);
    expect(load(TEXT).servers[0]?.results).toEqual({ maxBytes: 0, maxBinaryBytes: 0 });
    expect(problemsOf('servers: { a: { command: x } }\nviews: { v: { results: { max: 8 } } }\n')).toEqual([
      '2:31 views.v.results.max: found the number 8 without a unit; expected a size with a unit, such as 512KiB, 4MB or 64MiB',
    ]);
    expect(problemsOf('servers: { a: { command: x, results: { mx: 8kB } } }\n')).toEqual([
      '1:40 servers.a.results: unknown key `mx`',
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
