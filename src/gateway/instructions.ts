import type { GatewayDescription, ServerHandshake } from '../downstream/port.js';
import { REMOVED, rewriteObject } from '../wire/json/edit-members.js';
import { clipText, utf8Length, withoutHiddenCharacters } from '../wire/json/printable.js';
import type { ServerDescription } from '../wire/mcp/handshake.js';
import type { ServerLists } from './catalog/offered-lists.js';
import { type NamedView, toolsInView, type ViewFilter } from './catalog/tool-policy.js';
import { ABOUT } from './pending-gateway.js';
import type { Backend, DescribedServer } from './registry/backend.js';

/** The instruction for a model whose list may not have all tools. */
const ABOUT_SEARCH =
  'If trunkline__find_tools is in the list, most tools are not: search with it before you say that something is not possible, and call what you find with trunkline__call_tool.';

/** Describes servers to a client in the servers' own words. `saidBy` returns the handshake of a backend. */
export function describeServers<Described extends DescribedServer>(
  backends: readonly Described[],
  saidBy: (backend: Described) => DescribedServer['handshake'],
  named: NamedView | undefined,
  { notice, maxInstructionsBytes, maySearch }: InstructionOptions,
): GatewayDescription {
  return {
    offered: backends.map((backend) => saidBy(backend)?.capabilities ?? {}),
    get instructions() {
      const servers = backends.flatMap((backend) => instructingServer(backend, saidBy(backend), named));
      const about = maySearch ? `${ABOUT} ${ABOUT_SEARCH}` : ABOUT;
      return composeInstructions(servers, maxInstructionsBytes, notice ?? named?.fault, about);
    },
  };
}

interface InstructionOptions {
  readonly notice?: string | undefined;
  readonly maxInstructionsBytes: number;
  /** Whether the list of the client may not have all tools. */
  readonly maySearch: boolean;
}

/** Properties of a server for the instructions. All texts are as the server wrote them. */
export interface InstructingServer extends ServerDescription {
  readonly key: string;
  readonly prefix: string;
  /** Its listed tools, with original names. */
  readonly tools: readonly string[];
  readonly prompts: number;
  readonly resources: number;
  readonly instructions: string | undefined;
}

/** Part of the instructions that every client shows the model, in bytes. */
const FIRST_READ_BYTES = 2_000;

const MAX_PURPOSE_BYTES = 200;

/** Shortest text to which a longer one is cut, in bytes. With less space, the text is left out. */
const MIN_TEXT_BYTES = 60;

const SERVERS = 'The servers, each with its own description or its tools:';

const TEXTS =
  'Each text below is from one server, and is about the use of its own tools. It comes neither from Trunkline nor from the user.';

/**
 * Returns the instructions for a client that sees all servers, at most `maxBytes` of UTF-8. They have a text about
 * Trunkline, the notice, a line for each server with its purpose, and the text of each server that has instructions.
 * The lines share the part that every client reads, and the texts share the rest. Texts that are too long are cut.
 *
 * Servers may be hostile. Their texts cannot hide characters, end their own section, or take the space of others.
 */
export function composeInstructions(
  servers: readonly InstructingServer[],
  maxBytes: number,
  notice?: string | undefined,
  about = ABOUT,
): string {
  const head = [about, ...(notice === undefined ? [] : [notice])].join('\n\n');
  const lines = linesOf(servers, (size) => Math.min(maxBytes, size) - utf8Length(`${head}\n\n${SERVERS}`));
  const listed = lines.length === 0 ? head : `${head}\n\n${[SERVERS, ...lines].join('\n')}`;
  const sections = sectionsOf(servers, maxBytes - utf8Length(listed), maxBytes);
  return [listed, ...(sections.length === 0 ? [] : [TEXTS, ...sections])].join('\n\n');
}

/** Returns a line for each server that fits, and the number of the others. `roomIn(size)` is the space within `size` bytes. */
function linesOf(servers: readonly InstructingServer[], roomIn: (size: number) => number): string[] {
  const names = servers.map(({ key, prefix }) => `- ${key}${prefix === '' ? ' (its tools keep their own names)' : ''}`);
  const sizes = names.map((name) => utf8Length(`\n${name}: `));
  const rest = (count: number) => (count === names.length ? [] : [`- and ${names.length - count} more`]);
  const sizeOf = (count: number) =>
    sizes.slice(0, count).reduce((sum, size) => sum + size, utf8Length(`\n${rest(count).join('')}`));
  let count = names.length;
  while (count > 0 && sizeOf(count) > roomIn(Number.POSITIVE_INFINITY)) count -= 1;
  if (count === 0) return [];
  const purposes = servers.slice(0, count).map((server) => clipText(purposeOf(server), MAX_PURPOSE_BYTES, ' …'));
  const limit = fairLimit(purposes.map(utf8Length), roomIn(FIRST_READ_BYTES) - sizeOf(count));
  const lines = purposes.map((purpose, index) => {
    const clipped = clipText(purpose, limit, ' …');
    return clipped === '' ? `${names[index]}` : `${names[index]}: ${clipped}`;
  });
  return [...lines, ...rest(count)];
}

/** Purpose of the server: its title, unless that is its key, and its description or else the names of its tools. */
function purposeOf({ key, title, description, tools, prompts, resources }: InstructingServer): string {
  const counted = (count: number, what: string) => (count === 0 ? [] : [`${count} ${what}${count === 1 ? '' : 's'}`]);
  const offers =
    tools.length > 0
      ? [`tools ${tools.slice(0, MAX_PURPOSE_BYTES).join(', ')}`]
      : [...counted(prompts, 'prompt'), ...counted(resources, 'resource')];
  const line = (text = '') =>
    shown(text.slice(0, 4 * MAX_PURPOSE_BYTES))
      .replace(/\s+/g, ' ')
      .trim();
  const heading = line(title);
  const said = line(description);
  const parts = [
    ...(heading === '' || heading.toLowerCase() === key.toLowerCase() ? [] : [heading]),
    ...(said === '' ? [line(offers.join(', '))] : [said]),
  ];
  return parts.filter((part) => part !== '').join(': ');
}

/** The texts of the servers, each in a section of its own. */
function sectionsOf(servers: readonly InstructingServer[], room: number, maxBytes: number): string[] {
  const texts = servers.flatMap(({ key, instructions = '' }) => {
    // Text beyond this length never fits, even after removals.
    const text = shown(instructions.slice(0, 2 * maxBytes)).trim();
    return text === '' ? [] : [{ key, text }];
  });
  const frames = texts.reduce((size, { key }) => size + utf8Length(`\n\n${section(key, '')}`), 0);
  const limit = fairLimit(
    texts.map(({ text }) => utf8Length(text)),
    room - utf8Length(`\n\n${TEXTS}`) - frames,
  );
  return texts.flatMap(({ key, text }) => {
    const kept = limit < Math.min(MIN_TEXT_BYTES, utf8Length(text)) ? '' : clipText(text, limit, ' … (cut)');
    return kept === '' ? [] : [section(key, kept)];
  });
}

function section(key: string, text: string): string {
  return `<server-instructions server="${key}">\n${text}\n</server-instructions>`;
}

/** Returns the text without hidden characters and without text that looks like the beginning or the end of a section. */
function shown(text: string): string {
  return withoutHiddenCharacters(text).replace(/<(?=[\s/]*server-instructions)/gi, '');
}

/** Returns the size to which items must be cut to fit into `room`. Large items share the space that small ones leave. */
function fairLimit(sizes: readonly number[], room: number): number {
  let left = Math.max(0, room);
  let count = sizes.length;
  for (const size of [...sizes].sort((a, b) => a - b)) {
    const share = Math.floor(left / count);
    if (size > share) return share;
    left -= size;
    count -= 1;
  }
  return Number.POSITIVE_INFINITY;
}

/** Shortest wait for a server that the client sees alone, in milliseconds. Clients wait as long for servers of their own. */
const START_WAIT_MS = 30_000;

/**
 * Returns the initialize result of the only backend that a client sees, or a failure if there is none within `waitMs` milliseconds, but at
 * least 30 s. A change of the configuration may replace the backend meanwhile. `undefined` if the client sees no backend.
 */
export function onlyHandshake(
  client: { readonly view: { readonly backends: ReadonlyMap<unknown, Backend> } },
  waitMs: number,
): Promise<ServerHandshake> | undefined {
  const only = (): Backend | undefined => [...client.view.backends.values()][0];
  const handshake = async (backend: Backend): Promise<ServerHandshake> => {
    const reason = await backend.untilOpen(Math.max(waitMs, START_WAIT_MS));
    const { openConnection: connection } = backend;
    if (connection !== undefined) {
      const { initializeResult, revision, requestedRevision, instructions } = connection;
      const isApproved = backend.approved(connection).instructions === instructions;
      const whole = { start: 0, end: initializeResult.length };
      const change = (name: string) => (name === 'instructions' ? REMOVED : undefined);
      const result = isApproved ? initializeResult : rewriteObject(initializeResult, whole, { change });
      return { kind: 'initialized', result, revision, requestedRevision };
    }
    const now = only();
    if (now !== undefined && now !== backend) return handshake(now);
    return { kind: 'failed', failure: backend.dispatcher.failureOf(reason ?? 'restarting', false) };
  };
  const first = only();
  return first && handshake(first);
}

/** Makes the properties of a server from its backend and its handshake. Empty without a handshake. */
function instructingServer(
  backend: DescribedServer,
  handshake: DescribedServer['handshake'],
  view: ViewFilter | undefined,
): InstructingServer[] {
  if (handshake === undefined) return [];
  const { key, prefix } = backend;
  const { instructions, serverInfo } = handshake;
  const lists = backend.listsAs('exposed');
  const listed = ({ entries }: ServerLists['tools']) => entries.filter(({ entry }) => entry !== undefined);
  return [
    {
      ...serverInfo,
      key,
      prefix,
      tools: listed(toolsInView(key, lists.tools, view)).map(
        ({ original }) => lists.tools.renamed?.get(original) ?? original,
      ),
      prompts: listed(lists.prompts).length,
      resources: listed(lists.resources).length,
      instructions,
    },
  ];
}
