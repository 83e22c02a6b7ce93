import { plural } from '../wire/json/printable.js';
import type { ToolRow } from './tool-report.js';

/** Advice on the tools that cost a model more than they are worth. */
export interface ToolAdvice {
  readonly kind: 'unused' | 'long' | 'twins';
  /** The finding, as a sentence. */
  readonly text: string;
  readonly server: string;
  /** Line to add to the entry of this server in the configuration. */
  readonly yaml: string;
}

/** Answers from the call log whether tools were called. */
export interface ToolUse {
  /** Whether the log begins early enough to say that a tool was not called for `UNUSED_DAYS`. */
  readonly isLongEnough: boolean;
  wasCalled(tool: ToolRow): boolean;
}

/** Days without a call after which a tool counts as unused. */
export const UNUSED_DAYS = 30;

/** Smallest size of a long description in bytes, and the number of long descriptions that are reported. */
const LONG_BYTES = 1_000;
const MAX_LONG = 5;
const MAX_TWINS = 10;
/** Largest number of tools in one line of YAML, and in one sentence. */
const MAX_NAMES = 20;
const MAX_NAMED = 5;

/** Returns advice about the shown tools, the worst first within each kind. `use` is absent without a call log. */
export function adviseOnTools(rows: readonly ToolRow[], use: ToolUse | undefined): ToolAdvice[] {
  const shown = rows.filter(({ state, server }) => state === 'shown' && server !== 'trunkline');
  return [
    ...(use?.isLongEnough === true ? adviseOnUnused(shown, use) : []),
    ...adviseOnTwins(shown),
    ...adviseOnLong(shown),
  ];
}

function adviseOnUnused(shown: readonly ToolRow[], use: ToolUse): ToolAdvice[] {
  const servers = [...new Set(shown.map(({ server }) => server))];
  const unused = servers.map((server) => {
    const own = shown.filter((tool) => tool.server === server);
    const idle = own.filter((tool) => !use.wasCalled(tool));
    return { server, idle, isAll: idle.length === own.length, tokens: tokensOf(idle) };
  });
  const found = unused.filter(({ idle }) => idle.length > 0).sort((one, other) => other.tokens - one.tokens);
  return found.map(({ server, idle, isAll, tokens }) => {
    const what = isAll
      ? `no tool of ${server} was`
      : `${plural(idle.length, 'tool')} of ${server} ${idle.length === 1 ? 'was' : 'were'}`;
    const text = `In ${UNUSED_DAYS} days, ${what} ${isAll ? '' : 'not '}called: about ${tokens} tokens.`;
    return { kind: 'unused', text, server, yaml: isAll ? 'disabled: true' : `tools: { deny: ${listOf(idle)} }` };
  });
}

/** Tools of two servers with the same names, among which a model has to choose. */
function adviseOnTwins(shown: readonly ToolRow[]): ToolAdvice[] {
  const owners = new Map<string, ToolRow>();
  const pairs = new Map<string, Twins>();
  for (const tool of shown) {
    const name = tool.original.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');
    const first = owners.get(name) ?? tool;
    owners.set(name, first);
    if (first.server === tool.server) continue;
    const isSame = first.sentence !== '' && first.sentence === tool.sentence;
    const id = JSON.stringify([first.server, tool.server, isSame]);
    const pair = pairs.get(id) ?? { first: first.server, second: tool.server, isSame, tools: [] };
    pairs.set(id, { ...pair, tools: [...pair.tools, tool] });
  }
  // Tools that also have the same description are worse than tools that only share a name.
  const sorted = [...pairs.values()].sort(
    (one, other) => Number(other.isSame) - Number(one.isSame) || other.tools.length - one.tools.length,
  );
  return sorted.slice(0, MAX_TWINS).map(({ first, second, isSame, tools }) => {
    const which = `${first} and ${second} both have ${namesOf(tools)}`;
    const renamed = tools
      .slice(0, MAX_NAMES)
      .map(({ original }) => `${quoted(original)}: ${quoted(`${original}_${second}`)}`);
    return {
      kind: 'twins',
      text: isSame ? `${which}, and say that they do the same.` : `${which}.`,
      server: second,
      yaml: isSame ? `tools: { deny: ${listOf(tools)} }` : `tools: { rename: { ${renamed.join(', ')} } }`,
    };
  });
}

/** Tools of the second server whose names the first server has, too. */
interface Twins {
  readonly first: string;
  readonly second: string;
  /** Whether their descriptions begin with the same sentence. */
  readonly isSame: boolean;
  readonly tools: readonly ToolRow[];
}

function adviseOnLong(shown: readonly ToolRow[]): ToolAdvice[] {
  const long = shown.filter(({ descriptionBytes }) => descriptionBytes >= LONG_BYTES);
  const largest = long.sort((one, other) => other.descriptionBytes - one.descriptionBytes).slice(0, MAX_LONG);
  return largest.map(({ server, name, original, sentence, descriptionBytes }) => ({
    kind: 'long',
    text: `The description of ${name} has ${descriptionBytes} bytes.`,
    server,
    yaml: `tools: { describe: { ${quoted(original)}: ${JSON.stringify(sentence)} } }`,
  }));
}

function tokensOf(tools: readonly ToolRow[]): number {
  return tools.reduce((sum, { tokens }) => sum + tokens, 0);
}

function namesOf(tools: readonly ToolRow[]): string {
  const names = tools.slice(0, MAX_NAMED).map(({ original }) => original);
  const rest = tools.length - names.length;
  return rest > 0 ? `${names.join(', ')} and ${rest} more` : names.join(', ');
}

function listOf(tools: readonly ToolRow[]): string {
  const names = tools.slice(0, MAX_NAMES).map(({ original }) => quoted(original));
  return `[${names.join(', ')}]`;
}

/** A name for YAML in the flow style, in quotes if it needs them. */
function quoted(name: string): string {
  return /^[A-Za-z_][\w-]*$/.test(name) && !/^(?:y|n|yes|no|on|off|true|false|null)$/i.test(name)
    ? name
    : JSON.stringify(name);
}
