import { describe, expect, it } from 'vitest';
import { hubText, noGatewayText, processText, silentText } from '../../../../src/cli/commands/hub/hub-access.js';
import { logText, outputText } from '../../../../src/cli/commands/hub/logs.js';
import { withoutTimes } from '../../../../src/cli/commands/hub/show-status.js';
import { PLAIN } from '../../../../src/cli/terminal.js';
import type { ClientDescription, HubDescription } from '../../../../src/hub/control.js';
import type { ProcessReport } from '../../../../src/status/status.js';

const CLIENT: ClientDescription = {
  ...{ name: 'claude', version: '2.1', pid: 20, since: '2026-01-01T00:00:00.000Z', uptimeSeconds: 61, inFlight: 2 },
  revision: '2026-07-28',
};
const SERVER: ProcessReport = {
  ...{ server: 'files', id: 'files~2', state: 'ready', pid: 30, memoryBytes: 2 ** 21, cpuPercent: 4, processes: 3 },
  revision: '2025-11-25',
  sharing: { mode: 'isolated', rule: 'unknown' },
  ...{ calls: 7, inFlight: 1, clients: 1 },
};
const HUB: HubDescription = {
  ...{ pid: 10, version: '1.2.0', number: 4, since: '2026-01-01T00:00:00.000Z', uptimeSeconds: 3_700 },
  ...{ configFile: '/c/trunkline.yaml', logFile: '/h/hub.log', hasStarted: true, isDraining: false },
  ...{ clients: [CLIENT], servers: [SERVER, { ...SERVER, id: 'files' }] },
};

describe('the text about the hub', () => {
  it('names its process, version, clients, servers and log', () => {
    expect(hubText({ hub: HUB, draining: [] }, '1.2.0').split('\n')).toEqual([
      'The hub of /c/trunkline.yaml runs.',
      '  pid      10, up 1 h 1 min',
      '  version  1.2.0, number 4',
      '  clients  1',
      '  servers  1',
      '  log      /h/hub.log',
    ]);
  });

  it('says what is different: another version, earlier hubs, no client yet', () => {
    const earlier = { ...HUB, pid: 9, version: '1.1.0', number: 3, isDraining: true, clients: [CLIENT, CLIENT] };
    const text = hubText({ hub: { ...HUB, hasStarted: false, servers: [] }, draining: [earlier] }, '1.3.0');
    expect(text).toContain('\n  servers  none yet, because the hub waits for its first client\n');
    expect(text).toContain(
      '\nAn earlier hub (pid 9, version 1.1.0, number 3) still serves 2 clients, until they have no call in flight.\n',
    );
    expect(text.split('\n').at(-1)).toBe(
      'This command has version 1.3.0. `trunkline hub restart` starts a hub of this version.',
    );
  });

  it('lists clients and processes, with a dash for what is not known and without control characters', () => {
    const strange = { ...CLIENT, name: 'evil\u001b[2J', version: null };
    // Older hubs tell neither the revision nor the sharing.
    const { revision: _, sharing: __, ...older } = SERVER;
    const idle: ProcessReport = {
      ...older,
      state: 'idle',
      pid: null,
      memoryBytes: null,
      cpuPercent: null,
      processes: null,
    };
    const hub = { ...HUB, clients: [strange], servers: [SERVER, idle], advice: ['Files could be \u001bfewer.'] };
    const lines = processText({ hub, draining: [] }).split('\n');
    expect(lines).toEqual([
      'HUB  VERSION  UP         CONFIGURATION',
      '10   1.2.0    1 h 1 min  /c/trunkline.yaml (does not exist any more)',
      '',
      'CLIENT         VERSION  PID  REVISION    ATTACHED FOR  IN FLIGHT',
      'evil\\u{1b}[2J  -        20   2026-07-28  1 min 1 s     2',
      '',
      'SERVER   STATE  PID  REVISION    MEMORY  CPU  PROCESSES  CALLS  CLIENTS  SHARING',
      'files~2  ready  30   2025-11-25  2 MiB   4 %  3          7      1        isolated (unknown)',
      'files~2  idle   -    -           -       -    -          7      1        -',
      '',
      'Files could be \\u{1b}fewer.',
    ]);
  });

  it('says how to resume a hub that does not answer, if its process is known', () => {
    expect(silentText(7, 'hub', 'linux')).toContain('`kill -CONT 7` resumes it');
    expect(silentText(undefined, 'hub', 'linux')).toContain('resume its process');
    // Windows has no program for that.
    expect(silentText(7, 'http', 'win32')).toContain('resume its process; `taskkill /F /PID 7` ends it');
  });
});

describe('a text of the status', () => {
  it('is the same text when only ages are different', () => {
    const text = (age: string) => `Trunkline 1.2.3, up ${age}, 30 tools. 3 servers, all up.`;
    expect(withoutTimes(text('59 s'))).toBe(withoutTimes(text('58 s')));
    expect(withoutTimes('3 servers')).not.toBe(withoutTimes('4 servers'));
  });
});

describe('a line of the log', () => {
  const record = (server: string) =>
    JSON.stringify({ level: 40, time: '2026-01-01T10:20:30Z', server, msg: 'it ended' });

  it('is shown as it is to a program, and as text with its date to a person', () => {
    expect(logText(record('files'), undefined, undefined)).toBe(record('files'));
    expect(logText(record('files'), undefined, PLAIN)).toMatch(/^2026-01-01 \d\d:\d\d:\d\d warn {2}files: it ended$/);
    expect(logText('no \u0007record', undefined, PLAIN)).toBe('no \\u{7}record');
  });

  it('is left out if another server is wanted; the instances of a server count as that server', () => {
    expect(logText(record('files'), 'files', undefined)).toBeDefined();
    expect(logText(record('files~2'), 'files', undefined)).toBeDefined();
    expect(logText(record('files2'), 'files', undefined)).toBeUndefined();
    expect(logText('no record', 'files', undefined)).toBeUndefined();
  });

  it('of the output of a server is a record for a program', () => {
    expect(outputText(['said'], 'files', true)).toEqual(['{"server":"files","msg":"output","line":"said"}']);
    expect(outputText(['said'], 'files', false)).toEqual(['The last output of files:', '  | said', '']);
    expect(outputText([], 'files', false)).toEqual([]);
  });
});

describe('the text when no gateway runs', () => {
  it('promises that a client starts one only if clients look for a hub', () => {
    expect(noGatewayText('/c/trunkline.yaml', true)).toContain('The next client that connects starts one');
    const off = noGatewayText('/c/trunkline.yaml', false);
    expect(off).not.toContain('starts one');
    expect(off).toContain('because the hub is off there');
  });
});
