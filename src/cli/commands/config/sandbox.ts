import { confinementPlaces } from '../../../app/confined-servers.js';
import { readConfig } from '../../../app/read-config.js';
import type { ServerConfig } from '../../../config/resolve/config.js';
import { npmPackageOf } from '../../../config/resolve/sharing.js';
import { EXIT, UsageError } from '../../../host/errors/usage-error.js';
import { policyFor } from '../../../servers/sandbox/confined-launch.js';
import { confinement } from '../../../servers/sandbox/find-bubblewrap.js';
import { needsOf, suggestedEntry } from '../../../servers/sandbox/needs.js';
import type { OpenedPlaces, Policy } from '../../../servers/sandbox/policy.js';
import { proxyRemark, quoted } from '../../../servers/sandbox/refusals.js';
import { programOf } from '../../../spec/server-spec.js';
import type { Invocation } from '../../command.js';
import { print, printJson, tell } from '../../output.js';
import { lookOf, table } from '../../terminal.js';
import { chooseServers } from '../calls/run-once.js';
import { confinableOf, sandboxTrial } from './sandbox-trial.js';

/** `trunkline sandbox`: shows what is open for a server and why; with `--try`, finds out what it needs. */
export async function sandbox(invocation: Invocation<{ try: true }>): Promise<number> {
  const { settings, words, options, isJson } = invocation;
  const [key = '', tool, ...args] = words;
  if (tool !== undefined && options.try !== true)
    throw new UsageError('a tool is called in a trial only', `write \`trunkline sandbox ${key} --try ${tool} …\``);
  if (options.try === true) return await sandboxTrial(invocation, { key, tool, args });
  const config = await readConfig(settings);
  const [server] = chooseServers(config, [key]);
  if (server === undefined)
    throw new UsageError('`trunkline sandbox` needs a server', 'write `trunkline sandbox SERVER`');
  const spec = confinableOf(server);
  const isConfined = programOf(server)?.sandbox !== undefined;
  const policy = policyFor(spec, confinementPlaces(config, process.env), process.env);
  const available = await confinement();
  const { network, openings, proposed, distrusted, unixSockets } = policy;
  if (isJson) {
    const fault = available.isAvailable ? null : available.fault;
    await printJson({
      server: key,
      isConfined,
      openings,
      network,
      unixSockets,
      proposed,
      distrusted,
      home: policy.ownHome,
      fault,
    });
    return EXIT.ok;
  }
  tell(
    isConfined
      ? `${key} runs confined. Everything that is not listed below is closed, also other host names.`
      : `${key} runs unconfined. With \`sandbox: true\` in its entry, it would see this and nothing else.`,
  );
  await print(table([['OPEN', 'WHAT', 'WHY'], ...rowsOf(policy)], lookOf(process.stdout)).trimEnd());
  for (const remark of remarksOnOpenings(server, policy)) tell(remark);
  if (available.isAvailable) return EXIT.ok;
  const { reason, remedy, code } = available.fault;
  tell(`It cannot be confined here: ${reason}; ${remedy} (${code}).`);
  return EXIT.failed;
}

function rowsOf({ openings, network, unixSockets, home, ownHome }: Policy): string[][] {
  return [
    ['read', 'the system', 'programs, libraries, certificates and fonts'],
    ['write', home, `a home folder of its own, kept in ${ownHome}`],
    ['write', '/tmp', 'its own, in memory, until it ends'],
    ...openings.map(({ path, access, because }) => [access, path, because]),
    ...(network.length === 0 ? [['network', 'none', 'its entry has no `network`']] : []),
    ...network.map(({ name, because }) => ['network', name, because]),
    ...(unixSockets ? [['sockets', 'unix sockets', '`unixSockets` of its entry']] : []),
  ];
}

/** The lines below the table: known needs of the server with a suggested entry, and openings that its entry lacks. */
export function remarksOnOpenings(server: ServerConfig, { proposed, distrusted, network }: OpenedPlaces): string[] {
  const spec = programOf(server);
  const name = npmPackageOf(server);
  const known = needsOf(name);
  const program = server.package?.found?.program;
  const suggested = suggestedEntry(name, spec?.args.filter((each) => each !== program) ?? []);
  const shown = suggested === true ? 'true' : yamlOf(suggested);
  return [
    ...(known === undefined
      ? []
      : [`${name} ${known.because} (read in version ${known.version}). Suggested: \`sandbox: ${shown}\`.`]),
    ...proposed.map(
      (path) =>
        `Its entry names ${path}, which is closed: \`sandbox: { read: [${quoted(path)}] }\` or \`write\` would open it.`,
    ),
    ...distrusted,
    ...(spec === undefined ? [] : [proxyRemark(spec, network.length > 0) ?? []].flat()),
  ];
}

/** A map of lists and words as YAML on one line. */
function yamlOf(entry: Readonly<Record<string, unknown>>): string {
  const parts = Object.entries(entry).map(([key, value]) => {
    return `${key}: ${Array.isArray(value) ? `[${value.map((each) => quoted(String(each))).join(', ')}]` : String(value)}`;
  });
  return `{ ${parts.join(', ')} }`;
}
