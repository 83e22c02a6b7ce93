// What do the models of real clients get when a rule denies a call, when a rule asks a person, and when an interceptor withholds a result?
// A stand-in for the model calls a tool for each step: in a run without a person, whose calls are answered elsewhere, and at a terminal,
// where the client shows a form. Prints each text, and fails if one is not as docs/rules.md and docs/interceptors.md promise.
//
//   npm run -w lab asked-calls [-- claude | codex]
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { launchBrowser } from '../../scripts/chromium.mjs';
import { tinyServer } from '../bench/ways.mjs';
import { CLIENTS, openHome } from './client-programs.mjs';
import { Model } from './model.mjs';
import { CLI } from './targets.mjs';

const NAME = 'trunkline';
const GUARD = fileURLToPath(new URL('../../docs/examples/secret-guard.mjs', import.meta.url));
const [UP, DOWN, RIGHT, ENTER, ESCAPE] = ['\x1b[A', '\x1b[B', '\x1b[C', '\r', '\x1b'];
/** The keys that answer the form of a client, by answer. */
const KEYS = {
  // Opens the choices, takes the second one, and leaves them for the button.
  claude: {
    yes: [RIGHT, DOWN, ' ', ENTER, ENTER],
    no: [RIGHT, ' ', ENTER, ENTER],
    decline: [UP, ENTER],
    close: [ESCAPE],
  },
  codex: { yes: ['2'], no: [ENTER], close: [ESCAPE], session: ['3'] },
};
const SAID_NO = /asks a person first, who said no: Ask me first\. Do not repeat this call/;
const UNANSWERED = /and nobody has answered: Ask me first\. Ask your user to allow it .* repeat the call/;
/** Time in which a person reads a form, and between two keys. */
const READING_MS = 2_000;
const KEY_MS = 400;
const WITHIN_MS = 60_000;
const POLL_MS = 200;
const KEPT_OUTPUT_CHARS = 4_000;

const [, , key = 'claude'] = process.argv;
if (KEYS[key] === undefined) throw new Error(`There is no ${key}; take ${Object.keys(KEYS).join(', ')}`);
const client = CLIENTS[key];
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => stop.abort(new Error(signal)));

/**
 * Steps without a person at the client: `text` is what the model echoes, `meanwhile` what a person does elsewhere, and `gets` what the
 * model must get: a pattern, or the text itself.
 */
const ELSEWHERE = [
  { title: 'A rule denies the call', text: 'go', gets: /rule of the configuration denies this: Gone is gone\./ },
  { title: 'An interceptor withholds the result', text: 'AKIAABCDEFGHIJKLMNOP', gets: /The result has a key of AWS/ },
  { title: 'A person allows it with `trunkline allow ID`', text: 'ask 1', meanwhile: onCommandLine('allow') },
  {
    title: 'A person denies it with `trunkline deny ID`',
    text: 'ask 2',
    meanwhile: onCommandLine('deny'),
    gets: SAID_NO,
  },
  { title: 'A person presses *Allow* on the page', text: 'ask 3', meanwhile: onPage },
  { title: 'Nobody answers', text: 'ask 4', gets: UNANSWERED },
  { title: 'The same call comes again after a late yes', text: 'ask 4', before: onCommandLine('allow') },
  { title: 'A call that nothing forbids', text: 'free' },
];
/** Steps at a terminal, where a person presses `keys`. */
const AT_TERMINAL = [
  { title: 'A person says yes in the form', text: 'ask 5', keys: KEYS[key].yes },
  { title: 'A person says no in the form', text: 'ask 6', keys: KEYS[key].no, gets: SAID_NO },
  { title: 'A person declines the form', text: 'ask 7', keys: KEYS[key].decline, gets: SAID_NO },
  { title: 'A person closes the form', text: 'ask 8', keys: KEYS[key].close, gets: SAID_NO },
  { title: 'A person says yes until the session ends', text: 'ask 9', keys: KEYS[key].session },
  { title: 'The next call after that', text: 'ask 10', keys: KEYS[key].session && [] },
].filter(({ keys }) => keys !== undefined);

const home = await openHome(client, stop.signal);
const config = join(home.folder, 'trunkline.yaml');
const browser = await launchBrowser();
try {
  const [command, ...args] = tinyServer();
  const servers = `{ tiny: { command: ${JSON.stringify(command)}, args: ${JSON.stringify(args)}, rules: [
    { tools: [echo], args: { text: [go] }, then: deny, say: Gone is gone },
    { tools: [echo], args: { text: ['ask *'] }, then: ask, say: Ask me first } ] },
  secrets: { command: ${JSON.stringify(process.execPath)}, args: [${JSON.stringify(GUARD)}] } }`;
  writeFileSync(config, `{ servers: ${servers}, defaults: { interceptors: [secrets] } }`);
  const env = { TRUNKLINE_HUB_DIR: home.env.TRUNKLINE_HUB_DIR };
  await client.register(home, { name: NAME, command: process.execPath, args: [CLI, '--config', config], env });
  await take('without a person', ELSEWHERE, converseAlone);
  await take('at a terminal', AT_TERMINAL, converseAtTerminal);
} finally {
  await trunkline('stop');
  await browser.close();
  home.close();
}

function trunkline(...args) {
  return home.runIn([process.execPath, CLI], [...args, '--config', config]);
}

/** Has the client take the steps, and prints what its model got for each. */
async function take(where, steps, converse) {
  process.stdout.write(`${client.package} ${client.version}, ${where}\n\n`);
  const person = [];
  const calls = steps.map(({ text }) => ({ name: 'tiny__echo', arguments: { text } }));
  const times = [];
  const { results, output } = await converse(calls, async (at) => {
    const { text, before, meanwhile } = steps[at];
    if (before !== undefined) person[at] = await before(text);
    times.push(performance.now());
    // It can fail before it is awaited.
    if (meanwhile !== undefined) person[at] = meanwhile(text).catch(({ message }) => `failed: ${message}`);
  });
  times.push(performance.now());
  for (const [at, { title, text, gets }] of steps.entries()) {
    const got = plainText(results[at] ?? '');
    const isGood = gets === undefined ? got.split('\n').at(-1) === text : gets.test(got);
    if (!isGood) process.exitCode = 1;
    const seconds = ((times[at + 1] - times[at]) / 1_000).toFixed(1);
    const did = (await person[at]) ?? '';
    process.stdout.write(`${isGood ? 'ok' : 'FAILED'}: ${title}, ${seconds} s\n`);
    if (did !== '') process.stdout.write(`  person: ${did.trim()}\n`);
    process.stdout.write(`  model: ${got}\n`);
  }
  if (process.exitCode === 1) process.stderr.write(`${JSON.stringify(output.slice(-KEPT_OUTPUT_CHARS))}\n`);
  process.stdout.write('\n');
}

/** Some clients give their model a list of contents. */
function plainText(result) {
  if (!result.startsWith('[')) return result;
  return JSON.parse(result)
    .map(({ text }) => text)
    .join('\n');
}

/** Runs the client without a person. It may begin before it has the tools, and then it is run again. */
async function converseAlone(calls, before) {
  let said;
  await until(async () => {
    said = await client.converse(home, calls, before);
    return said.seen.length > 0;
  });
  return said;
}

/** Runs the client as a person does, on a terminal that `script` makes, and answers its forms. */
async function converseAtTerminal(calls, before) {
  const press = async (keys) => {
    for (const each of keys) {
      child.stdin.write(each);
      await sleep(KEY_MS);
    }
  };
  const answerForm = async ({ text, keys }) => {
    if (keys.length === 0) return;
    await questionAbout(text);
    await sleep(READING_MS);
    await press(keys);
  };
  const model = new Model(calls, async (at) => {
    await before(at);
    // Without the form, the step fails.
    void answerForm(AT_TERMINAL[at]).catch(() => {});
  });
  await model.start();
  const { args, variables } = client.atTerminal(home, model);
  const words = [...home.program, ...args].map((word) => `'${word}'`).join(' ');
  const options = { cwd: home.folder, env: { ...home.env, TERM: 'xterm-256color', ...variables } };
  const child = spawn('script', ['-qfec', `stty cols 140 rows 50; exec ${words}`, '/dev/null'], options);
  const ended = once(child, 'close');
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text;
    // A terminal tells where its cursor is.
    if (text.includes('\x1b[6n')) child.stdin.write('\x1b[1;1R');
  });
  try {
    // What is typed too early is lost, or is answered before the client has the tools.
    await until(async () => {
      await press(['Call the tools.', ENTER]);
      await sleep(READING_MS);
      return model.seen.length > 0;
    });
    await until(() => model.results.length === calls.length);
  } catch {
    // The steps that are missing fail.
  } finally {
    child.kill('SIGTERM');
    await ended;
    model.close();
  }
  return { results: model.results, output };
}

/** What a person does at the command line of Trunkline. Returns what it prints. */
function onCommandLine(command) {
  return async (text) => {
    const { id } = await questionAbout(text);
    return `trunkline ${command} ID: ${await trunkline(command, id)}`;
  };
}

/** Presses the button of the page of `trunkline web`. Returns what the page shows about the call. */
async function onPage(text) {
  const web = spawn(process.execPath, [CLI, 'web', '--no-open', '-q', '--config', config], {
    cwd: home.folder,
    env: home.env,
  });
  try {
    const [line] = await once(web.stdout.setEncoding('utf8'), 'data');
    const page = await browser.newPage();
    await page.goto(line.trim());
    const card = page.getByRole('article').filter({ hasText: text });
    await card.waitFor();
    const shown = await card.textContent();
    const answered = page.waitForResponse((answer) => answer.url().endsWith('/answer'));
    await card.getByRole('button', { name: 'Allow', exact: true }).click();
    return `${shown.replace(/\s+/g, ' ')}, POST /answer: ${(await answered).status()}`;
  } finally {
    web.kill('SIGTERM');
  }
}

/** The question about the call with this text, as soon as it waits. */
async function questionAbout(text) {
  let found;
  await until(async () => {
    const all = JSON.parse(await trunkline('allow', '--json'));
    found = all.find(({ arguments: args }) => JSON.parse(args).text === text);
    return found !== undefined;
  });
  return found;
}

async function until(isTrue) {
  const deadline = performance.now() + WITHIN_MS;
  while (!(await isTrue())) {
    stop.signal.throwIfAborted();
    if (performance.now() > deadline) throw new Error('It took too long');
    await sleep(POLL_MS);
  }
}
