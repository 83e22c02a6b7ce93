// Runs tests on Windows' own Node, under Wine, and prints which failed and why. Exits with 1 if a test fails that `unable.mjs` does not
// list, or if a listed test passes or is missing. `npm run test:windows -- --short` runs a part of the unit tests, and `-- FILE…` the
// tests of these files or folders; `-- --hub` tries the hub alone. Without any of these, all unit tests run, then a part of those with
// processes, and the hub.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { UNABLE } from './unable.mjs';
import { COPY, endWine, inRepository, prepare, windowsNode, windowsPath, windowsTests } from './wine.mjs';

/** What differs between systems: files, paths, processes, commands, and the words about them. */
const SHORT = [
  ...['test/host', 'test/servers/process'],
  ...['cache-folder', 'gateway-file', 'user-files'].map((name) => `test/state/${name}.test.ts`),
  ...['lock-file', 'package-store'].map((name) => `test/servers/packages/${name}.test.ts`),
  'test/cli/browser.test.ts',
];
/** HTTP, and the tests with processes whose subject is the system. */
const WITH_PROCESSES = [
  ...['end-group', 'guardian', 'process-lock', 'processes', 'run-file', 'secret-command', 'spawn-child'].map(
    (name) => `test/process/${name}.test.ts`,
  ),
  ...['e2e/relay', 'e2e/http', 'e2e/killed', 'commands/cli', 'commands/edit-commands'].map(
    (name) => `test/${name}.test.ts`,
  ),
];

const { values, positionals } = parseArgs({
  options: { short: { type: 'boolean' }, hub: { type: 'boolean' } },
  allowPositionals: true,
});
const say = (text) => process.stdout.write(`${text}\n`);
const step = (text) => say(`[${String(Math.round(performance.now() / 1_000)).padStart(4)} s] ${text}`);

prepare(step);
const reports = [];
let isFaulty = false;
try {
  if (positionals.length > 0) test('the named tests', positionals);
  else if (values.hub) tryHub();
  else {
    checkServer();
    if (values.short) test('a part of the unit tests', ['--project', 'unit', ...SHORT]);
    else {
      test('the unit tests', ['--project', 'unit']);
      test('a part of the tests with processes', WITH_PROCESSES);
      tryHub();
    }
  }
} finally {
  endWine();
}
print(reports.flatMap(({ testResults }) => testResults));
step(isFaulty ? 'something went wrong on Windows' : 'Windows is as it should be');
process.exitCode = isFaulty ? 1 : 0;

function test(title, args) {
  step(title);
  const report = windowsTests(args);
  reports.push(report);
  step(`${title}: ${report.numPassedTests} passed, ${report.numFailedTests} failed`);
}

/** The built program starts a server and reads its tools. */
function checkServer() {
  const folder = mkdtempSync(join(tmpdir(), 'trunkline-windows-check-'));
  const config = join(folder, 'config.yaml');
  const server = windowsPath(join(COPY, 'test', 'fixtures', 'servers', 'lab.mjs'));
  writeFileSync(config, `servers:\r\n  lab:\r\n    command: node\r\n    args: ['${server}']\r\n`);
  const { status, output } = windowsNode('dist/cli.js', 'check', '--config', windowsPath(config));
  rmSync(folder, { recursive: true });
  const isReady = status === 0 && /^lab\s+ready/m.test(output);
  step(isReady ? 'a server is ready' : `a server is not ready:\n${output}`);
  isFaulty ||= !isReady;
}

/** Many clients and servers with the hub. */
function tryHub() {
  step('the hub, with eight clients and ten servers');
  const { status, output } = windowsNode('scripts/windows/hub-trial.mjs');
  say(output.trimEnd());
  step(status === 0 ? 'the hub is as it should be' : 'the hub is not as it should be');
  isFaulty ||= status !== 0;
}

function print(files) {
  const results = new Map();
  for (const { name, message, assertionResults } of files) {
    const file = inRepository(name);
    if (assertionResults.length === 0)
      results.set(`${file} > the whole file`, { status: 'failed', cause: firstLine(message) });
    for (const { fullName, status, failureMessages } of assertionResults)
      results.set(`${file} > ${fullName}`, { status, cause: firstLine(failureMessages[0]) });
  }
  const ran = new Set(files.map(({ name }) => inRepository(name)));
  for (const { reason, tests, isUnsteady = false } of UNABLE)
    for (const [file, names] of Object.entries(tests)) {
      if (!ran.has(file)) continue;
      say(`Wine cannot run ${names.length} tests of ${file}, because ${reason}`);
      for (const name of names) {
        const key = `${file} > ${name}`;
        const status = results.get(key)?.status;
        if (status !== 'failed' && !(isUnsteady && status === 'passed'))
          complain(`${key}: listed in unable.mjs, but ${status ?? 'missing'}`);
        results.delete(key);
      }
    }
  const failed = [...results].filter(([, { status }]) => status === 'failed');
  for (const [cause, group] of grouped(failed)) {
    complain(`\n${group.length} × ${cause}`);
    for (const [key] of group) say(`  ${key}`);
  }
}

function complain(text) {
  isFaulty = true;
  say(text);
}

/** The cause of a failure, without what differs between tests. */
function firstLine(message = '') {
  return message
    .split('\n')[0]
    .replaceAll(/[A-Z]:[\\/][^'"\s,]*/g, 'PATH')
    .replaceAll(/\d+/g, 'N')
    .slice(0, 160);
}

/** The failed tests by their causes. */
function grouped(failed) {
  const groups = new Map();
  for (const each of failed) groups.set(each[1].cause, [...(groups.get(each[1].cause) ?? []), each]);
  return groups;
}
