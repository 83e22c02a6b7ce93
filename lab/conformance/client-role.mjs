// Is Trunkline a good client to servers behind a URL? The official conformance suite plays the server, and the authorization
// server, of each scenario for clients. `client-under-test.mjs` uses it through Trunkline: alone, and through the hub.
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { isAsListed, toReport } from './report.mjs';
import { prepareClientSuite } from './suite.mjs';

const VERSION = '0.2.0-alpha.12';
const CLIENT = fileURLToPath(new URL('client-under-test.mjs', import.meta.url));
const WAYS = ['alone', 'hub'];
const NEWEST = '2026-07-28';
/** Logins of an older revision in the short form, which has all logins of the newest one. The revision changes the first request only. */
const SHORT_LOGINS = /^auth\/(?:2025-03-26|metadata-default|scope-step-up)/;
/** Scenarios of the short form through the hub: one of each kind of message, and of each way to log in. */
const SHORT_IN_HUB =
  /^(?:tools_call|elicitation|sse-retry|sep-2322|http-custom|auth\/(?:metadata-default|scope-step-up|client-credentials-jwt|dpop$))/;

/** The number of scenarios, and those that do not pass, with the reason. */
const CELLS = {
  '2025-03-26': { scenarios: 2, missing: {} },
  '2025-11-25': { scenarios: 19, missing: {} },
  '2026-07-28': { scenarios: 33, missing: {} },
  // The other extension, skills, is not about clients that only relay.
  extension: { scenarios: 6, only: /^auth\//, missing: {} },
};

const { values } = parseArgs({
  options: {
    cell: { type: 'string', multiple: true },
    way: { type: 'string', multiple: true },
    scenario: { type: 'string' },
    short: { type: 'boolean', default: false },
    verbose: { type: 'boolean', short: 'v', default: false },
  },
});
const names = values.cell ?? Object.keys(CELLS);
const unknown = names.find((name) => !Object.hasOwn(CELLS, name));
if (unknown !== undefined) throw new Error(`There is no cell ${unknown}: ${Object.keys(CELLS).join(', ')}`);

/** Ends what runs, so that nothing of ours stays behind. */
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => stop.abort(new Error(signal)));

say('MCP conformance, client side: Trunkline alone and through the hub');
const suite = await prepareClientSuite(VERSION);
let ranCount = 0;
for (const protocol of names) {
  if (!(await runCell(protocol, CELLS[protocol]))) process.exitCode = 1;
}
if (ranCount === 0) throw new Error(`There is no scenario ${values.scenario}`);

/** Prints what came of one revision, and returns whether everything is as it is listed. */
async function runCell(protocol, { only, scenarios: count, missing }) {
  const all = suite.scenarios(protocol).filter((name) => only?.test(name) ?? true);
  if (all.length !== count)
    throw new Error(`Suite ${VERSION} has ${all.length} scenarios of ${protocol}, not ${count}`);
  const wanted = all.filter((name) => values.scenario === undefined || name === values.scenario);
  const results = {};
  for (const way of values.way ?? WAYS) {
    const ran = wanted.filter((name) => !values.short || isShort(name, protocol, way));
    ranCount += ran.length;
    results[way] = { outcomes: await runAll(ran, protocol, way), missing };
  }
  say(`${protocol}, ${toReport(VERSION, results, { isVerbose: values.verbose })}`);
  return Object.values(results).every(isAsListed);
}

function isShort(name, protocol, way) {
  const isOldLogin = name.startsWith('auth/') && protocol < NEWEST;
  return (way === 'alone' || SHORT_IN_HUB.test(name)) && (!isOldLogin || SHORT_LOGINS.test(name));
}

/** Runs as many scenarios at once as there are processors. */
async function runAll(scenarios, protocol, way) {
  const command = [process.execPath, CLIENT].map((path) => JSON.stringify(path)).join(' ');
  const outcomes = [];
  const work = async () => {
    while (outcomes.length < scenarios.length) {
      const at = outcomes.push(undefined) - 1;
      const options = { protocol, command: `${command} ${way}`, signal: stop.signal };
      outcomes[at] = await suite.runScenario(scenarios[at], options);
      stop.signal.throwIfAborted();
      if (values.verbose) say(`What ${scenarios[at]} wrote, ${way}:\n${outcomes[at].output}`);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
  return outcomes;
}

function say(text) {
  process.stdout.write(`${text}\n`);
}
