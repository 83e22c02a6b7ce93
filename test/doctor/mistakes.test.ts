import { chmodSync, mkdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { beforeEach, describe, expect, it } from 'vitest';
import { checkClientStart, startAsClient } from '../../src/doctor/client-start.js';
import type { Finding } from '../../src/doctor/finding.js';
import { checkFolders, checkNetwork, checkNode } from '../../src/doctor/machine.js';
import { checkSecretFiles } from '../../src/doctor/secrets.js';
import type { Code } from '../../src/errors/codes.js';
import { DoctorHome, failed } from './doctor-home.js';

let home: DoctorHome;
beforeEach(() => {
  home = new DoctorHome();
});

const NODE = { command: 'node', args: [] };

/** Makes the mistake; the findings are its own, or those about the configuration and the clients at home. */
function reports(mistake: string, code: Code, says: RegExp, make: () => unknown): void {
  it(`${mistake}: ${code}`, async () => {
    const made = await make();
    const findings: readonly Finding[] = Array.isArray(made) ? made : await home.examine();
    const found = findings.find((one) => one.code === code && says.test(one.sentence));
    expect(findings.map((one) => `${one.code} ${one.sentence}`).join('\n')).toMatch(new RegExp(code));
    expect(found).toMatchObject({
      level: expect.stringMatching(/^(?:warn|fail)$/),
      remedy: expect.stringMatching(/./),
    });
    expect(JSON.stringify(findings)).not.toMatch(/gho_abcdef|hunter22/);
  });
}

function command(script: string) {
  return { kind: 'command', command: process.execPath, args: ['-e', script], env: {} } as const;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

describe('the doctor names', () => {
  reports('a Node that is too old', 'TL-NODE-OLD', /Node 18\.20\.0 is too old; Trunkline needs /, () =>
    checkNode({ node: { version: '18.20.0', path: '/usr/bin/node', isElectron: false } }),
  );
  reports(
    'a Node of a version manager, in a folder that vanishes',
    'TL-NODE-VANISHING',
    /fnm removes this folder when the shell ends/,
    () =>
      checkNode({ node: { version: '22.4.0', path: '/run/user/1/fnm_multishells/7_8/bin/node', isElectron: false } }),
  );
  reports(
    'a data folder whose path is taken by a file',
    'TL-DIR-UNWRITABLE',
    /is a file, where a folder is needed/,
    () => checkFolders(home.machine(), { data: home.write('data', ''), others: [] }),
  );
  reports(
    'a proxy without an exception for this machine',
    'TL-PROXY-LOCALHOST',
    /^https_proxy is set, and NO_PROXY lacks localhost$/i,
    () => checkNetwork({ platform: 'linux', env: { https_proxy: 'http://me:hunter22@proxy:1', NO_PROXY: 'intern' } }),
  );
  reports(
    'a file of certificates that does not exist',
    'TL-CERT-MISSING',
    /NODE_EXTRA_CA_CERTS names a file that cannot be read \(ENOENT\)/,
    () => checkNetwork({ platform: 'linux', env: { NODE_EXTRA_CA_CERTS: home.path('none.pem') } }),
  );
  reports('no configuration', 'TL-CONFIG-NOT-FOUND', /the file does not exist/, () => {});
  reports('a file that is not YAML', 'TL-CONFIG-SYNTAX', /trunkline\.yaml:\d+:\d+: /, () =>
    home.configure('servers:\n  a: [1\n'),
  );
  reports('a wrong key', 'TL-CONFIG-INVALID', /unknown key `comand`/, () => home.configure({ a: { comand: 'node' } }));
  reports(
    'a variable that is not set',
    'TL-VAR-UNSET',
    /server `a` cannot run: .*the environment variable GITHUB_TOKEN is not set/,
    () => home.configure({ a: { ...NODE, env: { GITHUB_TOKEN: '$' + '{GITHUB_TOKEN}' } } }),
  );
  reports(
    'the placeholder of an example',
    'TL-VAR-PLACEHOLDER',
    /the variable API_KEY of server `a` is still a placeholder/,
    () => home.configure({ a: { ...NODE, env: { API_KEY: 'YOUR_API_KEY' } } }),
  );
  reports(
    'a value with a Windows line end',
    'TL-VAR-WHITESPACE',
    /the variable TOKEN of server `a` ends with a carriage return/,
    () => {
      home.env.TOKEN = 'abc\r';
      home.configure({ a: { ...NODE, env: { T: '$' + '{TOKEN}' } } });
    },
  );
  reports('a value with its quotes', 'TL-VAR-WHITESPACE', /the variable TOKEN of server `a` is in quotes/, () =>
    home.configure({ a: { ...NODE, env: { TOKEN: '"abc"' } } }),
  );
  reports(
    'a credential in the configuration',
    'TL-SECRET-LITERAL',
    /^servers\.a\.env\.GITHUB_TOKEN looks like a credential$/,
    () => home.configure({ a: { ...NODE, env: { GITHUB_TOKEN: 'gho_abcdefghijklmnopqrst0123' } } }),
  );
  reports('a file of variables that others can read', 'TL-CONFIG-EXPOSED', /other users can read .*\.env$/, () => {
    home.configure({ a: NODE });
    chmodSync(home.write('.env', 'TOKEN=1'), 0o644);
  });
  reports(
    'a command that is not installed',
    'TL-COMMAND-NOT-FOUND',
    /the command of server `a`, `no-such-program`, does not exist/,
    () => home.configure({ a: { command: 'no-such-program' } }),
  );
  reports(
    'a command that only the shell finds',
    'TL-PATH-SHELL-ONLY',
    /`uvx`, is found by your shell, and not by programs of the desktop/,
    () => {
      home.executable('.local/bin/uvx', '#!/bin/sh\n');
      home.configure({ a: { command: 'uvx' } });
      return home.checkConfiguration({ shell: `/usr/bin:${home.path('.local/bin')}` });
    },
  );
  reports('a command without the right to run it', 'TL-COMMAND-NOT-EXECUTABLE', /cannot be run$/, () => {
    home.executable('server.sh', '#!/bin/sh\n', 0o644);
    home.configure({ a: { command: './server.sh' } });
  });
  reports(
    'a script whose interpreter does not exist',
    'TL-COMMAND-INTERPRETER',
    /needs python9, which does not exist/,
    () => {
      home.executable('server.py', '#!/usr/bin/env python9\n');
      home.configure({ a: { command: './server.py' } });
    },
  );
  reports('a whole command line as the command', 'TL-COMMAND-LINE', /is a whole command line/, () =>
    home.configure({ a: { command: 'npx -y some-server' } }),
  );
  reports(
    'a folder that nobody replaces `~` in',
    'TL-ARG-PATH-MISSING',
    /args\[0\] of server `a` looks like a path/,
    () => home.configure({ a: { command: 'node', args: ['~/no-such-folder'] } }),
  );
  reports(
    'a working folder that does not exist',
    'TL-SERVER-MISCONFIGURED',
    /the folder \.\/nowhere does not exist/,
    () => home.configure({ a: { command: 'node', cwd: './nowhere' } }),
  );
  reports('one server under two names', 'TL-SERVER-TWICE', /the servers a and b run the same/, () =>
    home.configure({ a: { command: 'node', args: ['x.js'] }, b: { command: 'node', args: ['x.js'] } }),
  );
  reports(
    'a second configuration file',
    'TL-CONFIG-SHADOWED',
    /\.config\/trunkline\/trunkline\.yaml is not used, because/,
    () => {
      home.write('.config/trunkline/trunkline.yaml', 'servers: {}');
      home.configure({ a: NODE });
    },
  );
  reports('Trunkline in no client', 'TL-CLIENT-NONE', /no client has Trunkline registered/, () => {});
  reports(
    'a client that runs a copy which was removed',
    'TL-CLIENT-COMMAND',
    /Claude Desktop \(user, as trunkline\) names a program or file that does not exist: .*cli\.js/,
    () => home.register({ trunkline: { command: process.execPath, args: [home.program] } }),
  );
  reports('two Trunklines in one client', 'TL-CLIENT-TWICE', /Claude Desktop has Trunkline registered 2 times/, () => {
    const entry = { command: process.execPath, args: [home.install()] };
    home.register({ trunkline: entry, gateway: entry });
  });
  reports(
    'a client that also runs a server of Trunkline',
    'TL-CLIENT-DUPLICATE',
    /Claude Desktop runs `notes` itself, which is server `a` of Trunkline, too/,
    () => {
      home.configure({ a: { command: 'node', args: ['notes.js'] } });
      const entry = { command: process.execPath, args: [home.install()] };
      home.register({ trunkline: entry, notes: { command: 'node', args: ['notes.js'] } });
    },
  );
  reports(
    'a client file with a comma too many',
    'TL-CLIENT-FILE',
    /Claude Desktop has a file that cannot be used/,
    () => home.write('.config/Claude/claude_desktop_config.json', '{"mcpServers": {,}}'),
  );
  reports(
    'an address at which nothing listens',
    'TL-CLIENT-UNREACHED',
    /uses 127\.0\.0\.1:\d+, where nothing listens/,
    async () => home.register({ trunkline: { url: `http://127.0.0.1:${await freePort()}/mcp` } }, '.cursor/mcp.json'),
  );
  reports('a token file that others can read', 'TL-TOKEN-EXPOSED', /other users can read .*token/, async () => {
    const tokenFile = home.write('token', `${'a'.repeat(43)}\n`);
    chmodSync(tokenFile, 0o644);
    return await checkSecretFiles({ tokenFile, sealFile: home.path('seal') }, home.machine());
  });
  reports('a wrapper that prints a banner', 'TL-START-STDOUT', /writes text to stdout/, async () => {
    const start = await startAsClient(command("console.log('Welcome')"), { PATH: '' }, home.folder);
    return checkClientStart(start, ['Cursor'], 1);
  });
  reports('a server that exits at once', 'TL-SERVER-EXITED', /server `s`: it failed: exited/, () =>
    failed('exited', ['bye']),
  );
  reports('a server that never answers', 'TL-SERVER-SILENT', /server `s`/, () => failed('initialize: timeout'));
  reports('a server without its API key', 'TL-SERVER-UNAUTHORIZED', /server `s`/, () =>
    failed('exited', ['Error: the environment variable BRAVE_API_KEY is required']),
  );
  reports('a port that is taken', 'TL-SERVER-PORT', /server `s`/, () =>
    failed('exited', ['Error: listen EADDRINUSE: address already in use 127.0.0.1:3000']),
  );
  reports('a server for a newer Node', 'TL-SERVER-OLD-RUNTIME', /server `s`/, () =>
    failed('exited', ["SyntaxError: Unexpected token '??='"]),
  );

  it('nothing on a machine where all is well', async () => {
    const args = [home.install()];
    mkdirSync(home.path('files'));
    home.configure({ a: { command: 'node', args: [home.path('files')] } });
    home.register({ trunkline: { command: process.execPath, args } });
    const findings = await home.examine();
    expect(findings.map(({ code }) => code)).toEqual(['TL-CONFIG-OK', 'TL-CLIENT-OK']);
  });
});
