import { usableServerKey } from '../../config/schema/server-key.js';

/** A short key for a package or a server of the registry: `filesystem` for `@modelcontextprotocol/server-filesystem`. */
export function packageKey(name: string): string {
  const [scope = '', base = ''] = name.includes('/') ? name.split('/') : ['', name];
  const short = base.replace(/^(?:mcp[-_])?(?:server[-_])?/i, '').replace(/(?:[-_]mcp)?(?:[-_]server)?$/i, '');
  const isGeneric = short === '' || /^(?:mcp|server)$/i.test(short);
  const vendor = scope.replace(/^@/, '').split('.').at(-1) ?? '';
  return usableServerKey(isGeneric && vendor !== '' ? vendor : short) ?? usableServerKey(base) ?? 'server';
}
