// The clients that are tried, as their users call them: how each is registered, and what its output says of a server.
import { execFile, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { bringNode, installPackage } from '../../scripts/packages.mjs';
import { Model } from './model.mjs';

/**
 * Every client has `register(place, server)`, which registers one server with a name, command, args and env. `look(place)`
 * connects to all registered servers as the client does, and returns for each what it said: `name`, `isGood`, `said`, and
 * the number of `tools` if the client reports it. `converse(place, calls, before)` has the client call tools, those of a stand-in
 * for its model if it has one, and returns the names that the model has `seen`, the `results`, and the `output`. A place has a
 * `folder`, a `run` that runs the client's program in it with more variables, and the `program` itself. `registerUrl` registers a
 * server behind a URL, whose token is in the variable TRUNKLINE_TOKEN. `atTerminal(place, model)` returns the `args` and `variables` with
 * which a person starts the client at a terminal, for clients that show forms there.
 */
export const CLIENTS = {
  claude: {
    package: '@anthropic-ai/claude-code',
    version: '2.1.330',
    isShort: true,
    tests: 'claude mcp list: handshake and tools/list, with a timeout of 5 s',
    // Documented switches for everything that is no part of the test: updates, telemetry, error reports.
    env: {
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
      DISABLE_ERROR_REPORTING: '1',
      DISABLE_TELEMETRY: '1',
    },
    register: ({ run }, { name, command, args, env }) =>
      run(['mcp', 'add', '--scope', 'user', name, ...pairs('-e', env), '--', command, ...args]),
    registerUrl: ({ run }, { name, url, token }) =>
      run(['mcp', 'add', '--scope', 'user', '--transport', 'http', name, url, '--header', bearer(token)]),
    look: async ({ run }) => readClaude(await run(['mcp', 'list'])),
    converse: withModel(({ run }, { url }) => run(['-p', PROMPT, ...OF_CLAUDE], variablesOfClaude(url))),
    atTerminal: ({ folder, env }, { url }) => {
      // As if its user had answered its first questions.
      editJson(join(env.CLAUDE_CONFIG_DIR, '.claude.json'), (config) => ({
        ...config,
        hasCompletedOnboarding: true,
        projects: { [folder]: { hasTrustDialogAccepted: true } },
        customApiKeyResponses: { approved: [KEY] },
      }));
      return { args: OF_CLAUDE, variables: variablesOfClaude(url) };
    },
  },
  mcporter: {
    package: 'mcporter',
    version: '0.12.3',
    node: 24,
    isShort: true,
    tests: 'mcporter list: handshake and tools/list, with a timeout of 30 s',
    env: {},
    register: ({ folder }, { name, ...entry }) => {
      editJson(join(folder, 'mcporter.json'), (config) => ({
        imports: [],
        mcpServers: { ...config.mcpServers, [name]: entry },
      }));
    },
    look: async ({ run, folder }) =>
      readMcporter(await run(['--config', join(folder, 'mcporter.json'), 'list', '--json'])),
    converse: async ({ run, folder }, calls) => {
      const ask = (...args) => run(['--config', join(folder, 'mcporter.json'), ...args]);
      const { servers } = JSON.parse(await ask('list', '--json'));
      const results = [];
      for (const { name, arguments: args } of calls)
        results.push(await ask('call', `${servers[0].name}.${name}`, '--args', JSON.stringify(args)));
      return { seen: servers[0].tools.map(({ name }) => name), results, output: results.join('\n') };
    },
  },
  gemini: {
    package: '@google/gemini-cli',
    version: '0.61.0',
    tests: 'gemini mcp list: handshake and ping, no list, with a timeout of 5 s',
    env: { GEMINI_TELEMETRY_ENABLED: 'false' },
    prepare: ({ folder }) => {
      const settings = join(folder, '.gemini');
      mkdirSync(settings);
      writeFileSync(join(settings, 'trustedFolders.json'), JSON.stringify({ [folder]: 'TRUST_FOLDER' }));
      const quiet = {
        general: { enableAutoUpdate: false },
        privacy: { usageStatisticsEnabled: false },
        security: { auth: { selectedType: 'gemini-api-key' } },
      };
      writeFileSync(join(settings, 'settings.json'), JSON.stringify(quiet));
    },
    register: ({ run }, { name, command, args, env }) =>
      run(['mcp', 'add', '--scope', 'user', ...pairs('-e', env), name, command, '--', ...args]),
    registerUrl: ({ run }, { name, url, token }) =>
      run(['mcp', 'add', '--scope', 'user', '--transport', 'http', name, url, '--header', bearer(token)]),
    look: async ({ run }) => readGemini(await run(['mcp', 'list'])),
    converse: withModel(({ run }, { url }) =>
      run(['-p', PROMPT, '-m', 'gemini-2.5-pro', '--yolo'], { GEMINI_API_KEY: KEY, GOOGLE_GEMINI_BASE_URL: url }),
    ),
  },
  codex: {
    package: '@openai/codex',
    version: '0.169.0',
    // `codex mcp list` only prints the configuration. This is what its editor extension asks.
    tests: 'codex app-server, mcpServerStatus/list: handshake and tools/list',
    env: {},
    prepare: ({ folder }) => {
      mkdirSync(join(folder, '.codex'));
      const quiet = 'check_for_update_on_startup = false\n\n[analytics]\nenabled = false\n';
      writeFileSync(join(folder, '.codex', 'config.toml'), quiet);
    },
    register: ({ run }, { name, command, args, env }) =>
      run(['mcp', 'add', name, ...pairs('--env', env), '--', command, ...args]),
    registerUrl: ({ run }, { name, url }) =>
      run(['mcp', 'add', name, '--url', url, '--bearer-token-env-var', 'TRUNKLINE_TOKEN']),
    look: lookWithCodex,
    converse: withModel(({ run }, { url }) => {
      const flags = ['--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox'];
      return run(['exec', ...settingsOfCodex(url), ...flags, PROMPT], { STAND_IN_KEY: KEY });
    }),
    atTerminal: ({ folder }, { url }) => {
      const trust = `projects={${JSON.stringify(folder)}={trust_level="trusted"}}`;
      const args = ['-c', trust, '-c', 'mcp_servers.trunkline.default_tools_approval_mode="approve"'];
      // Without approvals, it shows no forms.
      return { args: [...settingsOfCodex(url), ...args, '-a', 'on-request'], variables: { STAND_IN_KEY: KEY } };
    },
  },
};

/** The stand-in for the model reads neither. */
const PROMPT = 'Call the tools.';
const KEY = 'stand-in';
const OF_CLAUDE = ['--allowedTools', 'mcp__trunkline', '--model', 'sonnet'];

function variablesOfClaude(url) {
  return { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: KEY };
}

function settingsOfCodex(url) {
  const provider = { name: 'stand-in', base_url: `${url}/v1`, env_key: 'STAND_IN_KEY', wire_api: 'responses' };
  const fields = Object.entries(provider).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  const settings = ['model="stand-in"', 'model_provider="own"', `model_providers.own={${fields.join()}}`];
  return settings.flatMap((each) => ['-c', each]);
}

function bearer(token) {
  return `Authorization: Bearer ${token}`;
}

const RUN_TIMEOUT_MS = 180_000;
/** The variables that clients see: settings of the person who runs this would change what they do. */
const PASSED_ON = ['PATH', 'LANG', 'TERM', 'TMPDIR', 'USER', 'NODE_EXTRA_CA_CERTS'];

const execute = promisify(execFile);

/** A home folder for one client, in which nothing is registered. `more` are further variables. `signal` ends what runs. */
export async function openHome(client, signal, more = {}) {
  const program = await prepareClient(client);
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'trunkline-home-')));
  mkdirSync(join(folder, '.claude'));
  const inherited = PASSED_ON.flatMap((name) => (name in process.env ? [[name, process.env[name]]] : []));
  const env = {
    ...Object.fromEntries(inherited),
    ...{ HOME: folder, CLAUDE_CONFIG_DIR: join(folder, '.claude'), TRUNKLINE_HUB_DIR: join(folder, 'hubs') },
    ...client.env,
    ...more,
  };
  const runIn = async ([file, ...first], args, others = {}) => {
    const options = { cwd: folder, env: { ...env, ...others }, timeout: RUN_TIMEOUT_MS, signal };
    const running = execute(file, [...first, ...args], options);
    running.child.stdin.end();
    const { stdout, stderr } = await running.catch((error) => error);
    signal.throwIfAborted();
    return stdout.trim() === '' ? stderr : stdout;
  };
  const place = { folder, env, program, runIn, run: (args, others) => runIn(program, args, others) };
  client.prepare?.(place);
  return { ...place, close: () => rmSync(folder, { recursive: true, force: true }) };
}

function withModel(ask) {
  return async (place, calls, before) => {
    const model = new Model(calls, before);
    await model.start();
    try {
      const output = await ask(place, model);
      return { seen: model.seen, results: model.results, output };
    } finally {
      model.close();
    }
  };
}

/** Installs the client and returns its command line without arguments. */
export async function prepareClient({ package: name, version, node }) {
  const folder = await installPackage(name, version);
  const { bin } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const program = join(folder, typeof bin === 'string' ? bin : Object.values(bin)[0]);
  // The program of Claude Code is no script.
  if (/\.m?js$/.test(program)) return [node === undefined ? process.execPath : await bringNode(node), program];
  return [program];
}

/** "trunkline: node … - ✔ Connected". What stands behind "Connected" is a fault. */
export function readClaude(output) {
  return entriesOf(output, /^(?<name>[\w-]+): .* - (?<said>.*)$/u, (said) => /^\S+ Connected$/u.test(said));
}

/** "✓ trunkline: node … (stdio) - Connected". */
export function readGemini(output) {
  return entriesOf(output, /^\S (?<name>[\w-]+): .* \(stdio\) - (?<said>.*)$/u, (said) => said === 'Connected');
}

export function readMcporter(output) {
  const { servers } = JSON.parse(output);
  return servers.map(({ name, status, tools = [], error }) => ({
    name,
    tools: tools.length,
    isGood: status === 'ok' && hasTools(tools.map((tool) => tool.name)),
    said: error === undefined ? status : `${status}: ${error}`,
  }));
}

export function readCodex({ data }) {
  return data.map(({ name, serverInfo, tools = {} }) => ({
    name,
    tools: Object.keys(tools).length,
    isGood: hasTools(Object.keys(tools)),
    said: serverInfo === null ? 'not connected' : 'connected',
  }));
}

/** The status tool alone shows that no server was listed. */
function hasTools(names) {
  return names.some((name) => name !== 'trunkline__status');
}

function entriesOf(output, pattern, isGood) {
  return output.split('\n').flatMap((line) => {
    const { name, said } = pattern.exec(line.trim())?.groups ?? {};
    return name === undefined ? [] : [{ name, said, isGood: isGood(said) }];
  });
}

async function lookWithCodex({ program, folder, env, signal }) {
  const [command, ...args] = program;
  const child = spawn(command, [...args, 'app-server'], { cwd: folder, env, stdio: ['pipe', 'pipe', 'ignore'] });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  const stop = () => child.kill('SIGKILL');
  signal.addEventListener('abort', stop);
  child.stdin.on('error', () => {});
  const send = (message) => child.stdin.write(`${JSON.stringify(message)}\n`);
  const clientInfo = { name: 'trunkline-conformance', title: 'Trunkline', version: '1' };
  send({ id: 1, method: 'initialize', params: { clientInfo } });
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      const { id, result, error } = JSON.parse(line);
      if (error !== undefined) throw new Error(`codex app-server: ${error.message}`);
      if (id === 1) {
        send({ method: 'initialized' });
        send({ id: 2, method: 'mcpServerStatus/list', params: { limit: 100 } });
      }
      if (id === 2) return readCodex(result);
    }
    throw new Error('codex app-server ended without an answer');
  } finally {
    child.stdin.end();
    // It ends its servers when its stdin ends; that is where Trunkline's end begins.
    await Promise.race([exited, new Promise((resolve) => signal.addEventListener('abort', resolve))]);
    signal.removeEventListener('abort', stop);
  }
}

function pairs(flag, env) {
  return Object.entries(env).flatMap(([name, value]) => [flag, `${name}=${value}`]);
}

function editJson(file, edit) {
  let value = {};
  try {
    value = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    // The first server is registered.
  }
  writeFileSync(file, JSON.stringify(edit(value)));
}
