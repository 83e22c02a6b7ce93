import { homedir } from 'node:os';
import type { CheckedFile } from '../config/file/check-file.js';
import { ConfigError } from '../config/file/config-error.js';
import { currentFolder, findProjectFile, readConfigText } from '../config/file/find-config.js';
import type { Config, Origin } from '../config/resolve/config.js';
import type { ResolvedProject } from '../config/resolve/layers.js';
import { below } from '../config/resolve/nesting.js';
import type { Secret } from '../config/resolve/references.js';
import { type LoadOptions, resolveConfig } from '../config/resolve/resolve-config.js';
import { fileState, realPath, statesOf, statOf } from '../host/files/whole-file.js';
import type { ConfigCache } from '../state/config-cache.js';
import { readTrusted, TrustedFileError, type TrustedProject } from '../state/trusted-projects.js';
import { trustedFile } from '../state/user-files.js';
import { NewestMap } from '../wire/io/newest-map.js';
import { printable, printableLines } from '../wire/json/printable.js';

/**
 * The trusted projects that count beside the file: those of all folders, for a hub, or the one around the working folder of the origin. None
 * for clients over HTTP, which have no folder on this machine.
 */
export type LayerScope = 'all' | 'own';

interface LayerOptions {
  readonly scope: LayerScope;
  readonly origin: Origin | undefined;
  readonly checkedFiles: ConfigCache | undefined;
  /** Returns the facts with which a file is resolved, with the secrets of a checked file. */
  readonly resolve: (file: string, checked: CheckedFile, origin: Origin | undefined) => Promise<LoadOptions>;
}

/** Limit of the folders whose project is remembered. */
const MAX_FOLDERS = 1_000;

/**
 * Adds the servers of trusted projects to the configuration of the user, as the person has accepted them: the present text of a
 * project's file is compared, and never used. A project without a file any more does not count.
 */
export async function withLayers(user: Config, written: CheckedFile, options: LayerOptions): Promise<Config> {
  const { scope, origin } = options;
  const own = realPath(user.file) ?? user.file;
  const home = homedir();
  const workingFolder = origin?.folder ?? currentFolder();
  // Links and files may change, so that this configuration keeps one answer for each folder until it is read again.
  const found = new NewestMap<string, { readonly file: string | undefined }>(MAX_FOLDERS);
  const fileOf = (folder = scope === 'own' ? workingFolder : '') => {
    if (folder === '') return undefined;
    const known = found.get(folder) ?? { file: findProjectFile(folder, home) };
    found.set(folder, known);
    return known.file;
  };
  const list = trustedFile();
  const before = statesOf([list]);
  const { trusted, fault } = readList(list);
  const files = [list, ...trusted.map(({ file }) => file)];
  // The list may be replaced while it is read. Then its state is the one before, so that it is read again.
  const states = [before, ...files.slice(1).map(fileState)].join();
  const isOwn = (file: string) => (realPath(file) ?? file) === own;
  const isWanted = ({ file }: TrustedProject) =>
    !isOwn(file) && (scope === 'own' ? file === fileOf() : statOf(file)?.isFile() === true);
  const projects: ResolvedProject[] = [];
  const faults = new Map<string, string>();
  for (const project of trusted.filter(isWanted)) {
    try {
      projects.push(await resolveProject(project, user, written, options));
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      faults.set(project.file, error.report);
    }
  }
  const usable = new Set(projects.map(({ config }) => config.file));
  const remarkOn = (folder: string | undefined) => {
    const file = fileOf(folder);
    return file === undefined || isOwn(file) ? undefined : remarkOnProject(file, trusted, fault, faults.get(file));
  };
  const layers = {
    projectOf: (folder: string | undefined) => {
      const file = fileOf(folder);
      return file !== undefined && usable.has(file) ? file : undefined;
    },
    remarkOn,
    files,
    states,
  };
  if (projects.length === 0) return { ...user, layers: { ...layers, hidden: new Map() } };
  const { layered } = await import('../config/resolve/layers.js');
  return layered(user, projects, layers);
}

function readList(list: string): { readonly trusted: readonly TrustedProject[]; readonly fault?: string } {
  try {
    return { trusted: readTrusted(list) };
  } catch (error) {
    if (!(error instanceof TrustedFileError)) throw error;
    return { trusted: [], fault: `${list} is not used: ${error.message}` };
  }
}

async function resolveProject(
  { file, text }: TrustedProject,
  user: Config,
  written: CheckedFile,
  { origin, checkedFiles, resolve }: LayerOptions,
): Promise<ResolvedProject> {
  const { asProject } = await import('../config/resolve/layers.js');
  // The defaults of the user decide, too, what the text means.
  const whole = `${JSON.stringify(written.shared)}\n${text}`;
  const cached = checkedFiles?.find(file, whole);
  const checked = cached ?? (await import('../config/file/check-file.js')).checkFile(text, file, written.shared);
  if (cached === undefined) checkedFiles?.put(file, whole, checked);
  const project = asProject(checked, file, written);
  // Secrets are those of the user, with the commands of the user, and packages are locked in the file beside the user's.
  const options = await resolve(user.file, project, origin);
  const secrets = withoutCommands(checked, options.secrets);
  const config = resolveConfig(file, project, { ...options, env: below(user.file, options.env), secrets });
  return { config, keys: [...checked.servers.map(({ key }) => key), ...checked.disabled] };
}

/** Refuses the secrets for which the project has a command, because another secret of the user may have the same name. */
function withoutCommands(
  { secretCommands }: CheckedFile,
  secrets: LoadOptions['secrets'],
): ReadonlyMap<string, Secret> {
  const all = new Map<string, Secret>(secrets);
  for (const name of Object.keys(secretCommands))
    all.set(name, {
      fault: `the command of the secret ${name} is in the file of a project, where \`secretCommand\` does not count`,
      hint: `remove it there, and store the secret with \`trunkline secret set ${name}\` or name its command in your own file`,
    });
  return all;
}

function remarkOnProject(
  path: string,
  trusted: readonly TrustedProject[],
  fault: string | undefined,
  mistakes: string | undefined,
): string | undefined {
  if (fault !== undefined)
    return `No project is trusted, because ${fault}. Repair or remove it, then run \`trunkline trust\` again.`;
  const known = trusted.find((each) => each.file === path);
  // A repository chooses the names of its folders, and a model reads the remark.
  const file = printable(path);
  if (known === undefined)
    return `${file} does nothing, because nobody has trusted it: \`trunkline trust\` in its folder shows what it would run, and asks.`;
  if (mistakes !== undefined) return `The accepted text of ${file} cannot be used: ${printableLines(mistakes)}`;
  if (textNow(path) === known.text) return undefined;
  return `${file} has changed since it was trusted. The accepted text stays in use: \`trunkline trust\` in its folder shows the changes, and asks.`;
}

function textNow(file: string): string | undefined {
  try {
    return readConfigText(file);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return undefined;
  }
}
