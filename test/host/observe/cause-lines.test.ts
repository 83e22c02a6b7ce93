import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { causeLines } from '../../../src/host/observe/cause-lines.js';
import { anyCharacter } from '../../support/any-character.js';
import { growthOf, LINEAR } from '../../support/cpu-time.js';
import { repetitions } from '../../support/repetitions.js';

/** Output of real programs on stderr before they ended; paths and hosts are replaced. */
function stderrOf(program: string): string[] {
  const text = readFileSync(new URL(`../../fixtures/stderr/${program}.txt`, import.meta.url), 'utf8');
  return text.split('\n').filter((line) => line.trim() !== '');
}

const PROGRAMS: readonly (readonly [program: string, cause: readonly string[]])[] = [
  [
    'brave-search',
    [
      'Error: A Brave API key is required via --brave-api-key, BRAVE_API_KEY, --brave-api-key-file, or BRAVE_API_KEY_FILE. You can get one at https://brave.com/search/api/.',
      'Invalid configuration',
    ],
  ],
  ['slack', ['Please set SLACK_BOT_TOKEN and SLACK_TEAM_ID environment variables']],
  ['postgres', ['Please provide a database URL as a command-line argument']],
  ['google-maps', ['GOOGLE_MAPS_API_KEY environment variable is not set']],
  [
    'stripe',
    [
      '🚨  Error initializing Stripe MCP server:',
      'Error: Stripe API key not provided. Please either pass it as an argument --api-key=$KEY or set the STRIPE_SECRET_KEY environment variable.',
    ],
  ],
  [
    'sentry',
    [
      'Error: No access token was provided.',
      'Run `sentry-mcp auth login` interactively first, or pass `--access-token` / `SENTRY_ACCESS_TOKEN`.',
      'Usage: @sentry/mcp-server [--access-token=<token>] [--host=<host>] [--insecure-http]',
    ],
  ],
  [
    'elasticsearch',
    [
      'Server error: [',
      '"message": "Elasticsearch URL cannot be empty",',
      '"message": "Invalid Elasticsearch URL format",',
    ],
  ],
  ['filesystem', ['Error: None of the specified directories are accessible']],
  ['sqlite', ['Error: Could not locate the bindings file. Tried:']],
  [
    'redis',
    [
      '[Redis Retry] Attempt 1/5 failed',
      '[Redis Error] Error: connect ECONNREFUSED 127.0.0.1:6379',
      '[Redis Reconnecting] Connection lost, attempting to reconnect...',
    ],
  ],
  [
    'airtable',
    ['Error: airtable-mcp-server: No API key provided. Set it in the `AIRTABLE_API_KEY` environment variable'],
  ],
  ['node-missing-package', ["Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'not-there' imported from /srv/a.mjs"]],
  ['node-fetch', ['TypeError: fetch failed', '[cause]: Error: bad port']],
  ['node-port-in-use', ['Error: listen EADDRINUSE: address already in use :::34561']],
  ['node-thrown-object', ['{ a: 1 }']],
  ['python', ["KeyError: 'ACME_TOKEN'", 'ConfigError: ACME_TOKEN is not configured']],
  [
    'argparse',
    [
      'usage: mcp-x [-h] --api-key API_KEY [--region REGION]',
      'mcp-x: error: the following arguments are required: --api-key',
    ],
  ],
  ['pino', ['ERROR: cannot reach the database: connect ECONNREFUSED 127.0.0.1:5432', 'ERROR: giving up']],
  [
    'npm-not-found',
    [
      'npm error code E404',
      'npm error 404 Not Found - GET https://registry.example/@nobody-zz%2fnothing-zz',
      "npm error 404  The requested resource '@nobody-zz/nothing-zz@*' could not be found or you do not have permission to access it.",
    ],
  ],
  ['shell', ['bash: line 1: uvx: command not found']],
];

describe('the lines that name the cause', () => {
  it.each(PROGRAMS)('are found in the output of %s', (program, cause) => {
    expect(causeLines(stderrOf(program), 3)).toEqual(cause);
  });

  it.each(PROGRAMS)('are the same after five restarts of %s, each with what it says before', (program, cause) => {
    const attempt = (at: number) => [`2026-11-22T10:00:0${at}Z INFO server starting`, ...stderrOf(program)];
    expect(causeLines([1, 2, 3, 4, 5].flatMap(attempt), 3)).toEqual(cause);
  });

  it('are the last lines if none looks like an error', () => {
    expect(causeLines(['one', '    at frame (x.js:1:1)', 'two', 'two', 'three'], 2)).toEqual(['two', 'three']);
    expect(causeLines(['    at frame (x.js:1:1)'], 2)).toEqual(['at frame (x.js:1:1)']);
    expect(causeLines([], 2)).toEqual([]);
  });

  it('are those that say most if there are too many, in the order in which they were written', () => {
    const survived = Array.from({ length: 9 }, (_, at) => `[ERROR] request ${'abcdefghi'[at]} failed`);
    const uncaught = [
      '/srv/a.js:1',
      'throw e',
      '^',
      'RangeError: too deep',
      '    at f (/srv/a.js:1:1)',
      'Node.js v20.20.2',
    ];
    expect(causeLines([...survived, ...uncaught], 2)).toEqual(['[ERROR] request a failed', 'RangeError: too deep']);
  });

  it('have the last words of a program that logged other errors before', () => {
    const lines = ['[ERROR] request failed', 'lost the lease, leaving', 'INFO closing the pool'];
    expect(causeLines(lines.slice(0, 2), 1)).toEqual(['lost the lease, leaving']);
    expect(causeLines(lines, 1)).toEqual(['[ERROR] request failed']);
  });

  it('have neither colors nor the words of lower levels', () => {
    const red = (text: string) => `\u001b[31m${text}\u001b[0m`;
    expect(causeLines([`${red('error')}: no ${red('key')}`, 'info: a key is required for more'], 5)).toEqual([
      'error: no key',
    ]);
    expect(causeLines(['{"level":"info","message":"error 1"}', '{"level":"error","message":"no\\nkey"}'], 5)).toEqual([
      'ERROR: no key',
    ]);
  });

  it('are found on stdout, where a server should not log', () => {
    const line = 'stdout (not JSON): Error: ACME_KEY is required';
    expect(causeLines(['stdout (not JSON): starting', line], 5)).toEqual([line]);
  });

  it('are few and short, whatever a server writes', () => {
    const pieces = [
      'Error: ',
      ' at ',
      '^',
      '{"msg":',
      '"',
      '\u001b[',
      '\u001b]',
      '/',
      ':1',
      ' ',
      'usage:',
      "['",
      'E',
      '\\',
      '}',
    ];
    const piece = fc.oneof(fc.constantFrom(...pieces), fc.string(), fc.string({ unit: anyCharacter }));
    const line = fc.array(piece, { maxLength: 12 }).map((parts) => parts.join(''));
    fc.assert(
      fc.property(fc.array(line, { maxLength: 40 }), fc.integer({ min: 1, max: 5 }), (lines, max) => {
        const chosen = causeLines(lines, max);
        expect(chosen.length).toBeLessThanOrEqual(max);
        for (const text of chosen) expect(text.length).toBeLessThanOrEqual(501);
      }),
      { numRuns: repetitions({ full: 100, short: 20 }) },
    );
  });

  it.each([
    ['letters', 'a'],
    ['errors', 'Error'],
    ['spaces', ' '],
    ['paths', '/a'],
    ['quotes', ' "a": '],
    ['braces', '{"a":'],
    ['terminal codes', '\u001b['],
    ['digits', '1 '],
  ])('take time in proportion to a line of %s', (_, unit) => {
    const work = (size: number) => causeLines(Array(50).fill(unit.repeat(size)), 3);
    expect(growthOf(work, 2_000)).toBeLessThan(LINEAR);
  });
});
