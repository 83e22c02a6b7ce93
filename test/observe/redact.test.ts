import { describe, expect, it } from 'vitest';
import { createRedactor } from '../../src/observe/redact.js';
import { cpuMsOf } from '../support/cpu-time.js';

const CANARY = 'canary-0f3a9c';

function redactorOf(env: Record<string, string> = {}, args: readonly string[] = []) {
  return createRedactor([{ env, args }]);
}

describe('a value that the configuration hands out as a secret', () => {
  it.each([
    ...['API_KEY', 'github_token', 'CLIENT_SECRET', 'DB_PASSWORD', 'PGPWD', 'AUTHORIZATION', 'CREDENTIALS', 'COOKIE'],
    ...['SESSION_ID', 'PRIVATE', 'SENTRY_DSN', 'CONNECTION_STRING'],
  ])('of the variable %s is gone wherever it stands', (name) => {
    const redact = redactorOf({ [name]: CANARY });
    expect(redact(`a ${CANARY} b=${CANARY}${CANARY}"${CANARY}"`)).not.toContain(CANARY);
    expect(redact(`start ${CANARY} end`)).toBe('start [redacted] end');
  });

  it.each([
    [['--token', CANARY]],
    [[`--token=${CANARY}`]],
    [[`--api-key=${CANARY}`, '--verbose']],
    [['-password', CANARY]],
    [[`API_KEY=${CANARY}`]],
  ])('of the arguments %j is gone', (args) => {
    expect(redactorOf({}, args)(`using ${CANARY}!`)).toBe('using [redacted]!');
  });

  it.each(['HTTPS_PROXY', 'DATABASE'])('is gone when it is the password in the URL of %s', (name) => {
    const redact = redactorOf({ [name]: 'http://ada:pass%20word@proxy.example:3128/' });
    const basic = Buffer.from('ada:pass word').toString('base64');
    expect(redact(`pass%20word, pass word, ${basic}`)).toBe('[redacted], [redacted], [redacted]');
    expect(redact('ada uses proxy.example:3128')).toBe('ada uses proxy.example:3128');
  });

  it('is gone when it is the password in a URL among the arguments', () => {
    expect(redactorOf({}, ['--db', 'postgres://ada:p@ss:word@host/x'])('no p@ss:word')).toBe('no [redacted]');
    expect(redactorOf({}, ['--db=postgres://postgres@host/x'])('of postgres')).toBe('of postgres');
  });

  it('may hold an equals sign or characters that mean something elsewhere', () => {
    const odd = '$&a.*(b)=c\\d$1';
    expect(redactorOf({}, [`--token=${odd}`])(`x ${odd} y`)).toBe('x [redacted] y');
  });

  it('goes as a whole when another secret is a part of it', () => {
    const redact = redactorOf({ KEY_A: 'abcdef', KEY_B: 'abcdefghij' });
    expect(redact('abcdefghij abcdef')).toBe('[redacted] [redacted]');
  });

  it.each(['0123456789abcdef0123456789abcdef', '3f2504e0-4f89-11d3-9a0c-0305e82c3301', 'Zm9vYmFyYmF6cXV4MTIzNDU2'])(
    'is known by its looks, whatever it is called: %s',
    (value) => {
      expect(redactorOf({ SETTING: value })(`is ${value}`)).toBe('is [redacted]');
      expect(redactorOf({}, [value])(`is ${value}`)).toBe('is [redacted]');
      expect(redactorOf({}, [`--setting=${value}`])(`is ${value}`)).toBe('is [redacted]');
    },
  );

  it.each([
    'claude-3-5-sonnet-20241022',
    '/home/ada/Documents/2026',
    'eu-central-1',
    'https://example.org/A1b2c3d4e5f6g7h8',
  ])('is not what a setting may well be: %s', (value) => {
    expect(redactorOf({ SETTING: value }, [value])(`is ${value}`)).toBe(`is ${value}`);
  });

  it('of several lines is gone line by line, as a log has it', () => {
    const key = '-----BEGIN PRIVATE KEY-----\nMIIcanaryline1xyz\nMIIcanaryline2xyz\n-----END PRIVATE KEY-----\n';
    const redact = redactorOf({ PRIVATE_KEY: key });
    for (const line of key.split('\n')) expect(redact(`dump: ${line}`)).not.toContain('canaryline');
  });

  it('is left alone when it is too short to be told from words, or has a harmless name', () => {
    const redact = redactorOf({ API_KEY: 'true', LANGUAGE: 'english', KEYBOARD: 'querty' }, ['--verbose', 'english']);
    expect(redact('true english')).toBe('true english');
  });
});

describe('what looks like a secret', () => {
  it.each([
    'sk-proj-0123456789abcdefghij',
    'ghp_0123456789abcdefghijABCDEFGHIJ012345',
    'github_pat_0123456789abcdefghij_ABC',
    'glpat-0123456789abcdefghij',
    'xoxb-0123456789-abcdefghij',
    'AKIA0123456789ABCDEF',
    'AIza0123456789abcdefghijABCDEFGHIJ01234',
    'npm_0123456789abcdefghijABCDEFGHIJ012345',
    'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl',
  ])('is gone although nobody named it: %s', (token) => {
    const redact = redactorOf();
    expect(redact(`got ${token}, thanks`)).toBe('got [redacted], thanks');
    expect(redact(`{"x":"${token}"}`)).toBe('{"x":"[redacted]"}');
  });

  it.each([
    [`Authorization: Bearer ${CANARY}.x`, 'Authorization: Bearer [redacted]'],
    [`password=${CANARY}`, 'password=[redacted]'],
    [`"apiKey": "${CANARY}"`, '"apiKey": "[redacted]"'],
    [`GITHUB_TOKEN=${CANARY} other=1`, 'GITHUB_TOKEN=[redacted] other=1'],
    [`client_secret: '${CANARY}'`, "client_secret: '[redacted]'"],
    [`postgres://user:${CANARY}@host/db`, 'postgres://user:[redacted]@host/db'],
    [`redis://:${CANARY}@host`, 'redis://:[redacted]@host'],
    [`run --api-key ${CANARY} --verbose`, 'run --api-key [redacted] --verbose'],
    [`run --auth-token "${CANARY}"`, 'run --auth-token "[redacted]"'],
  ])('is gone by what stands before it: %s', (text, expected) => {
    expect(redactorOf()(text)).toBe(expected);
  });

  it('is gone from a basic authorization as well', () => {
    expect(redactorOf()('Authorization: Basic Y2FuYXJ5OmNhbmFyeQ==')).not.toContain('Y2FuYXJ5');
  });

  it.each(['Server listening on port 3000', 'https://host:8080/path?x=1', 'tokens used: 12', 'sk-1', 'a@b.example'])(
    'is not what anybody could say: %s',
    (text) => {
      expect(redactorOf()(text)).toBe(text);
    },
  );

  it('is looked for in a time that grows with the text only', () => {
    const pieces = ['a', 'a-', 'a.', 'eyJ-', '://', '--', 'password', 'eyJ', 'a://', 'x:', '--token ', 'token='];
    const redact = redactorOf();
    for (const piece of pieces) {
      const text = piece.repeat(16_384 / piece.length);
      expect(
        cpuMsOf(() => redact(text)),
        piece,
      ).toBeLessThan(50);
    }
  });
});
