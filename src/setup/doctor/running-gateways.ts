import { withoutVersion } from '../../config/resolve/command-words.js';
import type { ServerConfig } from '../../config/resolve/config.js';
import { removeFile } from '../../host/files/whole-file.js';
import { type CommandLine, hostIdentity, identify, isRunning } from '../../host/process/processes.js';
import { type FoundRun, findRuns } from '../../host/process/run-file.js';
import { findLeftFamily } from '../../servers/process/orphan-guard.js';
import type { FoundGateway } from '../../state/gateway-file.js';
import { CODE_OF } from '../../status/refused-names.js';
import { isOurselves } from '../clients/files/own-entry.js';
import { type Finding, finding, RECENT_MS } from './finding.js';
import type { Machine } from './machine.js';

interface OtherGatewaysFacts {
  /** All processes of this user. No word of a command line is shown. */
  readonly processes: readonly CommandLine[];
  readonly servers: readonly ServerConfig[];
  /** The name of the gateway that these words run, if they run one. */
  readonly gatewayOf: (words: readonly string[]) => string | undefined;
  readonly machine: Machine;
}

/** Other gateways that run now, started by a client or by a person, and the servers of Trunkline that they run, too. */
export function checkOtherGateways({ processes, servers, gatewayOf, machine }: OtherGatewaysFacts): Finding[] {
  const tree = new Tree(processes);
  const names = new Map(processes.map((each) => [each, gatewayOf(each.words)]));
  const isTrunkline = ({ words }: CommandLine) => {
    // The word after Node and its options is the link that npm has made for the program, or the program itself.
    const script = words.findIndex((word, index) => index > 0 && !word.startsWith('-'));
    return [words, words.slice(script)].some(([command = '', ...args]) => {
      return isOurselves({ kind: 'command', command, args, env: {} }, machine.program);
    });
  };
  return processes.flatMap((process) => {
    const name = names.get(process);
    if (name === undefined) return [];
    const above = tree.ancestorsOf(process);
    // A gateway may start itself again, as a worker. A gateway below Trunkline is one of its servers.
    if (above.some((each) => names.get(each) === name || isTrunkline(each))) return [];
    const below = tree.descendantsOf(process);
    const same = servers.filter((server) => below.some(({ words }) => runs(words, server))).map(({ key }) => key);
    if (same.length === 0) return [finding('TL-GATEWAY-OTHER', `${name} (pid ${process.pid}) runs besides Trunkline`)];
    const text = `${name} (pid ${process.pid}) runs servers that Trunkline runs, too: ${same.join(', ')}`;
    return [finding('TL-GATEWAY-SAME-SERVERS', text)];
  });
}

/** Whether a command line runs this server, from any installation of its package. */
function runs(words: readonly string[], { spec, package: used }: ServerConfig): boolean {
  if (used !== undefined) {
    const { name } = used.request;
    const program = name.split('/').at(-1) ?? name;
    return words.some((word) => {
      const isInstalled = word.includes(`/node_modules/${name}/`) || word.endsWith(`/node_modules/.bin/${program}`);
      return isInstalled || withoutVersion(word) === name;
    });
  }
  if (spec === undefined || spec.kind === 'remote' || spec.args.length === 0 || words.length <= spec.args.length)
    return false;
  const [command = ''] = words;
  const isSameProgram = nameOf(command) === nameOf(spec.command);
  return isSameProgram && spec.args.every((arg, index) => words.at(index - spec.args.length) === arg);
}

function nameOf(command: string): string {
  return command.split('/').at(-1) ?? command;
}

/** The processes, with their parents and children. */
class Tree {
  readonly #byPid: ReadonlyMap<number, CommandLine>;
  readonly #children = new Map<number, CommandLine[]>();

  constructor(processes: readonly CommandLine[]) {
    this.#byPid = new Map(processes.map((each) => [each.pid, each]));
    for (const each of processes) this.#children.set(each.ppid, [...(this.#children.get(each.ppid) ?? []), each]);
  }

  ancestorsOf({ pid, ppid }: CommandLine): CommandLine[] {
    const found: CommandLine[] = [];
    const seen = new Set([pid]);
    // Pids can be used again while the processes are read, so that two may seem to have started each other.
    for (let at = this.#byPid.get(ppid); at !== undefined && !seen.has(at.pid); at = this.#byPid.get(at.ppid)) {
      seen.add(at.pid);
      found.push(at);
    }
    return found;
  }

  descendantsOf({ pid }: CommandLine): CommandLine[] {
    const found = new Set<CommandLine>();
    const waiting = [pid];
    for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
      for (const child of this.#children.get(at) ?? []) {
        if (!found.has(child)) waiting.push(child.pid);
        found.add(child);
      }
    }
    return [...found];
  }
}

interface HttpGatewaysFacts {
  readonly httpGateways: readonly FoundGateway[];
  /** The configuration that the doctor checks; `undefined` if it cannot be used, or is of a cluster, whose gateways all run servers. */
  readonly configFile: string | undefined;
  /** The pid of the hub of this configuration, if it runs. */
  readonly hub: number | undefined;
  readonly now: number;
}

/** Checks the gateways over HTTP: requests refused in the last day, and a configuration that two gateways serve, or one and the hub. */
export function checkHttpGateways(facts: HttpGatewaysFacts): Finding[] {
  return [...checkTwice(facts), ...facts.httpGateways.flatMap((found) => checkRefused(found, facts.now))];
}

function checkTwice({ httpGateways, configFile, hub }: HttpGatewaysFacts): Finding[] {
  const same = httpGateways.filter((found) => found.configFile === configFile);
  const overHttp = same.map(({ pid, url }) => `Trunkline ${pid} at ${url}`);
  const names = hub === undefined ? overHttp : [`the hub ${hub}`, ...overHttp];
  if (configFile === undefined || names.length < 2) return [];
  return [finding('TL-RUN-TWICE', `${names.join(' and ')} run the servers of the same configuration`, [configFile])];
}

function checkRefused({ pid, url, refused }: FoundGateway, now: number): Finding[] {
  return refused
    .filter(({ at }) => now - at <= RECENT_MS)
    .map(({ header, count, last, at }) => {
      const requests = count === 1 ? 'one request' : `${count} requests`;
      const text = `Trunkline ${pid} at ${url} refused ${requests} for the ${header} header`;
      return finding(CODE_OF[header], text, [`last: ${last}, at ${new Date(at).toISOString()}`]);
    });
}

export interface ServingProcess {
  /** The name for people, such as `the hub (pid 7)`. */
  readonly name: string;
  /** Its configuration file, and whether that still exists, in words. */
  readonly configuration: string;
  /** For a gateway whose configuration file is gone: a sentence about that, and what ends it. */
  readonly gone?: string | undefined;
}

/** Lists the processes of Trunkline of this user, and the gateways whose configuration file is gone. */
export function checkServing(processes: readonly ServingProcess[]): Finding[] {
  if (processes.length === 0) return [];
  const count = processes.length === 1 ? 'one process' : `${processes.length} processes`;
  const evidence = processes.map(({ name, configuration }) => `${name}, of ${configuration}`);
  const gone = processes.flatMap((each) => each.gone ?? []);
  return [
    finding('TL-RUN-OK', `${count} of Trunkline ${processes.length === 1 ? 'serves' : 'serve'}`, evidence),
    ...gone.map((sentence) => finding('TL-RUN-CONFIG-GONE', sentence.replace(/\.$/, ''))),
  ];
}

/** Finds run files of gateways that were killed, and servers that outlived them. `sweep` ends the processes that carry Trunkline's mark. */
export async function checkRuns(runFolder: string, sweep: () => Promise<void>): Promise<Finding[]> {
  const runs = await findRuns({ folder: runFolder, host: hostIdentity(), onIgnored: () => {}, isReadOnly: true });
  const found = await Promise.all(runs.map(async (each) => await checkRun(each, sweep)));
  return found.flat();
}

async function checkRun({ file, run }: FoundRun, sweep: () => Promise<void>): Promise<Finding[]> {
  if (await isRunning(run.gateway)) return [];
  const leaderOf = async ({ pid, startTime }: (typeof run.groups)[number]) =>
    (await identify(pid))?.startTime === startTime ? [pid] : [];
  const leaders = await Promise.all(run.groups.map(leaderOf));
  const families = await Promise.all(run.groups.map(findLeftFamily));
  const pids = new Set([...leaders.flat(), ...families.flat().map(({ pid }) => pid)]);
  if (pids.size === 0) {
    const repair = { done: `removed ${file}`, apply: async () => await removeFile(file) };
    const text = `Trunkline with the pid ${run.gateway.pid} was killed and has left its run file`;
    return [finding('TL-RUN-STALE', text, [file], { repair })];
  }
  const evidence = [`pids ${[...pids].join(', ')}`, file];
  const repair = { done: `ended what was left behind`, apply: sweep };
  const text = `processes of the killed Trunkline ${run.gateway.pid} still run`;
  return [finding('TL-RUN-ORPHANS', text, evidence, { repair })];
}
