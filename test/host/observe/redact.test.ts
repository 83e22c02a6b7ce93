import { describe, expect, it } from 'vitest';
import { createRedactor, KnownSecrets } from '../../../src/host/observe/redact.js';
import { cpuMsOf, growthOf, LINEAR } from '../../support/cpu-time.js';

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

describe('a secret in another form', () => {
  const SECRET = 'pass"word\\\\with spaces/ä+0f3a9c?';
  const redact = redactorOf({ API_KEY: SECRET, OTHER_KEY: CANARY });
  const escaped = JSON.stringify(SECRET).slice(1, -1);

  it.each([
    ['escaped as in JSON', escaped],
    ['escaped as in JSON twice', JSON.stringify(escaped).slice(1, -1)],
    ['percent-encoded', encodeURIComponent(SECRET)],
    ['hexadecimal', Buffer.from(SECRET).toString('hex')],
    ['hexadecimal in capitals', Buffer.from(SECRET).toString('hex').toUpperCase()],
    ['in Base64', Buffer.from(SECRET).toString('base64')],
    ['in Base64 for URLs', Buffer.from(SECRET).toString('base64url')],
  ])('F55: is gone %s', (_what, form) => {
    expect(redact(`is ${form}, and`)).toBe('is [redacted], and');
  });

  it('F55: is gone in Base64 of either alphabet, at every position in a longer text', () => {
    for (const encoding of ['base64', 'base64url'] as const) {
      for (const secret of [SECRET, CANARY, `${CANARY}x`, `${CANARY}xy`, 'ÿþÿþÿþ>>>???']) {
        for (const before of ['', 'u', 'us', 'use', 'user:', 'user::']) {
          for (const after of ['', 'x', 'xy', ':host']) {
            const form = Buffer.from(before + secret + after).toString(encoding);
            const left = redactorOf({ API_KEY: secret })(`is ${form} and`);
            expect(left).toMatch(/^is \S*\[redacted\]\S* and$/);
            // At most two bits of the secret's first byte, or four of its last, share a character with the text beside it.
            const [head = '', tail = ''] = left.slice(3, -4).replace(/=+$/, '').split('[redacted]');
            expect(head.length).toBeLessThanOrEqual(Math.ceil((before.length * 8) / 6));
            expect(tail.length).toBeLessThanOrEqual(Math.ceil((after.length * 8) / 6) + 1);
          }
        }
      }
    }
  });

  it('is gone as a whole when another secret begins in it', () => {
    const both = redactorOf({ KEY_A: 'abcdefgh', KEY_B: 'efghijkl' });
    expect(both('abcdefghijkl')).toBe('[redacted]');
    expect(both('efghijkl abcdefgh')).toBe('[redacted] [redacted]');
  });

  it.each(['a\\\\b\\\\c', '100% of 5%', '%zz%41', 'C:\\\\Users\\\\ada', 'c2VjcmV0', '"\\u0041"'])(
    'is not what merely has escapes: %s',
    (text) => {
      expect(redact(text)).toBe(text);
    },
  );

  it('is looked for in a time that grows neither with the number of secrets nor faster than the text', () => {
    const env = Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`KEY_${n}`, `${CANARY}-${n}`]));
    const many = redactorOf(env);
    for (const piece of [
      'a line of ordinary text, ',
      '\\\\',
      '%41',
      '\\u0061',
      '%5C%75',
      'canary-0f3a9',
      'Y2FuYXJ5',
      '%25',
    ]) {
      const text = piece.repeat(16_384 / piece.length);
      // Some systems count processor time in ticks of 16 ms.
      const costsMs = [1, 2, 3].map(() => cpuMsOf(() => many(text)));
      expect(Math.min(...costsMs), piece).toBeLessThan(50);
      expect(
        growthOf((size) => many(piece.repeat(size / piece.length)), 4_096),
        piece,
      ).toBeLessThan(LINEAR);
    }
  });
});

describe('a text that looks like a secret', () => {
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
    `give it a default: \${user:GITHUB_TOKEN:-default}. Only clients`,
    `give it a default: \${API_KEY:-default}`,
    `expected \${NAME}, \${secret:NAME} or \${user:NAME}`,
  ])('is none in the example of a reference: %s', (example) => {
    expect(redactorOf()(example)).toBe(example);
  });

  it.each([
    [`\${API_TOKEN:-${CANARY}}`, '${API_TOKEN:[redacted]'],
    [`Authorization: Bearer ${CANARY}.x`, 'Authorization: Bearer [redacted]'],
    [`password=${CANARY}`, 'password=[redacted]'],
    [`"apiKey": "${CANARY}"`, '"apiKey": "[redacted]"'],
    [`GITHUB_TOKEN=${CANARY} other=1`, 'GITHUB_TOKEN=[redacted] other=1'],
    [`client_secret: '${CANARY}'`, "client_secret: '[redacted]'"],
    [`postgres://user:${CANARY}@host/db`, 'postgres://user:[redacted]@host/db'],
    [`redis://:${CANARY}@host`, 'redis://:[redacted]@host'],
    [`run --api-key ${CANARY} --verbose`, 'run --api-key [redacted] --verbose'],
    [`run --auth-token "${CANARY}"`, 'run --auth-token "[redacted]"'],
    [`"password": "${CANARY} and more"`, '"password": "[redacted]"'],
    [`"password": "it's \\"${CANARY}\\"", "x": 1`, '"password": "[redacted]", "x": 1'],
    [`{\\"api_key\\":\\"${CANARY}\\",\\"x\\":1}`, '{\\"api_key\\":\\"[redacted]\\",\\"x\\":1}'],
    [`{\\\\\\"token\\\\\\": \\\\\\"${CANARY}\\\\\\"}`, '{\\\\\\"token\\\\\\": \\\\\\"[redacted]\\\\\\"}'],
    [`{\\"Authorization\\":\\"Basic ${CANARY}\\"}`, '{\\"Authorization\\":\\"Basic [redacted]\\"}'],
    [`> Cookie: theme=dark; sid=${CANARY}`, '> Cookie: [redacted]'],
    [`< set-cookie: sid=${CANARY}; Path=/; HttpOnly`, '< set-cookie: [redacted]'],
    [`Cookie: a=${CANARY}\nHost: x`, 'Cookie: [redacted]\nHost: x'],
    [`{"cookie":"a=b; sid=${CANARY}","host":"x"}`, '{"cookie":"[redacted]","host":"x"}'],
    [`{\\"cookie\\":\\"a=b; sid=${CANARY}\\"}`, '{\\"cookie\\":\\"[redacted]\\"}'],
    [`'set-cookie': [ 'a=${CANARY}; Path=/', 'b=${CANARY}' ]`, "'set-cookie': [ '[redacted]', '[redacted]' ]"],
    [`["Cookie","sid=${CANARY}","Host","x"]`, '["Cookie","[redacted]","Host","x"]'],
    [`{"msg":"got Cookie: sid=${CANARY}; x=y","level":30}`, '{"msg":"got Cookie: [redacted]","level":30}'],
  ])('F55: is gone by what stands before it: %s', (text, expected) => {
    expect(redactorOf()(text)).toBe(expected);
  });

  it('is gone from a basic authorization as well', () => {
    expect(redactorOf()('Authorization: Basic Y2FuYXJ5OmNhbmFyeQ==')).not.toContain('Y2FuYXJ5');
  });

  it.each(['cookie: accepted by all', 'a cookie is set', 'cookies: 3', 'token: "" x', 'secret: [ ]'])(
    'is not what has such a name and no value: %s',
    (text) => {
      expect(redactorOf()(text)).toBe(text);
    },
  );

  it.each(['Server listening on port 3000', 'https://host:8080/path?x=1', 'tokens used: 12', 'sk-1', 'a@b.example'])(
    'is not what anybody could say: %s',
    (text) => {
      expect(redactorOf()(text)).toBe(text);
    },
  );

  it('is looked for in a time that grows with the text only', () => {
    const pieces = [
      ...[
        'token="',
        "cookie='",
        'cookie:a=',
        'cookie:',
        'cookie["',
        'token=\\\\',
        '\\\\"',
        'cookie:["a",',
        'authorization:',
      ],
      ...['a', 'a-', 'a.', 'eyJ-', '://', '--', 'password', 'eyJ', 'a://', 'x:', '--token ', 'token='],
    ];
    const redact = redactorOf();
    for (const piece of pieces) {
      const growth = growthOf((size) => redact(piece.repeat(size / piece.length)), 4_096);
      expect(growth, piece).toBeLessThan(LINEAR);
    }
  });
});

describe('the secrets of clients', () => {
  const source = (index: number) => [{ env: { API_KEY: `secret-${index}-of-a-client` }, args: [] }];
  const text = 'secret-0-of-a-client';

  it('are known while a server has them, and the latest of them for longer', () => {
    const secrets = new KnownSecrets();
    const forget = secrets.knowWhile(source(0));
    for (let index = 1; index <= 1_000; index += 1) secrets.knowWhile(source(index))();
    expect(secrets.redact(text)).toBe('[redacted]');
    forget();
    for (let index = 1_001; index <= 1_255; index += 1) secrets.knowWhile(source(index))();
    expect(secrets.redact(text)).toBe('[redacted]');
    secrets.knowWhile(source(1_256))();
    expect(secrets.redact(text)).toBe(text);
  });

  it('stay known while another server has the same ones', () => {
    const secrets = new KnownSecrets();
    const [first] = [0, 0].map((index) => secrets.knowWhile(source(index)));
    first?.();
    first?.();
    for (let index = 1; index <= 1_000; index += 1) secrets.knowWhile(source(index))();
    expect(secrets.redact(text)).toBe('[redacted]');
  });

  it('are never forgotten if they are secrets of the configuration too', () => {
    const secrets = new KnownSecrets();
    secrets.know(source(0));
    secrets.knowWhile(source(0))();
    for (let index = 1; index <= 1_000; index += 1) secrets.knowWhile(source(index))();
    expect(secrets.redact(text)).toBe('[redacted]');
  });
});
