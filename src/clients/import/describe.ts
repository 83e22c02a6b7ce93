import type { FoundServer } from '../files/found-server.js';
import type { Run } from './run.js';
import { looksRandom } from './secrets.js';

/** What a server runs, for people: a package, an address without credentials, or a program with its first argument. */
export function describeRun(found: FoundServer['run'], run: Run | undefined): string {
  if (found.kind === 'remote') return describeAddress(found.url);
  if (run !== undefined && 'package' in run.program) {
    const { package: name, version } = run.program;
    const [address = ''] = run.args;
    if (name === 'mcp-remote') return `${name} ${describeAddress(address)}`;
    return version === undefined ? name : `${name}@${version}`;
  }
  // Some people write a whole command line there.
  const [program = '', ...excess] = found.command.trim().split(/\s+/);
  const first = found.args.find((arg) => !arg.startsWith('-'));
  const isPlain = first !== undefined && /^[@\w./\\:-]{1,60}$/.test(first) && !first.split('/').some(looksRandom);
  return `${program}${excess.length > 0 ? ' …' : ''}${isPlain ? ` ${first}` : ''}`;
}

/** The names of what may hold secrets: variables and headers. */
export function variablesOf(run: FoundServer['run']): string[] {
  return Object.keys(run.kind === 'remote' ? run.headers : run.env);
}

function describeAddress(text: string): string {
  if (!URL.canParse(text)) return 'an address with variables';
  const { protocol, host, pathname } = new URL(text);
  const path = pathname.split('/').map((part) => (looksRandom(part) ? '…' : part));
  return `${protocol}//${host}${path.join('/')}`;
}
