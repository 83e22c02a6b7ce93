// The client that the official suite tests: Trunkline in front of the suite's server. The suite starts this program for each
// scenario, with `alone` or `hub` and the URL of its server as arguments. It runs Trunkline as a client program would, over
// stdio, and as a person would: it logs in when an answer says so.
import { execFile } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { CLI } from './targets.mjs';

const SERVER = 'suite';
const REVISION = '2026-07-28';
/** More than any scenario allows, so that Trunkline itself has to end a series of logins. */
const MAX_LOGINS = 5;
const LOGIN_WITHIN_MS = 20_000;
const USED_WITHIN_MS = 5_000;
const POLL_MS = 100;
const GIVE_UP_MS = 50_000;
const CAPABILITIES = { roots: {}, sampling: {}, elicitation: { form: { applyDefaults: true } } };

/** The things to do with the server of each scenario. The others list its tools and call the first one. */
const SCENARIOS = {
  initialize: async (session) => await session.tools(),
  'request-metadata': async (session) => await session.tools(),
  tools_call: async (session) => await session.call('add_numbers', { a: 5, b: 3 }),
  'elicitation-sep1034-client-defaults': async (session) => await session.call('test_client_elicitation_defaults'),
  'sse-retry': async (session) => await session.call('test_reconnection'),
  'json-schema-ref-no-deref': async (session) => await session.tools(),
  'json-schema-2020-12-preservation': async (session) => {
    const tools = await session.tools();
    const { inputSchema } = tools.find(({ name }) => name === 'json_schema_2020_12_tool');
    await session.call('json_schema_echo', { schema: inputSchema });
  },
  'sep-2322-client-request-state': async (session) => {
    const [echoed] = await Promise.all([session.call('test_mrtr_echo_state'), session.call('test_mrtr_unrelated')]);
    if (!JSON.stringify(echoed).includes('echo-state-ok')) throw new Error(JSON.stringify(echoed));
    for (const name of ['test_mrtr_no_state', 'test_mrtr_no_result_type']) await session.call(name);
  },
  'http-standard-headers': async (session) => {
    for (const { name } of await session.tools()) await session.call(name);
    const { resources } = await session.client.listResources();
    for (const { uri } of resources) await session.client.readResource({ uri });
    const { prompts } = await session.client.listPrompts();
    for (const { name } of prompts) await session.client.getPrompt({ name });
  },
  'http-custom-headers': async (session, { toolCalls }) => {
    for (const call of toolCalls) await session.call(call.name, call.arguments);
  },
  'http-invalid-tool-headers': async (session) => {
    for (const { name } of await session.tools()) await session.call(name);
  },
};

const [way, url] = process.argv.slice(2);
const { MCP_CONFORMANCE_SCENARIO: scenario, MCP_CONFORMANCE_PROTOCOL_VERSION: protocol } = process.env;
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'trunkline-client-role-')));
const config = join(folder, 'trunkline.yaml');
const env = {
  PATH: process.env.PATH,
  HOME: folder,
  XDG_DATA_HOME: join(folder, 'data'),
  TRUNKLINE_HUB_DIR: join(folder, 'hubs'),
};
const execute = promisify(execFile);
/** The issuer that was added to the configuration. */
let added;
try {
  configure(scenario.startsWith('auth/') ? await credentials() : {});
  // The suite's authorization server asks nothing, and redirects at once.
  const program = fileURLToPath(new URL('../../test/fixtures/cli/browser.mjs', import.meta.url));
  env.BROWSER = `"${process.execPath}" "${program}"`;
  await Promise.race([run(), giveUp()]);
} finally {
  if (way === 'hub') await trunkline('stop');
  rmSync(folder, { recursive: true, force: true });
}

/** Ends before the suite kills this program, so that nothing of it stays behind. */
async function giveUp() {
  await sleep(GIVE_UP_MS, undefined, { ref: false });
  throw new Error(`The scenario was not over after ${GIVE_UP_MS / 1000} s`);
}

async function run() {
  const client = new Client(
    { name: 'trunkline-client-role', version: '1' },
    { capabilities: CAPABILITIES, ...(protocol === REVISION && { versionNegotiation: { mode: { pin: REVISION } } }) },
  );
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: {} }));
  const args = [CLI, '--config', config, ...(way === 'hub' ? [] : ['--no-hub'])];
  const transport = new StdioClientTransport({ command: process.execPath, args, env, stderr: 'inherit' });
  try {
    await client.connect(transport);
    const session = { client, tools: () => tools(client), call: (...call) => callTool(client, ...call) };
    await (SCENARIOS[scenario] ?? useWithLogin)(session, context);
  } finally {
    await client.close();
  }
}

/** The server's own tools, by their original names. */
async function tools(client) {
  const { tools: all } = await client.listTools(undefined, { cacheMode: 'refresh' });
  const prefix = `${SERVER}__`;
  return all
    .filter(({ name }) => name.startsWith(prefix))
    .map((tool) => ({ ...tool, name: tool.name.slice(prefix.length) }));
}

async function callTool(client, name, args = {}) {
  return await client.callTool({ name: `${SERVER}__${name}`, arguments: args });
}

/** Calls a tool, and logs in as often as the answer asks for it. A login that fails ends the scenario. */
async function useWithLogin(session) {
  let logins = 0;
  let loggedInAt = 0;
  for (;;) {
    const answer = await session.call('test-tool');
    if (!answer.isError) return;
    const text = JSON.stringify(answer.content);
    if (await addIssuer(text)) continue;
    if (!text.includes(`trunkline login ${SERVER}`)) throw new Error(text);
    const { stdout } = await trunkline('auth', 'status', '--json');
    const [{ state } = {}] = JSON.parse(stdout).logins;
    if (state === 'logged_in') {
      // A login reaches a Trunkline that runs within seconds.
      if (performance.now() - loggedInAt > USED_WITHIN_MS) throw new Error(`After the login: ${text}`);
      await sleep(POLL_MS);
      continue;
    }
    if (logins === MAX_LOGINS) throw new Error(`After ${logins} logins: ${text}`);
    logins += 1;
    const { code, stderr } = await trunkline('login', SERVER);
    if (await addIssuer(stderr)) continue;
    if (code !== 0) throw new Error(`trunkline login ended with code ${code}: ${stderr}`);
    loggedInAt = performance.now();
  }
}

function configure(entry) {
  // JSON is YAML.
  writeFileSync(config, JSON.stringify({ servers: { [SERVER]: { url, ...entry } }, gateway: { startupWait: '10s' } }));
}

/** Adds the line that a refusal asks for, once, as an administrator would who knows the authorization server. */
async function addIssuer(text) {
  const [, issuer] = /add `issuer: ([^`]+)`/.exec(text) ?? [];
  if (issuer === undefined) return false;
  if (issuer !== added) configure({ oauth: { ...(await credentials()).oauth, issuer } });
  added = issuer;
  // A change reaches a Trunkline that runs within a second.
  await sleep(POLL_MS);
  return true;
}

/** The credentials that an administrator would write into the configuration. */
async function credentials() {
  if (context.valid_jwt !== undefined || context.idp_id_token !== undefined)
    return { auth: { exchange: await exchange() } };
  return { oauth: loginSettings() };
}

/** The exchange of the token in the scenario, which is not that of a user. An administrator knows the authorization server. */
async function exchange() {
  const subjectTokenFile = join(folder, 'token');
  writeFileSync(subjectTokenFile, context.valid_jwt ?? context.idp_id_token, { mode: 0o600 });
  const { pathname } = new URL(url);
  const response = await fetch(new URL(`/.well-known/oauth-protected-resource${pathname}`, url));
  const [issuer] = (await response.json()).authorization_servers;
  const {
    client_id: clientId,
    client_secret: clientSecret,
    idp_client_id: idpClientId,
    idp_issuer: idpIssuer,
  } = context;
  if (idpIssuer === undefined) return { grant: 'jwt-bearer', issuer, clientId, subjectTokenFile };
  const authorizationServer = { issuer, clientId, clientSecret };
  const subject = { subjectTokenFile, subjectTokenType: 'id_token' };
  return { grant: 'id-jag', issuer: idpIssuer, clientId: idpClientId, ...subject, authorizationServer };
}

function loginSettings() {
  const { client_id: clientId, client_secret: clientSecret, private_key_pem: privateKey } = context;
  const grant = scenario.startsWith('auth/client-credentials') && { grant: 'client_credentials' };
  if (privateKey !== undefined) {
    const privateKeyFile = join(folder, 'key.pem');
    writeFileSync(privateKeyFile, privateKey, { mode: 0o600 });
    return { ...grant, clientId, privateKeyFile };
  }
  if (clientId !== undefined) return { ...grant, clientId, clientSecret };
  return { clientMetadataUrl: 'https://conformance-test.local/client-metadata.json' };
}

/** Runs a command of Trunkline, as on a terminal whose input stays open and empty. */
async function trunkline(...args) {
  const options = { env, timeout: LOGIN_WITHIN_MS, killSignal: 'SIGKILL' };
  const ended = execute(process.execPath, [CLI, ...args, '--config', config], options).catch((error) => error);
  const { code = 0, stdout, stderr } = await ended;
  return { code, stdout, stderr };
}
