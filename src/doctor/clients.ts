import { existsSync } from 'node:fs';
import type { FoundCommand, FoundServer, FoundServers } from '../clients/files/found-server.js';
import { checkAddress } from './client-address.js';
import { type Finding, finding } from './finding.js';
import type { Machine } from './machine.js';
import { whyVanishing } from './node.js';
import { isAbsolutePath, isLoopback, optionIn, type Registration, titleOf } from './registrations.js';

/** Whether the files of the clients can be read, and whether each client has Trunkline registered once, so that it works. */
export async function checkClients(
  found: FoundServers,
  registrations: readonly Registration[],
  machine: Machine,
): Promise<Finding[]> {
  const unreadable = found.unreadable.map(({ place, because }) => {
    return finding('TL-CLIENT-FILE', `${place.title} has a file that cannot be used: ${because}`, {
      evidence: [place.file],
    });
  });
  if (registrations.length === 0)
    return [...unreadable, finding('TL-CLIENT-NONE', 'no client has Trunkline registered'), ...checkCleartext(found)];
  const each = await Promise.all(registrations.map(async (one) => await checkRegistration(one, machine)));
  return [...unreadable, ...each.flat(), ...checkTwice(registrations, machine), ...checkCleartext(found)];
}

async function checkRegistration(registration: Registration, machine: Machine): Promise<Finding[]> {
  const { server } = registration;
  const title = titleOf(registration);
  const evidence = [server.place.file];
  if (server.isDisabled) return [finding('TL-CLIENT-DISABLED', `${title} has Trunkline disabled`, { evidence })];
  const { run } = server;
  const found =
    run.kind === 'remote'
      ? await checkAddress(run, title, server.place.file)
      : checkCommand(run, registration, machine);
  return found.length > 0 ? found : [finding('TL-CLIENT-OK', `${title} has Trunkline registered`, { evidence })];
}

function checkCommand(run: FoundCommand, registration: Registration, machine: Machine): Finding[] {
  const { program, version, server } = registration;
  const title = titleOf(registration);
  const found: Finding[] = [];
  const { file } = server.place;
  const config = optionIn(run, '--config', '-c') ?? run.env.TRUNKLINE_CONFIG;
  const remedy = remedyFor(server, config);
  const missing = [run.command, program].find(
    (path) => path !== undefined && isAbsolutePath(path) && !existsSync(path),
  );
  if (missing !== undefined) {
    const text = `${title} names a program or file that does not exist: ${missing}`;
    found.push(finding('TL-CLIENT-COMMAND', text, { evidence: [file], remedy }));
  }
  // Claude Desktop has a Node of its own for its extensions.
  if (!isAbsolutePath(run.command) && server.place.scope !== 'extension') {
    const text = `${title} runs \`${run.command}\`, which depends on the PATH of the client`;
    found.push(finding('TL-CLIENT-RELATIVE', text, { evidence: [file], remedy }));
  }
  const why = whyVanishing(run.command);
  if (why !== undefined)
    found.push(
      finding('TL-NODE-VANISHING', `${title} runs a Node that may vanish: ${why}`, { evidence: [run.command] }),
    );
  if (config !== undefined && isAbsolutePath(config) && !existsSync(config)) {
    const text = `${title} passes a configuration that does not exist`;
    found.push(finding('TL-CLIENT-CONFIG', text, { evidence: [config, file] }));
  }
  if (missing === undefined && version !== undefined && version !== machine.version) {
    const text = `${title} runs Trunkline ${version}; this is ${machine.version}`;
    found.push(finding('TL-CLIENT-VERSION', text, { evidence: program === undefined ? [] : [program], remedy }));
  }
  return found;
}

/** `connect` writes the file of the user under its own name; other entries are the person's to edit. */
function remedyFor({ place, name }: FoundServer, config: string | undefined): string | undefined {
  if (place.scope !== 'user' || name !== 'trunkline') return undefined;
  return `trunkline connect ${place.client}${config === undefined ? '' : ` --config ${config}`}`;
}

/** Finds clients that use a Trunkline on another machine without TLS: the network can read the token. */
function checkCleartext({ servers }: FoundServers): Finding[] {
  return servers.flatMap(({ place, name, run, isDisabled }) => {
    if (isDisabled || run.kind === 'command' || name !== 'trunkline') return [];
    if (!/^http:/i.test(run.url) || isLoopback(run.url)) return [];
    const text = `${place.title} uses Trunkline on another machine without TLS`;
    return [finding('TL-CLIENT-CLEARTEXT', text, { evidence: [place.file] })];
  });
}

/** Entries of Claude Code for different projects are never active together. */
function checkTwice(registrations: readonly Registration[], { cwd }: Machine): Finding[] {
  const active = registrations.filter(({ server: { isDisabled, place } }) => {
    return !isDisabled && (place.scope !== 'local' || place.path.includes(cwd));
  });
  const titles = new Set(active.map(({ server }) => server.place.title));
  return [...titles].flatMap((title) => {
    const own = active.filter(({ server }) => server.place.title === title);
    if (own.length < 2) return [];
    const evidence = own.map(({ server: { place, name } }) => `${place.scope} \`${name}\` in ${place.file}`);
    return [finding('TL-CLIENT-TWICE', `${title} has Trunkline registered ${own.length} times`, { evidence })];
  });
}
