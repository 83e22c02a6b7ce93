// The official conformance suite: fetched from npm into a cache, and run as one process, because each start of it takes a second.
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { bringNode, installPackage } from '../../scripts/packages.mjs';

/** The suites use what came with Node 22; we support Node 20. */
const OLDEST_NODE = 22;

/** For all scenarios, which run one after the other. The longest one waits 15 s. */
const RUN_TIMEOUT_MS = 240_000;
/** For the client of one scenario. */
const CLIENT_TIMEOUT_MS = 60_000;
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

const execute = promisify(execFile);

/**
 * Prepares a version of the suite. `scenarios` are the names of those for servers that speak this protocol version,
 * with the ones that the suite itself leaves out by default, as its own example server does not pass them yet.
 */
export async function prepareSuite(version, protocol) {
  const node = await bringNode(OLDEST_NODE);
  const folder = await installPackage('@modelcontextprotocol/conformance', version);
  const suite = (args, options) => execute(node, [join(folder, 'dist', 'index.js'), ...args], options);

  const { stdout } = await suite(['list', '--server', '--spec-version', protocol]);
  const scenarios = [...stdout.matchAll(/^ {2}- (\S+)/gm)].map(([, name]) => name);
  if (scenarios.length === 0) throw new Error(`Suite ${version} lists no scenarios:\n${stdout}`);
  const run = (what, url, signal) => runSuite(suite, { what, protocol, url, signal });
  return {
    scenarios,
    runScenario: async (name, url, signal) => outcomeOf(name, await run(['--scenario', name], url, signal)),
    runAll: async (url, signal) => {
      const results = await run(['--suite', 'all'], url, signal);
      return scenarios.map((name) => outcomeOf(name, results));
    },
  };
}

/**
 * Prepares the scenarios for clients of a version of the suite. Each runs in a process of its own, because the suite would run all
 * of them at once. `scenarios` returns their names for a protocol version; `extension` stands for those of extensions.
 */
export async function prepareClientSuite(version) {
  const node = await bringNode(OLDEST_NODE);
  const program = join(await installPackage('@modelcontextprotocol/conformance', version), 'dist', 'index.js');
  const { stdout } = await execute(node, [program, 'list', '--client']);
  const versions = new Map(
    [...stdout.matchAll(/^ {2}- (\S+) \[(.*)\]/gm)].map(([, name, list]) => [name, list.split(',')]),
  );
  return {
    scenarios: (protocol) => [...versions].flatMap(([name, list]) => (list.includes(protocol) ? [name] : [])),
    runScenario: async (name, { protocol, command, signal }) => {
      const folder = mkdtempSync(join(tmpdir(), 'trunkline-conformance-'));
      try {
        const spec = protocol === 'extension' ? [] : ['--spec-version', protocol];
        const args = ['client', '--command', command, '--scenario', name, ...spec, '--output-dir', folder];
        const options = { timeout: RUN_TIMEOUT_MS, killSignal: 'SIGKILL', signal, maxBuffer: MAX_OUTPUT_BYTES };
        const ended = await execute(node, [program, ...args, '--timeout', `${CLIENT_TIMEOUT_MS}`], options).catch(
          (error) => error,
        );
        const [file] = readdirSync(folder, { recursive: true }).filter((path) => path.endsWith('checks.json'));
        const checks = file === undefined ? [] : JSON.parse(readFileSync(join(folder, file), 'utf8'));
        const faults = file === undefined ? [whyNoChecks(ended)] : faultsIn(checks);
        // The suite also counts a client that fails where it must not.
        if (faults.length === 0 && ended.code !== undefined)
          faults.push(`the suite failed it: ${ended.stderr.slice(-1_000)}`);
        return { name, checks, faults, output: ended.stderr };
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
  };
}

/** Runs one scenario, or all of the protocol in one process. Returns the checks of each scenario by its name, and what went wrong. */
async function runSuite(suite, { what, protocol, url, signal }) {
  const folder = mkdtempSync(join(tmpdir(), 'trunkline-conformance-'));
  try {
    const args = ['server', '--url', url, ...what, '--spec-version', protocol, '--output-dir', folder];
    const options = { timeout: RUN_TIMEOUT_MS, killSignal: 'SIGKILL', signal, maxBuffer: MAX_OUTPUT_BYTES };
    // It exits with 1 when a check failed, which is not what we go by.
    const failure = await suite(args, options).catch((error) => error);
    return { checks: readChecks(folder), why: whyNoChecks(failure) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** `faults` is empty for a scenario that passed. */
function outcomeOf(name, { checks, why }) {
  const own = checks.get(name);
  return own === undefined ? { name, checks: [], faults: [why] } : { name, checks: own, faults: faultsIn(own) };
}

/** Of each scenario that has ended; its folder bears its name and the time. */
function readChecks(folder) {
  const results = new Map();
  for (const entry of readdirSync(folder)) {
    const [, name] = /^(?:server-)?(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(entry) ?? [];
    const file = join(folder, entry, 'checks.json');
    // The suite makes the folder first, and the file at the end of the scenario.
    if (name !== undefined && existsSync(file)) results.set(name, JSON.parse(readFileSync(file, 'utf8')));
  }
  return results;
}

/**
 * Stricter than the suite, which counts a scenario as passed if no check failed. Some of its checks turn into a
 * remark when there was nothing to check, and a server that does nothing at all would pass them.
 */
function faultsIn(checks) {
  const faults = checks
    .filter(({ status }) => status === 'FAILURE' || status === 'WARNING')
    .map(({ id, status, errorMessage, description }) => `${status} ${id}: ${errorMessage ?? description}`);
  if (faults.length > 0 || checks.some(({ status }) => status === 'SUCCESS')) return faults;
  const remarks = checks.map(({ details }) => details?.message).filter((message) => message !== undefined);
  return [`no check succeeded${remarks.length > 0 ? `: ${remarks.join('; ')}` : ''}`];
}

function whyNoChecks(failure) {
  if (failure.killed) return `the suite did not end within ${RUN_TIMEOUT_MS / 1000} s`;
  const said = (failure.stderr || failure.stdout || failure.message || '').trim();
  return `the suite made no checks: ${said.slice(-500)}`;
}
