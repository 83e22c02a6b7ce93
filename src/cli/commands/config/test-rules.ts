import { readConfig, requireView } from '../../../app/read-config.js';
import { type Config, preparedRules } from '../../../config/resolve/config.js';
import type { Decision } from '../../../config/rules/request-rules.js';
import { toBackendRules } from '../../../gateway/registry/backend.js';
import { EXIT, UsageError } from '../../../host/errors/usage-error.js';
import { toBytes } from '../../../wire/json/json-text.js';
import { RpcError } from '../../../wire/jsonrpc/message.js';
import { METHODS } from '../../../wire/mcp/methods.js';
import { requestWith } from '../../../wire/mcp/relayed-request.js';
import type { Invocation } from '../../command.js';
import { print } from '../../output.js';
import { objectOf, readArguments } from '../calls/call-arguments.js';
import { chooseServers } from '../calls/run-once.js';

type Options = Partial<{ prompt: true; uri: string }>;

/** `trunkline rules test`: says which rule decides about a request. Starts no server. The exit code is 1 unless it is allowed. */
export async function testRules({ settings, words, options, isJson }: Invocation<Options>): Promise<number> {
  const config = await readConfig(settings);
  requireView(config, settings.view);
  const decisions = decide(config, settings.view, words, options);
  const stricter = (['deny', 'ask'] as const).map((each) => decisions.find(({ verdict }) => verdict === each));
  const decided = stricter.find((each) => each !== undefined) ?? decisions[0];
  const { verdict = 'allow', rule, fault } = decided ?? {};
  const facts = { verdict, rule: rule?.at ?? null, say: rule?.say ?? null, fault: fault ?? null };
  await print(isJson ? JSON.stringify(facts) : describe(decided));
  return verdict === 'allow' ? EXIT.ok : EXIT.failed;
}

function describe(decision: Decision | undefined): string {
  if (decision === undefined) return 'allowed, because no rule matches';
  const { verdict, rule, fault } = decision;
  if (fault !== undefined) return `denied by ${rule.at}, because it decides about the arguments, and ${fault}`;
  if (verdict === 'allow') return `allowed by ${rule.at}`;
  const what = verdict === 'ask' ? 'asked about by' : 'denied by';
  return `${what} ${rule.at}${rule.say === undefined ? '' : `: ${rule.say}`}`;
}

/** The decisions of the view and of the server, if any of their rules matches. */
function decide(
  config: Config,
  view: string | undefined,
  [name = '', ...typed]: readonly string[],
  { prompt, uri }: Options,
): readonly Decision[] {
  const [, key = name, named = ''] = /^(.+?)(?:\.|__)(.+)$/s.exec(name) ?? [];
  const [server] = chooseServers(config, [key]);
  if (server === undefined || (uri === undefined && named === ''))
    throw new UsageError(`\`${name}\` names no tool`, 'write SERVER.TOOL');
  const { shaping } = toBackendRules(server, server, undefined, () => {});
  const isTool = uri === undefined && prompt === undefined;
  const original = uri ?? (isTool ? (shaping?.originalOf(named) ?? named) : named);
  const request = requestFor(isTool ? METHODS.callTool : METHODS.getPrompt, original, uri, typed);
  const edits = isTool ? (shaping?.editsOf(original, request) ?? []) : [];
  if (edits instanceof RpcError) throw new UsageError(edits.message, 'no server would get this call');
  const ofView = config.gateway.views.find((each) => each.name === view)?.rules;
  const ruled = { request, edits, server: key, original, shown: server.shapes?.rename?.[original] };
  const decisions = [
    preparedRules(config, ofView, true)?.decide(ruled),
    preparedRules(config, server.rules)?.decide(ruled),
  ];
  return decisions.filter((decision) => decision !== undefined);
}

function requestFor(method: string, name: string, uri: string | undefined, typed: readonly string[]) {
  const args = readArguments(typed);
  // Without the schema of the tool, a pair without `:` is text. Rules compare numbers as text, too.
  const object = args.kind === 'object' ? args.text : objectOf(args.pairs, undefined);
  const request =
    uri === undefined
      ? requestWith(method, toBytes(`{"name":${JSON.stringify(name)},"arguments":${object}}`))
      : requestWith(METHODS.readResource, toBytes(JSON.stringify({ uri })));
  if (request === undefined) throw new UsageError('Trunkline would refuse such a request', 'correct its arguments');
  return request;
}
