// Does Trunkline change what a client sees? The official conformance suite runs against our fixture server, once
// over its own HTTP and once behind Trunkline. Every scenario that passes without Trunkline has to pass behind it.
import { parseArgs } from 'node:util';
import { hasPassed, lostScenarios, toReport } from './report.mjs';
import { PROTOCOL, prepareSuite, SUITE_VERSIONS } from './suite.mjs';
import { TARGETS } from './targets.mjs';

const { values } = parseArgs({
  options: {
    'direct-only': { type: 'boolean', default: false },
    suite: { type: 'string' },
    scenario: { type: 'string' },
    verbose: { type: 'boolean', short: 'v', default: false },
  },
});
const versions = values.suite === undefined ? SUITE_VERSIONS : [values.suite];
const targets = values['direct-only'] ? ['direct'] : Object.keys(TARGETS);

/** Ends what runs, so that nothing of ours stays behind. */
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => stop.abort(new Error(signal)));

// One after the other, as npm may have to fetch the same packages for them.
const suites = [];
for (const version of versions) suites.push(narrowed(await prepareSuite(version)));
if (suites.every(({ scenarios }) => scenarios.length === 0)) throw new Error(`There is no scenario ${values.scenario}`);

say(`MCP conformance, server side, protocol ${PROTOCOL}`);
const reports = await all(suites.filter(({ scenarios }) => scenarios.length > 0).map(runSuite));
process.exitCode = reports.every((isGood) => isGood) ? 0 : 1;

function narrowed(suite) {
  if (values.scenario === undefined) return suite;
  return { ...suite, scenarios: suite.scenarios.filter((name) => name === values.scenario) };
}

/** Prints what came of one version, and returns whether it is good. */
async function runSuite(suite) {
  const lists = await all(targets.map((target) => runAgainst(suite, target)));
  const results = Object.fromEntries(targets.map((target, index) => [target, lists[index]]));
  say(toReport(suite.version, results, { isVerbose: values.verbose }));
  return results.direct.every(hasPassed) && lostScenarios(results).length === 0;
}

/** Each version and target has a server of its own; its scenarios run one by one, as a client would. */
async function runAgainst({ version, scenarios, runScenario }, target) {
  const server = await TARGETS[target]();
  try {
    const outcomes = [];
    for (const name of scenarios) {
      outcomes.push(await runScenario(name, server.url, stop.signal));
      stop.signal.throwIfAborted();
    }
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
