import { describe, expect, it } from 'vitest';
import { allowedNames, checkBind, type HttpBind, isLoopback } from '../../../src/downstream/http/bind.js';

const TOKEN = 'x'.repeat(43);
const LOCAL: HttpBind = {
  host: 'localhost',
  port: 8080,
  tokens: [TOKEN],
  noAuth: false,
  allowedHosts: [],
  allowedOrigins: [],
};

describe('a bind', () => {
  it.each<[string, Partial<HttpBind>]>([
    ['on loopback with a token', {}],
    ['on loopback without authentication', { noAuth: true, tokens: [] }],
    ['on an address of 127.0.0.0/8', { host: '127.1.2.3' }],
    ['on ::1', { host: '::1', noAuth: true, tokens: [] }],
    ['for others with a token and a list of hosts', { host: '0.0.0.0', allowedHosts: ['gateway.example'] }],
    ['with names, addresses and ports', { allowedHosts: ['a.example:8080', '10.0.0.1', '[fd00::1]:80'] }],
    ['with origins as browsers send them', { allowedOrigins: ['https://a.example', 'http://localhost:6274'] }],
  ])('%s is fine', (_what, changes) => {
    expect(checkBind({ ...LOCAL, ...changes })).toBeUndefined();
  });

  it.each<[string, Partial<HttpBind>]>([
    ['no-auth-exposed', { host: '0.0.0.0', noAuth: true, allowedHosts: ['a.example'] }],
    ['no-auth-exposed', { host: '::', noAuth: true, allowedHosts: ['a.example'] }],
    ['no-auth-exposed', { host: '', noAuth: true, allowedHosts: ['a.example'] }],
    ['no-auth-exposed', { host: 'localhost.evil.example', noAuth: true, allowedHosts: ['a.example'] }],
    ['no-auth-exposed', { host: '127.0.0.1.evil.example', noAuth: true, allowedHosts: ['a.example'] }],
    ['token-missing', { tokens: [] }],
    ['token-missing', { host: '0.0.0.0', tokens: [], allowedHosts: ['a.example'] }],
    ['token-weak', { tokens: ['secret'] }],
    ['token-weak', { tokens: [TOKEN, ''] }],
    ['token-weak', { tokens: [`${TOKEN}\n`] }],
    ['hosts-missing', { host: '0.0.0.0' }],
    ['hosts-missing', { host: '192.168.1.5' }],
    ['host-malformed', { allowedHosts: ['https://a.example'] }],
    ['host-malformed', { allowedHosts: ['*'] }],
    ['host-malformed', { allowedHosts: ['fd00::1'] }],
    ['origin-malformed', { allowedOrigins: ['a.example'] }],
    ['origin-malformed', { allowedOrigins: ['https://a.example/'] }],
    ['origin-malformed', { allowedOrigins: ['https://a.example:443'] }],
    ['origin-malformed', { allowedOrigins: ['null'] }],
    ['origin-malformed', { allowedOrigins: ['*'] }],
  ])('is refused with %s: %j', (code, changes) => {
    const problem = checkBind({ ...LOCAL, ...changes });
    expect(problem?.code).toBe(code);
    expect(problem?.message).not.toContain(TOKEN);
  });
});

describe('the names that are let in', () => {
  it('are those of loopback, with the port and under our own scheme', () => {
    const { hosts, origins } = allowedNames({ ...LOCAL, allowedHosts: ['A.example'] }, 8080);
    expect([...hosts]).toEqual(['localhost:8080', '127.0.0.1:8080', '[::1]:8080', 'a.example']);
    expect(origins).toContain('http://localhost:8080');
    expect(origins).toContain('http://a.example');
  });

  it('go without the port where clients leave it out', () => {
    const https = { cert: Buffer.from('c'), key: Buffer.from('k') };
    expect(allowedNames({ ...LOCAL, https }, 443).hosts).toContain('localhost');
    expect(allowedNames({ ...LOCAL, https }, 80).hosts).not.toContain('localhost');
    expect(allowedNames(LOCAL, 80).origins).toContain('http://localhost');
  });

  it('are only the listed ones where others can reach us', () => {
    const bind = { ...LOCAL, host: '0.0.0.0', allowedHosts: ['a.example'], allowedOrigins: ['https://b.example'] };
    const { hosts, origins } = allowedNames(bind, 8080);
    expect([[...hosts], [...origins]]).toEqual([['a.example'], ['http://a.example', 'https://b.example']]);
  });

  it.each([
    ['127.0.0.1', true],
    ['127.255.0.1', true],
    ['::1', true],
    ['0:0:0:0:0:0:0:1', true],
    ['localhost', true],
    ['0.0.0.0', false],
    ['::', false],
    ['', false],
    ['128.0.0.1', false],
    ['127.1', false],
  ])('%s is loopback: %s', (host, expected) => {
    expect(isLoopback(host)).toBe(expected);
  });
});
