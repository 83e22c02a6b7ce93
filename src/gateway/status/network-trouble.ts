import { ERROR_SIGNS } from '../../errors/error-signs.js';

/** A cause of failed starts that a server's own output names, and its cure. Both are phrases of a sentence. */
export interface NetworkTrouble {
  readonly problem: string;
  readonly cure: string;
}

/** How many of the last lines count: older ones can belong to an earlier start. */
const LAST_LINES = 20;

const WHERE = 'in the environment that starts Trunkline, or in `defaults.env` of the configuration';

/** Only the text that matches is shown again, since a line may say anything. */
const SIGNS: readonly (readonly [sign: RegExp, kind: string, cure: string])[] = [
  [
    ERROR_SIGNS.certificate.text,
    'certificate',
    `behind a private certificate authority, set \`NODE_EXTRA_CA_CERTS\` (for Python, \`SSL_CERT_FILE\`) to the file with its certificates, ${WHERE}`,
  ],
  [ERROR_SIGNS.network.text, 'network', `check the network connection; behind a proxy, set \`HTTPS_PROXY\`, ${WHERE}`],
];

/** Finds a certificate or network error in the last lines of a server's log; certificate errors come first. */
export function findNetworkTrouble(lines: readonly string[]): NetworkTrouble | undefined {
  const last = lines.slice(-LAST_LINES).join('\n');
  for (const [sign, kind, cure] of SIGNS) {
    const found = sign.exec(last)?.[0];
    if (found !== undefined) return { problem: `a ${kind} error (${found})`, cure };
  }
  return undefined;
}
