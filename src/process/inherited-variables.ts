/** The same variables as in the stdio client of the MCP SDK: enough to run, without secrets. */
const ON_POSIX = ['HOME', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'USER'];
const ON_WINDOWS = [
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
const EVERYWHERE = ['LANG', 'TMPDIR', 'TZ'];

/** Needed to reach anything from behind a private certificate authority. */
const CERTIFICATES = [
  'NODE_EXTRA_CA_CERTS',
  'NODE_USE_SYSTEM_CA',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'REQUESTS_CA_BUNDLE',
];
/** Needed to reach anything from behind a proxy. Programs read these names in upper or in lower case. */
const PROXIES = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY', 'NODE_USE_ENV_PROXY'];

const NETWORK = new Set([...CERTIFICATES, ...PROXIES]);

const INHERITED_ON_POSIX = new Set([...ON_POSIX, ...EVERYWHERE]);
const INHERITED_ON_WINDOWS = new Set([...ON_WINDOWS, ...EVERYWHERE]);

/** Whether every server gets this variable of the gateway. `platform` is as in `process.platform`. */
export function isInherited(name: string, platform: string): boolean {
  const isWindows = platform === 'win32';
  const key = isWindows ? name.toUpperCase() : name;
  const inherited = isWindows ? INHERITED_ON_WINDOWS : INHERITED_ON_POSIX;
  return inherited.has(key) || key.startsWith('LC_') || isOfNetwork(name);
}

export function isOfNetwork(name: string): boolean {
  return NETWORK.has(name.toUpperCase());
}
