import { counted, type Finding, finding, someOf } from './finding.js';

/** A tool as clients see it. */
export interface ListedTool {
  readonly server: string;
  readonly name: string;
  /** Length of its entry in the list, in characters. */
  readonly size: number;
  /** Length of its description, in bytes. */
  readonly descriptionBytes: number;
  /** Whether its annotations state if it changes or destroys something. */
  readonly hasHints: boolean;
}

/** Clients show a tool as `mcp__trunkline__NAME`, and models take 64 characters. */
const LONGEST_NAME = 64 - 'mcp__trunkline__'.length;
/** Tool counts that some clients accept at most. */
const COUNTS = [40, 80, 128];
/** A tenth of the context of a usual model. */
const MAX_TOKENS = 20_000;
const CHARACTERS_PER_TOKEN = 4;
/** Claude Code cuts descriptions here. */
const MAX_DESCRIPTION_BYTES = 2_048;

/** Whether clients and models can use the merged list of tools. */
export function checkTools(tools: readonly ListedTool[]): Finding[] {
  const found: Finding[] = [];
  const long = tools.filter(({ name }) => name.length > LONGEST_NAME).map(({ name }) => name);
  if (long.length > 0) {
    const text = `${counted(long.length, 'tool')} with names of more than ${LONGEST_NAME} characters`;
    found.push(finding('TL-NAMES-LONG', text, { evidence: [someOf(long)] }));
  }
  const count = COUNTS.findLast((limit) => tools.length > limit);
  const shares = sharesOf(tools);
  if (count !== undefined) {
    const text = `${tools.length} tools are listed; some clients accept ${count}`;
    const evidence = [someOf(shares.map(({ server, count: of }) => `${server} ${of}`))];
    found.push(finding('TL-TOOLS-MANY', text, { evidence }));
  }
  const tokens = shares.reduce((sum, share) => sum + share.tokens, 0);
  if (tokens > MAX_TOKENS) {
    const evidence = [someOf(shares.map((share) => `${share.server} about ${share.tokens} tokens`))];
    found.push(finding('TL-TOOLS-HEAVY', `the list of tools takes about ${tokens} tokens`, { evidence }));
  }
  const wordy = tools.filter(({ descriptionBytes }) => descriptionBytes > MAX_DESCRIPTION_BYTES);
  if (wordy.length > 0) {
    const evidence = [someOf(wordy.map(({ name }) => name))];
    const text = `${counted(wordy.length, 'tool')} with descriptions of more than 2 KB`;
    found.push(finding('TL-SERVER-LONG-TEXT', text, { evidence }));
  }
  const unmarked = tools.filter(({ name, hasHints }) => !hasHints && DESTRUCTIVE.test(name));
  if (unmarked.length > 0) {
    const text = `${counted(unmarked.length, 'tool')} that may destroy data, and ${unmarked.length === 1 ? 'does' : 'do'} not say so`;
    found.push(finding('TL-TOOLS-UNMARKED', text, { evidence: [someOf(unmarked.map(({ name }) => name))] }));
  }
  return found;
}

/** Names of tools that a careful client asks about, behind the prefix of the server. */
const DESTRUCTIVE = /(?:^|__|[_-])(?:delete|remove|drop|destroy|erase|purge|truncate|overwrite|wipe)(?:[_-]|$)/i;

/** The share of each server in the list, the largest first. */
function sharesOf(tools: readonly ListedTool[]) {
  const servers = [...new Set(tools.map(({ server }) => server))];
  const shares = servers.map((server) => {
    const own = tools.filter((tool) => tool.server === server);
    const size = own.reduce((sum, tool) => sum + tool.size, 0);
    return { server, count: own.length, tokens: Math.round(size / CHARACTERS_PER_TOKEN) };
  });
  return shares.sort((one, other) => other.tokens - one.tokens);
}
