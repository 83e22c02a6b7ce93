// Does a real client get from `mcp add URL` to its first call, where the identity provider registers no clients? The provider is as
// strict as Entra, Trunkline logs the user in through its front, and Chromium is the browser of the person. The document with which the
// client names itself comes from a stand-in for its site, behind a proxy, so that nothing but npm is asked. Then the user logs in at a
// server behind a URL that wants a login of each user, and calls a tool there. Prints what the terminal and the pages say.
//
//   npm run -w lab browser-login [-- claude | codex]
import { execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { connect, createServer } from 'node:net';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { launchBrowser } from '../../scripts/chromium.mjs';
import { startProtected, startProvider } from '../../test/fixtures/servers/protected.mjs';
import { tinyServer } from '../bench/ways.mjs';
import { CLIENTS, openHome } from './client-programs.mjs';
import { CLI } from './targets.mjs';

const NAME = 'trunkline';
const CLIENT_ID = 'trunkline-at-the-provider';
const SCOPE = 'mcp:read';
/** What a person types for each client, and the document with which it names itself. Codex logs in while it adds the server. */
const COMMANDS = {
  claude: {
    add: (url) => ['mcp', 'add', '--scope', 'user', '--transport', 'http', NAME, url],
    login: ['mcp', 'login', NAME],
    // As its site has it.
    document: {
      client_id: 'https://claude.ai/oauth/claude-code-client-metadata',
      client_name: 'Claude Code',
      client_uri: 'https://claude.ai',
      redirect_uris: ['http://localhost/callback', 'http://127.0.0.1/callback'],
    },
  },
  codex: {
    add: (url) => ['mcp', 'add', NAME, '--url', url],
    // Made up, but for the id: a document that allows what Codex does.
    document: {
      client_id: 'https://chatgpt.com/oauth/codex/client.json',
      client_name: 'Codex',
      client_uri: 'https://chatgpt.com',
      redirect_uris: ['http://127.0.0.1/callback'],
    },
  },
};
const PUBLIC_CLIENT = {
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  token_endpoint_auth_method: 'none',
};
const OPENED_WITHIN_MS = 60_000;
const MAX_PAGES = 8;

const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => stop.abort(new Error(signal)));

const [, , asked = 'claude'] = process.argv;
const [client, commands] = [CLIENTS[asked], COMMANDS[asked]];
if (commands === undefined) throw new Error(`There is no ${asked}; take ${Object.keys(COMMANDS).join(', ')}`);
const publicUrl = `http://127.0.0.1:${await freePort()}`;
const url = `${publicUrl}/mcp`;
const provider = await startProvider({
  resource: url,
  callback: `${publicUrl}/authorize/callback`,
  clientId: CLIENT_ID,
  isStrict: true,
});
const remote = await startProtected();
const home = await openHome(client, stop.signal);
const site = await startSite();
const gateway = await startGateway();
const browser = await launchBrowser();
try {
  const { add, login } = commands;
  if (login !== undefined) say(`$ ${asked} ${add('URL').join(' ')}`, await home.run(add(url)));
  say(`$ ${asked} mcp list`, await home.run(['mcp', 'list']));
  const typed = login ?? add(url);
  const shown = onTerminal(typed, await browserProgram());
  say('The browser', await follow(await openedUrl()));
  say(`$ ${asked} ${typed.join(' ')}`, await shown);
  say(`$ ${asked} mcp list`, await home.run(['mcp', 'list']));
  const text = randomUUID();
  const { results } = await client.converse(home, [{ name: 'tiny__echo', arguments: { text } }]);
  say('The first call', results.join('\n'));
  const { results: states } = await client.converse(home, [{ name: 'trunkline__status', arguments: {} }]);
  const [, page] = /log in at (\S+) within/.exec(states.join('\n')) ?? [];
  if (page === undefined)
    throw new Error(`The status names no page for the login at the server:\n${states.join('\n')}`);
  say('The page of the login at the server', await follow(page));
  const { results: read } = await client.converse(home, [{ name: 'files__read', arguments: {} }]);
  say('The first call of a tool of this server', read.join('\n'));
  say('Requests to the provider', provider.asked.map(({ method, path }) => `${method} ${path}`).join('\n'));
  const isGood = results.some((result) => result.includes(text)) && read.some((result) => result.includes('read done'));
  say(
    isGood ? 'ok: the client logged in, and called a tool of each server' : 'FAILED: a call brought nothing back',
    '',
  );
  process.exitCode = isGood ? 0 : 1;
} finally {
  await browser.close();
  site.close();
  gateway.kill('SIGTERM');
  // Until then, it writes to the folder that is removed.
  if (gateway.exitCode === null && gateway.signalCode === null) await once(gateway, 'exit');
  await Promise.all([provider.close(), remote.close()]);
  home.close();
}

/** Runs the client as a person does, on a terminal that `script` makes. Returns what the terminal showed. */
async function onTerminal(args, variables) {
  const command = [...home.program, ...args].join(' ');
  const options = { cwd: home.folder, env: { ...home.env, TERM: 'xterm', ...variables }, signal: stop.signal };
  const child = spawn('script', ['-qfec', command, '/dev/null'], options);
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    text += chunk;
  });
  await new Promise((resolve) => child.once('exit', resolve));
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the codes of the terminal begin with one.
  return text.replace(/\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\))/g, '');
}

/** Starts the site of the client, and the proxy that leads to it. Its variables are those of the gateway. */
async function startSite() {
  const [key, cert] = [join(home.folder, 'key.pem'), join(home.folder, 'cert.pem')];
  const { hostname } = new URL(commands.document.client_id);
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
  const name = ['-subj', `/CN=${hostname}`, '-addext', `subjectAltName=DNS:${hostname}`];
  execFileSync('openssl', ['req', '-x509', ...kind, '-keyout', key, '-out', cert, ...name], { stdio: 'ignore' });
  const pems = { key: readFileSync(key), cert: readFileSync(cert) };
  const pages = createHttpsServer(pems, (_, response) => {
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ ...commands.document, ...PUBLIC_CLIENT }));
  });
  const port = await listening(pages);
  const proxy = createHttpServer().on('connect', (_, socket) => {
    const far = connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      far.pipe(socket).pipe(far);
    });
    for (const each of [far, socket]) each.on('error', () => {});
  });
  const proxyUrl = `http://127.0.0.1:${await listening(proxy)}`;
  return {
    env: { HTTPS_PROXY: proxyUrl, NO_PROXY: '127.0.0.1', NODE_EXTRA_CA_CERTS: cert },
    close: () => {
      for (const each of [pages, proxy]) {
        each.closeAllConnections();
        each.close();
      }
    },
  };
}

async function listening(server) {
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server.address().port;
}

/** The variables with which the client opens a browser: a program that leaves the address in a file. */
async function browserProgram() {
  const bin = join(home.folder, 'bin');
  mkdirSync(bin);
  for (const name of ['xdg-open', 'browser']) {
    writeFileSync(join(bin, name), `#!/bin/sh\nprintf '%s' "$1" > "${addressFile()}"\n`);
    chmodSync(join(bin, name), 0o755);
  }
  return { PATH: `${bin}${delimiter}${process.env.PATH}`, BROWSER: join(bin, 'browser'), DISPLAY: ':0' };
}

function addressFile() {
  return join(home.folder, 'address');
}

async function openedUrl() {
  const deadline = performance.now() + OPENED_WITHIN_MS;
  while (!existsSync(addressFile())) {
    stop.signal.throwIfAborted();
    if (performance.now() > deadline) throw new Error('The client opened no browser');
    await sleep(100);
  }
  return readFileSync(addressFile(), 'utf8');
}

/** Says yes on each page. Returns the texts of the pages. */
async function follow(address) {
  const page = await browser.newPage();
  await page.goto(address);
  const texts = [];
  for (let at = 0; at < MAX_PAGES; at += 1) {
    const { origin, pathname } = new URL(page.url());
    const text = (await page.locator('body').textContent()).replace(/\s+/g, ' ').trim();
    texts.push(`${origin}${pathname}: ${text}`);
    if ((await page.locator('form').count()) === 0) break;
    if ((await page.locator('input[name=login]').count()) > 0) {
      await page.fill('input[name=login]', 'alice');
      await page.fill('input[name=password]', 'x');
    }
    await page.locator('button[value=allow], button[type=submit]').first().click();
    await page.waitForLoadState('load');
  }
  return texts.join('\n');
}

async function startGateway() {
  const [command, ...args] = tinyServer();
  const auth = {
    jwt: { issuer: provider.issuer, audience: [url], scopes: [SCOPE] },
    front: { clientId: CLIENT_ID, scopes: ['openid', 'offline_access', SCOPE] },
  };
  const config = join(home.folder, 'trunkline.yaml');
  const settings = { drain: '0s', http: { publicUrl, auth } };
  const servers = { tiny: { command, args }, files: { url: remote.url, login: 'user' } };
  writeFileSync(config, JSON.stringify({ servers, gateway: settings }));
  const { host } = new URL(publicUrl);
  const env = { ...home.env, ...site.env, XDG_DATA_HOME: join(home.folder, 'data') };
  const child = spawn(process.execPath, [CLI, '--config', config, '--http', host], { env, stdio: 'ignore' });
  const deadline = performance.now() + OPENED_WITHIN_MS;
  for (;;) {
    const response = await fetch(`${publicUrl}/readyz`).catch(() => undefined);
    await response?.text();
    if (response?.ok) return child;
    if (performance.now() > deadline) throw new Error('The gateway does not serve');
    await sleep(100);
  }
}

async function freePort() {
  const server = createServer();
  const port = await listening(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function say(title, text) {
  process.stdout.write(`${title}\n${text.trimEnd()}\n\n`);
}
