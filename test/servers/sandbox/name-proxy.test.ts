import { describe, expect, it } from 'vitest';
import { isAllowed } from '../../../src/servers/sandbox/name-proxy.js';
import { followsProxies, Refusals } from '../../../src/servers/sandbox/refusals.js';

describe('the names of a confined server', () => {
  it.each([
    ['api.example.com', 443, ['api.example.com']],
    ['API.Example.com.', 80, ['api.example.com']],
    ['a.b.example.com', 443, ['*.example.com']],
    ['db.example.com', 5432, ['db.example.com:5432']],
    ['10.0.0.7', 443, ['10.0.0.7']],
    ['localhost', 8080, ['localhost:8080']],
    ['any.example.org', 443, ['*']],
  ])('include %s:%i with %j', (name, port, entries) => {
    expect(isAllowed(name, port, entries)).toBe(true);
  });

  it.each([
    ['example.com', 443, ['*.example.com']],
    ['example.com.evil.test', 443, ['example.com']],
    ['evilexample.com', 443, ['*.example.com']],
    ['api.example.com', 22, ['api.example.com']],
    ['api.example.com', 443, ['api.example.com:8443']],
    ['10.0.0.7', 443, ['*']],
    ['2130706433', 443, ['*']],
    ['localhost', 443, ['*']],
    ['a.localhost', 443, ['*']],
    ['::1', 443, ['*']],
    ['evil.test\0.example.com', 443, ['*.example.com']],
    ['api.example.com', 443, []],
  ])('do not include %j:%i with %j', (name, port, entries) => {
    expect(isAllowed(name, port, entries)).toBe(false);
  });
});

describe('the connections that were refused', () => {
  const sandbox = { server: 'a', read: [], write: [], network: ['a.example'], unixSockets: false, opensFolder: false };
  const reason = 'it is not in `network`';

  it('are kept once each, with the line that would allow them', () => {
    const refusals = new Refusals();
    expect(refusals.note(sandbox, { target: 'b.example', reason, at: 1 })?.allowedBy).toBe(
      'sandbox: { network: [a.example, b.example] }',
    );
    expect(refusals.note(sandbox, { target: 'b.example', reason, at: 2 })).toBeUndefined();
    expect(refusals.of(sandbox)).toHaveLength(1);
    expect(refusals.since(sandbox, 2)).toContain('b.example');
    expect(refusals.since(sandbox, 3)).toBeUndefined();
    const more = { ...sandbox, read: ['/data'] };
    expect(new Refusals().note(more, { target: 'b.example:22', reason, at: 1 })?.allowedBy).toBe(
      'network: [a.example, "b.example:22"]',
    );
  });

  it('propose nothing for names that no entry can have, and for those with a local address', () => {
    const refusals = new Refusals();
    expect(refusals.note(sandbox, { target: 'x\u001b[2J', reason, at: 1 })).toMatchObject({
      target: 'x\\u{1b}[2J',
    });
    expect(
      refusals.note(sandbox, { target: 'a.example', reason: 'it resolved to a loopback address', at: 1 })?.allowedBy,
    ).toBeUndefined();
  });

  it.each([
    [`{"text":"Error: EROFS: read-only file system, open '/srv/my notes/a.json'"}`, '/srv/my notes'],
    [`OSError: [Errno 30] Read-only file system: '/srv/a/b.txt'`, '/srv/a'],
  ])('are joined by a file that the server could not write, in its own words: %s', (error, folder) => {
    const refusals = new Refusals();
    refusals.noteWrite({ ...sandbox, network: [] }, error, 1);
    refusals.noteWrite(sandbox, `ENOENT: no such file or directory, open '/srv/x'`, 1);
    expect(refusals.of(sandbox)).toMatchObject([{ kind: 'write', allowedBy: `sandbox: { write: [${folder}] }` }]);
    expect(refusals.since(sandbox, 1)).toContain(`The sandbox did not let the server write ${folder}/`);
  });

  it('are limited in number', () => {
    const refusals = new Refusals();
    for (let each = 0; each < 100; each += 1) refusals.note(sandbox, { target: `${each}.example`, reason, at: 1 });
    expect(refusals.of(sandbox)).toHaveLength(20);
  });
});

describe('the versions of Node that follow the proxy', () => {
  it('are 22.21 and 24, and those after them', () => {
    expect(['22.21.0', '22.22.1', '24.0.0', '25.1.0'].map(followsProxies)).toEqual([true, true, true, true]);
    expect(['20.20.2', '22.20.0', '23.11.0'].map(followsProxies)).toEqual([false, false, false]);
  });
});
