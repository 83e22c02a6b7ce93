import type { Config, ServerConfig } from '../../../config/resolve/config.js';
import { explain } from '../../../host/errors/file-error.js';
import { EXIT, UsageError } from '../../../host/errors/usage-error.js';
import type { ServerApprovals, WithheldTool } from '../../../state/approvals.js';
import { parseJson } from '../../../wire/json/json-value.js';
import { printable } from '../../../wire/json/printable.js';
import type { Invocation } from '../../command.js';
import { describeDefinition } from '../../difference.js';
import { printJson, tell } from '../../output.js';
import { openQuestions } from '../../questions.js';
import { chooseServers, examine, type Once, runOnce } from '../calls/run-once.js';
import { reportFaults } from '../calls/tools.js';

interface ReviewedTool {
  readonly tool: string;
  readonly state: 'approved' | 'waiting' | 'unknown';
  /** `null` for a tool that did not wait for approval. */
  readonly change: 'new' | 'changed' | null;
  readonly definition: unknown;
  /** The definition that was approved before; `null` if it is not stored. */
  readonly earlier: unknown;
}

interface ReviewedServer {
  readonly server: string;
  /** Reason why the tools of the server cannot be reviewed, or a decision cannot be stored. */
  readonly problem: string | null;
  readonly tools: readonly ReviewedTool[];
}

/** `trunkline approve`: shows new and changed tools as a model sees them, and approves those that the user accepts. */
export async function approve({ settings, words, options, isJson }: Invocation<{ yes: true }>): Promise<number> {
  const [key, ...names] = words;
  return await runOnce(
    settings,
    (config) => chooseApproved(config, key),
    async (once) => {
      const { servers } = once.config;
      if (servers.length === 0)
        tell('No server requires approval. To require it, set `approval: required` in the configuration.');
      const { decide, isUnasked } = await decisionMaker(options.yes === true, isJson, once.ending);
      const reviewed: ReviewedServer[] = [];
      for (const server of servers) reviewed.push(await reviewServer(server, names, isJson, once, decide));
      if (isUnasked && reviewed.some(({ tools }) => tools.some(({ state }) => state === 'waiting')))
        tell(
          'Nothing was approved, because Trunkline can ask only on a terminal. Add --yes to approve without a question.',
        );
      const hasFailed = reportFaults(once);
      if (isJson) await printJson({ servers: reviewed.map((each) => withStartProblem(each, once)) });
      const areAllApproved = reviewed.every(
        ({ problem, tools }) => problem === null && tools.every(({ state }) => state === 'approved'),
      );
      return areAllApproved && !hasFailed ? EXIT.ok : EXIT.failed;
    },
    { isReview: true },
  );
}

/** Adds the reason why a server has no tools to review, if it did not start or does not list its tools. */
function withStartProblem(reviewed: ReviewedServer, once: Once): ReviewedServer {
  const tried = examine(once).find(({ server }) => server.key === reviewed.server);
  return { ...reviewed, problem: reviewed.problem ?? tried?.fault?.reason ?? null };
}

function chooseApproved(config: Config, name: string | undefined): readonly ServerConfig[] {
  const chosen = chooseServers(config, name === undefined ? [] : [name]);
  const needing = chosen.filter(({ approval }) => approval === 'required');
  if (name === undefined || needing.length > 0) return needing;
  const hint = 'to require it, set `approval: required` in the configuration';
  throw new UsageError(`server \`${name}\` does not require approval`, hint);
}

/** Asks or decides whether to approve a tool. Resolves with `undefined` if there is no decision. */
type Decide = (question: string) => Promise<boolean | undefined>;

/** Makes the function that decides. `isUnasked` is true if there is no terminal on which to ask. */
async function decisionMaker(isYes: boolean, isJson: boolean, ending: AbortSignal) {
  if (isYes) return { decide: (async () => true) as Decide, isUnasked: false };
  // With `--json`, a program reads the output, and cannot answer questions.
  const questions = isJson ? undefined : await openQuestions();
  if (questions === undefined) return { decide: async () => undefined, isUnasked: !isJson };
  let hasGivenUp = false;
  const decide: Decide = async (question) => {
    if (hasGivenUp) return undefined;
    const answer = await questions.confirm(question, { byDefault: false, signal: ending });
    hasGivenUp = answer === undefined;
    return answer;
  };
  return { decide, isUnasked: false };
}

/** Reviews the tools with these original or exposed names, or all tools. */
async function reviewServer(
  { key, prefix }: ServerConfig,
  names: readonly string[],
  isJson: boolean,
  { config, composition }: Once,
  decide: Decide,
): Promise<ReviewedServer> {
  const say = (line: string) => {
    if (!isJson) process.stdout.write(`${printable(line)}\n`);
  };
  const approvals = composition.approvals.of(key, config.file);
  if (approvals.isUnreadable) {
    const problem = approvals.facts.fault ?? 'its approvals cannot be read';
    tell(`trunkline: ${key}: ${problem}`);
    tell('  repair it, or remove it: then the tools that the server lists at its next start are approved');
    return { server: key, problem, tools: [] };
  }
  const own = names.map((name) => ownName(name, prefix, approvals));
  const waiting = approvals.withheld.filter(({ name }) => own.length === 0 || own.includes(name));
  const tools: ReviewedTool[] = [];
  for (const name of own) {
    if (waiting.some((tool) => tool.name === name)) continue;
    const isListed = approvals.hasListed(name);
    say(`${key}: ${name} ${isListed ? 'is already approved' : 'is not a tool of this server'}`);
    tools.push({ tool: name, state: isListed ? 'approved' : 'unknown', change: null, definition: null, earlier: null });
  }
  if (own.length === 0 && waiting.length === 0) say(`${key}: no tool waits for approval`);
  for (const tool of waiting) {
    const { wasApproved, definition = '' } = approvals.earlier(tool);
    const facts = {
      tool: tool.name,
      change: wasApproved ? ('changed' as const) : ('new' as const),
      definition: parseJson(tool.definition) ?? null,
      earlier: parseJson(definition) ?? null,
    };
    for (const line of describe(key, tool, approvals)) say(line);
    const isApproved = await decide(`Approve ${tool.name} of ${key}?`);
    // Stores a "no", too, while nothing is stored, because otherwise the first use would approve the tools.
    const mustStore = isApproved || (isApproved === false && approvals.isUntouched);
    const problem = mustStore ? store(key, approvals, isApproved ? [tool] : []) : undefined;
    tools.push({ ...facts, state: isApproved && problem === undefined ? 'approved' : 'waiting' });
    if (problem !== undefined) return { server: key, problem, tools };
    say(`${key}: ${tool.name} ${isApproved ? 'is approved' : 'is not approved'}`);
  }
  return { server: key, problem: null, tools };
}

/** Stores the decision. Returns the reason if it cannot be stored. */
function store(key: string, approvals: ServerApprovals, tools: readonly WithheldTool[]): string | undefined {
  try {
    approvals.approve(tools);
    return undefined;
  } catch (error) {
    const problem = `cannot store the decision: ${explain(error)}`;
    tell(`trunkline: ${key}: ${problem}`);
    return problem;
  }
}

function ownName(name: string, prefix: string, approvals: ServerApprovals): string {
  const exposed = `${prefix}__`;
  const isOwn = approvals.hasListed(name) || approvals.withheld.some((tool) => tool.name === name);
  return !isOwn && prefix !== '' && name.startsWith(exposed) ? name.slice(exposed.length) : name;
}

function describe(key: string, tool: WithheldTool, approvals: ServerApprovals): string[] {
  const { wasApproved, definition } = approvals.earlier(tool);
  const change = wasApproved ? 'has changed since it was approved' : 'is new';
  const source = approvals.isOffered(tool) ? '' : ', as a running Trunkline has seen it';
  const note = wasApproved && definition === undefined ? '; its earlier definition was too long to store' : '';
  return [`${key}: ${tool.name} ${change}${source}${note}`, ...describeDefinition(tool.definition, definition)];
}
