// Is the table of packages in `src/config/resolve/sharing.ts` right? Two sessions of one hub call each of the thirty real
// servers in turn, first with a process each, then with one, then with the default. The answers must be the same where the
// table says that no session notices another, and differ where it says that they do. `npm run -w lab sharing`; `--short` has the ten
// servers of the other short forms, `--server KEY` one.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs, promisify } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { prepareServers } from './real-servers.mjs';
import { CLI } from './targets.mjs';

const CALL_TIMEOUT_MS = 60_000;
const POLL_MS = 100;
const STATUS = 'trunkline__status';
const execute = promisify(execFile);

const thought = (thoughtNumber) => ({ thought: 'x', nextThoughtNeeded: true, thoughtNumber, totalThoughts: 3 });
const entity = (name) => ({ entities: [{ name, entityType: 't', observations: ['o'] }] });
const place = (alias) => ({ alias, latitude: 47, longitude: 8, name: alias });
const both = (tool, args = {}) => ['a', 'b'].map((session) => [session, tool, args]);

/**
 * Calls of each server: session, tool, arguments, and what of the answer counts. Calls in a list of their own are sent at
 * once. `FOLDER` is the folder of the run, which has the folders `one` and `two` with a project each.
 */
const CALLS = {
  files: [
    ['a', 'write_file', { path: 'a.txt', content: 'A' }],
    ['b', 'write_file', { path: 'b.txt', content: 'B' }],
    ['a', 'read_text_file', { path: 'b.txt' }],
    ...both('list_allowed_directories'),
  ],
  memory: [
    Array.from({ length: 20 }, (_, index) => [index % 2 ? 'a' : 'b', 'create_entities', entity(`e${index}`)]),
    ['a', 'read_graph', {}, (text) => `${text.split('entityType').length - 1} entities`],
  ],
  thinking: [...both('sequentialthinking', thought(1)), ['a', 'sequentialthinking', thought(2)]],
  everything: [...both('echo', { message: 'x' }), ...both('toggle-simulated-logging')],
  github: both('get_issue', { owner: 'modelcontextprotocol', repo: 'no-such-repository', issue_number: 1 }),
  gitlab: both('search_repositories', { search: 'x' }),
  calc: [
    ['a', 'math', { expression: 'x = 2' }],
    ['b', 'math', { expression: 'x + 1' }],
    ...both('base64', { input: 'x', action: 'encode' }),
  ],
  time: both('convert_time', { sourceTimezone: 'UTC', targetTimezone: 'Asia/Tokyo', time: '2026-01-01 12:00:00' }),
  firefox: both('list_pages'),
  pdf: [...both('list_pdfs'), ['a', 'display_pdf', { url: 'FOLDER/none.pdf' }], ['b', 'list_pdfs', {}]],
  playwright: both('browser_tabs', { action: 'list' }),
  chrome: both('list_pages'),
  eslint: both('lint-files', { filePaths: ['FOLDER/one/x.js'] }),
  chart: both('generate_liquid_chart', { percent: 0.5 }),
  mui: both('fetchDocs', { urls: ['https://mui.com/material-ui/llms.txt'] }),
  mermaid: both('generate_mermaid_diagram', { mermaid: 'graph TD; A-->B', outputType: 'svg' }),
  git: [
    ['a', 'git_set_working_dir', { path: 'FOLDER/one', initializeIfNotPresent: true }],
    ['b', 'git_set_working_dir', { path: 'FOLDER/two', initializeIfNotPresent: true }],
    ['a', 'git_remote', { mode: 'add', name: 'origin', url: 'https://example.com/x' }],
    ['b', 'git_remote', { mode: 'list' }],
  ],
  drawio: [
    ['a', 'list_pages', { path: 'FOLDER/one/x.drawio' }],
    ['b', 'set_page', { path: 'FOLDER/one/x.drawio', page: '0', content: '<mxGraphModel><root/></mxGraphModel>' }],
    ['a', 'get_page', { path: 'FOLDER/one/x.drawio', page: '0' }],
  ],
  fetcher: both('fetch_url', { url: 'http://127.0.0.1:9/' }),
  primeng: [...both('version'), ...both('get_component', { name: 'button' }), ...both('list')],
  shadcn: [...both('list_themes'), ...both('list_components')],
  apple: [...both('list_wwdc_years'), ...both('browse_wwdc_topics')],
  fetch: both('fetch_txt', { url: 'http://127.0.0.1:9/' }),
  weather: [
    ...both('list_saved_locations'),
    ['a', 'save_location', place('home')],
    ['b', 'save_location', place('work')],
    ...both('list_saved_locations'),
  ],
  deepwiki: both('deepwiki_fetch', { url: 'https://deepwiki.com/x/y' }),
  bank: [
    ['a', 'memory_bank_write', { projectName: 'p', fileName: 'a.md', content: 'A' }],
    ['b', 'memory_bank_write', { projectName: 'p', fileName: 'b.md', content: 'B' }],
    ['b', 'memory_bank_update', { projectName: 'p', fileName: 'a.md', content: 'AB' }],
    ['a', 'memory_bank_read', { projectName: 'p', fileName: 'a.md' }],
    ...both('list_project_files', { projectName: 'p' }),
  ],
  vitest: [
    ['a', 'set_project_root', { path: 'FOLDER/one' }],
    ['b', 'set_project_root', { path: 'FOLDER/two' }],
    ...both('list_tests'),
  ],
  heroui: both('list_components'),
  a11y: [...both('explain_rule', { id: 'image-alt' }), ...both('list_rules')],
  lucide: both('search_icons', { query: 'arrow' }),
};

/** Settings with which the servers can be tried. Two of them are broken on purpose in the other scripts. */
const SETTINGS = {
  gitlab: { env: { GITLAB_PERSONAL_ACCESS_TOKEN: 'x' } },
  lucide: { args: ['--stdio'] },
  weather: { env: { ENABLED_TOOLS: 'all' } },
};

const { values } = parseArgs({ options: { short: { type: 'boolean' }, server: { type: 'string', multiple: true } } });
const { folder: installed, entries } = await prepareServers({ isShort: values.short === true });
let failures = 0;
for (const [key, entry] of Object.entries(entries)) {
  if (values.server === undefined || values.server.includes(key)) await judge(key, { ...entry, ...SETTINGS[key] });
}
say(failures === 0 ? 'The table is right.' : `${failures} verdicts are wrong.`);
process.exitCode = failures === 0 ? 0 : 1;

async function judge(key, entry) {
  const apart = await answersOf(key, { ...entry, sharing: 'isolated' });
  const shared = await answersOf(key, { ...entry, sharing: 'profile' });
  const usual = await answersOf(key, entry);
  const { mode, rule, because } = usual.sharing;
  const faults = [];
  const fault = (isFault, text) => isFault && faults.push(text);
  const isAlike = same(apart, shared);
  const version = entry.package.split('@').at(-1);
  fault(rule !== 'known', 'it is not in the table');
  fault(!because.includes(`version ${version})`), `the table is not about version ${version}`);
  fault(mode === 'profile' && !isAlike, 'a session notices another');
  const unseen = apart.hasOnlyErrors ? ', all answers are errors' : '';
  // Without a browser, these servers show nothing but that it is missing.
  fault(mode === 'isolated' && isAlike && unseen === '', 'no session notices another');
  if (mode === 'all') {
    const inTurn = await answersOf(key, { ...entry, sharing: 'all', concurrency: 1 });
    fault(key !== 'a11y' && same(apart, inTurn), 'two processes lose nothing');
    fault(!same(usual, inTurn), 'one process loses something');
  } else fault(!same(usual, mode === 'profile' ? shared : apart), 'the default answers otherwise');
  failures += faults.length > 0 ? 1 : 0;
  say(
    `${key.padEnd(10)} ${mode.padEnd(8)} ${isAlike ? 'alike' : 'differ'}${unseen}${faults.map((each) => `; WRONG: ${each}`).join('')}`,
  );
  if (faults.length === 0) return;
  for (const [name, { answers }] of Object.entries({ apart, shared, usual }))
    say(`  ${name}: ${answers.join('\n    ').slice(-1_500)}`);
}

function same(one, other) {
  return JSON.stringify(one.answers) === JSON.stringify(other.answers);
}

/** The answers of a server to two sessions of one hub, without what differs from run to run. */
async function answersOf(key, entry) {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'tls-')));
  for (const name of ['one', 'two']) prepareProject(join(folder, name));
  symlinkSync(join(installed, 'node_modules'), join(folder, 'node_modules'));
  const isMemory = key === 'memory';
  const env = { ...entry.env, ...(isMemory && { MEMORY_FILE_PATH: join(folder, 'memory.jsonl') }) };
  const config = join(folder, 'trunkline.json');
  writeFileSync(
    config,
    JSON.stringify({ servers: { [key]: { ...entry, env, prefix: '' } }, gateway: { hub: 'auto' } }),
  );
  const own = { PATH: process.env.PATH, HOME: folder, TRUNKLINE_HUB: 'auto', TRUNKLINE_HUB_DIR: join(folder, 'h') };
  const sessions = {};
  try {
    for (const name of ['a', 'b']) {
      sessions[name] = new Client({ name: 'trunkline-conformance', version: '1' });
      const args = [CLI, '--config', config];
      await sessions[name].connect(
        new StdioClientTransport({ command: process.execPath, args, env: own, cwd: folder, stderr: 'ignore' }),
      );
      // A server that is slow to start is not in the first list.
      const giveUpAt = performance.now() + CALL_TIMEOUT_MS;
      const isListed = async () => (await sessions[name].listTools()).tools.some(({ name: tool }) => tool !== STATUS);
      while (!(await isListed()) && performance.now() < giveUpAt) await sleep(POLL_MS);
    }
    const answers = [];
    const errors = [];
    const call = async ([session, tool, args, pick = (text) => text]) => {
      const params = { name: tool, arguments: JSON.parse(JSON.stringify(args).replaceAll('FOLDER', folder)) };
      const { content, isError } = await sessions[session]
        .callTool(params, undefined, { timeout: CALL_TIMEOUT_MS })
        .catch(({ message }) => ({ content: message, isError: true }));
      errors.push(isError === true);
      return `${session} ${tool}: ${pick(clean(JSON.stringify(content), folder))}`;
    };
    for (const step of CALLS[key]) {
      const calls = Array.isArray(step[0]) ? step : [step];
      answers.push(...(await Promise.all(calls.map(call))));
    }
    const status = await sessions.a.callTool({ name: STATUS, arguments: { server: key } });
    const { sharing } = status.structuredContent.servers[0];
    return { answers, sharing, hasOnlyErrors: errors.every(Boolean) };
  } finally {
    await Promise.all(Object.values(sessions).map((client) => client.close()));
    await execute(process.execPath, [CLI, 'stop', '--config', config], { env: own }).catch(() => {});
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

function prepareProject(folder) {
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), '{"name":"project"}\n');
  writeFileSync(join(folder, `${folder.at(-1)}.test.js`), '\n');
  writeFileSync(join(folder, 'x.js'), 'let x;\n');
  writeFileSync(join(folder, 'x.drawio'), '<mxfile><diagram id="i" name="n"><mxGraphModel/></diagram></mxfile>\n');
}

/** Without folders, times, ids and durations. */
function clean(text, folder) {
  return text
    .replaceAll(folder, 'FOLDER')
    .replaceAll(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z?/g, 'TIME')
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'ID')
    .replaceAll(/\d+(?:\.\d+)? ?ms\b/g, 'DURATION');
}

function say(text) {
  process.stdout.write(`${text}\n`);
}
