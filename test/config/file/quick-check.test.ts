import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { checkFile } from '../../../src/config/file/check-file.js';
import type { CheckedFile } from '../../../src/config/file/checked-file.js';
import { ConfigError } from '../../../src/config/file/config-error.js';
import { checkQuickly } from '../../../src/config/file/quick-check.js';
import {
  GATEWAY_SETTINGS,
  HTTP_SETTINGS,
  LIMIT_SETTINGS,
  RESTART_SETTINGS,
  SERVER_SETTINGS,
  type Setting,
  START_LIMIT,
  SWITCHES,
} from '../../../src/config/schema/settings.js';
import { repetitions } from '../../support/repetitions.js';
import { writtenYaml } from '../written-yaml.js';

/** Values of a setting at and beyond its limits, and of other kinds. */
function valuesOf(setting: Setting): fc.Arbitrary<unknown> {
  if (setting.kind === 'flag') return fc.boolean();
  if (setting.kind === 'choice') return fc.constantFrom(...setting.words, 'none', true);
  const { standard, min, max } = setting;
  const other =
    setting.kind === 'count'
      ? [Number(min) - 1, Number(max) + 1, 1.5, -0]
      : ['0.5ms', '25h', '1.5KiB', '17GiB', '1 s', '10'];
  return fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(standard ?? max, min, max) },
    fc.constantFrom(...other, '1', 1, null),
  );
}

function settings(table: Readonly<Record<string, Setting>>) {
  return Object.fromEntries(Object.entries(table).map(([key, setting]) => [key, valuesOf(setting)]));
}

const HOME = '$' + '{HOME}';
const text = fc.constantFrom('x', 'node', '@a/b@1', HOME, '-y', 'a b', '', '*');
/** Mostly right, so that whole files are right often enough. */
const someText = fc.oneof(
  { weight: 30, arbitrary: text.filter((each) => each !== '') },
  text,
  fc.constantFrom(1, null, [], true),
);
const texts = fc.array(someText, { maxLength: 2 });
const variables = fc.dictionary(
  fc.oneof({ weight: 9, arbitrary: fc.constantFrom('A', 'B_1', 'c') }, fc.constantFrom('A=B', '')),
  someText,
  { maxKeys: 2 },
);
/** Maps with few of the keys. */
const some = (keys: Record<string, fc.Arbitrary<unknown>>, maxKeys = 2) =>
  fc
    .subarray(Object.keys(keys), { maxLength: maxKeys })
    .chain((chosen) => fc.record(Object.fromEntries(chosen.map((key) => [key, keys[key] ?? fc.constant(null)]))));

const tunables = {
  ...settings(SERVER_SETTINGS),
  restart: some(settings(RESTART_SETTINGS)),
  limits: some(settings(LIMIT_SETTINGS)),
};
/** Of one tool. */
const ofTool = (value: fc.Arbitrary<unknown>) => fc.dictionary(fc.constantFrom('a', 'b c'), value, { maxKeys: 2 });
const shapes = {
  rename: ofTool(fc.oneof({ weight: 9, arbitrary: fc.constantFrom('x', 'y_1-Z') }, someText, fc.constant('a b'))),
  describe: ofTool(fc.oneof(someText, some({ append: someText }, 1), some({ append: someText, prepend: someText }))),
  params: ofTool(
    some({
      hide: texts,
      set: ofTool(fc.oneof(someText, texts, variables)),
      default: ofTool(someText),
      describe: ofTool(someText),
      show: texts,
    }),
  ),
};
const optional = {
  ...tunables,
  ...settings(SWITCHES),
  bin: someText,
  args: texts,
  cwd: someText,
  env: variables,
  envFile: someText,
  prefix: fc.constantFrom('', 'x'),
  methods: texts,
  tools: some({ allow: texts, deny: texts, only: texts, ...shapes }),
  type: fc.constantFrom('stdio', 'http'),
  url: someText,
  command: someText,
  unknown: someText,
};
const entry = fc
  .tuple(fc.constantFrom('command', 'package'), someText, some(optional))
  .map(([key, value, rest]) => ({ [key]: value, ...rest }));
const servers = fc.dictionary(
  fc.oneof(
    { weight: 9, arbitrary: fc.constantFrom('a', 'b-1', '1') },
    fc.constantFrom('A', 'trunkline', 'a__b', 'con'),
  ),
  entry,
  { minKeys: 1, maxKeys: 2 },
);
const file = fc
  .tuple(
    fc.oneof({ weight: 9, arbitrary: fc.constantFrom('servers', 'mcpServers') }, fc.constant('server')),
    servers,
    some({
      $schema: someText,
      defaults: some({ ...tunables, env: variables, envFile: someText }),
      gateway: some({
        ...settings(GATEWAY_SETTINGS),
        startLimit: valuesOf(START_LIMIT),
        http: some(settings(HTTP_SETTINGS)),
      }),
      mcpServers: servers,
      views: fc.dictionary(
        fc.oneof({ weight: 9, arbitrary: fc.constantFrom('v', 'w_1') }, fc.constant('a b')),
        some({
          servers: fc.array(fc.constantFrom('a', 'b-1', 'c')),
          tools: some({ allow: texts, deny: texts }),
          only: texts,
        }),
        { maxKeys: 2 },
      ),
      clients: fc.dictionary(fc.constantFrom('x*', 'y'), fc.constantFrom('v', 'w_1', ''), { maxKeys: 2 }),
      globalShortcut: someText,
    }),
  )
  .map(([root, entries, rest]) => ({ ...rest, [root]: entries }));

/** What the schema says, without places; undefined for a file with mistakes. */
function checkedBySchema(content: string): CheckedFile | undefined {
  try {
    const checked = checkFile(content, 'trunkline.yaml');
    return { ...checked, servers: checked.servers.map((server) => ({ ...server, places: [] })) };
  } catch (error) {
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
}

function checkedQuickly(content: string): CheckedFile | undefined {
  const checked = checkQuickly(content);
  return checked && { ...checked, servers: checked.servers.map((server) => ({ ...server, places: [] })) };
}

const FULL = `
$schema: x
servers:
  a: { package: "p@1", bin: b, installScripts: true, timeout: 1m, concurrency: 2, sharing: isolated, disabled: false }
  b: { command: x, cwd: ., prefix: "", methods: [a/*], tools: { allow: [a], deny: [] }, type: stdio, trusted: true }
  c: { command: x, tools: { rename: { a: b }, describe: { a: t, b: { append: t } }, params: { a: { hide: [p], set: { p: [1, null] }, default: { q: { r: true } }, describe: { q: t } } } } }
defaults: { env: { K: v }, restart: { budget: 3 }, limits: { memory: 1GiB, processes: 10 }, maxFrame: 1MiB }
views: { v: {}, w: { servers: [a, b], tools: { allow: [a__*], deny: [] } } }
clients: { "x*": v }
gateway: { startupWait: 1s, watch: false, startLimit: 2, http: { maxSessions: 5 } }
`;

describe('the quick check', () => {
  test('returns what the schema returns, for any file, and nothing for a file with mistakes or warnings', () => {
    let sure = 0;
    const numRuns = repetitions({ full: 30_000, short: 3_000 });
    fc.assert(
      fc.property(writtenYaml(file), (content) => {
        const checked = checkedQuickly(content);
        if (checked === undefined) return;
        sure += 1;
        expect(checked).toStrictEqual(checkedBySchema(content));
        expect(checked.warnings).toStrictEqual([]);
      }),
      { numRuns },
    );
    // Otherwise the files of this test would show little.
    expect(sure).toBeGreaterThan(numRuns / 10);
  });

  it.each([
    ['one server', 'servers:\n  a: { command: x }\n'],
    ['a file of another program', '{"mcpServers": {"a": {"command": "x", "args": ["-y", "b"], "env": {"K": "v"}}}}'],
    ['every kind of setting', FULL],
  ])('is sure about %s', (_, content) => {
    expect(checkedQuickly(content)).toStrictEqual(checkedBySchema(content));
    expect(checkedQuickly(content)).toBeDefined();
  });

  it.each([
    ['a remote server', 'servers: { a: { url: "http://x" } }'],
    ['a setting that another one overrules', 'servers: { a: { command: x, timeout: 20m, maxTimeout: 10m } }'],
    ['more sessions than connections', 'servers: { a: { command: x } }\ngateway: { http: { maxSessions: 300 } }'],
    ['an unknown key of another program', 'mcpServers: { a: { command: x } }\nother: 1'],
    ['no server', 'servers: {}'],
  ])('says nothing about a file with %s', (_, content) => {
    expect(checkQuickly(content)).toBeUndefined();
  });
});
