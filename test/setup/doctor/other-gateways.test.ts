import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { type CommandLine, parseCommandLines, readCommandLines } from '../../../src/host/process/processes.js';
import { gatewayOf, runningGateway } from '../../../src/setup/clients/import/gateways.js';
import { checkOtherGateways } from '../../../src/setup/doctor/running-gateways.js';
import { folderWith } from '../../config/files.js';
import { IS_WINDOWS } from '../../support/platform.js';
import { home, useHome } from './doctor-home.js';

useHome();
beforeEach(() => void home.install());

const SECRET = 'sk-live-0123456789abcdefghij';

function check(processes: readonly CommandLine[]) {
  home.configure({
    memory: { package: '@modelcontextprotocol/server-memory' },
    notes: { command: '/usr/bin/python3', args: ['/srv/notes.py', '--fast'] },
  });
  const { servers } = home.config();
  return checkOtherGateways({ processes, servers, gatewayOf: runningGateway, machine: home.machine() });
}

function line(pid: number, ppid: number, ...words: string[]): CommandLine {
  return { pid, ppid, words };
}

describe('another gateway that runs', () => {
  it.each([
    ['mcp-hub', ['node', '/home/a/.npm/_npx/1/node_modules/.bin/mcp-hub', '--port', '3']],
    ['1mcp', ['/usr/bin/node', '--no-warnings', '/usr/lib/node_modules/@1mcp/agent/build/index.js', 'serve']],
    ['mcpproxy', ['/opt/mcpproxy', 'serve']],
    ['mcp-proxy', ['/usr/bin/python3.12', '/home/a/.local/bin/mcp-proxy', '--', 'uvx', 'x']],
    ['mcp-proxy', ['python3', '-m', 'mcp_proxy', '--port', '8080']],
    [
      "mcporter's daemon",
      ['node', '/usr/lib/node_modules/mcporter/dist/cli.js', '--config', 'm.json', 'daemon', 'start'],
    ],
    ["Docker's MCP gateway", ['docker', 'mcp', 'gateway', 'run']],
    [undefined, ['node', '/usr/lib/node_modules/mcporter/dist/cli.js', 'call', 'x.y']],
    [undefined, ['node', '/srv/app.js', '/usr/lib/node_modules/mcp-hub/README.md']],
    [undefined, ['npm', 'exec', 'mcp-hub', '--port', '3']],
    [undefined, ['vi', 'mcp-hub']],
    [undefined, []],
  ])('is %s if its words are %j', (name, words) => {
    expect(runningGateway(words)).toBe(name);
  });

  it('is imported like any server if it only stands between a client and a server', () => {
    expect(gatewayOf({ program: { command: 'mcp-proxy' }, args: ['https://a.example/sse'], env: {} })).toBeUndefined();
  });

  it('F191: is named once, without its launcher and by its pid, with the servers that Trunkline runs, too', () => {
    const findings = check([
      line(10, 1, 'npm', 'exec', 'mcp-hub'),
      line(11, 10, 'node', '/home/a/.npm/_npx/1/node_modules/.bin/mcp-hub', '--token', SECRET),
      line(16, 11, 'node', '/home/a/.npm/_npx/1/node_modules/mcp-hub/worker.js'),
      line(12, 11, 'node', '/home/a/.npm/_npx/2/node_modules/.bin/mcp-server-memory'),
      line(13, 11, 'npm', 'exec', '@modelcontextprotocol/server-memory@2026.1.1'),
      line(14, 11, 'python3', '/srv/notes.py', '--fast'),
      line(15, 1, 'mcpproxy', 'serve', SECRET),
    ]);
    expect(findings).toMatchObject([
      {
        level: 'warn',
        code: 'TL-GATEWAY-SAME-SERVERS',
        sentence: 'mcp-hub (pid 11) runs servers that Trunkline runs, too: memory, notes',
        evidence: [],
      },
      { level: 'ok', code: 'TL-GATEWAY-OTHER', sentence: 'mcpproxy (pid 15) runs besides Trunkline', evidence: [] },
    ]);
    expect(JSON.stringify(findings)).not.toContain(SECRET);
  });

  it('is a server of Trunkline if Trunkline has started it', () => {
    const shell = line(21, 20, '/bin/sh', '-c', 'mcp-hub');
    const below = [shell, line(22, 21, 'mcp-hub')];
    expect(check([line(20, 1, 'node', home.program), ...below])).toEqual([]);
    expect(check([line(20, 1, 'node', '--no-warnings', '/usr/bin/trunkline', '--http', '1'), ...below])).toEqual([]);
    expect(check([line(20, 1, 'node', '/srv/app.js', 'trunkline'), ...below])).toHaveLength(1);
    // Pids that were used again can form a circle.
    expect(check([line(30, 31, 'mcp-hub'), line(31, 30, 'sh')])).toMatchObject([{ code: 'TL-GATEWAY-OTHER' }]);
  });

  it('is found among the processes of this user', async () => {
    const program = home.write('node_modules/mcp-hub/cli.js', 'console.log(1); setInterval(() => {}, 1_000);');
    const hub = spawn(process.execPath, [program, SECRET], { stdio: ['ignore', 'pipe', 'ignore'] });
    const ended = once(hub, 'exit');
    try {
      await once(hub.stdout, 'data');
      const found = (await readCommandLines())?.find(({ pid }) => pid === hub.pid);
      expect(found).toMatchObject({ ppid: process.pid });
      const findings = check(found === undefined ? [] : [found]);
      expect(findings).toMatchObject([{ sentence: `mcp-hub (pid ${hub.pid}) runs besides Trunkline` }]);
    } finally {
      hub.kill('SIGKILL');
      await ended;
    }
  });

  it('is read from the output of `ps`', () => {
    expect(parseCommandLines('  7     1 node /a/b.js --x\n 12     7 sh\n\n')).toEqual([
      { pid: 7, ppid: 1, words: ['node', '/a/b.js', '--x'] },
      { pid: 12, ppid: 7, words: ['sh'] },
    ]);
    const file = join(folderWith({ 'a b c.yaml': '' }), 'a b c.yaml');
    // Windows has no `ps`, and its paths do not begin with a slash.
    const path = IS_WINDOWS ? file.split(' ') : [file];
    expect(parseCommandLines(`7 1 node --config ${file} /not/there x`)).toMatchObject([
      { words: ['node', '--config', ...path, '/not/there', 'x'] },
    ]);
  });
});
