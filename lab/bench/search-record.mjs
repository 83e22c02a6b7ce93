// Records the tools of real servers from npm in `tools.json`: `node lab/bench/search-record.mjs`. The file is frozen, so
// that figures of two versions can be compared. Run this only to replace it, and write new questions then.
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { installTogether } from '../../scripts/packages.mjs';

const ANSWERS_WITHIN_MS = 60_000;
/** Characters that are kept of a description, and of the description of a parameter: more than the search reads. */
const MAX_DESCRIPTION = 1_000;
const MAX_PARAM = 120;

/** Servers with keys as people choose them. None needs an account to list its tools; some need a value that looks like a key. */
const SERVERS = {
  files: ['@modelcontextprotocol/server-filesystem@2026.8.31', { args: ['.'] }],
  memory: ['@modelcontextprotocol/server-memory@2026.8.31'],
  github: ['@modelcontextprotocol/server-github@2025.4.8'],
  calc: ['@coo-quack/calc-mcp@2.1.1'],
  time: ['time-mcp@1.0.6'],
  playwright: ['@playwright/mcp@0.0.83'],
  weather: ['@dangahagan/weather-mcp@1.23.0'],
  git: ['@cyanheads/git-mcp-server@2.15.3'],
  chart: ['@antv/mcp-server-chart@0.9.10'],
  slack: ['@modelcontextprotocol/server-slack@2025.4.25', { env: { SLACK_BOT_TOKEN: 'xoxb-0', SLACK_TEAM_ID: 'T0' } }],
  notion: ['@notionhq/notion-mcp-server@2.5.2', { env: { NOTION_TOKEN: 'ntn_0' } }],
  maps: ['@modelcontextprotocol/server-google-maps@0.6.2', { env: { GOOGLE_MAPS_API_KEY: '0' } }],
  todoist: ['todoist-mcp@1.3.4', { env: { TODOIST_API_KEY: '0', API_KEY: '0', TODOIST_API_TOKEN: '0' } }],
  linear: ['linear-mcp@1.2.0', { env: { LINEAR_API_KEY: '0', LINEAR_ACCESS_TOKEN: '0' } }],
  kubernetes: ['mcp-server-kubernetes@4.1.7'],
  mongodb: ['mongodb-mcp-server@3.0.4', { env: { MDB_MCP_TELEMETRY: 'disabled' } }],
  chrome: ['chrome-devtools-mcp@1.11.0', { args: ['--no-usage-statistics'] }],
  firefox: ['firefox-devtools-mcp@0.9.2'],
  fetch: ['mcp-fetch-server@1.1.2', { bin: 'mcp-fetch-server' }],
  pdf: ['@modelcontextprotocol/server-pdf@2.0.4', { args: ['--stdio'] }],
  firecrawl: ['firecrawl-mcp@3.26.0', { env: { FIRECRAWL_API_KEY: 'fc-0' } }],
  tavily: ['tavily-mcp@0.2.22', { env: { TAVILY_API_KEY: 'tvly-0' } }],
  brave: ['@brave/brave-search-mcp-server@2.1.4', { env: { BRAVE_API_KEY: '0' } }],
  supabase: ['@supabase/mcp-server-supabase@0.13.0', { args: ['--access-token', 'sbp_0'] }],
  heroku: ['@heroku/mcp-server@1.2.8', { env: { HEROKU_API_KEY: '0' } }],
  airtable: ['airtable-mcp-server@1.14.0', { env: { AIRTABLE_API_KEY: 'pat0.0' } }],
  jira: [
    '@aashari/mcp-server-atlassian-jira@3.3.0',
    { env: { ATLASSIAN_SITE_NAME: 'x', ATLASSIAN_USER_EMAIL: 'x@example.com', ATLASSIAN_API_TOKEN: '0' } },
  ],
  netlify: ['@netlify/mcp@1.15.1'],
  desktop: ['@wonderwhy-er/desktop-commander@0.2.52'],
  n8n: ['n8n-mcp@2.87.0', { env: { MCP_MODE: 'stdio', LOG_LEVEL: 'error', DISABLE_CONSOLE_OUTPUT: 'true' } }],
  devops: ['@azure-devops/mcp@2.10.0', { args: ['example'] }],
  gitlab: ['@zereight/mcp-gitlab@2.1.64', { env: { GITLAB_PERSONAL_ACCESS_TOKEN: 'glpat-0' } }],
  gdocs: ['@a-bonus/google-docs-mcp@1.11.3', { env: { GOOGLE_CLIENT_ID: '0', GOOGLE_CLIENT_SECRET: '0' } }],
  elastic: ['@elastic/mcp-server-elasticsearch@0.3.1', { env: { ES_URL: 'http://127.0.0.1:9', ES_API_KEY: '0' } }],
  sentry: ['@sentry/mcp-server@0.39.0', { args: ['--access-token', 'sntrys_0'] }],
  context7: ['@upstash/context7-mcp@4.1.1'],
  figma: ['figma-developer-mcp@0.13.2', { args: ['--stdio'], env: { FIGMA_API_KEY: '0' } }],
  mermaid: ['mcp-mermaid@0.4.1'],
  eslint: ['@eslint/mcp@0.3.13'],
  vitest: ['@djankies/vitest-mcp@0.5.1'],
  apple: ['@kimsungwhee/apple-docs-mcp@1.0.26'],
  shadcn: ['@jpisnice/shadcn-ui-mcp-server@2.0.0'],
  deepwiki: ['mcp-deepwiki@0.0.10'],
  bank: ['@allpepper/memory-bank-mcp@0.2.2', { env: { MEMORY_BANK_ROOT: '.' } }],
  a11y: ['@accesslint/mcp@0.11.1'],
};

const folder = await installTogether(
  'search',
  Object.values(SERVERS).map(([spec]) => spec),
);
const place = join(folder, 'run');
mkdirSync(place, { recursive: true });
const recorded = [];
for (const [key, [spec, options = {}]] of Object.entries(SERVERS)) {
  const tools = await listTools(commandOf(spec, options)).catch((error) => {
    process.stderr.write(`${key}: ${error.message}\n`);
    return [];
  });
  process.stderr.write(`${key}: ${tools.length} tools\n`);
  if (tools.length > 0) recorded.push({ key, package: spec, tools: tools.map(shortened) });
}
const file = fileURLToPath(new URL('search/tools.json', import.meta.url));
const lines = recorded.map(({ tools, ...server }) => {
  const rows = tools.map((tool) => JSON.stringify(tool)).join(',\n');
  return `${JSON.stringify(server).slice(0, -1)},"tools":[\n${rows}]}`;
});
writeFileSync(file, `[${lines.join(',\n')}]\n`);

function commandOf(spec, { bin, args = [], env = {} }) {
  const name = spec.slice(0, spec.lastIndexOf('@'));
  const home = join(folder, 'node_modules', name);
  const manifest = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'));
  const { bin: programs = manifest.main } = manifest;
  if (typeof programs === 'string') return { args: [join(home, programs), ...args], env };
  const program = programs[bin ?? name.replace(/^.*\//, '')] ?? Object.values(programs)[0];
  return { args: [join(home, program), ...args], env };
}

async function listTools({ args, env }) {
  const { PATH } = process.env;
  const child = spawn(process.execPath, args, {
    cwd: place,
    env: { PATH, HOME: place, ...env },
    stdio: ['pipe', 'pipe', 'ignore'],
    detached: true,
  });
  const waiting = new Map();
  createInterface({ input: child.stdout }).on('line', (line) => {
    try {
      const { id, result, error } = JSON.parse(line);
      if (error !== undefined) waiting.get(id)?.reject(new Error(error.message));
      else waiting.get(id)?.resolve(result);
    } catch {
      // Some servers print other lines.
    }
  });
  const fail = (message) => {
    for (const { reject } of waiting.values()) reject(new Error(message));
  };
  child.once('exit', (code) => fail(`ended with ${code}`));
  child.once('error', ({ message }) => fail(message));
  const timer = setTimeout(() => fail('no answer'), ANSWERS_WITHIN_MS);
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const request = (id, method, params) =>
    new Promise((resolve, reject) => {
      waiting.set(id, { resolve, reject });
      send({ id, method, params });
    });
  child.stdin.on('error', () => {});
  try {
    const clientInfo = { name: 'trunkline-bench', version: '1.0.0' };
    await request(1, 'initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo });
    send({ method: 'notifications/initialized' });
    const tools = [];
    for (let id = 2, cursor; ; id += 1) {
      const page = await request(id, 'tools/list', cursor === undefined ? {} : { cursor });
      tools.push(...page.tools);
      cursor = page.nextCursor;
      if (!cursor) return tools;
    }
  } finally {
    clearTimeout(timer);
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch {
      // It has ended already.
    }
  }
}

/** Keeps what the search reads, and the size of the whole definition. */
function shortened(tool) {
  const { name, title, description = '', annotations, inputSchema } = tool;
  const params = Object.entries(inputSchema?.properties ?? {}).map(([param, schema]) => {
    const text = typeof schema?.description === 'string' ? schema.description.slice(0, MAX_PARAM) : '';
    return text === '' ? [param] : [param, text];
  });
  return {
    name,
    ...((title ?? annotations?.title) && { title: title ?? annotations.title }),
    description: description.slice(0, MAX_DESCRIPTION),
    params,
    bytes: Buffer.byteLength(JSON.stringify(tool)),
  };
}
