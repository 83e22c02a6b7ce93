// The official conformance suite: fetched from npm into a cache, and run one scenario at a time.
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { bringNode, installPackage } from './packages.mjs';

/** The suites use what came with Node 22; we support Node 20. */
const OLDEST_NODE = 22;

/** The longest scenario waits 10 s for a stream to end, then 5 s for what was missed. */
const SCENARIO_TIMEOUT_MS = 60_000;

const run = promisify(execFile);

/**
 * Prepares a version of the suite. `scenarios` are the names of those for servers that speak this protocol version,
 * with the ones that the suite itself leaves out by default, as its own example server does not pass them yet.
 */
export async function prepareSuite(version, protocol) {
  const node = await bringNode(OLDEST_NODE);
  const folder = await installPackage('@modelcontextprotocol/conformance', version);
  const suite = (args, options) => run(node, [join(folder, 'dist', 'index.js'), ...args], options);

  const { stdout } = await suite(['list', '--server', '--spec-version', protocol]);
  const scenarios = [...stdout.matchAll(/^ {2}- (\S+)/gm)].map(([, name]) => name);
  if (scenarios.length === 0) throw new Error(`Suite ${version} lists no scenarios:\n${stdout}`);
  return { scenarios, runScenario: (name, url, signal) => runScenario(suite, { name, protocol, url, signal }) };
}

/** Returns `faults`, which is empty for a scenario that passed, and the checks that the suite made. */
async function runScenario(suite, { name, protocol, url, signal }) {
  const folder = mkdtempSync(join(tmpdir(), 'trunkline-conformance-'));
  try {
    const args = ['server', '--url', url, '--scenario', name, '--spec-version', protocol, '--output-dir', folder];
    // It exits with 1 when a check failed, which is not what we go by.
    const failure = await suite(args, { timeout: SCENARIO_TIMEOUT_MS, killSignal: 'SIGKILL', signal }).catch(
      (error) => error,
    );
    const checks = readChecks(folder);
    if (checks === undefined) return { name, checks: [], faults: [whyNoChecks(failure)] };
    return { name, checks, faults: faultsIn(checks) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function readChecks(folder) {
  const [result] = readdirSync(folder);
  if (result === undefined) return undefined;
  try {
    return JSON.parse(readFileSync(join(folder, result, 'checks.json'), 'utf8'));
  } catch (error) {
    // The folder is made first, and the file when all is over.
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
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
  if (failure.killed) return `no answer within ${SCENARIO_TIMEOUT_MS / 1000} s`;
  const said = (failure.stderr || failure.stdout || failure.message || '').trim();
  return `the suite made no checks: ${said.slice(-500)}`;
}
