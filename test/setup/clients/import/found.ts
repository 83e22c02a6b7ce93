import type { FoundCommand, FoundServer } from '../../../../src/setup/clients/files/found-server.js';

export const DESKTOP = {
  client: 'claude-desktop',
  title: 'Claude Desktop',
  scope: 'user',
  file: '/home/ada/desktop.json',
  format: 'json',
  path: ['mcpServers'],
} as const;

/** A machine without packages. */
export const NOWHERE = {
  platform: 'linux',
  home: '/nowhere',
  env: {},
  nodePath: '/nowhere/bin/node',
  storeFolder: '/nowhere/store',
  serversFolder: '/nowhere/servers',
  suffix: '',
} as const;

/** A server as a client has it. */
export function found(name: string, run: FoundServer['run'], more: Partial<FoundServer> = {}): FoundServer {
  return { place: DESKTOP, name, run, isDisabled: false, variables: 'none', ...more };
}

export function command(line: string, more: Partial<FoundCommand> = {}): FoundCommand {
  const [program = '', ...args] = line.split(' ');
  return { kind: 'command', command: program, args, env: {}, ...more };
}
