import { once as onceEmitted } from 'node:events';
import { createInterface } from 'node:readline/promises';
import { EXIT } from '../app/exit-codes.js';
import type { GlobalOptions } from '../app/global-options.js';
import { UsageError } from '../app/usage-error.js';
import type { ServerApprovals, WithheldTool } from '../approvals/server-approvals.js';
import type { Config, ServerConfig } from '../config/config.js';
import { errorMessage } from '../errors/error-text.js';
import { printable } from '../json/printable.js';
import { describeDefinition } from './describe-definition.js';
import { tell } from './output.js';
import { chooseServers, type Once, runOnce } from './run-once.js';
import { reportFailures } from './tools.js';

export interface ApproveOptions {
  /** All servers whose tools need approval when absent. */
  readonly server: string | undefined;
  /** By their own names or as clients see them; all when there are none. */
  readonly tools: readonly string[];
  /** Approves without asking. */
  readonly isYes: boolean;
}

/** Shows tools that are new or have changed as a model would see them, and approves those that a person agrees to. */
export async function approve(settings: GlobalOptions, options: ApproveOptions): Promise<number> {
  return await runOnce(
    settings,
    (config) => chooseApproved(config, options.server),
    async (once) => {
      const { servers } = once.config;
      if (servers.length === 0)
        tell('No server needs approval; `approval: required` in the configuration asks for it.');
      const decide = decisionMaker(options, once.ending);
      let areAllApproved = true;
      for (const server of servers) {
        if (!(await reviewServer(server, options.tools, once, decide))) areAllApproved = false;
      }
      const hasFailed = reportFailures(once);
      return areAllApproved && !hasFailed ? EXIT.ok : EXIT.failed;
    },
    { isReview: true },
  );
}

function chooseApproved(config: Config, name: string | undefined): readonly ServerConfig[] {
  const chosen = chooseServers(config, name === undefined ? [] : [name]);
  const needing = chosen.filter(({ approval }) => approval === 'required');
  if (name !== undefined && needing.length === 0) {
    throw new UsageError(
      `tools of \`${name}\` need no approval`,
      'set `approval: required` for it in the configuration',
    );
  }
  return needing;
}

/** Whether a tool is approved; `undefined` when there is nobody to ask. */
type Decide = (input: string) => Promise<boolean | undefined>;

function decisionMaker({ isYes }: ApproveOptions, ending: AbortSignal): Decide {
  if (isYes) return async () => true;
  if (!process.stdin.isTTY || !process.stderr.isTTY) return async () => undefined;
  const lines = createInterface({ input: process.stdin, output: process.stderr, terminal: false });
  const closed = onceEmitted(lines, 'close').then(() => '');
  return async (input) => {
    const answer = await Promise.race([lines.question(input, { signal: ending }), closed]);
    return /^\s*y(?:es)?\s*$/i.test(answer);
  };
}

/** Returns whether nothing is left that waits for approval, of all tools or those of these names. */
async function reviewServer(
  { key, prefix }: ServerConfig,
  names: readonly string[],
  { config, composition }: Once,
  decide: Decide,
): Promise<boolean> {
  const approvals = composition.approvals.of(key, config.file);
  if (approvals.isUnreadable) {
    tell(`trunkline: ${key}: ${approvals.facts.fault}`);
    tell('  mend it, or remove it to have the tools approved that the server offers when it is started next');
    return false;
  }
  const own = names.map((name) => ownName(name, prefix, approvals));
  const waiting = approvals.withheld.filter(({ name }) => own.length === 0 || own.includes(name));
  let areAllApproved = true;
  for (const name of own) {
    if (waiting.some((tool) => tool.name === name)) continue;
    const isListed = approvals.hasListed(name);
    say(`${key}: ${name} ${isListed ? 'is approved already' : 'is not among its tools'}`);
    if (!isListed) areAllApproved = false;
  }
  if (own.length === 0 && waiting.length === 0) say(`${key}: nothing waits for approval`);
  for (const tool of waiting) {
    for (const line of describe(key, tool, approvals)) say(line);
    const isApproved = await decide(`Approve ${printable(tool.name)} of ${key}? [y/N] `);
    // To say no to the first tools of a server keeps them from being approved as the first.
    const isToKeep = isApproved || (isApproved === false && approvals.isUntouched);
    if (isToKeep && !keep(key, approvals, isApproved ? [tool] : [])) return false;
    if (!isApproved) areAllApproved = false;
    say(`${key}: ${tool.name} ${isApproved ? 'is approved' : 'is not approved'}`);
  }
  return areAllApproved;
}

/** Returns whether it could be kept. */
function keep(key: string, approvals: ServerApprovals, tools: readonly WithheldTool[]): boolean {
  try {
    approvals.approve(tools);
    return true;
  } catch (error) {
    tell(`trunkline: ${key}: what you decide cannot be kept: ${errorMessage(error)}`);
    return false;
  }
}

function say(line: string): void {
  process.stdout.write(`${printable(line)}\n`);
}

function ownName(name: string, prefix: string, approvals: ServerApprovals): string {
  const exposed = `${prefix}__`;
  const isOwn = approvals.hasListed(name) || approvals.withheld.some((tool) => tool.name === name);
  return !isOwn && prefix !== '' && name.startsWith(exposed) ? name.slice(exposed.length) : name;
}

function describe(key: string, tool: WithheldTool, approvals: ServerApprovals): string[] {
  const earlier = approvals.earlier(tool);
  const isKept = earlier.definition !== undefined;
  const what = earlier.wasApproved ? 'has changed since it was approved' : 'is new';
  const whence = approvals.isOffered(tool) ? '' : ', as it was offered to a client';
  const note = earlier.wasApproved && !isKept ? '; what it was is too long to be kept' : '';
  return [`${key}: ${tool.name} ${what}${whence}${note}`, ...describeDefinition(tool.definition, earlier.definition)];
}
