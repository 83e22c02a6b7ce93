// Does Trunkline change what a client sees? The official conformance suite runs against our fixture servers, once over
// their own HTTP and once behind Trunkline. It speaks the revisions of both eras to servers of both eras; `cells.mjs` says
// what has to pass.
import { parseArgs } from 'node:util';
import { CELLS } from './cells.mjs';
import { isAsListed, toReport } from './report.mjs';
import { prepareSuite } from './suite.mjs';
import { TARGETS } from './targets.mjs';

const { values } = parseArgs({
  options: {
    cell: { type: 'string', multiple: true },
    'direct-only': { type: 'boolean', default: false },
    suite: { type: 'string' },
    scenario: { type: 'string' },
    verbose: { type: 'boolean', short: 'v', default: false },
  },
});
const names = values.cell ?? Object.keys(CELLS);
const unknown = names.find((name) => !Object.hasOwn(CELLS, name));
if (unknown !== undefined) throw new Error(`There is no cell ${unknown}: ${Object.keys(CELLS).join(', ')}`);

// One for each program that runs at the same time.
process.setMaxListeners(32);

/** Ends what runs, so that nothing of ours stays behind. */
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => stop.abort(new Error(signal)));

say('MCP conformance, server side: revision of the client x era of the server');
let ranCount = 0;
for (const name of names) {
  if (!(await runCell(name, CELLS[name]))) process.exitCode = 1;
}
if (ranCount === 0) throw new Error(`There is no scenario ${values.scenario ?? 'that runs directly'} in ${names}`);

/** Prints what came of one cell, and returns whether everything is as it is listed. */
async function runCell(name, { protocol, era, scenarios, warmUp = {}, missing }) {
  const targets = Object.keys(missing).filter((target) => target === 'direct' || !values['direct-only']);
  const versions = values.suite === undefined ? Object.keys(scenarios) : [values.suite];
  // One after the other, as npm may have to fetch the same packages for them.
  const suites = [];
  for (const version of versions) {
    const suite = await prepareSuite(version, protocol);
    const { length } = suite.scenarios;
    if (length !== (scenarios[version] ?? length)) {
      throw new Error(`Suite ${version} has ${length} scenarios of ${protocol}, not ${scenarios[version]}`);
    }
    suites.push({ ...suite, version, scenarios: suite.scenarios.filter(isWanted) });
  }
  const isGood = await all(
    suites
      .filter((suite) => suite.scenarios.length > 0 && targets.length > 0)
      .map((suite) => runSuite(suite, { name, era, warmUp, missing, targets })),
  );
  return isGood.every(Boolean);
}

function isWanted(scenario) {
  return values.scenario === undefined || scenario === values.scenario;
}

/** Prints what came of one version, and returns whether everything is as it is listed. */
async function runSuite(suite, { name, era, warmUp, missing, targets }) {
  ranCount += suite.scenarios.length;
  const lists = await all(targets.map((target) => runAgainst(suite, target, { era, first: warmUp[target] })));
  const results = Object.fromEntries(
    targets.map((target, index) => [target, { outcomes: lists[index], missing: missing[target] }]),
  );
  say(`${name}, ${toReport(suite.version, results, { isVerbose: values.verbose })}`);
  return Object.values(results).every(isAsListed);
}

/** Each version and target has a server of its own; its scenarios run one by one, as a client would. */
async function runAgainst({ version, scenarios, runScenario, runAll }, target, { era, first }) {
  const server = await TARGETS[target](era);
  try {
    if (scenarios.includes(first)) await runScenario(first, server.url, stop.signal);
    const outcomes =
      values.scenario === undefined
        ? await runAll(server.url, stop.signal)
        : [await runScenario(values.scenario, server.url, stop.signal)];
    stop.signal.throwIfAborted();
    if (values.verbose) say(`What ${target} said while suite ${version} ran:\n${server.lastWords()}`);
    return outcomes;
  } finally {
    await server.close();
  }
}

/** The first to fail stops the others, and is thrown when they have cleaned up. */
async function all(promises) {
  const results = await Promise.all(promises.map((promise) => promise.catch((error) => stop.abort(error))));
  stop.signal.throwIfAborted();
  return results;
}

function say(text) {
  process.stdout.write(`${text}\n`);
}
