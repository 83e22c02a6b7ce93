import { homedir } from 'node:os';
import type { ListToolsResult } from '@modelcontextprotocol/sdk/types.js';
import type { GatewayProcess } from '../../../app/gateway-process.js';
import { currentFolder, findProjectFile } from '../../../config/file/find-config.js';
import { foldedKey } from '../../../config/resolve/config.js';
import { EXIT } from '../../../host/errors/usage-error.js';
import { reportStatus, type ServerReport } from '../../../status/status.js';
import { adviseOnTools, type ToolAdvice } from '../../../status/tool-advice.js';
import { reportView, type ToolRow, type ViewTools } from '../../../status/tool-report.js';
import { plural, printable } from '../../../wire/json/printable.js';
import type { Invocation, InvokedWords } from '../../command.js';
import { forStream, print, tell } from '../../output.js';
import { lookOf, table, waiting } from '../../terminal.js';
import { type HubClientForCommand, runningHub } from '../hub/hub-client.js';
import { listAllTools, onlyNamed } from './listed-tools.js';
import { chooseFrom, chooseServers, examine, type Once, runOnce, type TriedServer } from './run-once.js';
import { readToolUseOf } from './tool-use.js';

/** `trunkline tools`: prints the merged list of tools, of the running gateway if there is one, as JSON or as a table. */
export async function tools(invocation: Invocation<{ alone: true; sort: 'size' }>): Promise<number> {
  const { settings, words: names, options, isJson } = invocation;
  const hub = options.alone ? undefined : await runningHub(settings);
  if (options.sort === 'size') return await sizes(invocation, hub);
  if (hub !== undefined) return await toolsOfHub(hub, invocation);
  return await runOnce(
    settings,
    (config) => chooseServers(config, names),
    async (once) => {
      const result = await listAllTools(once.client);
      const text = isJson
        ? forStream(result, process.stdout)
        : describe(JSON.parse(result), {
            servers: reportStatus(once.composition.status()).servers,
            rows: reportAll(once.composition, settings.view).tools,
            withOwn: names.length === 0,
          });
      process.stdout.write(`${text}\n`);
      return reportFaults(once) ? EXIT.failed : EXIT.ok;
    },
  );
}

/** Prints the tools of the servers of the hub, and reports servers with a problem on stderr. Returns the exit code. */
async function toolsOfHub(hub: HubClientForCommand, { settings, words: names, isJson }: InvokedWords): Promise<number> {
  try {
    const result = await waiting('waiting for the lists of the gateway', listAllTools(hub.client));
    const servers = ofProject((await hub.report()).servers, findProjectFile(currentFolder(), homedir()));
    const inProject = new Map(servers.flatMap(({ server, project }) => (project ? [[project.key, server]] : [])));
    const keys = servers.map(({ server }) => server);
    const meant = names.map((name) => inProject.get(name) ?? name);
    const chosen = chooseFrom(keys, meant);
    const reports = servers.filter(({ server }) => chosen.includes(server));
    const listed =
      names.length === 0 ? result : onlyNamed(result, new Set(reports.flatMap(({ tools: { exposed } }) => exposed)));
    const rows = async () => (await hub.views()).find(({ name }) => name === (settings.view ?? ''))?.tools ?? [];
    const text = isJson
      ? forStream(listed, process.stdout)
      : describe(JSON.parse(listed), { servers: reports, rows: await rows(), withOwn: names.length === 0 });
    await print(text);
    const told = reports.filter(({ problem, state }) => problem !== '' || state === 'per user');
    for (const { server, problem, advice } of told)
      tell(`trunkline: server \`${server}\`: ${[problem, advice].filter(Boolean).join(' ')}`);
    const isSound = told.every(({ state, code }) => state === 'per user' || code === 'TL-VAR-USER');
    return isSound ? EXIT.ok : EXIT.failed;
  } finally {
    hub.close();
  }
}

/** The servers that clients of a project see, or those of the user's own file for clients outside of every project. */
export function ofProject(servers: readonly ServerReport[], file: string | undefined): readonly ServerReport[] {
  const own = servers.filter(({ project }) => project?.file === file);
  const hidden = new Set(own.flatMap(({ project }) => (project ? [foldedKey(project.key)] : [])));
  // A gateway of an earlier version has no projects.
  return servers.filter(({ server, project }) => (project ? project.file === file : !hidden.has(foldedKey(server))));
}

/** Prints the size of each tool, the largest first, and the lines of YAML that would make the list smaller. */
async function sizes({ settings, words, isJson }: InvokedWords, hub: HubClientForCommand | undefined): Promise<number> {
  const use = await readToolUseOf(settings, Date.now());
  const show = async (view: ViewTools | undefined) => {
    const { tools: all = [] } = view ?? {};
    const keys = [...new Set(all.map(({ server }) => server))];
    const chosen = words.length === 0 ? keys : chooseFrom(keys, words);
    const rows = all.filter(({ server, state }) => state === 'shown' && chosen.includes(server));
    const sorted = rows.sort((one, other) => other.tokens - one.tokens);
    const advice = adviseOnTools(sorted, use);
    // The estimate of a whole list differs by some tokens from the sum of its tools, because each of these is rounded.
    const sum = words.length === 0 ? view?.tokens : sorted.reduce((tokens, row) => tokens + row.tokens, 0);
    await print(isJson ? JSON.stringify({ tools: sorted, advice }, null, 2) : describeSizes(sorted, sum ?? 0, advice));
  };
  if (hub !== undefined) {
    try {
      const views = await waiting('waiting for the lists of the gateway', hub.views());
      await show(views.find(({ name }) => name === (settings.view ?? '')));
    } finally {
      hub.close();
    }
    return EXIT.ok;
  }
  return await runOnce(
    settings,
    (config) => chooseServers(config, words),
    async (once) => {
      await show(reportAll(once.composition, settings.view));
      return reportFaults(once) ? EXIT.failed : EXIT.ok;
    },
  );
}

/** The tools that clients of a view see, or all tools. */
export function reportAll({ gateway, secrets, config }: GatewayProcess, viewName?: string): ViewTools {
  const view = gateway.named(viewName);
  const facts = { view, mode: config.gateway.mode, clients: [], catalogs: gateway.catalogsIn(view) };
  return reportView({ ...facts, backends: gateway.pool.oldest, redact: secrets.redact });
}

function describeSizes(rows: readonly ToolRow[], sum: number, advice: readonly ToolAdvice[]): string {
  const look = lookOf(process.stdout);
  const cells = rows.map(({ tokens, name, server, sentence, title }) => [
    String(tokens),
    name,
    server,
    printable(sentence === '' ? title : sentence),
  ]);
  const total = `${plural(rows.length, 'tool')}, about ${plural(sum, 'token')} (a token is about four bytes).`;
  const lines = advice.map(({ text, server, yaml }) => `${text}\n  in the entry of ${server}:  ${yaml}`);
  const parts = [table([['TOKENS', 'TOOL', 'SERVER', 'DESCRIPTION'], ...cells], look, 3), total];
  return [...parts, ...(lines.length === 0 ? [] : [`To save tokens:\n${lines.join('\n')}`])].join('\n\n');
}

/**
 * Reports on stderr the servers that did not start or do not list their tools, or only some of them. Returns whether a server has failed. A
 * server whose variables only users have has not failed.
 */
export function reportFaults(once: Once, isWanted: (tried: TriedServer) => boolean = () => true): boolean {
  const faulty = examine(once).filter((tried) => tried.fault !== undefined && isWanted(tried));
  for (const { server, report, fault } of faulty) {
    const of = `trunkline: server \`${server.key}\``;
    if (report.state === 'per user') tell(`${of}: ${report.advice}`);
    else if (report.state === 'ready') tell(`${of}: ${fault?.reason}`);
    else tell(`${of} failed: ${fault?.reason}\n  run \`trunkline check ${server.key}\` for details`);
  }
  return faulty.some(({ report }) => report.state !== 'per user');
}

interface ToolFacts {
  readonly servers: readonly ServerReport[];
  readonly rows: readonly ToolRow[];
  /** Whether the table has the tools of the gateway itself. */
  readonly withOwn: boolean;
}

/** Makes the tables of the listed tools, of those that the configuration changes, and of the quarantined ones. */
function describe(result: ListToolsResult, { servers, rows, withOwn }: ToolFacts): string {
  const owners = new Map(servers.flatMap(({ server, tools: { exposed } }) => exposed.map((name) => [name, server])));
  const listed = result.tools.flatMap(({ name, title, description }) => {
    const owner = owners.get(name);
    if (owner === undefined && !withOwn) return [];
    const [firstLine = ''] = (description ?? title ?? '').trim().split(/\r?\n/);
    return [[name, owner ?? 'trunkline', printable(firstLine)]];
  });
  const quarantined = servers.flatMap(({ server, tools }) =>
    tools.quarantined.map(({ name, reason }) => [name, server, reason]),
  );
  const names = new Set(listed.map(([name]) => name));
  const changed = rows.flatMap(({ name, server, changes }) => {
    return names.has(name) && changes.length > 0 ? [[name, server, changes.join(', ')]] : [];
  });
  const sections = [[['TOOL', 'SERVER', 'DESCRIPTION'], ...listed]];
  if (changed.length > 0) sections.push([['CHANGED', 'SERVER', 'BY THE KEYS OF `tools`'], ...changed]);
  if (quarantined.length > 0) sections.push([['QUARANTINED', 'SERVER', 'REASON'], ...quarantined]);
  const look = lookOf(process.stdout);
  return sections.map((rows) => table(rows, look, 2)).join('\n\n');
}
