import { describe, expect, it } from 'vitest';
import { load, problemsOf } from '../loading.js';

const A = 'a: { command: a }';
const GUARD = 'guard: { command: g }';

describe('interceptors', () => {
  it('are those of the server, then those of `defaults`, but none for an interceptor', () => {
    const { servers, gateway } = load(`
defaults: { interceptors: [guard] }
servers: { a: { command: a, interceptors: [own, guard] }, ${GUARD}, own: { command: o } }
views: { v: { interceptors: [own] } }
`);
    expect(servers.map(({ key, interceptors }) => [key, interceptors])).toEqual([
      ['a', ['own', 'guard']],
      ['guard', undefined],
      ['own', undefined],
    ]);
    expect(gateway.views).toMatchObject([{ interceptors: ['own'] }]);
  });

  it('serve all clients, each message within their timeout', () => {
    const { servers } = load(`
servers:
  a: { command: a, interceptors: [guard] }
  guard: { command: g, sharing: isolated, timeout: 60s, interceptorTimeout: 3s, interceptorFailOpen: true }
`);
    expect(servers[1]).toMatchObject({
      isInterceptor: true,
      sharing: 'all',
      timeoutMs: 3_000,
      maxTimeoutMs: 3_000,
      maxWaitMs: 3_000,
      interceptorFailOpen: true,
    });
    expect(servers[0]).toMatchObject({ sharing: 'auto', timeoutMs: 60_000, interceptorTimeoutMs: 2_000 });
  });

  it.each([
    [
      `servers:\n  a: { command: a, interceptors: [gaurd] }\n  ${GUARD}`,
      '2:35 servers.a.interceptors[0]: there is no server `gaurd`',
    ],
    [
      `servers:\n  ${A}\ndefaults:\n  interceptors: [guard]`,
      '4:18 defaults.interceptors[0]: there is no server `guard`',
    ],
    [
      `servers:\n  ${A}\nviews:\n  v: { interceptors: [guard] }`,
      '4:23 views.v.interceptors[0]: there is no server `guard`',
    ],
    [
      `servers:\n  a: { command: a, interceptors: [guard] }\n  guard: { command: g, disabled: true }`,
      '2:35 servers.a.interceptors[0]: the server `guard` is disabled',
    ],
    [
      `servers:\n  a: { command: a, interceptors: [a] }`,
      '2:34 servers.a.interceptors: an interceptor cannot look at its own',
    ],
    [
      `servers:\n  a: { command: a, interceptors: [b] }\n  b: { command: b, interceptors: [a] }`,
      '2:34 servers.a.interceptors: this server is an interceptor itself (servers.b.interceptors[0])',
    ],
  ])('are refused with their place: %s', (text, problem) => {
    expect(problemsOf(text).join('\n')).toContain(problem);
  });

  it('cannot have variables of users', () => {
    const { servers } = load(`
servers: { a: { command: a, interceptors: [guard] }, guard: { command: g, env: { T: "\${user:T}" } } }
gateway: { http: { auth: { tokens: tokens } } }
`);
    expect(servers[1]?.problem?.message).toContain('an interceptor runs once for all users');
  });
});
