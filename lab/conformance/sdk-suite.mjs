// Does the endpoint of one server say what the server says? The end-to-end suite of the official SDK runs with Trunkline
// between each client and its server: Streamable HTTP at `/mcp/KEY`, stdio behind it. `sdk-suite/differences.mjs` says
// which tests are to fail.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { DIFFERENCES } from './sdk-suite/differences.mjs';

/** By era: the name that the suite has for a server over Streamable HTTP, and the revision. */
const ERAS = { legacy: 'streamableHttp 2025-11-25', modern: 'entryModern 2026-07-28' };
const CONFIG = fileURLToPath(new URL('sdk-suite/vitest.config.mjs', import.meta.url));

const { values } = parseArgs({
  options: {
    sdk: { type: 'string' },
    era: { type: 'string', multiple: true },
    file: { type: 'string', multiple: true, default: [] },
    verbose: { type: 'boolean', short: 'v', default: false },
  },
});
const suite = resolve(values.sdk ?? '.', 'test', 'e2e');
if (values.sdk === undefined || !existsSync(join(suite, 'node_modules'))) {
  throw new Error('--sdk FOLDER has to be a clone of modelcontextprotocol/typescript-sdk with its packages installed');
}
const eras = values.era ?? Object.keys(ERAS);
const unknown = eras.find((era) => !Object.hasOwn(ERAS, era));
if (unknown !== undefined) throw new Error(`There is no era ${unknown}: ${Object.keys(ERAS).join(', ')}`);

for (const era of eras) if (!report(era, await runSuite(ERAS[era]))) process.exitCode = 1;

/** Returns the tests of this way of transport in which a client reached its server through Trunkline. */
async function runSuite(way) {
  const folder = mkdtempSync(join(tmpdir(), 'trunkline-sdk-suite-'));
  try {
    const results = join(folder, 'results.json');
    const vitest = join(suite, 'node_modules', 'vitest', 'vitest.mjs');
    const args = ['run', '--root', suite, '--config', CONFIG, '--testNamePattern', way, ...values.file];
    await run([vitest, ...args, '--reporter', 'json', '--outputFile', results]);
    const { testResults } = JSON.parse(readFileSync(results, 'utf8'));
    const broken = testResults.find(({ message }) => message !== '');
    if (broken !== undefined) throw new Error(`${broken.name}: ${broken.message}`);
    return testResults.flatMap(({ assertionResults }) =>
      assertionResults.filter(({ meta }) => meta?.isThroughGateway === true),
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The exit code says nothing, as tests may fail that are listed. */
function run(args) {
  return new Promise((done, reject) => {
    const env = { ...process.env, TRUNKLINE_SDK_SUITE: suite };
    const child = spawn(process.execPath, args, { cwd: suite, env, stdio: ['ignore', 'ignore', 'pipe'] });
    let output = '';
    child.stderr.setEncoding('utf8').on('data', (chunk) => {
      output += chunk;
    });
    child.once('error', reject);
    child.once('close', () => {
      if (values.verbose) process.stderr.write(output);
      done();
    });
  });
}

/** Prints what came of one era, and returns whether exactly those tests failed that are listed. */
function report(era, tests) {
  if (tests.length === 0) throw new Error(`No test of the era ${era} went through Trunkline`);
  const listed = DIFFERENCES[era];
  const failed = new Map(tests.filter(({ status }) => status !== 'passed').map((test) => [test.fullName, test]));
  // A test that the SDK itself does not pass is expected to fail, and fails if it passes.
  const exceeds = (name) => listed.get(name)?.exceedsSdk === true;
  const met = tests.filter(({ fullName }) => !failed.has(fullName) || exceeds(fullName));
  say(`${era}: ${met.length} of ${tests.length} tests through Trunkline`);
  for (const [name, { reason, exceedsSdk = false }] of listed) {
    if (failed.has(name)) say(`  Listed${exceedsSdk ? ', better than the SDK itself' : ''}: ${name}\n    ${reason}`);
  }
  const surprising = [...failed.keys()].filter((name) => !listed.has(name));
  for (const name of surprising) {
    say(`  FAILED: ${name}\n    ${failed.get(name).failureMessages.join('\n').split('\n')[0]}`);
  }
  const isWhole = values.file.length === 0;
  const mustFail = isWhole ? [...listed].filter(([, { mayPass = false }]) => !mayPass) : [];
  const fixed = mustFail.map(([name]) => name).filter((name) => !failed.has(name));
  for (const name of fixed) say(`  Passes, so it has to be removed from the list: ${name}`);
  return surprising.length === 0 && fixed.length === 0;
}

function say(text) {
  process.stdout.write(`${text}\n`);
}
