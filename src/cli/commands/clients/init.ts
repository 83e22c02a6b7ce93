import { rmSync } from 'node:fs';
import type { GlobalOptions } from '../../../app/global-options.js';
import { disabledByInit, editConfig, entriesIn, openConfig, saveConfig } from '../../../config/edit/edit-config.js';
import { EXIT, UsageError } from '../../../host/errors/usage-error.js';
import type { InstallFault } from '../../../servers/packages/package-installer.js';
import { confinement } from '../../../servers/sandbox/find-bubblewrap.js';
import { isInstalled, thisSystem } from '../../../setup/clients/files/client-locations.js';
import { CLIENTS, type KnownClient } from '../../../setup/clients/files/client-table.js';
import type { PlannedServer } from '../../../setup/clients/import/plan.js';
import { withChangeLock } from '../../../state/change-lock.js';
import { isRecord } from '../../../wire/json/json-value.js';
import { plural } from '../../../wire/json/printable.js';
import type { Invocation } from '../../command.js';
import { printJson, tell } from '../../output.js';
import { openQuestions, type Questions } from '../../questions.js';
import { tryServers } from '../config/check.js';
import { isHubOn } from '../hub/hub-access.js';
import { install, isOfDisk } from '../packages/install.js';
import { clientsNamed, registerAndTakeOut } from './connect.js';
import { type PreparedImport, prepareImport, reportPlan, tellOpened, toJson, writeImport } from './import.js';
import { carryFromNpx, describeTwoFiles, twoFiles, useNewer } from './kept-files.js';

interface InitOptions {
  /** Names of the clients to register Trunkline with. By default, the user chooses, or all installed ones are registered. */
  client: readonly string[];
  /** Whether the imported servers are confined. By default, `init` asks the user, on a machine that can confine servers. */
  sandbox: true;
  dryRun: true;
  yes: true;
}

/**
 * `trunkline init`: imports the servers of all clients, installs and tries them, registers Trunkline with the clients, and
 * removes from the clients the servers that work. Servers that do not work here stay in the clients, where they may work.
 * They are disabled in the configuration, so that no client has them twice, and the next run tries them again.
 */
export async function init({ settings, options, isJson }: Invocation<InitOptions>): Promise<number> {
  const { client: names = [], dryRun: isDryRun = false, yes: isYes = false } = options;
  const mustAsk = !isYes && !isDryRun;
  // With `--json`, a program reads the output, and cannot answer questions.
  const questions = mustAsk && !isJson ? await openQuestions() : undefined;
  if (mustAsk && questions === undefined) {
    const because = isJson ? 'a program that reads JSON answers none' : 'this is no terminal';
    throw new UsageError(`\`trunkline init\` asks questions, and ${because}`, 'add --yes to answer all of them');
  }
  const report = stepReport(isJson);
  const found = withRetries(await prepareImport(settings, options));
  const known = found.plan.some(({ verdict }) => verdict === 'same');
  reportPlan(found);
  if (found.added.length === 0 && !known && found.target.config.text === undefined) {
    tell('Trunkline needs a server: `trunkline add NAME PACKAGE` adds one. Then run `trunkline init` again.');
    await report.print({ dryRun: isDryRun, clients: [], import: toJson(found, false) });
    return EXIT.failed;
  }
  const clients = await chooseClients(names, questions);
  if (clients === undefined) return cancelled();
  const isConfined = options.sandbox ?? (await wantsConfinement(found, questions));
  if (isConfined === undefined) return cancelled();
  const prepared = await confinedImport(settings, found, { isConfined, isShown: options.sandbox === true, questions });
  if (prepared === undefined) return cancelled();
  const { plan, target, added, retried } = prepared;
  tellIntention(prepared, clients);
  const chosen = clients.map(({ client }) => client);
  const two = twoFiles(
    plan.filter((each) => isTaken(each, clients, [each.key ?? ''])),
    target.config,
  );
  for (const each of two) tell(describeTwoFiles(each));
  if (isDryRun) {
    await report.print({ dryRun: true, clients: chosen, import: toJson(prepared, false) });
    return EXIT.ok;
  }
  if (questions !== undefined && !(await questions.confirm('Do this?', { byDefault: true }))) return cancelled();

  if (added.length + retried.length > 0) await writeImport(prepared);
  const configured = { ...settings, config: target.config.file };
  const ofAdded = added.filter(({ entry }) => entry?.disabled !== true).map(({ key = '' }) => key);
  const enabled = [...ofAdded, ...retried];
  const endEarly = async (code: number) => {
    await withChangeLock(() => takeBack(prepared, enabled));
    tell('Ended before a client was changed. `trunkline init` begins again.');
    return code;
  };
  if (enabled.length > 0) tell('\nInstalling the packages of these servers:');
  // Collects failures without a report, because the start below installs a failed package again, and reports the failure.
  const faults: InstallFault[] = [];
  const step = { ...report.step('install'), onFault: (fault: InstallFault) => void faults.push(fault) };
  const installed =
    enabled.length > 0 ? await install({ settings: configured, words: enabled, isJson }, step) : EXIT.ok;
  // A signal ends the step that runs; nothing may follow it.
  if (isInterrupted(installed)) return await endEarly(installed);
  const onDisk = faults.find(isOfDisk);
  if (onDisk !== undefined) {
    tell(`trunkline: ${onDisk.message}`);
    return await endEarly(EXIT.failed);
  }
  // Copies files before the servers run, because they would begin with files of their own.
  for (const line of await carryFromNpx(configured, plan)) tell(line);
  for (const each of two) useNewer(each);
  tell('\nStarting every server once:');
  const tried = await tryServers(configured, [], report.step('check'));
  const { exitCode, sound, open, broken } = tried;
  if (isInterrupted(exitCode)) return await endEarly(exitCode);
  const loggedIn = await offerLogins(configured, open, questions);
  const written = await withChangeLock(() => disableBroken(prepared, tried));
  const taken = plan.filter((each) => isTaken(each, clients, [...sound, ...loggedIn])).map(({ found }) => found);
  tell('\nRegistering Trunkline:');
  const registered = await registerAndTakeOut(clients, taken, target.config.file, report.step('connect'));
  const unknown = open.filter((key) => !loggedIn.includes(key));
  tellEnd(written, broken);
  if (unknown.length > 0) tell(`\n${OPEN_LOGINS}\n${unknown.map((key) => `  trunkline login ${key}`).join('\n')}`);
  await report.print({ dryRun: false, clients: chosen, import: toJson(written, added.length > 0) });
  return Math.max(installed, exitCode, registered);
}

const OPEN_LOGINS =
  'These servers wait for a login, so the clients keep their own entries. `trunkline init` removes these after the login:';

/** Offers the login at each of these servers. Resolves with the keys of the servers at which the user has logged in. */
async function offerLogins(
  settings: GlobalOptions,
  keys: readonly string[],
  questions: Questions | undefined,
): Promise<readonly string[]> {
  const loggedIn: string[] = [];
  for (const key of questions === undefined ? [] : keys) {
    if (!(await questions?.confirm(`Log in at ${key} now? The browser opens.`, { byDefault: true }))) continue;
    const { login } = await import('../logins/log-in.js');
    const code = await login({ settings, words: [key], behind: undefined, options: {}, isJson: false });
    if (code === EXIT.ok) loggedIn.push(key);
  }
  return loggedIn;
}

/** An import, with the keys of the servers that an earlier run has disabled, and that this run enables and tries again. */
interface Retrying extends PreparedImport {
  readonly retried: readonly string[];
}

function withRetries(prepared: PreparedImport): Retrying {
  const { file, text = '' } = prepared.target.config;
  const disabled = disabledByInit(text);
  const wanted = prepared.plan.filter(({ verdict, found }) => verdict === 'same' && !found.isDisabled);
  const retried = [...disabled.keys()].filter((key) => wanted.some((each) => each.key === key));
  const edited = retried.reduce((before, key) => {
    return editConfig(before, file, { kind: 'disable', key, isDisabled: false });
  }, prepared.edited);
  return { ...prepared, edited, retried };
}

/** A server that was enabled in the configuration before stays enabled, because other clients may use it through Trunkline. */
function disableBroken(prepared: Retrying, { broken, reasons }: Tried): PreparedImport {
  const isBroken = ({ key = '', entry }: PlannedServer) => entry !== undefined && broken.includes(key);
  const added = prepared.added.filter(isBroken).map(({ key = '' }) => key);
  const config = openConfig(prepared.target.config.file);
  // Another command may have removed one meanwhile.
  const present = entriesIn(config.text ?? '');
  const failed = [...added, ...prepared.retried.filter((key) => broken.includes(key))].filter((key) => key in present);
  if (failed.length === 0) return prepared;
  const edited = failed.reduce((text, key) => {
    const because = shortened(reasons.get(key) ?? 'it did not start');
    return editConfig(text, config.file, { kind: 'disable', key, isDisabled: true, because });
  }, config.text ?? '');
  saveConfig(config, edited);
  const disabled = ({ entry, ...rest }: PlannedServer) => ({ ...rest, entry: { ...entry, disabled: true } });
  const plan = prepared.plan.map((each) => (isBroken(each) ? disabled(each) : each));
  return { ...prepared, plan, edited };
}

/**
 * Restores the configuration from before the import. Disables the servers instead if another command has changed the file, or if it had no
 * servers before, because a client with Trunkline would otherwise have them twice.
 */
function takeBack(prepared: Retrying, enabled: readonly string[]): void {
  const { file, text } = prepared.target.config;
  const now = openConfig(file);
  if (enabled.length === 0) return;
  const isOurs = now.text === prepared.edited;
  if (isOurs && text === undefined) rmSync(file);
  else if (isOurs && Object.keys(entriesIn(text ?? '')).length > 0) saveConfig(now, text ?? '');
  else {
    const reasons = new Map(enabled.map((key) => [key, 'it was ended before it had tried the server']));
    disableBroken(prepared, { broken: enabled, reasons });
  }
}

interface Tried {
  readonly broken: readonly string[];
  /** Reasons by the key of the server. */
  readonly reasons: ReadonlyMap<string, string>;
}

const MAX_REASON = 160;

/** The first line of a reason, for a comment. */
function shortened(reason: string): string {
  const [line = ''] = reason.split('\n');
  return line.length > MAX_REASON ? `${line.slice(0, MAX_REASON)}…` : line;
}

function isInterrupted(exitCode: number): boolean {
  return exitCode > 128;
}

function cancelled(): number {
  tell('Nothing was changed.');
  return EXIT.failed;
}

/** Asks whether to confine the imported servers, if the machine can do it. `undefined` if the user gives up. */
async function wantsConfinement(
  { added }: PreparedImport,
  questions: Questions | undefined,
): Promise<boolean | undefined> {
  const hasProgram = added.some(({ run }) => run !== undefined && !('url' in run.program));
  if (questions === undefined || !hasProgram || !(await confinement()).isAvailable) return false;
  tell('A confined server sees itself, a home folder of its own and what its entry opens, and nothing else of yours.');
  return await questions.confirm('Confine the imported servers?', { byDefault: false });
}

/** The import with confined servers, which may use the paths of their entries if the user agrees. `undefined` if the user gives up. */
async function confinedImport(
  settings: GlobalOptions,
  found: Retrying,
  { isConfined, isShown, questions }: { isConfined: boolean; isShown: boolean; questions: Questions | undefined },
): Promise<Retrying | undefined> {
  if (!isConfined) return found;
  const prepared = isShown ? found : withRetries(await prepareImport(settings, { sandbox: true }));
  const opensAny = isShown ? prepared.added.some(({ opened = [] }) => opened.length > 0) : tellOpened(prepared.added);
  if (!opensAny || questions === undefined) return prepared;
  const isAgreed = await questions.confirm('Open these files and folders, which the entries name?', {
    byDefault: true,
  });
  if (isAgreed === undefined) return undefined;
  return isAgreed ? prepared : withRetries(await prepareImport(settings, { sandbox: true }, false));
}

async function chooseClients(
  names: readonly string[],
  questions: Questions | undefined,
): Promise<readonly KnownClient[] | undefined> {
  if (names.length > 0) return clientsNamed(names);
  const system = thisSystem();
  const here = CLIENTS.filter((client) => isInstalled(client, system));
  if (questions === undefined || here.length === 0) return here;
  const choices = here.map((client) => ({ value: client, label: client.title }));
  return await questions.choose('Register Trunkline with which clients? (space: choose, enter: go on)', choices);
}

function tellIntention({ added, retried }: Retrying, clients: readonly KnownClient[]): void {
  if (retried.length > 0)
    tell(`\nTrunkline tries again what did not start when it was imported: ${retried.join(', ')}.`);
  const names = clients.map(({ title }) => title).join(', ');
  const imports = added.length === 0 ? '' : `imports ${plural(added.length, 'server')}, `;
  tell(
    clients.length === 0
      ? '\nNo client was found on this machine, so Trunkline would be registered nowhere. `trunkline connect CLIENT` registers it later.'
      : `\nTrunkline ${imports}starts every server once, registers itself with ${names}, and takes the servers that work out of the files of these clients, because it runs them then. \`trunkline undo\` takes the changes of the clients back.`,
  );
}

/** Whether to remove a server from its client. False if it does not work, and for extensions and files of projects. */
function isTaken(
  { found, key = '', verdict }: PlannedServer,
  clients: readonly KnownClient[],
  sound: readonly string[],
) {
  const isOurs = verdict === 'new' || verdict === 'renamed' || verdict === 'same';
  const isChosen = clients.some(({ client }) => client === found.place.client);
  const isOfUser = found.place.scope === 'user' || found.place.scope === 'local';
  return isOurs && isChosen && isOfUser && sound.includes(key);
}

/** Advice on disabled servers without the comment of `init`: another command has disabled them, or the file is JSON. */
const AFTER_MENDING =
  'Correct an entry there, then enable and try it: `trunkline enable NAME`, `trunkline check NAME`. If it works, `trunkline init` takes it over.';

const AFTER_FAULT =
  'The next `trunkline init` tries again, for example with a network. If an entry is wrong, correct it there first.';

const SHARED =
  ' They share these servers in one background process: `trunkline ps` shows it, and `trunkline stop` ends it.';

function tellEnd({ plan, edited, target }: PreparedImport, broken: readonly string[]): void {
  const { file } = target.config;
  const present = entriesIn(edited);
  const isOff = (key: string) => isRecord(present[key]) && present[key].disabled === true;
  const keysOf = (verdicts: readonly PlannedServer[]) => [...new Set(verdicts.flatMap(({ key }) => key ?? []))];
  const failed = keysOf(plan).filter((key) => broken.includes(key));
  const off = failed.filter(isOff);
  const byInit = disabledByInit(edited);
  const enabled = failed.filter((key) => !isOff(key));
  const untried = keysOf(plan.filter(({ verdict, found }) => verdict === 'same' && !found.isDisabled)).filter(
    (key) => isOff(key) && !broken.includes(key),
  );
  for (const isNoted of [true, false]) {
    const disabled = off.filter((key) => byInit.has(key) === isNoted);
    if (disabled.length === 0) continue;
    const next = isNoted ? AFTER_FAULT : AFTER_MENDING;
    tell(
      `\n${disabled.join(', ')}: did not start, so the clients keep their own entries, and Trunkline does not run ${disabled.length === 1 ? 'it' : 'them'}: disabled in ${file}. The reasons are above.\n${next} To give one up: \`trunkline remove NAME\`.`,
    );
  }
  if (enabled.length > 0) {
    tell(
      `\n${enabled.join(', ')}: did not start, so the clients keep their own entries, too. The reasons are above; \`trunkline doctor\` looks further.\nCorrect the entries in ${file}; \`trunkline check NAME\` tries one. Then \`trunkline init\` removes them from the clients. To leave one to the clients: \`trunkline disable NAME\`.`,
    );
  }
  if (untried.length > 0)
    tell(`\n${untried.join(', ')}: disabled in ${file}, so the clients keep their own entries.\n${AFTER_MENDING}`);
  for (const line of describeUnwanted(plan)) tell(line);
  const ofProjects = plan.filter(({ found }) => found.place.scope === 'project');
  for (const each of new Set(ofProjects.map(({ found }) => found.place.file)))
    tell(`\n${each} belongs to a project and was left as it is, so its servers exist twice there.`);
  const extensions = plan.filter(({ found, key }) => found.place.scope === 'extension' && key !== undefined);
  if (extensions.length > 0) {
    const names = extensions.map(({ found }) => found.name).join(', ');
    tell(`\nDisable these extensions in Claude Desktop (Settings, Extensions), or their tools exist twice: ${names}.`);
  }
  tell(
    `\nThe servers are in ${file}. Restart your clients.${isHubOn(file) ? SHARED : ''} To take the changes of the clients back: \`trunkline undo\`.`,
  );
}

/** Says why an entry of a client did not become a server that runs: it equals another entry, or is disabled. */
export function describeUnwanted(plan: readonly PlannedServer[]): string[] {
  const equal = plan.flatMap(({ verdict, found, key = '' }, at) => {
    const [first] = plan.filter((each, before) => before < at && each.key === key);
    if (verdict !== 'same' || first === undefined || !(found.isDisabled || found.name !== first.found.name)) return [];
    const disabled = found.isDisabled ? ', disabled' : '';
    return [
      `${found.name} (${found.place.title}${disabled}): runs the same as ${first.found.name} (${first.found.place.title}), so Trunkline has one server for both, ${key}.`,
    ];
  });
  const off = plan.filter(({ entry, found }) => entry?.disabled === true && found.isDisabled);
  const disabled = off.map(({ found, key }) => {
    return `${found.name} (${found.place.title}): disabled there, so it was not started, and is disabled in Trunkline. To use it: \`trunkline enable ${key}\`.`;
  });
  return [...equal, ...disabled].map((line) => `\n${line}`);
}

/** Collects the JSON of the steps of `trunkline init --json`, which `print` prints as one value. A step that did not run is `null`. */
function stepReport(isJson: boolean) {
  const values = { install: [] as unknown[], check: [] as unknown[], connect: [] as unknown[] };
  return {
    step: (step: keyof typeof values) => ({ isJson, emit: (value: unknown) => void values[step].push(value) }),
    print: async (plan: {
      readonly dryRun: boolean;
      readonly clients: readonly string[];
      readonly import: unknown;
    }) => {
      const { install, check, connect } = values;
      // Registering clients and removing servers make two lists of changes.
      const changes = connect.flatMap((each) => (isRecord(each) && Array.isArray(each.changes) ? each.changes : []));
      if (isJson) await printJson({ ...plan, install: install[0] ?? null, check: check[0] ?? null, changes });
    },
  };
}
