import type { ServerSpec } from '../../spec/server-spec.js';
import { launchedBy, packageIn } from './command-words.js';
import type { ServerConfig, ServerPackage } from './config.js';

/**
 * The clients that share a process of a server. `auto` becomes `profile` when the server runs and speaks a revision without sessions. Until
 * then, and for other revisions, it means `isolated`.
 */
export interface SharingRule {
  readonly sharing: ServerConfig['sharing'];
  /** `configured`: the configuration says so. `known`: the table below does. `unknown`: nothing is known about the server. */
  readonly rule: 'configured' | 'known' | 'unknown';
  /** The reason, as a clause. */
  readonly because: string;
  /** Whether the server gets one call at a time, whatever its concurrency limit is. */
  readonly isSerial?: boolean;
}

/** The program of a server, and the package that it runs. */
interface PackagedProgram {
  readonly package?: ServerPackage;
  readonly spec: ServerSpec | undefined;
}

interface SharingFacts extends PackagedProgram {
  readonly sharing: ServerConfig['sharing'];
}

/** Decides which clients share a process of this server. */
export function sharingOf(server: SharingFacts, servesHttp: boolean): SharingRule {
  const { sharing, spec } = server;
  const name = npmPackageOf(server);
  const known = KNOWN.get(name);
  if (spec?.kind !== 'remote' && spec?.soleKey !== undefined) {
    const because = '`placement: one` in the configuration implies it';
    return { sharing: 'all', rule: 'configured', because, isSerial: known?.[0] === 'serial' };
  }
  if (sharing !== 'auto') return { sharing, rule: 'configured', because: '`sharing` in the configuration says so' };
  if (known === undefined)
    return {
      sharing: servesHttp ? 'profile' : 'auto',
      rule: 'unknown',
      because: 'it is not known whether it keeps state',
    };
  const [verdict, version, reason] = known;
  const because = `${name} ${reason} (read in version ${version})`;
  if (verdict === 'serial') return { sharing: 'all', rule: 'known', because, isSerial: true };
  return { sharing: verdict === 'isolated' ? 'auto' : verdict, rule: 'known', because };
}

/** The npm package that a server runs; '' if none is found. */
export function npmPackageOf({ package: used, spec }: PackagedProgram): string {
  if (used !== undefined) return used.request.name;
  if (spec === undefined || spec.kind === 'remote') return '';
  const { command, args } = spec;
  return launchedBy(command, args)?.name ?? packageIn(command) ?? packageIn(args[0] ?? '') ?? '';
}

type Known = readonly [sharing: 'profile' | 'all' | 'serial' | 'isolated', version: string, reason: string];

/**
 * Verdicts on packages, from their source and from a comparison of two interleaved sessions, shared and apart (`npm run
 * -w lab sharing`). `profile`: no session notices another. `all`: two processes harm each other. `serial`: two calls harm each
 * other, too. `isolated`: a session would see or change the state of another.
 */
const KNOWN: ReadonlyMap<string, Known> = new Map<string, Known>([
  [
    '@modelcontextprotocol/server-everything',
    ['isolated', '2026.8.31', 'keeps log levels, subscriptions and resources'],
  ],
  [
    '@modelcontextprotocol/server-filesystem',
    ['profile', '2026.8.31', 'keeps nothing but the folders of its arguments'],
  ],
  ['@modelcontextprotocol/server-github', ['profile', '2025.4.8', 'sends each call to GitHub']],
  ['@modelcontextprotocol/server-gitlab', ['profile', '2025.4.25', 'sends each call to GitLab']],
  [
    '@modelcontextprotocol/server-memory',
    ['serial', '2026.8.31', 'rewrites its file at each change, so that two changes at once lose entries'],
  ],
  ['@modelcontextprotocol/server-pdf', ['profile', '2.0.4', 'gives each viewer a random id']],
  ['@modelcontextprotocol/server-sequential-thinking', ['isolated', '2026.8.31', 'keeps the history of thoughts']],
  ['@accesslint/mcp', ['all', '0.11.1', 'ends its Chrome, which all of its processes use, when one of them ends']],
  ['@allpepper/memory-bank-mcp', ['profile', '0.2.2', 'reads and writes the file that a call names']],
  ['@antv/mcp-server-chart', ['profile', '0.9.10', 'draws each chart from its arguments']],
  ['@coo-quack/calc-mcp', ['profile', '2.1.1', 'computes each result from its arguments']],
  ['@cyanheads/git-mcp-server', ['isolated', '2.15.3', 'keeps a working directory']],
  [
    '@dangahagan/weather-mcp',
    ['all', '1.23.0', 'keeps a copy of its file of places, so that a second process loses places'],
  ],
  ['@djankies/vitest-mcp', ['isolated', '0.5.1', 'keeps a project root']],
  ['@drawio/mcp', ['profile', '1.6.1', 'reads and writes the file that a call names']],
  ['@eslint/mcp', ['profile', '0.3.13', 'checks the files that a call names']],
  ['@heroui/react-mcp', ['profile', '1.1.2', 'keeps nothing but documentation']],
  ['@jpisnice/shadcn-ui-mcp-server', ['profile', '2.0.0', 'keeps nothing but a cache of GitHub']],
  ['@kimsungwhee/apple-docs-mcp', ['profile', '1.0.26', 'keeps nothing but a cache of documentation']],
  ['@mui/mcp', ['profile', '0.1.6', 'keeps nothing but a cache of documentation']],
  ['@playwright/mcp', ['isolated', '0.0.83', 'keeps a browser']],
  ['@primeng/mcp', ['profile', '22.1.1', 'keeps nothing but documentation']],
  ['chrome-devtools-mcp', ['isolated', '1.11.0', 'keeps a browser with a selected page']],
  ['fetcher-mcp', ['profile', '0.3.9', 'starts a browser for each call']],
  ['firefox-devtools-mcp', ['isolated', '0.9.2', 'keeps a browser with a selected page']],
  ['lucide-icons-mcp', ['profile', '0.1.67', 'keeps nothing but its list of icons']],
  ['mcp-deepwiki', ['profile', '0.0.10', 'fetches each page anew']],
  ['mcp-fetch-server', ['profile', '1.1.2', 'fetches each page anew']],
  ['mcp-mermaid', ['profile', '0.4.1', 'draws each diagram in a page of its own']],
  ['time-mcp', ['profile', '1.0.6', 'computes each result from its arguments']],
]);
