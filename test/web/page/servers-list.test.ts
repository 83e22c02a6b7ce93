import { describe, expect, it } from 'vitest';
import type { ServerReport } from '../../../src/status/status.js';
import { brokenFirst, filterServers } from '../../../src/web/page/servers-list.js';

function server(name: string, state: ServerReport['state'], problem = '', restarts = 0) {
  return { server: name, state, problem, restarts };
}

const SERVERS = [
  server('files', 'ready'),
  server('github', 'parked', 'It failed five times in a row.'),
  server('lazy', 'idle'),
  server('slow', 'starting'),
  server('wiki', 'ready', 'Its circuit breaker is open.', 3),
  server('flaky', 'starting', '', 2),
  server('remote', 'offline'),
];

describe('the list of servers', () => {
  it('has broken servers first, then those that start, each in the order of the configuration', () => {
    const names = brokenFirst(SERVERS).map((each) => each.server);
    expect(names).toEqual(['github', 'wiki', 'flaky', 'remote', 'slow', 'files', 'lazy']);
  });

  it('keeps the place of a server that fails and starts again and again', () => {
    const waiting = SERVERS.map((each) => (each.server === 'flaky' ? server('flaky', 'backoff', '', 2) : each));
    expect(brokenFirst(waiting).map((each) => each.server)).toEqual(brokenFirst(SERVERS).map((each) => each.server));
  });

  it.each([
    ['words of the name', 'FILE', '', ['files']],
    ['words of the problem', 'five row', '', ['github']],
    ['the word of the state', 'parked', '', ['github']],
    ['a state', '', 'up', ['files', 'wiki']],
    ['words and a state together', 'breaker', 'up', ['wiki']],
    ['nothing', '', '', SERVERS.map((each) => each.server)],
  ])('is filtered by %s', (_, words, state, names) => {
    expect(filterServers(SERVERS, words, state).map((each) => each.server)).toEqual(names);
  });
});
