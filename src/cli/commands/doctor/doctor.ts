import { realpathSync } from 'node:fs';
import { parse } from 'node:path';
import { secretSourcesOf } from '../../../app/active-config.js';
import { type GlobalOptions, openLog } from '../../../app/global-options.js';
import { readConfigOrError } from '../../../app/read-config.js';
import { ConfigError } from '../../../config/file/config-error.js';
import { AREAS, type Level } from '../../../host/errors/codes.js';
import { EXIT } from '../../../host/errors/usage-error.js';
import { networkVariables } from '../../../servers/process/environment.js';
import { thisSystem } from '../../../setup/clients/files/client-locations.js';
import { findServers } from '../../../setup/clients/files/find-servers.js';
import type { FoundServers } from '../../../setup/clients/files/found-server.js';
import type { ReportedFinding } from '../../../setup/doctor/finding.js';
import { type Finding, repair } from '../../../setup/doctor/finding.js';
import type { Machine } from '../../../setup/doctor/machine.js';
import { findRegistrations } from '../../../setup/doctor/registrations.js';
import { VERSION } from '../../../version.js';
import { plural, printable } from '../../../wire/json/printable.js';
import type { Invocation } from '../../command.js';
import { answer, folded, withoutHome } from '../../output.js';
import { type Look, lookOf, paint, table } from '../../terminal.js';
import { chooseServers } from '../calls/run-once.js';
import { findGateway } from '../hub/hub-access.js';
import { checkMachine, checkStarts, checkTwice, NOT_STARTED } from './doctor-checks.js';
import { openDoctorHub } from './doctor-hub.js';

interface DoctorOptions {
  fix: true;
  start: boolean;
  offline: true;
  codes: true;
}

/** `trunkline doctor`: finds faults on this machine that keep Trunkline from working, from the clients to the servers. */
export async function doctor({ settings, words, options, isJson }: Invocation<DoctorOptions>): Promise<number> {
  if (options.codes) return await printCodes(isJson);
  const { machine, findings: found, clean } = await find(settings, words, options);
  const findings = options.fix ? await repair(found) : found;
  return await report(
    findings.map((each) => reported(each, clean)),
    { machine, isJson },
  );
}

/** Runs the checks that start no server. Returns the findings without secrets, and with `~` for the home folder. */
export async function findFaults(settings: GlobalOptions): Promise<readonly ReportedFinding[]> {
  const { findings, clean } = await find(settings, [], { start: false });
  return findings.map((each) => reported(each, clean));
}

async function find(given: GlobalOptions, words: readonly string[], options: Partial<DoctorOptions>) {
  const named = given.gateway === undefined ? undefined : (await findGateway(given)).choice.chosen;
  const settings = { ...given, config: named?.configFile ?? given.config };
  const { secrets } = openLog({ ...settings, verbosity: 0, logFile: undefined });
  const machine = thisMachine(options.offline === true);
  const config = await readConfigOrError(settings);
  const servers = config instanceof ConfigError ? [] : config.servers;
  const chosen = config instanceof ConfigError ? [] : chooseServers(config, words);
  const clients = await findServers(thisSystem());
  secrets.know([
    ...servers.flatMap(secretSourcesOf),
    ...clients.servers.flatMap(secretsOfClient),
    { env: networkVariables(process.env), args: [] },
  ]);

  const registrations = findRegistrations(clients.servers, machine);
  const hub = config instanceof ConfigError ? undefined : await openDoctorHub(config.file, settings.gateway);
  const facts = { settings, machine, config, servers: chosen, clients, registrations, hub };
  const findings: Finding[] = [];
  try {
    findings.push(...(await checkMachine(facts)));
    const started = options.start === false ? NOT_STARTED : await checkStarts(facts);
    findings.push(...(await checkTwice(facts, started.working)), ...started.findings);
  } finally {
    hub?.close();
  }
  const clean = (text: string) => printable(withoutHome(secrets.redact(text), machine.home));
  return { machine, findings, clean };
}

function reported(
  { level, code, sentence, evidence, remedy }: Finding,
  clean: (text: string) => string,
): ReportedFinding {
  // A remedy may have an example of several lines.
  const lines = remedy.split('\n').map(clean).join('\n');
  return { level, code, sentence: clean(sentence), evidence: evidence.map(clean), remedy: lines };
}

function thisMachine(isOffline: boolean): Machine {
  const { platform, home, cwd, env } = thisSystem();
  const [, program = ''] = process.argv;
  return {
    platform,
    home,
    cwd,
    env,
    isOffline,
    version: VERSION,
    root: parse(process.execPath).root,
    uid: process.getuid?.(),
    node: {
      version: process.versions.node,
      path: process.execPath,
      isElectron: process.versions.electron !== undefined,
    },
    program: realpathSync(program),
  };
}

/** Returns the sources of secrets in a client's entry, because values in the files of clients are secrets, too. */
function secretsOfClient({ run }: FoundServers['servers'][number]) {
  return [run.kind === 'command' ? { env: run.env, args: run.args } : { env: run.headers, args: [run.url] }];
}

async function report(
  findings: readonly ReportedFinding[],
  { machine, isJson }: { readonly machine: Machine; readonly isJson: boolean },
): Promise<number> {
  const counts = countsOf(findings);
  const { version, platform, node } = machine;
  const facts = { version, platform, arch: process.arch, node: node.version, counts, findings };
  const text = () => findingsText(findings, lookOf(process.stdout));
  return await answer(isJson, facts, text, counts.fail === 0 ? EXIT.ok : EXIT.failed);
}

/** All codes, in the order of their areas. */
export function listedCodes() {
  return AREAS.flatMap(({ title: area, codes }) =>
    Object.entries(codes).map(([code, entry]) => ({ area, code, ...entry })),
  );
}

async function printCodes(isJson: boolean): Promise<number> {
  const codes = listedCodes();
  const rows = codes.map(({ code, level, means }) => [code, level, means]);
  return await answer(isJson, codes, () => table([['CODE', 'LEVEL', 'MEANING'], ...rows], lookOf(process.stdout)));
}

const STYLES = { ok: 'green', warn: 'yellow', fail: 'red' } as const satisfies Record<Level, string>;
const INDENT = '      ';
/** Most pieces of evidence that are shown of one finding, because they can be lines of the output of a server. */
const MAX_LINES = 20;

/** The findings by area, each with its evidence and its remedy, and a line that counts them. */
export function findingsText(findings: readonly ReportedFinding[], look: Look): string {
  const sections = AREAS.flatMap(({ title, codes }) => {
    const own = findings.filter(({ code }) => Object.hasOwn(codes, code));
    return own.length === 0 ? [] : [[title, ...own.map((one) => findingText(one, look))].join('\n')];
  });
  return [...sections, summaryText(findings)].join('\n\n');
}

function findingText({ level, code, sentence, evidence, remedy }: ReportedFinding, look: Look): string {
  const word = level.padEnd(4);
  const head = `${paint(look, STYLES[level], word)}  ${code}  ${sentence}`;
  const below = evidence.slice(0, MAX_LINES).flatMap((each) => each.split('\n').map((line) => `${INDENT}| ${line}`));
  const text = [head, ...below, ...(remedy === '' ? [] : remedy.split('\n').map((line) => INDENT + line))].join('\n');
  return folded(text, look.width, INDENT.length);
}

function countsOf(findings: readonly ReportedFinding[]): Readonly<Record<Level, number>> {
  const count = (level: Level) => findings.filter((each) => each.level === level).length;
  return { ok: count('ok'), warn: count('warn'), fail: count('fail') };
}

function summaryText(findings: readonly ReportedFinding[]): string {
  const { warn, fail } = countsOf(findings);
  if (warn + fail === 0) return 'Everything is fine.';
  const parts = [fail > 0 && plural(fail, 'problem'), warn > 0 && plural(warn, 'warning')];
  return `${parts.filter(Boolean).join(' and ')}.`;
}
