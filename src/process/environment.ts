export interface ChildEnvironmentOptions {
  /** The variables of our own process. */
  readonly parent: Readonly<Record<string, string | undefined>>;
  /** What the entry of the configuration sets; it wins over the parent. */
  readonly declared: Readonly<Record<string, string>>;
  /** Where our Node lives; it comes first in the child's PATH. */
  readonly nodeDirectory: string;
  /** As in `process.platform`. */
  readonly platform: string;
}

/** What the MCP SDK's stdio client passes on, too: enough to run, and no secrets. */
const INHERITED_ON_POSIX = ['HOME', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'USER'];
const INHERITED_ON_WINDOWS = [
  'APPDATA',
  'HOMEDRIVE',
  'HOMEPATH',
  'LOCALAPPDATA',
  'PATH',
  'PROCESSOR_ARCHITECTURE',
  'SYSTEMDRIVE',
  'SYSTEMROOT',
  'TEMP',
  'USERNAME',
  'USERPROFILE',
  'PROGRAMFILES',
];
/** Without these, text comes out in the wrong language or encoding, times are off, and temporary files go astray. */
const INHERITED_EVERYWHERE = ['LANG', 'TMPDIR', 'TZ'];

/**
 * The whole environment of a child: an allowlist of our own variables, what its entry declares, and a PATH on which
 * a shebang's `node` is the Node that we run on.
 */
export function childEnvironment(options: ChildEnvironmentOptions): Record<string, string> {
  const { parent, declared, nodeDirectory, platform } = options;
  const isWindows = platform === 'win32';
  // Windows does not care how a name is spelt ("Path"), but a child must not get two spellings of one name.
  const canonical = (name: string) => (isWindows ? name.toUpperCase() : name);
  const inherited = new Set([...(isWindows ? INHERITED_ON_WINDOWS : INHERITED_ON_POSIX), ...INHERITED_EVERYWHERE]);
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(parent)) {
    const key = canonical(name);
    const isWanted = inherited.has(key) || key.startsWith('LC_');
    // A value like "() { …" is a function that a shell exported, and would be run by another shell.
    if (isWanted && value !== undefined && !value.startsWith('()')) environment[key] = value;
  }
  for (const [name, value] of Object.entries(declared)) environment[canonical(name)] = value;
  const path = environment.PATH;
  environment.PATH = path ? `${nodeDirectory}${isWindows ? ';' : ':'}${path}` : nodeDirectory;
  return environment;
}
