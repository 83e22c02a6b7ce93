import { accessSync, constants } from 'node:fs';
import { errorCode } from '../errors/error-text.js';
import { type Finding, finding } from './finding.js';
import { type Machine, variableOf } from './machine.js';

const PROXIES = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY'];
const CERTIFICATE_FILES = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'REQUESTS_CA_BUNDLE'];
const LOCAL = /(?:^|[,\s])(?:\*|localhost|127\.0\.0\.1|\[?::1\]?)(?=$|[,\s:])/i;

/** Whether the variables for proxies and certificates make sense. Servers inherit them. Values may hold passwords. */
export function checkNetwork(machine: Pick<Machine, 'env' | 'platform'>): Finding[] {
  const read = (name: string) => variableOf(machine, name) || variableOf(machine, name.toLowerCase()) || undefined;
  const set = PROXIES.filter((name) => read(name) !== undefined);
  const malformed = set.filter((name) => !/^[a-z][\w+.-]*:\/\/\S+$/i.test(read(name) ?? ''));
  const found = malformed.map((name) => finding('TL-PROXY-MALFORMED', `${name} is not a URL`));
  if (set.length > 0 && !LOCAL.test(read('NO_PROXY') ?? ''))
    found.push(finding('TL-PROXY-LOCALHOST', `${set.join(' and ')} is set, and NO_PROXY lacks localhost`));
  for (const name of CERTIFICATE_FILES) {
    const file = variableOf(machine, name);
    const fault = file ? unreadable(file) : undefined;
    if (fault !== undefined && file !== undefined)
      found.push(
        finding('TL-CERT-MISSING', `${name} names a file that cannot be read (${fault})`, { evidence: [file] }),
      );
  }
  return found;
}

function unreadable(file: string): string | undefined {
  try {
    accessSync(file, constants.R_OK);
    return undefined;
  } catch (error) {
    return errorCode(error) ?? 'unknown error';
  }
}
