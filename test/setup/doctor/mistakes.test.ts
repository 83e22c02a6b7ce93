import { chmodSync, mkdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Code } from '../../../src/host/errors/codes.js';
import { checkClientStart, startAsClient } from '../../../src/setup/doctor/client-start.js';
import { checkSecretFiles } from '../../../src/setup/doctor/credentials.js';
import type { Finding } from '../../../src/setup/doctor/finding.js';
import { checkFolders, checkNetwork, checkNode } from '../../../src/setup/doctor/machine.js';
import { freePort } from '../../support/free-port.js';
import { HAS_MODES } from '../../support/platform.js';
import { failed, home, useHome } from './doctor-home.js';

useHome();

const NODE = { command: 'node', args: [] };

/** Makes the mistake; the findings are its own, or those about the configuration and the clients at home. */
function reports(code: Code, says: RegExp, make: () => unknown): void {
  it(`${code}: ${says.source}`, async () => {
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

describe('the doctor names', () => {
  reports('TL-NODE-OLD', /Node 18\.20\.0 is too old; Trunkline needs /, () =>
    checkNode({ node: { version: '18.20.0', path: '/usr/bin/node', isElectron: false } }),
  );
  reports('TL-NODE-VANISHING', /fnm removes this folder when the shell ends/, () =>
    checkNode({ node: { version: '22.4.0', path: '/run/user/1/fnm_multishells/7_8/bin/node', isElectron: false } }),
  );
  reports('TL-DIR-UNWRITABLE', /is a file, where a folder is needed/, () =>
    checkFolders(home.machine(), { data: home.write('data', ''), others: [] }),
  );
  reports('TL-PROXY-LOCALHOST', /^https_proxy is set, and NO_PROXY lacks localhost$/i, () =>
    checkNetwork({ platform: 'linux', env: { https_proxy: 'http://me:hunter22@proxy:1', NO_PROXY: 'intern' } }),
  );
  reports('TL-CERT-MISSING', /NODE_EXTRA_CA_CERTS names a file that cannot be read: .* \(ENOENT\)/, () =>
    checkNetwork({ platform: 'linux', env: { NODE_EXTRA_CA_CERTS: home.path('none.pem') } }),
  );
  reports('TL-CONFIG-NOT-FOUND', /the file does not exist/, () => {});
  reports('TL-CONFIG-SYNTAX', /trunkline\.yaml:\d+:\d+: /, () => home.configure('servers:\n  a: [1\n'));
  reports('TL-CONFIG-INVALID', /unknown key `comand`/, () => home.configure({ a: { comand: 'node' } }));
  reports('TL-VAR-UNSET', /server `a` cannot run: .*the environment variable GITHUB_TOKEN is not set/, () =>
    home.configure({ a: { ...NODE, env: { GITHUB_TOKEN: '$' + '{GITHUB_TOKEN}' } } }),
  );
  reports('TL-VAR-PLACEHOLDER', /the variable API_KEY of server `a` is still a placeholder/, () =>
    home.configure({ a: { ...NODE, env: { API_KEY: 'YOUR_API_KEY' } } }),
  );
  reports('TL-VAR-WHITESPACE', /the variable TOKEN of server `a` ends with a carriage return/, () => {
    home.env.TOKEN = 'abc\r';
    home.configure({ a: { ...NODE, env: { T: '$' + '{TOKEN}' } } });
  });
  reports('TL-VAR-WHITESPACE', /the variable TOKEN of server `a` is in quotes/, () =>
    home.configure({ a: { ...NODE, env: { TOKEN: '"abc"' } } }),
  );
  reports('TL-LOGIN-ISSUER', /server `a` has `oauth\.clientSecret`, and no `oauth\.issuer`/, () =>
    home.configure({ a: { url: 'https://203.0.113.7/mcp', oauth: { clientId: 'c', clientSecret: 'hunter22' } } }),
  );
  reports('TL-SECRET-LITERAL', /^servers\.a\.env\.GITHUB_TOKEN looks like a credential$/, () =>
    home.configure({ a: { ...NODE, env: { GITHUB_TOKEN: 'gho_abcdefghijklmnopqrst0123' } } }),
  );
  if (HAS_MODES)
    reports('TL-CONFIG-EXPOSED', /other users can read .*\.env$/, () => {
      home.configure({ a: NODE });
      chmodSync(home.write('.env', 'TOKEN=1'), 0o644);
    });
  reports('TL-COMMAND-NOT-FOUND', /the command of server `a`, `no-such-program`, does not exist/, () =>
    home.configure({ a: { command: 'no-such-program' } }),
  );
  reports('TL-PATH-SHELL-ONLY', /`uvx`, is found by your shell, and not by programs of the desktop/, () => {
    home.executable('.local/bin/uvx', '#!/bin/sh\n');
    home.configure({ a: { command: 'uvx' } });
    return home.checkConfiguration({ shell: `/usr/bin:${home.path('.local/bin')}` });
  });
  if (HAS_MODES)
    reports('TL-COMMAND-NOT-EXECUTABLE', /cannot be run$/, () => {
      home.executable('server.sh', '#!/bin/sh\n', 0o644);
      home.configure({ a: { command: './server.sh' } });
    });
  reports('TL-COMMAND-INTERPRETER', /needs python9, which does not exist/, () => {
    home.executable('server.py', '#!/usr/bin/env python9\n');
    home.configure({ a: { command: './server.py' } });
  });
  reports('TL-COMMAND-LINE', /is a whole command line/, () => home.configure({ a: { command: 'npx -y some-server' } }));
  reports('TL-ARG-PATH-MISSING', /args\[0\] of server `a` looks like a path/, () =>
    home.configure({ a: { command: 'node', args: ['~/no-such-folder'] } }),
  );
  reports('TL-SERVER-MISCONFIGURED', /the folder \.\/nowhere does not exist/, () =>
    home.configure({ a: { command: 'node', cwd: './nowhere' } }),
  );
  reports('TL-SERVER-TWICE', /the servers a and b run the same/, () =>
    home.configure({ a: { command: 'node', args: ['x.js'] }, b: { command: 'node', args: ['x.js'] } }),
  );
  reports('TL-SERVER-TWICE', /the servers a and b have the same URL/, () =>
    home.configure({ a: { url: 'https://a.test/mcp' }, b: { url: 'https://a.test/mcp', transport: 'http' } }),
  );
  reports('TL-CONFIG-SHADOWED', /\.config\/trunkline\/trunkline\.yaml is not used, because/, () => {
    home.write('.config/trunkline/trunkline.yaml', 'servers: {}');
    home.configure({ a: NODE });
  });
  reports('TL-CLIENT-NONE', /no client has Trunkline registered/, () => {});
  reports(
    'TL-CLIENT-COMMAND',
    /Claude Desktop \(user, as trunkline\) names a program or file that does not exist: .*cli\.js/,
    () => home.register({ trunkline: { command: process.execPath, args: [home.program] } }),
  );
  reports('TL-CLIENT-TWICE', /Claude Desktop has Trunkline registered 2 times/, () => {
    const entry = home.entry();
    home.register({ trunkline: entry, gateway: entry });
  });
  reports('TL-CLIENT-DUPLICATE', /Claude Desktop runs `notes` itself, which is server `a` of Trunkline, too/, () => {
    home.configure({ a: { command: 'node', args: ['notes.js'] } });
    const entry = home.entry();
    home.register({ trunkline: entry, notes: { command: 'node', args: ['notes.js'] } });
  });
  reports('TL-CLIENT-FILE', /Claude Desktop has a file that cannot be used/, () =>
    home.write('.config/Claude/claude_desktop_config.json', '{"mcpServers": {,}}'),
  );
  reports('TL-CLIENT-UNREACHED', /uses 127\.0\.0\.1:\d+, where nothing listens/, async () =>
    home.register({ trunkline: { url: `http://127.0.0.1:${await freePort()}/mcp` } }, '.cursor/mcp.json'),
  );
  if (HAS_MODES)
    reports('TL-TOKEN-EXPOSED', /other users can read .*token/, async () => {
      const tokenFile = home.write('token', `${'a'.repeat(43)}\n`);
      chmodSync(tokenFile, 0o644);
      return await checkSecretFiles({ tokenFile, sealFile: home.path('seal') }, home.machine());
    });
  reports('TL-START-STDOUT', /writes text to stdout/, async () => {
    const start = await startAsClient(command("console.log('Welcome')"), { PATH: '' }, home.folder);
    return checkClientStart(start, ['Cursor'], 1);
  });
  reports('TL-SERVER-EXITED', /server `s`: it ended without an exit code before/, () => failed('exited', ['bye']));
  reports('TL-SERVER-SILENT', /server `s`/, () => failed('initialize: timeout'));
  reports('TL-SERVER-UNAUTHORIZED', /server `s`/, () =>
    failed('exited', ['Error: the environment variable BRAVE_API_KEY is required']),
  );
  reports('TL-SERVER-PORT', /server `s`/, () =>
    failed('exited', ['Error: listen EADDRINUSE: address already in use 127.0.0.1:3000']),
  );
  reports('TL-SERVER-OLD-RUNTIME', /server `s`/, () => failed('exited', ["SyntaxError: Unexpected token '??='"]));

  it('nothing on a machine where all is well', async () => {
    mkdirSync(home.path('files'));
    home.configure({ a: { command: process.execPath, args: [home.path('files')] } });
    home.register({ trunkline: home.entry() });
    const findings = await home.examine();
    expect(findings.map(({ code }) => code)).toEqual(['TL-CONFIG-OK', 'TL-CLIENT-OK']);
  });
});
