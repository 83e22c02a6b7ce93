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
import { reportFailures, reportUnlisted } from './tools.js';

export interface ApproveOptions {
  /** Key of the server; all servers with `approval: required` when absent. */
  readonly server: string | undefined;
  /** Original or exposed names; all tools when empty. */
  readonly tools: readonly string[];
  /** Approves without asking. */
  readonly isYes: boolean;
}

/** `trunkline approve`: shows new and changed tools as a model sees them, and approves those that the user accepts. */
export async function approve(settings: GlobalOptions, options: ApproveOptions): Promise<number> {
  return await runOnce(
    settings,
    (config) => chooseApproved(config, options.server),
    async (once) => {
      const { servers } = once.config;
      if (servers.length === 0)
        tell('No server requires approval. To require it, set `approval: required` in the configuration.');
      const decide = decisionMaker(options, once.ending);
      let areAllApproved = true;
      for (const server of servers) {
        if (!(await reviewServer(server, options.tools, once, decide))) areAllApproved = false;
      }
      const hasFailed = reportFailures(once);
      const isUnseen = reportUnlisted(once);
      return areAllApproved && !hasFailed && !isUnseen ? EXIT.ok : EXIT.failed;
    },
    { isReview: true },
  );
}

function chooseApproved(config: Config, name: string | undefined): readonly ServerConfig[] {
  const chosen = chooseServers(config, name === undefined ? [] : [name]);
  const needing = chosen.filter(({ approval }) => approval === 'required');
  if (name !== undefined && needing.length === 0) {
    throw new UsageError(
      `server \`${name}\` does not require approval`,
      'to require it, set `approval: required` in the configuration',
    );
  }
  return needing;
}

/** Asks whether to approve a tool; `undefined` without a terminal. */
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

/** Reviews the tools with these names, or all tools. Returns whether all of them are approved. */
async function reviewServer(
  { key, prefix }: ServerConfig,
  names: readonly string[],
  { config, composition }: Once,
  decide: Decide,
): Promise<boolean> {
  const approvals = composition.approvals.of(key, config.file);
  if (approvals.isUnreadable) {
    tell(`trunkline: ${key}: ${approvals.facts.fault}`);
    tell('  repair it, or remove it: then the tools that the server lists at its next start are approved');
    return false;
  }
  const own = names.map((name) => ownName(name, prefix, approvals));
  const waiting = approvals.withheld.filter(({ name }) => own.length === 0 || own.includes(name));
  let areAllApproved = true;
  for (const name of own) {
    if (waiting.some((tool) => tool.name === name)) continue;
    const isListed = approvals.hasListed(name);
    say(`${key}: ${name} ${isListed ? 'is already approved' : 'is not a tool of this server'}`);
    if (!isListed) areAllApproved = false;
  }
  if (own.length === 0 && waiting.length === 0) say(`${key}: no tool waits for approval`);
  for (const tool of waiting) {
    for (const line of describe(key, tool, approvals)) say(line);
    const isApproved = await decide(`Approve ${printable(tool.name)} of ${key}? [y/N] `);
    // A "no" is stored too when nothing is stored yet; otherwise the first use would approve the tools.
    const mustStore = isApproved || (isApproved === false && approvals.isUntouched);
    if (mustStore && !store(key, approvals, isApproved ? [tool] : [])) return false;
    if (!isApproved) areAllApproved = false;
    say(`${key}: ${tool.name} ${isApproved ? 'is approved' : 'is not approved'}`);
  }
  return areAllApproved;
}

/** Stores the decision. Returns false when it cannot be stored. */
function store(key: string, approvals: ServerApprovals, tools: readonly WithheldTool[]): boolean {
  try {
    approvals.approve(tools);
    return true;
  } catch (error) {
    tell(`trunkline: ${key}: cannot store the decision: ${errorMessage(error)}`);
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
  const change = earlier.wasApproved ? 'has changed since it was approved' : 'is new';
  const source = approvals.isOffered(tool) ? '' : ', as a running Trunkline has seen it';
  const note =
    earlier.wasApproved && earlier.definition === undefined ? '; its earlier definition was too long to store' : '';
  return [`${key}: ${tool.name} ${change}${source}${note}`, ...describeDefinition(tool.definition, earlier.definition)];
}
