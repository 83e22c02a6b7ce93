export interface ChildEnvironmentOptions {
  /** The variables of the gateway process. */
  readonly parent: Readonly<Record<string, string | undefined>>;
  /** `env` of the server in the configuration; overrides the parent. */
  readonly declared: Readonly<Record<string, string>>;
  /** Folder of the running Node; it comes first in the PATH of the child. */
  readonly nodeDirectory: string;
  /** As in `process.platform`. */
  readonly platform: string;
}

/** The same variables as in the stdio client of the MCP SDK: enough to run, without secrets. */
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
/** Needed for the right language, encoding, time zone and temporary folder. */
const INHERITED_EVERYWHERE = ['LANG', 'TMPDIR', 'TZ'];

/**
 * The complete environment of a child: an allowlist of the gateway's variables, the `env` of its configuration, and a PATH
 * on which `node` is the Node that runs the gateway.
 */
export function childEnvironment(options: ChildEnvironmentOptions): Record<string, string> {
  const { parent, declared, nodeDirectory, platform } = options;
  const isWindows = platform === 'win32';
  // Names are case-insensitive on Windows ("Path"), and a child must not get the same name twice.
  const canonical = (name: string) => (isWindows ? name.toUpperCase() : name);
  const inherited = new Set([...(isWindows ? INHERITED_ON_WINDOWS : INHERITED_ON_POSIX), ...INHERITED_EVERYWHERE]);
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(parent)) {
    const key = canonical(name);
    const isWanted = inherited.has(key) || key.startsWith('LC_');
    // A value such as "() { …" is an exported shell function, which another shell would execute.
    if (isWanted && value !== undefined && !value.startsWith('()')) environment[key] = value;
  }
  for (const [name, value] of Object.entries(declared)) environment[canonical(name)] = value;
  const path = environment.PATH;
  environment.PATH = path ? `${nodeDirectory}${isWindows ? ';' : ':'}${path}` : nodeDirectory;
  return environment;
}
